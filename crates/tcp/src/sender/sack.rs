//! Delivered segments of an ACK: its SACK blocks (`tcp_input.c::tcp_sacktag_write_queue`), its
//! cumulative acknowledgement (`tcp_input.c::tcp_clean_rtx_queue`), and the resulting RTT samples
//! (`tcp_input.c::tcp_ack_update_rtt`).

use jostle_congestion::RecoveryState;
use jostle_units::{Span, Time};

use super::recovery::AckFindings;
use super::{Sender, timestamp_ms};
use crate::segment::{Ack, MAX_BLOCKS, SackBlock};

/// Send times of the first and the last newly acknowledged segment that was never retransmitted.
/// RTT samples use them.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstTransmissions {
    /// Number of the first segment.
    number: u32,
    /// [`Time::NEVER`] if there is no such segment.
    first: Time,
    last: Time,
}

impl FirstTransmissions {
    pub const NONE: Self = Self { number: u32::MAX, first: Time::NEVER, last: Time::ZERO };

    #[inline]
    fn note(&mut self, number: u32, sent_at: Time) {
        if self.is_none() {
            (self.number, self.first) = (number, sent_at);
        }
        self.last = sent_at;
    }

    #[inline]
    fn is_none(&self) -> bool {
        self.first == Time::NEVER
    }

    /// Returns the RTTs of the first and the last segment, if they are acknowledged at `now`.
    #[inline]
    fn rtts(&self, now: Time) -> Option<(Span, Span)> {
        (!self.is_none()).then(|| (now.since(self.first), now.since(self.last)))
    }
}

/// RTT sample of an ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct RttSample {
    /// RTT of the last acknowledged segment, for controllers and the minimum RTT (`ca_rtt_us`).
    pub newest: Option<Span>,
    /// Whether a delayed-ACK timer may have delayed the ACK.
    pub delayed: bool,
}

impl Sender {
    /// `tcp_input.c::tcp_sacktag_write_queue`.
    #[cold]
    pub(super) fn process_blocks(
        &mut self,
        now: Time,
        ack: &Ack,
        prior_first: u32,
        findings: &mut AckFindings,
    ) -> FirstTransmissions {
        let mut blocks = [SackBlock::default(); MAX_BLOCKS];
        let mut count = usize::from(ack.block_count);
        blocks[..count].copy_from_slice(ack.blocks());
        if ack.duplicate {
            self.note_duplicate(blocks[0], prior_first, findings);
            blocks.copy_within(1.., 0);
            count -= 1;
        }
        // Sort, so that later blocks do not make earlier ones look reordered.
        blocks[..count].sort_unstable_by_key(|block| block.start);

        let min_rtt = self.rtt.min_rtt();
        let high = self.recovery.high();
        let mut ends = FirstTransmissions::NONE;
        let mut reordered: Option<u32> = None;
        let Self { board, sampler, rack, .. } = self;
        for &block in &blocks[..count] {
            let highest = board.highest_sacked();
            board.sack(block, |number, slot| {
                findings.sacked = true;
                rack.advance(now, slot, number + 1, min_rtt);
                sampler.on_delivered(&slot.stamp, u64::from(number) + 1);
                if !slot.ever_retransmitted() {
                    if number < highest {
                        reordered = Some(reordered.map_or(number, |low| low.min(number)));
                    }
                    findings.original |= number < high;
                    ends.note(number, slot.stamp.sent_at);
                }
            });
        }
        if let Some(low) = reordered
            && (self.recovery.state() != RecoveryState::Loss || self.recovery.undo.is_watching())
        {
            self.reordering.note(low, self.board.highest_sacked());
        }
        ends
    }

    /// Processes a duplicate reported by the receiver (RFC 2883, `tcp_input.c::tcp_check_dsack`,
    /// `tcp_input.c::tcp_dsack_seen`).
    fn note_duplicate(&mut self, block: SackBlock, prior_first: u32, findings: &mut AckFindings) {
        if self.tail_probe.is_duplicate_of_probe(block.end) {
            findings.probe_duplicate = true;
        }
        self.duplicates_reported += 1;
        if self.duplicates_reported > self.total_retransmitted {
            // The network, not the sender, created the duplicate.
            return;
        }
        if self.reordering.is_seen() && !findings.probe_duplicate {
            self.rack.duplicate_seen = true;
        }
        findings.duplicate = true;
        // A spurious retransmission also counts as a delivery.
        self.sampler.count_spurious();
        let retransmitted = block.end <= prior_first
            || (block.end <= self.board.next()
                && self.board.slot(block.start).ever_retransmitted());
        self.recovery.undo.note_duplicate(block.end, retransmitted);
        if block.end > prior_first && block.end <= self.board.next() {
            self.board.retransmission_arrived(block.start);
        }
    }

