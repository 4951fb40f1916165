//! Strict priority (Linux `net/sched/sch_prio.c`): bands, each with its own queue, of which the
//! first one that has a packet to send is served.
//!
//! Without classes there are the three bands of `tc`, and a router assigns packets to them as Linux
//! does by default: by three bits of the old ToS field.

use jostle_registry::{ParameterValues, RegistryEntry};
use jostle_units::{ConnectionId, FlowId, Time};

use super::classes::{Class, ClassMap};
use super::{Backlog, DropTail, QueueDiscipline};
use crate::packet::{Packet, PacketOutcome};
use crate::parameters;
use crate::registry::{QueueEntry, unrelated};
use crate::service_rate::Shaper;
use crate::transport_headers::FlowHosts;

const ENTRY: RegistryEntry = RegistryEntry {
    name: "prio",
    summary: "strict priority: classes by DSCP or flow, the first one that has packets sends",
    class: "classful",
    based_on: &["drop_tail"],
    source: "Linux net/sched/sch_prio.c, net/ipv4/route.c (ip_tos2prio)",
    parameters: &[parameters::limit(Some(1_000))
        .summary("largest length of the drop-tail queue of each class")],
};

/// Maximum number of bands (`pkt_sched.h`: `TCQ_PRIO_BANDS`).
pub const MOST_BANDS: usize = 16;

/// Band of the four values of the DSCP's bits 1 and 2: best effort, bulk, interactive, and
/// interactive bulk in `net/ipv4/route.c` (`ip_tos2prio`), of which the default `priomap` of `tc`
/// makes these bands.
const BANDS: [u8; 4] = [1, 2, 0, 1];
const DEFAULT_BANDS: usize = 3;

/// Strict priority over bands.
pub struct Prio<B> {
    bands: Vec<Box<dyn QueueDiscipline<B>>>,
    map: ClassMap,
    total: Backlog,
    /// Time at which a shaper of a band releases a packet, if no band can send.
    ready_at: Time,
}

impl<B: Copy + Send + 'static> Prio<B> {
    pub(crate) const ROW: QueueEntry<B> = QueueEntry {
        entry: ENTRY,
        check: unrelated,
        build: |values, _| Box::new(Self::of_tos(values)),
    };

    /// Creates the bands of `tc qdisc add … prio` without filters.
    fn of_tos(values: &ParameterValues) -> Self {
        let limit = values.limit("limit");
        let bands = (0..DEFAULT_BANDS).map(|_| Box::new(DropTail::new(limit)) as Box<_>);
        let by_dscp = std::array::from_fn(|dscp| BANDS[dscp >> 1 & 3]);
        Self::new(bands.collect(), ClassMap { by_flow: Vec::new(), by_dscp })
    }

    /// Creates the queue from `classes` in decreasing priority, to whose indices `map` refers.
    pub fn of_classes(classes: Vec<Class<B>>, map: ClassMap) -> Self {
        Self::new(classes.into_iter().map(|class| class.queue).collect(), map)
    }

    fn new(bands: Vec<Box<dyn QueueDiscipline<B>>>, map: ClassMap) -> Self {
        debug_assert!(map.by_dscp.iter().all(|band| usize::from(*band) < bands.len()));
        Self { bands, map, total: Backlog::default(), ready_at: Time::NEVER }
    }
}

