//! Faults of single packets after their transmission: duplication, corruption and reordering at
//! random as in netem, and faults of packets with given numbers.

use jostle_units::{ConnectionId, FlowId, RandomStream, Span};

use crate::transport_headers::PacketClass;

/// A random event per packet, with the correlation of Linux's net/sched/sch_netem.c.
///
/// Netem mixes each uniform number with the previous one. This keeps neither the distribution nor
/// the mean number of events: with a correlation, small probabilities become much smaller.
#[derive(Clone, Debug)]
pub struct Occurrence {
    probability: f64,
    /// Largest number for which the event occurs, out of 32 bits.
    threshold: u32,
    rho: u32,
    last: u32,
    random: RandomStream,
}

impl Occurrence {
    /// Creates the event. Both values are in 0 … 1.
    pub fn new(probability: f64, correlation: f64, mut random: RandomStream) -> Self {
        let scaled = |share: f64| (share * f64::from(u32::MAX)) as u32;
        let rho = scaled(correlation);
        let last = if rho == 0 { 0 } else { (random.bits() >> 32) as u32 };
        Self { probability, threshold: scaled(probability), rho, last, random }
    }

    /// Returns whether the event occurs for the next packet.
    fn occurs(&mut self) -> bool {
        if self.rho == 0 {
            return self.random.chance(self.probability);
        }
        let (value, rho) = (self.random.bits() >> 32, u64::from(self.rho) + 1);
        let mixed = (value * ((1 << 32) - rho) + u64::from(self.last) * rho) >> 32;
        self.last = mixed as u32;
        self.threshold > 0 && self.threshold >= self.last
    }
}

/// Change of the time at which a packet exits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    /// The packet skips the delay and overtakes the packets in it.
    Early,
    /// The packet exits later by this time, and later packets overtake it.
    Late(Span),
}

/// Reordering as in netem: one of `gap` packets, at most, is reordered with a probability.
#[derive(Clone, Debug)]
pub struct Reordering {
    /// Random event for the packets at the end of a gap.
    pub occurrence: Occurrence,
    /// Distance of two reordered packets, at least; 0 and 1 are the same.
    pub gap: u64,
    /// Change for the reordered packets.
    pub shift: Shift,
    /// Packets since the last reordered one.
    pub count: u64,
}

impl Reordering {
    /// Returns the change for the next packet, as netem does when it enqueues one.
    fn next(&mut self) -> Option<Shift> {
        let reorders = self.count + 1 >= self.gap && self.occurrence.occurs();
        self.count = if reorders { 0 } else { self.count + 1 };
        reorders.then_some(self.shift)
    }
}

/// Fault of a packet with a given number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketFault {
    /// The packet is lost.
    Lose,
    /// The packet is marked with CE, if it is ECN-capable.
    Mark,
    /// The packet is corrupted.
    Corrupt,
    /// The packet arrives twice.
    Duplicate,
    /// The packet exits later by this time.
    Late(Span),
}

/// Faults of packets by their numbers, counted from 1 over the packets that match.
#[derive(Clone, Debug)]
pub struct NumberedFaults {
    /// Flow of the packets; `None` for all flows together.
    pub flow: Option<FlowId>,
    /// Class of the packets; `None` for all classes together.
    pub class: Option<PacketClass>,
    /// Numbers in increasing order, with their faults.
    pub faults: Vec<(u64, PacketFault)>,
    /// Packets so far.
    pub count: u64,
    /// Index of the next fault.
    pub next: usize,
}

impl NumberedFaults {
    fn next(&mut self, flow: FlowId, class: PacketClass) -> Option<PacketFault> {
        let matches =
            self.flow.is_none_or(|it| it == flow) && self.class.is_none_or(|it| it == class);
        if !matches {
            return None;
        }
        self.count += 1;
        let &(number, fault) = self.faults.get(self.next)?;
        (number == self.count).then(|| {
            self.next += 1;
            fault
        })
    }
}

/// Faults of a link. Each sees every packet that was sent, so that none depends on another.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Duplication at random.
    pub duplicate: Option<Occurrence>,
    /// Corruption at random.
    pub corrupt: Option<Occurrence>,
    /// Reordering.
    pub reorder: Option<Reordering>,
    /// Faults by number.
    pub numbered: Vec<NumberedFaults>,
    /// Flow of each connection that has a separate number, by that number. The link sets it.
    pub flow_of: Vec<FlowId>,
}

/// Faults of one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    pub lost: bool,
    pub marked: bool,
    pub corrupted: bool,
    pub duplicated: bool,
    pub shift: Option<Shift>,
}

