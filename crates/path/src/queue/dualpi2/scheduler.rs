//! Which of the two queues sends next.

use jostle_units::{FULL_PACKET_BYTES, Span, Time};

/// How the two queues share the link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheduling {
    /// By turns, in proportion to weights: the classic queue's share while both have something to
    /// send, 0 … 1. Linux has 0.1, which is there to protect it from starving rather than to share
    /// by: the coupling does that.
    Weighted(f64),
    /// The packet that has waited longest, as if L4S packets had come earlier by so much
    /// (TS-FIFO).
    TimeShifted(Span),
}

/// One of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    L4s,
    Classic,
}

#[derive(Debug)]
pub(super) struct Scheduler {
    scheduling: Scheduling,
    /// Weighted: the L4S queue's turn while it is not positive; in bytes.
    credit: f64,
}

impl Scheduler {
    pub fn new(scheduling: Scheduling) -> Self {
        let mut scheduler = Self { scheduling, credit: 0.0 };
        scheduler.reset();
        scheduler
    }

    /// Both queues are empty: the one of the larger weight will begin.
    #[inline]
    pub fn reset(&mut self) {
        if let Scheduling::Weighted(share) = self.scheduling {
            self.credit = f64::from(FULL_PACKET_BYTES) * (2.0 * share - 1.0);
        }
    }

    /// Whose turn it is, given the arrivals of the heads of both queues.
    #[inline]
    pub fn turn(&self, l4s: Option<Time>, classic: Option<Time>) -> Option<Lane> {
        match (l4s, classic) {
            (None, None) => None,
            (Some(_), None) => Some(Lane::L4s),
            (None, Some(_)) => Some(Lane::Classic),
            (Some(l4s), Some(classic)) => Some(match self.scheduling {
                Scheduling::Weighted(_) if self.credit <= 0.0 => Lane::L4s,
                Scheduling::TimeShifted(shift) if l4s <= classic + shift => Lane::L4s,
                _ => Lane::Classic,
            }),
        }
    }

    /// A packet of `lane` is sent. Only what the other queue had to wait for counts.
    #[inline]
    pub fn sent(&mut self, lane: Lane, size_bytes: u32, other_waits: bool) {
        if let (Scheduling::Weighted(share), true) = (self.scheduling, other_waits) {
            let size_bytes = f64::from(size_bytes);
            self.credit += match lane {
                Lane::L4s => share * size_bytes,
                Lane::Classic => (share - 1.0) * size_bytes,
            };
        }
    }
}
