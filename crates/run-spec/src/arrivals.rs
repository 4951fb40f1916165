//! Connections of a multi-connection flow: their arrival times and properties.

use std::collections::BTreeMap;

use jostle_congestion::EcnFeedback;
use jostle_controllers::registry;
use jostle_units::{HEADER_BYTES, RandomStream, Span, Time, mss_of};

use crate::{
    Algorithm, ArrivalsSpec, FlowRandomStreams, FlowSpec, Quantity, QuicHandshake, RouteSpec,
    RunSpec, SourceSpec,
};

/// Number of quantiles over which the header overhead is averaged. It is a bounded fraction of a
/// size, so that steps of a ten-thousandth are accurate enough.
const STEPS: u32 = 10_000;
/// Initial window of a client (`TCP_INIT_CWND`).
const CLIENT_INITIAL_WINDOW: u32 = 10;

/// Arrival times of a flow's connections.
#[derive(Clone, Debug)]
pub struct Arrivals {
    process: Process,
    random: RandomStream,
    start: Time,
    /// Time of the last arrival.
    last: Time,
    /// Number of arrivals so far.
    count: u32,
}

#[derive(Clone, Debug)]
enum Process {
    Poisson { mean_s: f64 },
    Listed { at_ns: Vec<u64> },
}

impl Arrivals {
    /// Creates the arrivals of a flow of a valid run; `None` for a single connection.
    pub fn of(flow: &FlowSpec, run: &RunSpec) -> Option<Self> {
        let process = match flow.arrivals.as_ref()? {
            ArrivalsSpec::Listed { at_ns, .. } => Process::Listed { at_ns: at_ns.clone() },
            _ => Process::Poisson { mean_s: 1.0 / rate_per_s(flow, run)? },
        };
        let random = FlowRandomStreams::of(run.seed, &flow.name).stream("arrivals");
        let start = Time::from_ns(flow.start_ns);
        Some(Self { process, random, start, last: start, count: 0 })
    }

    /// Returns the time of the next arrival; [`Time::NEVER`] after the last.
    pub fn next_at(&mut self) -> Time {
        self.last = match &self.process {
            Process::Poisson { mean_s } => {
                self.last + Span::from_secs_f64(self.random.exponential(*mean_s))
            }
            Process::Listed { at_ns } => match at_ns.get(self.count as usize) {
                Some(ns) => self.start + Span::from_ns(*ns),
                None => Time::NEVER,
            },
        };
        self.count += 1;
        self.last
    }
}

impl FlowSpec {
    /// Returns whether data follow without waiting for a handshake (QUIC's 0-RTT).
    pub fn skips_handshake(&self) -> bool {
        self.quic.as_ref().is_some_and(|quic| quic.handshake == QuicHandshake::ZeroRtt)
    }

    /// Returns whether the flow ends by itself, and other flows can start after it. Connections that
    /// arrive have no common end.
    pub const fn has_end(&self) -> bool {
        if self.arrivals.is_some() {
            return false;
        }
        match &self.source {
            SourceSpec::Fixed { .. } | SourceSpec::Trace(_) => true,
            SourceSpec::RequestResponse { count, .. } => count.is_some(),
            SourceSpec::Video(video) => video.segments.is_some(),
            SourceSpec::Web(web) => web.pages.is_some(),
            _ => false,
        }
    }

    /// Returns whether the flow has many connections, which open and close during the run.
    pub const fn is_many(&self) -> bool {
        self.arrivals.is_some() || matches!(self.source, SourceSpec::Web(_))
    }
}

/// Returns the size of the `number`-th connection of a flow, if its arrivals list sizes.
pub fn listed_bytes(flow: &FlowSpec, number: u32) -> Option<u64> {
    let Some(ArrivalsSpec::Listed { bytes: Some(bytes), .. }) = &flow.arrivals else { return None };
    Some(bytes.get(number as usize).copied().unwrap_or(1))
}

