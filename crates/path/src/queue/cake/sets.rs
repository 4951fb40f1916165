//! CAKE's hash of flows to queues: sets of eight, in which a flow takes a queue of its own while there is
//! one that nobody uses (Linux `net/sched/sch_cake.c`, `cake_hash`).

use super::super::turns::hash_of;

/// Queues of CAKE, `CAKE_QUEUES`.
pub(super) const QUEUES: usize = 1_024;
const WAYS: usize = 8;

/// Which flow a queue is for.
#[derive(Debug)]
pub(super) struct Sets {
    tags: Vec<u32>,
}

impl Sets {
    pub fn new() -> Self {
        Self { tags: vec![0; QUEUES] }
    }

    /// The queue of a flow, given whether a queue is in use.
    #[inline]
    pub fn queue_of(&mut self, flow: u32, in_use: impl Fn(usize) -> bool) -> usize {
        let hash = hash_of(flow);
        let direct = hash as usize % QUEUES;
        if self.tags[direct] == hash && in_use(direct) {
            return direct;
        }
        let (set, first) = (direct - direct % WAYS, direct % WAYS);
        let ways = || (0..WAYS).map(|step| set + (first + step) % WAYS);
        let index = ways()
            .find(|way| self.tags[*way] == hash)
            .or_else(|| ways().find(|way| !in_use(*way)))
            .unwrap_or(direct);
        self.tags[index] = hash;
        index
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn flows_share_a_queue_only_where_a_set_is_full() {
        let (mut sets, mut used) = (Sets::new(), BTreeSet::new());
        for flow in 0..256 {
            let index = sets.queue_of(flow, |index| used.contains(&index));
            used.insert(index);
            assert_eq!(sets.queue_of(flow, |index| used.contains(&index)), index);
        }
        // A plain hash leaves 226 of 256 by themselves.
        assert!(used.len() >= 255, "{}", used.len());
    }

    #[test]
    fn a_full_set_is_shared() {
        let mut sets = Sets::new();
        let queues: BTreeSet<_> = (0..20_000).map(|flow| sets.queue_of(flow, |_| true)).collect();
        assert_eq!(queues.len(), QUEUES);
    }
}
