//! Construction of faults, habits of netem and grants from a `LinkSpec`.

use jostle_link::{
    Contention, DelayQueue, Faults, GrantParameters, Grants, Link, NumberedFaults, Occurrence,
    PacketClass, PacketFault, RateBased, Reordering, Shift, TransportHeader,
};
use jostle_units::{RandomStream, Span};

use crate::{FaultSpec, GrantsSpec, LinkSpec, NumberedFaultsSpec, OccurrenceSpec, PacketClassSpec};

const DUPLICATE: &str = "duplicate";
const CORRUPT: &str = "corrupt";
const REORDER: &str = "reorder";

/// Random streams of faults and grants. The kernel module gets their seeds.
pub(crate) const STREAMS: [&str; 6] =
    [DUPLICATE, CORRUPT, REORDER, "grants/free", "grants/collisions", "grants/requests"];

impl LinkSpec {
    /// Adds faults, habits of netem and grants to a link.
    pub(crate) fn with_faults_and_grants<B: TransportHeader + Copy>(
        &self,
        mut link: Link<B>,
        random: &dyn Fn(&str) -> RandomStream,
    ) -> Link<B> {
        if let Some(spec) = &self.grants {
            let most_bps = self.capacity.bounds_bps().1;
            link = link.with_grants(Grants::new(parameters(spec, most_bps), random));
        }
        if self.faults.is_none() && self.netem.is_none() {
            return link;
        }
        let limit = self.netem.and_then(|netem| {
            let limit_packets = netem.limit_packets?;
            Some(DelayQueue { limit_packets, includes_queue: netem.limit_includes_queue })
        });
        let per_batch = self.netem.is_some_and(|netem| netem.jitter_per_batch);
        link.with_impairments(self.build_faults(random), limit, per_batch)
    }

    fn build_faults(&self, random: &dyn Fn(&str) -> RandomStream) -> Faults {
        let Some(spec) = &self.faults else { return Faults::default() };
        let event = |spec: OccurrenceSpec, name: &str| {
            Occurrence::new(spec.probability, spec.correlation, random(name))
        };
        let late = |ns: u64| Shift::Late(Span::from_ns(ns));
        let reorder = spec.reorder.map(|spec| Reordering {
            occurrence: event(spec.occurrence, REORDER),
            gap: spec.gap,
            shift: spec.late_ns.map_or(Shift::Early, late),
            count: 0,
        });
        Faults {
            duplicate: spec.duplicate.map(|spec| event(spec, DUPLICATE)),
            corrupt: spec.corrupt.map(|spec| event(spec, CORRUPT)),
            reorder,
            numbered: spec.packets.iter().map(numbered).collect(),
            flow_of: Vec::new(),
        }
    }
}

fn numbered(spec: &NumberedFaultsSpec) -> NumberedFaults {
    let fault = |fault| match fault {
        FaultSpec::Lose => PacketFault::Lose,
        FaultSpec::Mark => PacketFault::Mark,
        FaultSpec::Corrupt => PacketFault::Corrupt,
        FaultSpec::Duplicate => PacketFault::Duplicate,
        FaultSpec::Late { by_ns } => PacketFault::Late(Span::from_ns(by_ns)),
    };
    NumberedFaults {
        flow: spec.flow,
        class: spec.class.map(|class| match class {
            PacketClassSpec::Data => PacketClass::Data,
            PacketClassSpec::Acks => PacketClass::Ack,
            PacketClassSpec::Handshake => PacketClass::Handshake,
        }),
        faults: spec.faults.iter().map(|it| (it.number, fault(it.fault))).collect(),
        count: 0,
        next: 0,
    }
}

fn parameters(spec: &GrantsSpec, most_bps: u64) -> GrantParameters {
    GrantParameters {
        superframe: Span::from_ns(spec.superframe_ns),
        latency: Span::from_ns(spec.latency_ns),
        request_interval: Span::from_ns(spec.request_interval_ns),
        constant_bps: spec.constant_bps,
        rate_based: spec.rate_based.map(|it| RateBased {
            over_per_mille: it.over_per_mille,
            gain_per_mille: it.gain_per_mille,
            persistence: Span::from_ns(it.persistence_ns),
        }),
        volume_based: spec.volume_based,
        free_bps: spec.free_bps,
        quantum_bps: spec.quantum_bps,
        most_bps,
        contention: spec.contention.map(|it| Contention {
            bytes: it.bytes,
            collision: it.collision,
            backoff: it.backoff_superframes,
        }),
        request_loss: spec.request_loss,
        spread: spec.spread,
    }
}
