//! What an ACK does (`tcp_ack` in Linux).

use jostle_control::{
    AckSample, EcnFeedback, Marks, Measurement, RecoveryOwner, RecoveryState, Signal, Timestamps,
};
use jostle_units::{Span, Time};

use super::recovery::{Findings, Repair};
use super::{Acknowledged, Connection, Egress, Sender, timestamp_ms};
use crate::segment::{Ack, Block, MAX_BLOCKS};

/// The first and the last segment that an ACK newly acknowledges, of those that were never sent
/// again: when they were sent. RTTs are taken from them.
#[derive(Clone, Copy, Debug)]
struct Ends {
    /// Number of the first.
    number: u32,
    /// [`Time::NEVER`] if there is none.
    first: Time,
    last: Time,
}

impl Ends {
    const NONE: Self = Self { number: u32::MAX, first: Time::NEVER, last: Time::ZERO };

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

    /// What their RTTs are, if they are acknowledged now.
    #[inline]
    fn rtts(&self, now: Time) -> Option<(Span, Span)> {
        (!self.is_none()).then(|| (now.since(self.first), now.since(self.last)))
    }
}

/// What an ACK says of the RTT.
#[derive(Clone, Copy, Debug)]
struct RttSample {
    /// For controllers and the minimum: of the last segment acknowledged (`ca_rtt_us`).
    newest: Option<Span>,
    /// The ACK may have been held back by a delayed-ACK timer.
    delayed: bool,
}

/// What an ACK brought beside what is counted.
#[derive(Clone, Copy, Debug)]
struct AckNews {
    rtt: Option<Span>,
    lost: u32,
    marked: u32,
    /// It acknowledges a single packet, and may have been held back.
    single: bool,
}

/// What stood before an ACK was taken.
#[derive(Clone, Copy, Debug)]
struct Before {
    first: u32,
    outstanding: u32,
    in_flight: u32,
    sacked: u32,
    highest_sacked: u32,
    delivered: u64,
    lost: u64,
    state: RecoveryState,
}

impl Sender {
    /// An ACK arrived; what is to be recorded of it.
    pub fn on_ack(&mut self, now: Time, ack: &Ack, out: &mut impl Egress) -> Option<Acknowledged> {
        if self.connection != Connection::Established || ack.number > self.board.next() {
            return None;
        }
        let before = self.before();
        let mut findings = self.read_header(now, ack, &before);
        let mut sack_ends = Ends::NONE;
        if ack.block_count > 0 {
            sack_ends = self.process_blocks(now, ack, before.first, &mut findings);
        }
        if ack.number < before.first {
            self.on_old_ack(now, ack, findings, out);
            return None;
        }
        let acked = ack.number - before.first;
        if acked > 0 {
            self.first_flight_rate = None;
        }
        let highest = before.highest_sacked;
        let rtt = self.process_cumulative(now, ack, highest, sack_ends, &mut findings);
        let newest_prior = self.sampler.newest_prior_delivered();
        if let Some(prior) = newest_prior {
            self.rack.update_window(prior, self.sampler.delivered());
        }
        let slow_path = self.leaves_fast_path(ack, &findings);
        if before.outstanding == 0 {
            self.on_idle_ack(now, ack, &before, findings, out);
            return None;
        }
        self.tell_measurement(now, ack, acked, rtt.newest, newest_prior);
        if self.hears_headers
            && let Some(tcp) = self.controller.tcp_mut()
        {
            tcp.on_ack_event(now, slow_path);
        }
        let marked = self.note_marks(now, ack, before.delivered);
        self.take_window();
        self.on_probe_acknowledged(now, ack.number, &findings);
        let mut repair = Repair::None;
        if findings.is_dubious() || self.state != RecoveryState::Open {
            repair = self.advance_recovery(now, ack.tsecr_ms, &mut findings);
        }
        if findings.set_timer {
            self.set_probe_or_rto(now);
        }
        let lost = (self.board.total_lost() - before.lost) as u32;
        let single = acked == 1 && before.sacked == 0 && rtt.delayed;
        let rtt = rtt.newest;
        self.control(now, &before, &findings, AckNews { rtt, lost, marked, single });
        self.repair(now, repair, out);
        self.write(now, out);
        Some(self.acknowledged(rtt, lost))
    }

    #[inline]
    fn before(&self) -> Before {
        Before {
            first: self.board.first(),
            outstanding: self.board.outstanding(),
            in_flight: self.board.in_flight(),
            sacked: self.board.sacked(),
            highest_sacked: self.board.highest_sacked(),
            delivered: self.sampler.delivered(),
            lost: self.board.total_lost(),
            state: self.state,
        }
    }

