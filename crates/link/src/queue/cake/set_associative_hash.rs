//! Set-associative hash of CAKE from flows to queues: a flow gets an unused queue of a set of
//! eight, if there is one (Linux, `sch_cake.c::cake_hash`). Hosts are hashed in the same
//! way.

/// Number of queues of CAKE, `CAKE_QUEUES`.
pub(super) const QUEUES: usize = 1_024;
const WAYS: usize = 8;

/// Hash of the flow that each queue belongs to.
#[derive(Debug)]
pub(super) struct SetAssociativeHash {
    tags: Vec<u32>,
}

/// Result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueSlot {
    pub index: usize,
    /// Whether the queue already belonged to this hash and is in use.
    pub known: bool,
}

impl SetAssociativeHash {
    pub fn new() -> Self {
        Self { tags: vec![0; QUEUES] }
    }

    /// Returns the queue for a hash. `in_use` returns whether a queue is in use.
    #[inline]
    pub fn queue_for_hash(&mut self, hash: u32, in_use: impl Fn(usize) -> bool) -> QueueSlot {
        let direct = hash as usize % QUEUES;
        if self.tags[direct] == hash && in_use(direct) {
            return QueueSlot { index: direct, known: true };
        }
        let (set, first) = (direct - direct % WAYS, direct % WAYS);
        let ways = || (0..WAYS).map(|step| set + (first + step) % WAYS);
        let index = ways()
            .find(|way| self.tags[*way] == hash)
            .or_else(|| ways().find(|way| !in_use(*way)))
            .unwrap_or(direct);
        let known = self.tags[index] == hash && in_use(index);
        self.tags[index] = hash;
        QueueSlot { index, known }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::super::flow_queue_scheduler::hash_of;
    use super::*;

    #[test]
    fn flows_share_a_queue_only_where_a_set_is_full() {
        let (mut sets, mut used) = (SetAssociativeHash::new(), BTreeSet::new());
        for flow in 0..256 {
            let QueueSlot { index, known } =
                sets.queue_for_hash(hash_of(flow), |index| used.contains(&index));
            assert!(!known);
            used.insert(index);
            let again = sets.queue_for_hash(hash_of(flow), |index| used.contains(&index));
            assert_eq!(again, QueueSlot { index, known: true });
        }
        // A plain hash leaves 226 of 256 by themselves.
        assert!(used.len() >= 255, "{}", used.len());
    }

    #[test]
    fn a_full_set_is_shared() {
        let mut sets = SetAssociativeHash::new();
        let of_flow = |flow| sets.queue_for_hash(hash_of(flow), |_| true).index;
        let queues: BTreeSet<_> = (0..20_000).map(of_flow).collect();
        assert_eq!(queues.len(), QUEUES);
    }
}