    /// `tcp_input.c::tcp_clean_rtx_queue` and `tcp_input.c::tcp_ack_update_rtt`.
    pub(super) fn process_cumulative(
        &mut self,
        now: Time,
        ack: &Ack,
        prior_highest: u32,
        sack_ends: FirstTransmissions,
        findings: &mut AckFindings,
    ) -> RttSample {
        let min_rtt = self.rtt.min_rtt();
        let echo_ms = ack.tsecr_ms;
        let mut ends = FirstTransmissions::NONE;
        let mut retransmitted = false;
        let mut payload = 0;
        let Self { board, sampler, rack, .. } = self;
        board.acknowledge(ack.number, |number, slot| {
            payload += u64::from(slot.payload);
            let ever = slot.ever_retransmitted();
            retransmitted |= ever;
            if slot.is_sacked() {
                return;
            }
            if !ever {
                ends.note(number, slot.stamp.sent_at);
            }
            sampler.on_delivered(&slot.stamp, u64::from(number) + 1);
            // A timestamp from before the retransmission acknowledges the original.
            let spurious = ever && echo_ms != 0 && echo_ms < timestamp_ms(slot.stamp.sent_at);
            if !spurious {
                rack.advance(now, slot, number + 1, min_rtt);
            }
        });
        self.acked_bytes += payload;
        findings.retransmitted = retransmitted;
        findings.original |= ends.number < self.recovery.high();
        let sample = self.update_rtt(now, echo_ms, ends, sack_ends, payload, findings);

        if findings.advanced {
            findings.set_timer = true;
            if ends.number < prior_highest {
                self.reordering.note(ends.number, self.board.highest_sacked());
            }
        } else if !sack_ends.is_none() {
            // SACKs of data sent before the last transmission of the first segment do not extend
            // the RTO.
            let head = self.board.slot(self.board.first()).stamp.sent_at;
            findings.set_timer = sack_ends.first < head;
        }
        sample
    }

    #[inline]
    fn update_rtt(
        &mut self,
        now: Time,
        echo_ms: u32,
        ends: FirstTransmissions,
        sack_ends: FirstTransmissions,
        payload: u64,
        findings: &AckFindings,
    ) -> RttSample {
        // RTTs of the first acknowledged segment (for SRTT, `seq_rtt_us`) and of the last.
        let mut rtts = None;
        let mut delayed = false;
        // Karn's algorithm (RFC 6298 §3): an ACK of a retransmission gives no RTT sample.
        if !findings.retransmitted {
            rtts = ends.rtts(now);
            let runt = payload < u64::from(self.queue.mss_bytes());
            delayed = runt
                && !(findings.sacked || findings.ecn_echo || findings.duplicate)
                && self.delivered_only_newest();
        }
        if let Some((first, last)) = sack_ends.rtts(now) {
            rtts = Some((rtts.map_or(first, |(smoothed, _)| smoothed), last));
        }
        if rtts.is_none() && findings.advanced && echo_ms != 0 {
            // The timestamps option distinguishes retransmissions (RFC 7323 §4), with a resolution
            // of 1 ms.
            let elapsed_ms = timestamp_ms(now).saturating_sub(echo_ms).max(1);
            let elapsed = Span::from_ms(u64::from(elapsed_ms));
            rtts = Some((elapsed, elapsed));
        }
        if let Some((smoothed, newest)) = rtts {
            if !(delayed && newest > self.rtt.min_rtt()) {
                self.rtt.on_min_sample(now, newest);
            }
            self.rtt.on_sample(
                smoothed,
                u64::from(self.board.first()),
                u64::from(self.board.next()),
            );
            self.rto.on_sample(self.rtt.rto());
        }
        RttSample { newest: rtts.map(|(_, newest)| newest), delayed }
    }

    /// Returns whether nothing else was delivered since the newest packet of this ACK was sent.
    fn delivered_only_newest(&self) -> bool {
        let prior = self.sampler.newest_prior_delivered();
        prior.is_some_and(|prior| prior + 1 == self.sampler.delivered())
    }
}