    /// What the header says beside its blocks.
    #[inline]
    fn read_header(&mut self, now: Time, ack: &Ack, before: &Before) -> Findings {
        self.echo_ms = self.echo_ms.max(ack.clock.tsval_ms(now));
        let window_end = self.window_end.max(ack.number.saturating_add(ack.window));
        // The flag of an overtaken ACK is of no interest, nor is its count.
        let current = ack.number >= before.first;
        let findings = Findings {
            prior_first: before.first,
            advanced: ack.number > before.first,
            window_update: window_end > self.window_end,
            ecn_echo: current && self.reports_marks(ack),
            ..Findings::default()
        };
        self.window_end = window_end;
        if findings.advanced {
            self.timeouts = 0;
        }
        findings
    }

    /// An ACK that was overtaken: only its blocks can be news.
    #[cold]
    fn on_old_ack(&mut self, now: Time, ack: &Ack, mut findings: Findings, out: &mut impl Egress) {
        if findings.sacked || findings.duplicate {
            let repair = self.advance_recovery(now, ack.tsecr_ms, &mut findings);
            self.repair(now, repair, out);
            self.write(now, out);
        }
    }

    /// An ACK came while nothing was outstanding.
    #[cold]
    fn on_idle_ack(
        &mut self,
        now: Time,
        ack: &Ack,
        before: &Before,
        mut findings: Findings,
        out: &mut impl Egress,
    ) {
        self.note_marks(now, ack, before.delivered);
        if findings.duplicate {
            self.advance_recovery(now, ack.tsecr_ms, &mut findings);
        }
        // The duplicate that a needless loss probe makes comes when all is acknowledged.
        self.on_probe_acknowledged(now, ack.number, &findings);
        self.note_window(now);
        self.write(now, out);
    }

    /// Tells the controller what the ACK says before losses are looked for.
    #[inline]
    fn tell_measurement(
        &mut self,
        now: Time,
        ack: &Ack,
        acked: u32,
        rtt: Option<Span>,
        newest_prior: Option<u64>,
    ) {
        self.controller.on_measurement(&Measurement {
            now,
            rtt,
            packets: acked,
            delivered: newest_prior.map_or(0, |prior| (self.sampler.delivered() - prior) as u32),
            sacked: self.board.sacked(),
            timestamps: Some(self.timestamps(now, ack)),
            first_unacked: u64::from(self.board.first()),
            next_to_send: u64::from(self.board.next()),
            state: self.state,
            pacing_rate: self.visible_pacing_rate(),
        });
    }

    /// `tcp_cong_control`: PRR or the controller moves the window. Always a part of `on_ack`: as a
    /// function it costs 1 % of a packet more.
    #[inline(always)]
    fn control(&mut self, now: Time, before: &Before, findings: &Findings, news: AckNews) {
        let AckNews { rtt, lost, marked, single } = news;
        let delivered = (self.sampler.delivered() - before.delivered) as u32;
        let delivery = self.sampler.finish_ack(now, self.rtt.min_rtt());
        // "If reordering is high then always grow cwnd whenever data is delivered", otherwise on
        // cumulative progress only (RFC 5681; `tcp_may_raise_cwnd`).
        let progress = findings.advanced || (findings.sacked && self.reordering > 3);
        let reducing = self.in_reduction();
        let sample = AckSample {
            now,
            acked: delivered,
            lost,
            rtt,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            rate: delivery.rate,
            prior_delivered: delivery.prior_delivered,
            sent_at: delivery.sent_at,
            in_flight_at_send: delivery.in_flight_at_send,
            lost_since_send: delivery.lost_since_send,
            app_limited: delivery.app_limited,
            ack_delayed: single,
            delivered: self.sampler.delivered(),
            total_lost: self.board.total_lost(),
            total_sent: self.total_sent,
            prior_in_flight: before.in_flight,
            in_flight: self.board.in_flight(),
            first_unacked: u64::from(self.board.first()),
            next_to_send: u64::from(self.board.next()),
            next_departure: self.pacer.departure.max(now),
            state: self.state,
            cwnd_limited: self.is_cwnd_limited(),
            may_grow: !reducing && progress,
            left_recovery: self.state != before.state
                && matches!(before.state, RecoveryState::Recovery | RecoveryState::Loss),
            ce_marked: marked,
        };
        if reducing {
            self.reduce_window(delivered, lost, findings.advanced);
        }
        self.controller.on_ack(&sample);
        self.take_answers();
        if self.controller.take_reduction_request() {
            self.enter_cwr(now, Signal::Request);
        }
        if self.controller.holds_back() {
            self.sampler.set_app_limited(self.board.in_flight());
        }
        self.update_pacing_rate();
    }