impl Faults {
    /// Returns whether a packet can overtake another one.
    pub fn may_reorder(&self) -> bool {
        let late = |fault: &(u64, PacketFault)| matches!(fault.1, PacketFault::Late(_));
        self.reorder.is_some() || self.numbered.iter().any(|rule| rule.faults.iter().any(late))
    }

    /// Registers that packets of `flow` can also have the number of a connection.
    pub(crate) fn admit(&mut self, connection: ConnectionId, flow: FlowId) {
        let known = self.flow_of.len() as u32;
        self.flow_of.extend((known..=connection.0.max(known)).map(FlowId));
        self.flow_of[connection.index()] = flow;
    }

    /// Returns the faults of the next packet.
    pub(crate) fn next(&mut self, connection: ConnectionId, class: PacketClass) -> Fate {
        let own = FlowId(connection.0);
        let flow = self.flow_of.get(connection.index()).copied().unwrap_or(own);
        let occurs =
            |event: &mut Option<Occurrence>| event.as_mut().is_some_and(Occurrence::occurs);
        let mut fate = Fate {
            duplicated: occurs(&mut self.duplicate),
            corrupted: occurs(&mut self.corrupt),
            shift: self.reorder.as_mut().and_then(Reordering::next),
            ..Fate::default()
        };
        for rule in &mut self.numbered {
            match rule.next(flow, class) {
                None => {}
                Some(PacketFault::Lose) => fate.lost = true,
                Some(PacketFault::Mark) => fate.marked = true,
                Some(PacketFault::Corrupt) => fate.corrupted = true,
                Some(PacketFault::Duplicate) => fate.duplicated = true,
                Some(PacketFault::Late(span)) => fate.shift = Some(Shift::Late(span)),
            }
        }
        fate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(probability: f64, correlation: f64) -> Occurrence {
        Occurrence::new(probability, correlation, RandomStream::new(7, "fault"))
    }

    fn share(mut event: Occurrence) -> f64 {
        (0..200_000).filter(|_| event.occurs()).count() as f64 / 200_000.0
    }

    #[test]
    fn events_have_their_probability() {
        assert!((share(event(0.1, 0.0)) - 0.1).abs() < 0.003);
        assert!((share(event(0.0, 0.5)), share(event(1.0, 0.5))) == (0.0, 1.0));
    }

    /// For a correlation of 0.5 the number is the sum of U₀ ÷ 2, U₁ ÷ 4, …, with a mean of 1/2 and a
    /// deviation of 1/6, so that it is below 0.1 much more rarely than U.
    #[test]
    fn a_correlation_makes_rare_events_rarer_as_in_netem() {
        let seen = share(event(0.1, 0.5));
        assert!((0.0005..0.002).contains(&seen), "{seen}");
        assert!((share(event(0.5, 0.5)) - 0.5).abs() < 0.01);
    }

    #[test]
    fn certain_reordering_with_a_gap_takes_every_fifth_packet() {
        let mut reordering =
            Reordering { occurrence: event(1.0, 0.0), gap: 5, shift: Shift::Early, count: 0 };
        let numbers: Vec<_> = (1..=20).filter(|_| reordering.next().is_some()).collect();
        assert_eq!(numbers, [5, 10, 15, 20]);
        reordering.gap = 1;
        assert!((0..10).all(|_| reordering.next().is_some()));
    }

    #[test]
    fn numbers_count_the_packets_that_match() {
        let rule = |flow, class, faults| NumberedFaults { flow, class, faults, count: 0, next: 0 };
        let mut faults = Faults {
            numbered: vec![
                rule(Some(FlowId(1)), Some(PacketClass::Data), vec![(2, PacketFault::Lose)]),
                rule(None, None, vec![(1, PacketFault::Mark), (4, PacketFault::Duplicate)]),
            ],
            ..Faults::default()
        };
        faults.admit(ConnectionId(3), FlowId(1));
        let packets = [
            (1, PacketClass::Handshake),
            (1, PacketClass::Data),
            (0, PacketClass::Data),
            (3, PacketClass::Data),
            (3, PacketClass::Data),
        ];
        let fates = packets.map(|(connection, class)| faults.next(ConnectionId(connection), class));
        let none = Fate::default();
        let last = Fate { lost: true, duplicated: true, ..none };
        assert_eq!(fates, [Fate { marked: true, ..none }, none, none, last, none]);
        assert!(!faults.may_reorder());
    }
}
