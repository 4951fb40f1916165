//! Proportional Rate Reduction (RFC 9937, which replaces RFC 6937): reduces cwnd gradually during
//! recovery.

/// RecoverFS: the data from which a reduction to ssthresh is proportional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoverFlightSize {
    /// cwnd before the reduction, as in Linux (`prior_cwnd`). If the sender did not use its whole
    /// window, less is sent than RFC 9937 allows.
    #[default]
    PriorCwnd,
    /// The packets that recovery can deliver (RFC 9937 §6.1): those outstanding and not selectively
    /// acknowledged before the ACK that starts the reduction.
    Outstanding,
}

/// A reduction of cwnd in progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProportionalRateReduction {
    /// RecoverFS in packets.
    recover_flight_size: u32,
    /// `prr_delivered`: packets delivered since the reduction began.
    delivered: u32,
    /// `prr_out`: packets sent since the reduction began.
    out: u32,
}

impl ProportionalRateReduction {
    /// Starts a reduction from `recover_flight_size` packets, RecoverFS.
    pub const fn new(recover_flight_size: u32) -> Self {
        Self { recover_flight_size, delivered: 0, out: 0 }
    }

    /// Counts packets sent during the reduction (RFC 9937 §6.3).
    #[inline]
    pub const fn note_sent(&mut self, packets: u32) {
        self.out += packets;
    }

    /// Returns cwnd after an ACK that delivered packets (RFC 9937 §6.2,
    /// `tcp_input.c::tcp_cwnd_reduction`). `pipe`:
    /// packets in flight. `progress`: snd_una advanced and no further packet was lost.
    #[inline]
    pub fn window(&mut self, ssthresh: u32, pipe: u32, delivered: u32, progress: bool) -> u32 {
        self.delivered += delivered;
        let room = i64::from(ssthresh) - i64::from(pipe);
        let mut send = if room < 0 {
            // "sndcnt = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out"
            let due = (u64::from(ssthresh) * u64::from(self.delivered))
                .div_ceil(u64::from(self.recover_flight_size.max(1)));
            due as i64 - i64::from(self.out)
        } else {
            let conserved = i64::from(self.delivered) - i64::from(self.out);
            let mut limit = conserved.max(i64::from(delivered));
            if progress {
                // Slow-start reduction bound: the ACK shows progress of the recovery.
                limit += 1;
            }
            limit.min(room)
        };
        // A fast retransmission is always sent on entering recovery.
        send = send.max(i64::from(self.out == 0));
        (i64::from(pipe) + send).max(1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 9937 §6.2, the proportional part: one packet leaves for every two that are delivered when
    /// the window halves, the first at once.
    #[test]
    fn every_second_delivery_lets_one_leave() {
        let mut reduction = ProportionalRateReduction::new(20);
        let mut sent = Vec::new();
        let mut pipe = 19;
        for _ in 0..8 {
            pipe -= 1;
            let may = reduction.window(10, pipe, 1, true) - pipe;
            reduction.note_sent(may);
            pipe += may;
            sent.push(may);
        }
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0]);
    }

    /// The bound PRR-SSRB: below ssthresh as much leaves as was delivered, and one more with progress.
    #[test]
    fn below_the_threshold_it_grows_as_slow_start() {
        let mut reduction = ProportionalRateReduction::new(20);
        reduction.note_sent(1);
        assert_eq!(reduction.window(10, 3, 2, false), 5);
        let mut reduction = ProportionalRateReduction::new(20);
        reduction.note_sent(1);
        assert_eq!(reduction.window(10, 3, 2, true), 6);
        assert_eq!(reduction.window(10, 9, 9, true), 10, "never beyond ssthresh");
    }

    /// RFC 9937 §6.2: "SndCnt = MAX(prr_delivered - prr_out, DeliveredData)". A sender that had nothing
    /// to send may send the difference later, and never less than 0 packets.
    #[test]
    fn unused_allowance_is_kept_below_ssthresh() {
        let mut reduction = ProportionalRateReduction::new(20);
        reduction.note_sent(1);
        assert_eq!(reduction.window(10, 12, 5, true), 12 + 2, "half of 5, rounded up, less 1");
        assert_eq!(reduction.window(10, 4, 1, false), 4 + 5, "6 delivered less 1 sent");
        reduction.note_sent(5);
        assert_eq!(reduction.window(10, 11, 1, true), 11, "7 delivered, 4 due, 6 sent");
    }

    /// RFC 9937 §6.2: the proportional part applies while "inflight > ssthresh".
    #[test]
    fn nothing_is_sent_at_ssthresh_except_the_fast_retransmission() {
        let mut reduction = ProportionalRateReduction::new(20);
        assert_eq!(reduction.window(10, 10, 4, false), 11, "prr_out is 0");
        reduction.note_sent(1);
        assert_eq!(reduction.window(10, 10, 1, false), 10);
    }

    proptest! {
        /// Whatever is delivered and lost: the window is never 0, and never above what was in flight
        /// or ssthresh, but for the one packet of the fast retransmission.
        #[test]
        fn the_window_stays_between_one_and_the_larger_of_pipe_and_threshold(
            prior in 1u32..10_000,
            acks in prop::collection::vec((0u32..10_000, 1u32..100, any::<bool>(), 0u32..100), 1..50),
        ) {
            let ssthresh = (prior / 2).max(2);
            let mut reduction = ProportionalRateReduction::new(prior);
            for (pipe, delivered, progress, sent) in acks {
                let window = reduction.window(ssthresh, pipe, delivered, progress);
                prop_assert!(window >= 1);
                let due = u64::from(ssthresh) * u64::from(reduction.delivered);
                let proportional = due.div_ceil(u64::from(prior)) as u32;
                prop_assert!(window <= (pipe + proportional.max(1)).max(ssthresh + 1));
                reduction.note_sent(sent);
            }
        }
    }
}
