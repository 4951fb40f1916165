//! Scheduler between the two queues.

use jostle_units::{FULL_PACKET_BYTES, Span, Time};

/// Scheduling policy between the two queues.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheduling {
    /// Weighted round robin with the classic queue's share while both queues have packets, 0 … 1.
    /// The default of Linux, 0.1, protects the classic queue from starvation; the coupling balances
    /// the throughput.
    Weighted(f64),
    /// Oldest packet first, with L4S packets treated as if they had arrived earlier by this time
    /// (TS-FIFO).
    TimeShifted(Span),
}

/// One of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DualQueue {
    L4s,
    Classic,
}

#[derive(Debug)]
pub(super) struct Scheduler {
    scheduling: Scheduling,
    /// Weighted: the L4S queue has its turn while the credit is not positive; in bytes.
    credit: f64,
}

impl Scheduler {
    pub fn new(scheduling: Scheduling) -> Self {
        let mut scheduler = Self { scheduling, credit: 0.0 };
        scheduler.reset();
        scheduler
    }

    /// Resets the credit when both queues are empty: the queue with the larger weight begins.
    #[inline]
    pub fn reset(&mut self) {
        if let Scheduling::Weighted(share) = self.scheduling {
            self.credit = f64::from(FULL_PACKET_BYTES) * (2.0 * share - 1.0);
        }
    }

    /// Returns the queue whose turn it is, from the arrival times of both heads.
    #[inline]
    pub fn turn(&self, l4s: Option<Time>, classic: Option<Time>) -> Option<DualQueue> {
        match (l4s, classic) {
            (None, None) => None,
            (Some(_), None) => Some(DualQueue::L4s),
            (None, Some(_)) => Some(DualQueue::Classic),
            (Some(l4s), Some(classic)) => Some(match self.scheduling {
                Scheduling::Weighted(_) if self.credit <= 0.0 => DualQueue::L4s,
                Scheduling::TimeShifted(shift) if l4s <= classic + shift => DualQueue::L4s,
                _ => DualQueue::Classic,
            }),
        }
    }

    /// Accounts for a packet sent from `lane`. It counts only if the other queue has packets.
    #[inline]
    pub fn sent(&mut self, lane: DualQueue, size_bytes: u32, other_waits: bool) {
        if let (Scheduling::Weighted(share), true) = (self.scheduling, other_waits) {
            let size_bytes = f64::from(size_bytes);
            self.credit += match lane {
                DualQueue::L4s => share * size_bytes,
                DualQueue::Classic => (share - 1.0) * size_bytes,
            };
        }
    }
}