/// Returns the `number`-th connection of a multi-connection flow as a separate flow. Its name
/// determines its random streams ([`FlowRandomStreams::of_connection`]).
pub fn nth_connection(flow: &FlowSpec, number: u32) -> FlowSpec {
    let name = format!("{}/{number}", flow.name);
    let source = match listed_bytes(flow, number) {
        Some(bytes) => SourceSpec::Fixed { bytes: Quantity::Constant(bytes) },
        None => flow.source.clone(),
    };
    FlowSpec { name, source, arrivals: None, ..flow.clone() }
}

/// Returns the requests of a browser's `flow` as a separate flow, from the receiver to the sender. The
/// controller is the default of Linux, unless both ends need the controller for their ECN feedback, as
/// a user's controller may.
pub fn requests_of(flow: &FlowSpec) -> FlowSpec {
    let needs_feedback = flow.ecn
        && registry::controller(&flow.controller.name)
            .is_none_or(|row| row.required_ecn_feedback() != EcnFeedback::None);
    let (controller, slow_start) = match needs_feedback {
        true => (flow.controller.clone(), flow.slow_start.clone()),
        false => (Algorithm { name: "cubic".to_owned(), parameters: BTreeMap::default() }, None),
    };
    let opposite = |route: &RouteSpec| RouteSpec {
        at_ns: route.at_ns,
        path: route.reverse_path.clone(),
        reverse_path: route.path.clone(),
    };
    FlowSpec {
        name: format!("{}/requests", flow.name),
        controller,
        slow_start,
        path: flow.reverse_path.clone(),
        reverse_path: flow.path.clone(),
        routes: flow.routes.iter().map(opposite).collect(),
        sender_host: flow.receiver_host.clone(),
        receiver_host: flow.sender_host.clone(),
        initial_window_packets: CLIENT_INITIAL_WINDOW,
        initial_pacing: false,
        pacing: false,
        source: SourceSpec::Bulk,
        receiver: None,
        gro: false,
        ..flow.clone()
    }
}

/// Returns the connections per second of a flow with Poisson arrivals. `None` for other flows, and
/// if a load cannot be computed because the source has no mean or the link has no constant service
/// rate.
pub fn rate_per_s(flow: &FlowSpec, run: &RunSpec) -> Option<f64> {
    match *flow.arrivals.as_ref()? {
        ArrivalsSpec::Poisson { rate_per_s } => Some(rate_per_s),
        ArrivalsSpec::Load { share, link } => {
            let bytes = wire_bytes_mean(flow)?;
            let service_bps = run.links.get(link.index())?.constant_service()?.rate_bps;
            Some(share * service_bps as f64 / (8.0 * bytes))
        }
        ArrivalsSpec::Listed { .. } => None,
    }
}

/// Returns the mean number of bytes on the wire in the data packets of a connection, without
/// retransmissions.
fn wire_bytes_mean(flow: &FlowSpec) -> Option<f64> {
    let (bytes, transfers) = match &flow.source {
        SourceSpec::Fixed { bytes } => (bytes, 1.0),
        SourceSpec::RequestResponse { bytes, count, .. } => (bytes, count.as_ref()?.mean()?),
        _ => return None,
    };
    let mss = f64::from(mss_of(flow.mtu_bytes));
    let mean = bytes.mean()?;
    // The last packet of a transfer is shorter than a full-sized one by a fraction of a packet,
    // which is bounded even if the distribution of sizes has a heavy tail.
    let short = (0..STEPS).map(|step| {
        let size = bytes.quantile((f64::from(step) + 0.5) / f64::from(STEPS)).round().max(1.0);
        (size / mss).ceil() - size / mss
    });
    let packets = mean / mss + short.sum::<f64>() / f64::from(STEPS);
    Some(transfers * (mean + packets * f64::from(HEADER_BYTES)))
}

/// Returns the bytes on the wire of a transfer without retransmissions.
pub fn wire_bytes(bytes: u64, mtu_bytes: u32) -> u64 {
    bytes + bytes.div_ceil(u64::from(mss_of(mtu_bytes))) * u64::from(HEADER_BYTES)
}
