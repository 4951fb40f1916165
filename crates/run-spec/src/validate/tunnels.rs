//! Validation of tunnels.

use jostle_link::registry;
use jostle_units::{
    DATAGRAM_HEADER_BYTES, FlowId, LinkId, MAX_MTU_BYTES, QUIC_DATAGRAM_OVERHEAD_BYTES, mss_of,
};

use super::{MAX_BYTES, SpecError, SpecPath, within};
use crate::{
    CapacitySpec, FlowSpec, LinkPart, LinkSpec, QuicHandshake, RunSpec, Transport, TunnelSpec,
};

/// Maximum bytes that a tunnel adds to a packet: more than any encapsulation.
const MAX_HEADER_BYTES: u32 = 1_000;

impl FlowSpec {
    /// Returns the largest inner IP packet of a tunnel that one packet of the connection carries.
    pub fn tunnel_mtu_bytes(&self, tunnel: &TunnelSpec) -> u32 {
        let payload_bytes = match self.transport {
            Transport::Tcp => mss_of(self.mtu_bytes),
            Transport::Udp => self.mtu_bytes - DATAGRAM_HEADER_BYTES,
            Transport::Quic => {
                self.mtu_bytes - DATAGRAM_HEADER_BYTES - QUIC_DATAGRAM_OVERHEAD_BYTES
            }
        };
        payload_bytes.saturating_sub(tunnel.header_bytes)
    }
}

/// Checks the links of tunnels: each is the link of one connection, which does not cross a tunnel.
pub(super) fn check_links(spec: &RunSpec) -> Result<(), SpecError> {
    for (i, link) in spec.links.iter().enumerate() {
        let CapacitySpec::Tunnel { flow } = link.capacity else { continue };
        let at = format_args!("links[{i}]");
        let carrier = spec.flows.get(flow.index()).filter(|carrier| {
            carrier.source.tunnel().is_some_and(|tunnel| tunnel.link == LinkId::at(i))
        });
        let Some(carrier) = carrier else {
            let expected = "the position of the tunnel that names this link";
            return Err(SpecError::unfit(format_args!("{at}.capacity.flow"), flow, expected));
        };
        let tunnels = carrier.paths().chain(carrier.reverse_paths()).flatten();
        let mut nested = tunnels.filter_map(|link| spec.links.get(link.index())).filter(is_tunnel);
        if let Some(nested) = nested.next() {
            let given = format!("over `{}`", nested.name);
            let expected = "a path without tunnels: no tunnel is in a tunnel";
            return Err(SpecError::unfit(format_args!("flows[{flow}].path"), given, expected));
        }
        check_has_only_queue(at, link)?;
    }
    Ok(())
}

fn is_tunnel(link: &&LinkSpec) -> bool {
    matches!(link.capacity, CapacitySpec::Tunnel { .. })
}

/// Checks that the link has nothing but a queue and a constant delay.
fn check_has_only_queue(at: SpecPath<'_>, link: &LinkSpec) -> Result<(), SpecError> {
    let others = [
        ("framing", link.framing.is_some()),
        ("ack_thinning", link.ack_thinning.is_some()),
        ("frames", link.frames.is_some()),
        ("loss", link.loss.is_some()),
        ("loss_steps", !link.loss_steps.is_empty()),
        ("outages", link.outages.is_some()),
        ("faults", link.faults.is_some()),
        ("netem", link.netem.is_some()),
        ("grants", link.grants.is_some()),
        ("quick_start", link.quick_start.is_some()),
    ];
    if let Some((key, _)) = others.iter().find(|(_, there)| *there) {
        let expected = "absent: a tunnel has only a queue and a delay";
        return Err(SpecError::unfit(format_args!("{at}.{key}"), "there", expected));
    }
    if link.delay.jitter.is_some() || link.delay.steps.len() != 1 {
        let expected = "one delay: others are of the links below the tunnel";
        return Err(SpecError::unfit(format_args!("{at}.delay"), "not constant", expected));
    }
    let classes = link.classes.iter().flatten().map(|class| &class.queue);
    for queue in classes.chain([&link.queue]) {
        if is_shaper(queue) {
            let given = format!("`{}`", queue.kind);
            let expected = "a queue without a rate of its own: the connection sets the rate";
            return Err(SpecError::unfit(format_args!("{at}.queue.kind"), given, expected));
        }
    }
    Ok(())
}