    /// What holds between any two calls: a window of at least one packet, what is in flight is what was
    /// sent and neither arrived nor was lost, and nothing was sent that was not written.
    fn is_consistent(&self) -> bool {
        self.board.is_consistent()
            && self.cwnd >= 1
            && self.board.next() <= self.written
            && u64::from(self.board.in_flight()) <= self.total_sent
    }

    #[inline]
    fn acknowledged(&self, rtt: Option<Span>, lost_packets: u32) -> Acknowledged {
        debug_assert!(self.is_consistent());
        Acknowledged {
            rtt,
            cwnd_bytes: self.bytes_of(self.cwnd),
            in_flight_bytes: self.bytes_of(self.board.in_flight()),
            acked_bytes: self.acked_bytes,
            lost_packets,
        }
    }

    /// The timestamps option as Linux sees it. The receiver's clock is the sender's but for an
    /// offset, since both count virtual time.
    fn timestamps(&self, now: Time, ack: &Ack) -> Timestamps {
        Timestamps {
            value_ms: ack.clock.tsval_ms(now).wrapping_add(self.options.timestamp_offset),
            echo_ms: ack.tsecr_ms,
            now_ms: timestamp_ms(now),
        }
    }

    /// Whether an ACK tells of marked packets.
    #[inline]
    fn reports_marks(&self, ack: &Ack) -> bool {
        match self.feedback {
            EcnFeedback::None => false,
            EcnFeedback::Classic | EcnFeedback::PerPacket => ack.ece,
            EcnFeedback::Counted => ack.newly_marked(self.marked) > 0,
        }
    }

    /// Counts the packets that an ACK reports as marked, and tells the controller. With ECE they
    /// are all that the ACK has delivered (`tcp_count_delivered`).
    #[inline]
    fn note_marks(&mut self, now: Time, ack: &Ack, prior_delivered: u64) -> u32 {
        if self.feedback == EcnFeedback::None {
            return 0;
        }
        let delivered = self.sampler.delivered();
        let marked = match self.feedback {
            EcnFeedback::Counted => u32::from(ack.newly_marked(self.marked)),
            _ if ack.ece => (delivered - prior_delivered) as u32,
            _ => 0,
        };
        self.marked += u64::from(marked);
        self.controller.on_marks(&Marks {
            now,
            delivered,
            marked: self.marked,
            first_unacked: u64::from(self.board.first()),
            next_to_send: u64::from(self.board.next()),
        });
        marked
    }

    /// Whether an ACK takes the slow path (`tcp_rcv_established`): it does not look as header
    /// prediction expects, with the window of the ACK before and without blocks or marks.
    fn leaves_fast_path(&mut self, ack: &Ack, findings: &Findings) -> bool {
        let same_window = ack.window == self.peer_window;
        // `tcp_may_update_window`: of two ACKs of the same number the larger window holds.
        if findings.advanced || ack.window > self.peer_window {
            self.peer_window = ack.window;
        }
        ack.block_count > 0 || ack.ece || !same_window
    }

    /// `tcp_xmit_recovery`.
    fn repair(&mut self, now: Time, repair: Repair, out: &mut impl Egress) {
        match repair {
            Repair::None => return,
            Repair::Lost => {}
            Repair::New => {
                self.write(now, out);
                if self.board.next() > self.high {
                    return;
                }
                self.frto = false;
            }
        }
        self.retransmit_lost(now, out);
    }

    /// `tcp_sacktag_write_queue`.
    #[cold]
    fn process_blocks(
        &mut self,
        now: Time,
        ack: &Ack,
        prior_first: u32,
        findings: &mut Findings,
    ) -> Ends {
        let mut blocks = [Block::default(); MAX_BLOCKS];
        let mut count = usize::from(ack.block_count);
        blocks[..count].copy_from_slice(ack.blocks());
        if ack.duplicate {
            self.note_duplicate(blocks[0], prior_first, findings);
            blocks.copy_within(1.., 0);
            count -= 1;
        }
        // Ascending, so that later blocks do not make earlier ones look reordered.
        blocks[..count].sort_unstable_by_key(|block| block.start);

        let min_rtt = self.rtt.min_rtt();
        let high = self.high;
        let mut ends = Ends::NONE;
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
            && (self.state != RecoveryState::Loss || self.undo.is_watching())
        {
            self.note_reordering(low);
        }
        ends
    }

