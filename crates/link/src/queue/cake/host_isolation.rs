//! Flow and host isolation of CAKE (Linux `net/sched/sch_cake.c`): all flows of a host share one
//! quantum.

use jostle_units::{ConnectionId, RandomStream};

use super::super::flow_queue_scheduler::hash_of;
use super::set_associative_hash::{QUEUES, SetAssociativeHash};
use crate::packet::Packet;
use crate::transport_headers::{FlowHosts, TransportHeader};

/// Values of `isolation`. The index of a value is its number in Linux (`CAKE_FLOW_…`), which
/// consists of the bits below.
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

/// Isolation mode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Isolation(usize);

impl Isolation {
    pub fn of(mode: &str) -> Self {
        Self(MODES.iter().position(|name| *name == mode).unwrap_or(FLOWS))
    }

    /// Returns whether the mode uses the hosts of a flow.
    pub const fn knows_hosts(self) -> bool {
        self.0 & (SOURCE | DESTINATION) != 0
    }

    /// Returns the hash that selects the queue of a packet (`sch_cake.c::cake_hash`), or `None` if
    /// there is only one queue.
    #[inline]
    pub fn hash(self, connection: ConnectionId, ends: [u32; 2]) -> Option<u32> {
        match self.0 {
            0 => None,
            SOURCE => Some(hash_of(ends[0])),
            DESTINATION => Some(hash_of(ends[1])),
            3 => Some(hash_of(ends[0]) ^ hash_of(ends[1])),
            _ => Some(hash_of(connection.0)),
        }
    }

    /// Returns whether the hosts at an end, 0 for the source and 1 for the destination, share
    /// fairly (`sch_cake.c::cake_dsrc`, `sch_cake.c::cake_ddst`).
    const fn shares_by(self, end: usize) -> bool {
        let bits = FLOWS | if end == 0 { SOURCE } else { DESTINATION };
        self.0 & bits == bits
    }
}

/// Returns source and destination of a packet.
#[inline]
pub(super) fn ends_of<B: TransportHeader>(packet: &Packet<B>, known: &[FlowHosts]) -> [u32; 2] {
    let own = || FlowHosts::dedicated(packet.connection);
    let hosts = known.get(packet.connection.index()).copied().unwrap_or_else(own);
    match packet.transport.is_backward() {
        false => [hosts.sender, hosts.receiver],
        true => [hosts.receiver, hosts.sender],
    }
}

/// Number of bulk flows (with more backlog than a quantum) of each host. Hosts are hashed to
/// indices in the same way as flows to queues.
#[derive(Debug)]
pub(super) struct HostLoads {
    isolation: Isolation,
    ends: [Load; 2],
}

#[derive(Debug)]
struct Load {
    sets: SetAssociativeHash,
    bulk_flows: Vec<u32>,
}

impl HostLoads {
    /// Creates the counters, or returns `None` if the mode does not share between hosts.
    pub fn new(isolation: Isolation) -> Option<Box<Self>> {
        let load = || Load { sets: SetAssociativeHash::new(), bulk_flows: vec![0; QUEUES] };
        let shares = isolation.shares_by(0) || isolation.shares_by(1);
        shares.then(|| Box::new(Self { isolation, ends: [load(), load()] }))
    }

    /// Returns the indices at which the hosts of a queue's flow are counted.
    pub fn host_indices(&mut self, hosts: [u32; 2]) -> [u32; 2] {
        let mut indices = [0; 2];
        for (end, index) in indices.iter_mut().enumerate() {
            let Load { sets, bulk_flows } = &mut self.ends[end];
            let found = sets.queue_for_hash(hash_of(hosts[end]), |index| bulk_flows[index] > 0);
            *index = found.index as u32;
        }
        indices
    }

    /// Adds a bulk flow to its hosts, or removes it.
    pub fn count(&mut self, indices: [u32; 2], joins: bool) {
        for (load, index) in self.ends.iter_mut().zip(indices) {
            let count = &mut load.bulk_flows[index as usize];
            *count = if joins { *count + 1 } else { count.saturating_sub(1) };
        }
    }

    /// `sch_cake.c::cake_get_flow_quantum`: returns the part of its host's quantum that a flow
    /// gets, in bytes, with randomised rounding.
    pub fn flow_quantum(
        &self,
        quantum_bytes: i64,
        indices: [u32; 2],
        random: &mut RandomStream,
    ) -> i64 {
        let load = (0..2)
            .filter(|end| self.isolation.shares_by(*end))
            .map(|end| self.ends[end].bulk_flows[indices[end] as usize])
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
        let mut loads = HostLoads::new(Isolation::of("dual-dsthost")).unwrap();
        let mut random = RandomStream::new(1, "cake");
        let (busy, quiet) = (loads.host_indices([1, 100]), loads.host_indices([2, 200]));
        for _ in 0..8 {
            loads.count(busy, true);
        }
        let mut mean = |indices| {
            let parts = (0..10_000).map(|_| loads.flow_quantum(1_514, indices, &mut random));
            parts.sum::<i64>() as f64 / 10_000.0
        };
        // 1514 × 8191 ⁄ 65536 and 1514 × 65535 ⁄ 65536: to a hundredth by chance.
        assert!((mean(busy) - 189.226).abs() < 0.02);
        assert!((mean(quiet) - 1_513.977).abs() < 0.02);
        for _ in 0..8 {
            loads.count(busy, false);
        }
        assert!(loads.flow_quantum(1_514, busy, &mut random) >= 1_513);
    }
}