/// Returns whether a queue limits the rate.
fn is_shaper(queue: &LinkPart) -> bool {
    let row = registry::queue::<()>(&queue.kind);
    let random = jostle_units::RandomStream::new(0, "tunnel");
    let made = row.and_then(|row| row.create(&queue.parameters, random));
    made.is_ok_and(|queue| !queue.shapers().is_empty())
}

/// Checks one direction of a tunnel. `at` is the path of its flow.
pub(super) fn check(
    at: SpecPath<'_>,
    flow: &FlowSpec,
    position: FlowId,
    spec: &RunSpec,
) -> Result<(), SpecError> {
    let Some(tunnel) = flow.source.tunnel() else { return Ok(()) };
    let source = format_args!("{at}.source");
    let capacity = spec.links.get(tunnel.link.index()).map(|link| &link.capacity);
    if capacity != Some(&CapacitySpec::Tunnel { flow: position }) {
        let expected = "the position of the link whose capacity this tunnel is";
        return Err(SpecError::unfit(format_args!("{source}.link"), tunnel.link, expected));
    }
    within(format_args!("{source}.header_bytes"), tunnel.header_bytes, 0..=MAX_HEADER_BYTES)?;
    within(format_args!("{source}.send_buffer_bytes"), tunnel.send_buffer_bytes, 1..=MAX_BYTES)?;
    let absent = [
        ("after", flow.after.is_some()),
        ("stop_ns", flow.stop_ns.is_some()),
        ("receiver", flow.receiver.is_some()),
        ("reader", flow.reader.is_some()),
    ];
    if let Some((key, _)) = absent.iter().find(|(_, there)| *there) {
        let expected = "absent: a tunnel stays open, and its receiver forwards packets at once";
        return Err(SpecError::unfit(format_args!("{at}.{key}"), "there", expected));
    }
    if let Some(quic) = &flow.quic {
        let keys = [
            ("handshake", quic.handshake != QuicHandshake::OneRtt, "`1rtt`"),
            ("mtu_discovery", quic.mtu_discovery, "false: the size of datagrams is constant"),
            ("gso_packets", quic.gso_packets != 1, "1: packets leave one by one"),
            ("implementation", quic.implementation.is_some(), "absent: jostle's endpoints"),
        ];
        if let Some((key, _, expected)) = keys.iter().find(|(_, wrong, _)| *wrong) {
            return Err(SpecError::unfit(format_args!("{at}.quic.{key}"), "another", *expected));
        }
        let payload_bytes = flow.mtu_bytes - DATAGRAM_HEADER_BYTES;
        if quic.initial_mtu_bytes != payload_bytes {
            let expected = format!("{payload_bytes}, the payload of the largest packet");
            let at = format_args!("{at}.quic.initial_mtu_bytes");
            return Err(SpecError::unfit(at, quic.initial_mtu_bytes, expected));
        }
    }
    check_inside(flow, tunnel, spec)
}

/// Checks that the packets of all flows inside a tunnel of datagrams fit into one datagram. The
/// byte stream of TCP carries packets of any size.
fn check_inside(carrier: &FlowSpec, tunnel: &TunnelSpec, spec: &RunSpec) -> Result<(), SpecError> {
    let largest_bytes = match carrier.transport {
        Transport::Tcp => MAX_MTU_BYTES,
        Transport::Udp | Transport::Quic => carrier.tunnel_mtu_bytes(tunnel),
    };
    for (i, flow) in spec.flows.iter().enumerate().filter(|(_, flow)| flow.crosses(tunnel.link)) {
        if flow.mtu_bytes > largest_bytes {
            let expected = format!(
                "at most {largest_bytes}: a datagram of the tunnel `{}` carries no more",
                carrier.name
            );
            return Err(SpecError::unfit(
                format_args!("flows[{i}].mtu_bytes"),
                flow.mtu_bytes,
                expected,
            ));
        }
        let both = flow.paths().chain(flow.reverse_paths());
        if both.flatten().filter(|link| **link == tunnel.link).count() > 1 {
            let at = format_args!("flows[{i}].path");
            return Err(SpecError::unfit(at, "twice through the tunnel", "each tunnel once"));
        }
    }
    Ok(())
}