    /// `tcp_check_dsack`, `tcp_dsack_seen`: the receiver got a segment twice (RFC 2883).
    fn note_duplicate(&mut self, block: Block, prior_first: u32, findings: &mut Findings) {
        if self.probe_high == Some(block.end) {
            findings.probe_duplicate = true;
        }
        self.duplicates_reported += 1;
        if self.duplicates_reported > self.total_retransmitted {
            // The network, not the sender, made the copy.
            return;
        }
        if self.reordering_seen && !findings.probe_duplicate {
            self.rack.duplicate_seen = true;
        }
        findings.duplicate = true;
        // A spurious retransmission is a delivery, too.
        self.sampler.count_spurious();
        let retransmitted = block.end <= prior_first
            || (block.end <= self.board.next()
                && self.board.slot(block.start).ever_retransmitted());
        self.undo.note_duplicate(block.end, retransmitted);
        if block.end > prior_first && block.end <= self.board.next() {
            self.board.retransmission_arrived(block.start);
        }
    }

    /// `tcp_clean_rtx_queue` and `tcp_ack_update_rtt`.
    fn process_cumulative(
        &mut self,
        now: Time,
        ack: &Ack,
        prior_highest: u32,
        sack_ends: Ends,
        findings: &mut Findings,
    ) -> RttSample {
        let min_rtt = self.rtt.min_rtt();
        let echo_ms = ack.tsecr_ms;
        let mut ends = Ends::NONE;
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
            // An echo from before the retransmission acknowledges the original.
            let spurious = ever && echo_ms != 0 && echo_ms < timestamp_ms(slot.stamp.sent_at);
            if !spurious {
                rack.advance(now, slot, number + 1, min_rtt);
            }
        });
        self.acked_bytes += payload;
        findings.retransmitted = retransmitted;
        findings.original |= ends.number < self.high;
        let sample = self.take_rtt(now, echo_ms, ends, sack_ends, payload, findings);

        if findings.advanced {
            findings.set_timer = true;
            if ends.number < prior_highest {
                self.note_reordering(ends.number);
            }
        } else if !sack_ends.is_none() && self.board.outstanding() > 0 {
            // The RTO is not extended by SACKs of data older than the head's last transmission.
            let head = self.board.slot(self.board.first()).stamp.sent_at;
            findings.set_timer = sack_ends.first < head;
        }
        sample
    }

    #[inline]
    fn take_rtt(
        &mut self,
        now: Time,
        echo_ms: u32,
        ends: Ends,
        sack_ends: Ends,
        payload: u64,
        findings: &Findings,
    ) -> RttSample {
        // For SRTT, of the first segment acknowledged (`seq_rtt_us`), and of the last.
        let mut rtts = None;
        let mut delayed = false;
        // Karn's algorithm (RFC 6298 §3): nothing is known if a retransmission is involved.
        if !findings.retransmitted {
            rtts = ends.rtts(now);
            let runt = payload > 0 && payload < u64::from(self.mss.get());
            delayed = runt
                && !(findings.sacked || findings.ecn_echo || findings.duplicate)
                && self.delivered_one();
        }
        if let Some((first, last)) = sack_ends.rtts(now) {
            rtts = Some((rtts.map_or(first, |(smoothed, _)| smoothed), last));
        }
        if rtts.is_none() && findings.advanced && echo_ms != 0 {
            // The timestamps option tells retransmissions apart (RFC 7323 §4), to a millisecond.
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
            // RFC 6298: the back-off ends with the first valid sample.
            self.rto = self.rtt.rto();
        }
        RttSample { newest: rtts.map(|(_, newest)| newest), delayed }
    }

    /// Nothing else was delivered since the newest packet of this ACK was sent.
    fn delivered_one(&self) -> bool {
        let prior = self.sampler.newest_prior_delivered();
        prior.is_some_and(|prior| prior + 1 == self.sampler.delivered())
    }

    /// `tcp_is_cwnd_limited`.
    pub(super) fn is_cwnd_limited(&self) -> bool {
        let slow_start = self.owns_window() && self.cwnd < self.ssthresh;
        self.usage.is_limit(self.cwnd, slow_start)
    }

    pub(super) fn owns_window(&self) -> bool {
        self.owner == RecoveryOwner::Transport
    }
}
