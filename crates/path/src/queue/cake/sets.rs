//! CAKE's hash of flows to queues: sets of eight, in which a flow takes a queue of its own while there is
//! one that nobody uses (Linux `net/sched/sch_cake.c`, `cake_hash`). Hosts have places in the same way.

/// Queues of CAKE, `CAKE_QUEUES`.
pub(super) const QUEUES: usize = 1_024;
const WAYS: usize = 8;

/// Which flow a queue is for.
#[derive(Debug)]
pub(super) struct Sets {
    tags: Vec<u32>,
}

/// A place that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub index: usize,
    /// It was this one's already, and in use.
    pub known: bool,
}

impl Sets {
    pub fn new() -> Self {
        Self { tags: vec![0; QUEUES] }
    }

    /// The place of what has that hash, given whether a place is in use.
    #[inline]
    pub fn place_of(&mut self, hash: u32, in_use: impl Fn(usize) -> bool) -> Found {
        let direct = hash as usize % QUEUES;
        if self.tags[direct] == hash && in_use(direct) {
            return Found { index: direct, known: true };
        }
        let (set, first) = (direct - direct % WAYS, direct % WAYS);
        let ways = || (0..WAYS).map(|step| set + (first + step) % WAYS);
        let index = ways()
            .find(|way| self.tags[*way] == hash)
            .or_else(|| ways().find(|way| !in_use(*way)))
            .unwrap_or(direct);
        let known = self.tags[index] == hash && in_use(index);
        self.tags[index] = hash;
        Found { index, known }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::super::turns::hash_of;
    use super::*;

    #[test]
    fn flows_share_a_queue_only_where_a_set_is_full() {
        let (mut sets, mut used) = (Sets::new(), BTreeSet::new());
        for flow in 0..256 {
            let Found { index, known } =
                sets.place_of(hash_of(flow), |index| used.contains(&index));
            assert!(!known);
            used.insert(index);
            let again = sets.place_of(hash_of(flow), |index| used.contains(&index));
            assert_eq!(again, Found { index, known: true });
        }
        // A plain hash leaves 226 of 256 by themselves.
        assert!(used.len() >= 255, "{}", used.len());
    }

    #[test]
    fn a_full_set_is_shared() {
        let mut sets = Sets::new();
        let of_flow = |flow| sets.place_of(hash_of(flow), |_| true).index;
        let queues: BTreeSet<_> = (0..20_000).map(of_flow).collect();
        assert_eq!(queues.len(), QUEUES);
    }
}