impl<B: Copy + Send + 'static> QueueDiscipline<B> for Prio<B> {
    fn enqueue(&mut self, now: Time, packet: Packet<B>, outcome: &mut dyn PacketOutcome<B>) {
        let band = &mut self.bands[self.map.class_of(&packet)];
        let before = Backlog::of(band.as_ref());
        band.enqueue(now, packet, outcome);
        self.total.follow(before, Backlog::of(band.as_ref()));
    }

    /// `sch_prio.c::prio_dequeue`: asks the bands in order. A band whose shaper holds its packets
    /// back lets the next one send.
    fn dequeue(&mut self, now: Time, outcome: &mut dyn PacketOutcome<B>) -> Option<Packet<B>> {
        self.ready_at = Time::NEVER;
        for band in &mut self.bands {
            let before = Backlog::of(band.as_ref());
            let packet = band.dequeue(now, outcome);
            self.total.follow(before, Backlog::of(band.as_ref()));
            if packet.is_some() {
                self.ready_at = Time::NEVER;
                return packet;
            }
            self.ready_at = self.ready_at.min(band.next_dequeue_time());
        }
        None
    }

    fn next_dequeue_time(&self) -> Time {
        self.ready_at
    }

    fn shapers(&self) -> Vec<Shaper> {
        super::classes::shapers(self.bands.iter().map(|band| band.shapers()))
    }

    fn backlog_bytes(&self) -> u64 {
        self.total.bytes
    }

    fn backlog_packets(&self) -> u64 {
        self.total.packets
    }

    fn set_flow_hosts(&mut self, hosts: &[FlowHosts]) {
        self.bands.iter_mut().for_each(|band| band.set_flow_hosts(hosts));
    }

    fn register_connection(&mut self, connection: ConnectionId, flow: FlowId, is_opposite: bool) {
        self.map.admit(connection, flow);
        self.bands
            .iter_mut()
            .for_each(|band| band.register_connection(connection, flow, is_opposite));
    }

    fn advance_to(&mut self, now: Time) {
        self.bands.iter_mut().for_each(|band| band.advance_to(now));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jostle_registry::{ParameterValue, QueueLimit};
    use jostle_units::{RandomStream, Span};

    use super::super::classes::CODEPOINTS;
    use super::super::test_support::{RecordedOutcomes, packet};
    use super::*;
    use crate::registry;

    fn marked(dscp: u8, number: u32) -> Packet<()> {
        Packet { dscp, connection: ConnectionId(number), ..packet(1_000) }
    }

    fn served(queue: &mut Prio<()>) -> Vec<u32> {
        let mut outcomes = RecordedOutcomes::default();
        std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut outcomes))
            .map(|packet| packet.connection.0)
            .collect()
    }

    /// The order of `tc qdisc add dev … root prio` in Linux 6.1: AF42 is interactive, EF is
    /// interactive bulk and shares the band of best effort, AF41 is bulk.
    #[test]
    fn without_classes_the_old_tos_field_decides() {
        let mut queue = Prio::of_tos(&ENTRY.resolve(&BTreeMap::new()).unwrap());
        let (af41, af42, ef, best_effort) = (34, 36, 46, 0);
        for (number, dscp) in [af41, best_effort, af42, ef, af42].into_iter().enumerate() {
            let arrived = marked(dscp, number as u32);
            queue.enqueue(Time::ZERO, arrived, &mut RecordedOutcomes::default());
        }
        assert_eq!(served(&mut queue), [2, 4, 1, 3, 0]);
    }

    fn two_bands(first: &str, given: &[(&str, ParameterValue)]) -> Prio<()> {
        let build = |kind: &str, given: &[(&str, ParameterValue)]| {
            let given = given.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
            let row = registry::queue::<()>(kind).unwrap();
            row.create(&given.collect(), RandomStream::new(1, "q")).unwrap()
        };
        let limit = ("limit", ParameterValue::Limit(QueueLimit::Packets(10)));
        let class = |queue| Class { quantum_bytes: 1_514, queue };
        let classes = vec![class(build(first, given)), class(build("drop_tail", &[limit]))];
        let mut by_dscp = [1; CODEPOINTS];
        by_dscp[46] = 0;
        Prio::of_classes(classes, ClassMap { by_flow: Vec::new(), by_dscp })
    }

    #[test]
    fn a_band_waits_for_all_before_it_and_has_a_limit_of_its_own() {
        let limit = ("limit", ParameterValue::Limit(QueueLimit::Packets(3)));
        let mut queue = two_bands("drop_tail", &[limit]);
        let mut outcomes = RecordedOutcomes::default();
        for number in 0..20 {
            let dscp = if number < 12 { 0 } else { 46 };
            queue.enqueue(Time::ZERO, marked(dscp, number), &mut outcomes);
        }
        assert_eq!((outcomes.dropped.len(), queue.backlog_packets()), (2 + 5, 13));
        assert_eq!(served(&mut queue), [12, 13, 14, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!((queue.backlog_packets(), queue.backlog_bytes()), (0, 0));
    }

    #[test]
    fn connections_have_the_class_of_their_flow() {
        let mut queue = two_bands("codel", &[]);
        queue.map.by_flow = vec![1, 0];
        queue.register_connection(ConnectionId(5), FlowId(1), false);
        for connection in [0, 5, 1] {
            let arrived = marked(0, connection);
            queue.enqueue(Time::ZERO, arrived, &mut RecordedOutcomes::default());
        }
        assert_eq!(served(&mut queue), [5, 1, 0]);
    }

    /// A shaper keeps the first band from starving the others.
    #[test]
    fn a_shaper_lets_later_bands_send() {
        let given = [("rate", 8_000_000), ("burst", 1_514)]
            .map(|(name, value)| (name, ParameterValue::Integer(value)));
        let mut queue = two_bands("tbf", &given);
        for (number, dscp) in [46, 46, 0, 0].into_iter().enumerate() {
            let arrived = marked(dscp, number as u32);
            queue.enqueue(Time::ZERO, arrived, &mut RecordedOutcomes::default());
        }
        assert_eq!(served(&mut queue), [0, 2, 3]);
        // 1514 tokens less 1000, then a byte per microsecond.
        let ready_at = Time::ZERO + Span::from_us(486);
        assert_eq!(queue.next_dequeue_time(), ready_at);
        assert!(queue.dequeue(ready_at, &mut RecordedOutcomes::default()).is_some());
        assert!(queue.shapers().is_empty());
    }
}
