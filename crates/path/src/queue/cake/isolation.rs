//! What CAKE tells apart, and how it shares between hosts (Linux `net/sched/sch_cake.c`): a host's flows
//! get a quantum together, of which each has a part.

use jostle_units::Stream;

use super::super::turns::hash_of;
use super::sets::{QUEUES, Sets};
use crate::headers::{Headers, Hosts};
use crate::packet::Packet;

/// The values of `isolation`; the place of each is its number in Linux (`CAKE_FLOW_…`), which is made of
/// the bits below.
pub(super) const MODES: &[&str] = &[
    "none",
    "srchost",
    "dsthost",
    "hosts",
    "flows",
    "dual-srchost",
    "dual-dsthost",
    "triple-isolate",
];

const SOURCE: usize = 1;
const DESTINATION: usize = 2;
const FLOWS: usize = 4;

/// What is told apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Isolation(usize);

impl Isolation {
    pub fn of(mode: &str) -> Self {
        Self(MODES.iter().position(|name| *name == mode).unwrap_or(FLOWS))
    }

    /// Whether it is of any matter to it between which hosts a flow is.
    pub const fn knows_hosts(self) -> bool {
        self.0 & (SOURCE | DESTINATION) != 0
    }

    /// Hash by which a packet finds its queue (`cake_hash`); none if there is one queue for all.
    #[inline]
    pub fn hash(self, flow: u32, ends: [u32; 2]) -> Option<u32> {
        match self.0 {
            0 => None,
            SOURCE => Some(hash_of(ends[0])),
            DESTINATION => Some(hash_of(ends[1])),
            3 => Some(hash_of(ends[0]) ^ hash_of(ends[1])),
            _ => Some(hash_of(flow)),
        }
    }

    /// Whether the hosts at an end, 0 the source and 1 the destination, share as hosts (`cake_dsrc`,
    /// `cake_ddst`).
    const fn shares_by(self, end: usize) -> bool {
        let bits = FLOWS | if end == 0 { SOURCE } else { DESTINATION };
        self.0 & bits == bits
    }
}

/// Source and destination of a packet.
#[inline]
pub(super) fn ends_of<B: Headers>(packet: &Packet<B>, known: &[Hosts]) -> [u32; 2] {
    let own = || Hosts::of_its_own(packet.flow);
    let hosts = known.get(packet.flow as usize).copied().unwrap_or_else(own);
    match packet.body.is_backward() {
        false => [hosts.sender, hosts.receiver],
        true => [hosts.receiver, hosts.sender],
    }
}

/// How many flows of each host have more waiting than a quantum: those are who shares. Hosts have
/// places as flows have queues.
#[derive(Debug)]
pub(super) struct Loads {
    isolation: Isolation,
    ends: [Load; 2],
}

#[derive(Debug)]
struct Load {
    sets: Sets,
    bulk_flows: Vec<u32>,
}

impl Loads {
    /// None if nothing is shared by hosts.
    pub fn new(isolation: Isolation) -> Option<Box<Self>> {
        let load = || Load { sets: Sets::new(), bulk_flows: vec![0; QUEUES] };
        let shares = isolation.shares_by(0) || isolation.shares_by(1);
        shares.then(|| Box::new(Self { isolation, ends: [load(), load()] }))
    }

    /// Where the hosts of a queue's flow are counted.
    pub fn places_of(&mut self, hosts: [u32; 2]) -> [u32; 2] {
        let mut places = [0; 2];
        for (end, place) in places.iter_mut().enumerate() {
            let Load { sets, bulk_flows } = &mut self.ends[end];
            let found = sets.place_of(hash_of(hosts[end]), |place| bulk_flows[place] > 0);
            *place = found.index as u32;
        }
        places
    }

    /// A flow has become one of those that share, or is one no more.
    pub fn count(&mut self, places: [u32; 2], joins: bool) {
        for (load, place) in self.ends.iter_mut().zip(places) {
            let count = &mut load.bulk_flows[place as usize];
            *count = if joins { *count + 1 } else { count.saturating_sub(1) };
        }
    }

    /// `cake_get_flow_quantum`: the part of a quantum that a flow has of its host's, in bytes; what is
    /// lost by rounding is made up for by chance.
    pub fn part_of(&self, quantum_bytes: i64, places: [u32; 2], random: &mut Stream) -> i64 {
        let load = (0..2)
            .filter(|end| self.isolation.shares_by(*end))
            .map(|end| self.ends[end].bulk_flows[places[end] as usize])
            .fold(1, u32::max);
        let (part, chance) = (i64::from(65_535 / load), random.below(1 << 16) as i64);
        (quantum_bytes * part + chance) >> 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_have_the_numbers_of_linux() {
        for (mode, shares, knows) in [
            ("none", [false, false], false),
            ("hosts", [false, false], true),
            ("flows", [false, false], false),
            ("dual-srchost", [true, false], true),
            ("dual-dsthost", [false, true], true),
            ("triple-isolate", [true, true], true),
        ] {
            let isolation = Isolation::of(mode);
            assert_eq!([isolation.shares_by(0), isolation.shares_by(1)], shares, "{mode}");
            assert_eq!(isolation.knows_hosts(), knows, "{mode}");
        }
    }

    #[test]
    fn a_host_of_eight_flows_gives_each_an_eighth() {
        let mut loads = Loads::new(Isolation::of("dual-dsthost")).unwrap();
        let mut random = Stream::new(1, "cake");
        let (busy, quiet) = (loads.places_of([1, 100]), loads.places_of([2, 200]));
        for _ in 0..8 {
            loads.count(busy, true);
        }
        let mut mean = |places| {
            let parts = (0..10_000).map(|_| loads.part_of(1_514, places, &mut random));
            parts.sum::<i64>() as f64 / 10_000.0
        };
        // 1514 × 8191 ⁄ 65536 and 1514 × 65535 ⁄ 65536: to a hundredth by chance.
        assert!((mean(busy) - 189.226).abs() < 0.02);
        assert!((mean(quiet) - 1_513.977).abs() < 0.02);
        for _ in 0..8 {
            loads.count(busy, false);
        }
        assert!(loads.part_of(1_514, busy, &mut random) >= 1_513);
    }
}
