//! Processing of ACKs (`tcp_input.c::tcp_ack` in Linux).

use jostle_congestion::{
    AckSample, CongestionSignal, CwndReductionBy, EcnFeedback, EcnMarks, RawAckSample,
    RecoveryState, Timestamps,
};
use jostle_units::{Span, Time};

use super::recovery::{AckFindings, RetransmitAction};
use super::sack::FirstTransmissions;
use super::{AckOutcome, Connection, SegmentSink, Sender, timestamp_ms};
use crate::segment::Ack;

/// Results of an ACK that are not part of the counters.
#[derive(Clone, Copy, Debug)]
struct AckSummary {
    rtt: Option<Span>,
    lost: u32,
    marked: u32,
    /// Whether the ACK confirms a single packet and a delayed-ACK timer may have delayed it.
    single: bool,
}

/// State before an ACK is processed.
#[derive(Clone, Copy, Debug)]
struct StateBeforeAck {
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
    /// Processes an ACK without data. Returns the state to record.
    pub fn on_ack(
        &mut self,
        now: Time,
        ack: &Ack,
        out: &mut impl SegmentSink,
    ) -> Option<AckOutcome> {
        self.process(now, ack, false, out)
    }

    /// Processes the ACK of a data segment. Lost data is retransmitted, but new data is sent only by
    /// [`write_after_data`](Self::write_after_data). Returns the state to record.
    #[cold]
    pub fn on_ack_with_data(
        &mut self,
        now: Time,
        ack: &Ack,
        out: &mut impl SegmentSink,
    ) -> Option<AckOutcome> {
        self.process(now, ack, true, out)
    }

    /// Sends new data after a data segment and its ACK were processed
    /// (`tcp_input.c::tcp_rcv_established`).
    #[cold]
    pub fn write_after_data(&mut self, now: Time, out: &mut impl SegmentSink) {
        self.write(now, out);
    }

    /// Returns whether the header of a data segment is as header prediction expects, apart from the
    /// numbers (`tcp_input.c::tcp_rcv_established`).
    #[cold]
    pub fn predicts(&self, ack: &Ack) -> bool {
        ack.block_count == 0
            && !ack.ece
            && !ack.accecn.is_used()
            && !self.peer_window.is_other(ack.window)
    }

    /// Returns the first segment that is not acknowledged.
    pub fn first_unacked(&self) -> u32 {
        self.board.first()
    }

    /// Processes an ACK. Always inlined, because `has_data` is known to the caller.
    #[inline(always)]
    fn process(
        &mut self,
        now: Time,
        ack: &Ack,
        has_data: bool,
        out: &mut impl SegmentSink,
    ) -> Option<AckOutcome> {
        // Long: the steps of `tcp_input.c::tcp_ack` in its order.
        if self.connection != Connection::Established || ack.number > self.board.next() {
            return None;
        }
        let before = self.before();
        self.recovery.delivered_before_ack = before.delivered;
        let mut findings = self.read_header(now, ack, &before);
        findings.window_update |= has_data;
        let mut sack_ends = FirstTransmissions::NONE;
        if ack.block_count > 0 {
            sack_ends = self.process_blocks(now, ack, before.first, &mut findings);
        }
        if ack.number < before.first {
            if findings.sacked || findings.duplicate {
                self.on_old_ack(now, ack, findings, out);
                self.write_unless(has_data, now, out);
            }
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
        let other_window = self.peer_window.differs(ack.window, findings.advanced);
        // `tcp_input.c::tcp_rcv_established`: header prediction fails for an ACK with another
        // window than the previous ACK, with SACK blocks or with an ECN echo.
        let slow_path = ack.block_count > 0 || ack.ece || other_window;
        if before.outstanding == 0 {
            // `tcp_input.c::tcp_ack_update_window`: a receive-window-limited sender counts as idle.
            if other_window && self.has_data() {
                self.restart_after_idle(now);
            }
            self.on_idle_ack(now, ack, &before, findings);
            self.write_unless(has_data, now, out);
            return None;
        }
        self.report_raw_ack(now, ack, acked, rtt.newest, newest_prior);
        if self.wants_ack_events
            && let Some(tcp) = self.controller.tcp_extension_mut()
        {
            tcp.on_ack_event(now, slow_path);
        }
        let marked = self.note_marks(now, ack, before.delivered, &mut findings);
        self.take_window();
        if self.tail_probe.is_out() {
            self.on_probe_acknowledged(now, ack.number, &findings);
        }
        let mut repair = RetransmitAction::None;
        if findings.is_dubious() || self.recovery.state() != RecoveryState::Open {
            repair = self.advance_recovery(now, ack.tsecr_ms, &mut findings);
        }
        if findings.set_timer {
            self.set_probe_or_rto(now);
        }
        let lost = (self.board.total_lost() - before.lost) as u32;
        let single = acked == 1 && before.sacked == 0 && rtt.delayed;
        let rtt = rtt.newest;
        self.control(now, &before, &findings, AckSummary { rtt, lost, marked, single });
        self.repair(now, repair, out);
        self.write_unless(has_data, now, out);
        Some(self.acknowledged(rtt, lost))
    }

    /// Sends new data after an ACK, unless it came with data that must be processed first.
    #[inline(always)]
    fn write_unless(&mut self, has_data: bool, now: Time, out: &mut impl SegmentSink) {
        if !has_data {
            self.write(now, out);
        }
    }

    #[inline]
    fn before(&self) -> StateBeforeAck {
        StateBeforeAck {
            first: self.board.first(),
            outstanding: self.board.outstanding(),
            in_flight: self.board.in_flight(),
            sacked: self.board.sacked(),
            highest_sacked: self.board.highest_sacked(),
            delivered: self.sampler.delivered(),
            lost: self.board.total_lost(),
            state: self.recovery.state(),
        }
    }

    /// Processes the header without the SACK blocks.
    #[inline]
    fn read_header(&mut self, now: Time, ack: &Ack, before: &StateBeforeAck) -> AckFindings {
        let tsval_ms = ack.clock.tsval_ms(now);
        let newer = tsval_ms > self.echo_ms;
        self.echo_ms = self.echo_ms.max(tsval_ms);
        // Ignore the ECE flag of an ACK that later ACKs overtook.
        let current = ack.number >= before.first;
        let findings = AckFindings {
            prior_first: before.first,
            advanced: ack.number > before.first,
            window_update: self.peer_window.extend(ack.number, ack.window),
            timestamp_advanced: newer,
            ecn_echo: current && self.ecn.echoes_mark(ack),
            ..AckFindings::default()
        };
        if findings.advanced {
            self.rto.on_progress();
        }
        findings
    }

    /// Processes the SACK blocks of an ACK that a later ACK overtook.
    #[cold]
    fn on_old_ack(
        &mut self,
        now: Time,
        ack: &Ack,
        mut findings: AckFindings,
        out: &mut impl SegmentSink,
    ) {
        let repair = self.advance_recovery(now, ack.tsecr_ms, &mut findings);
        self.repair(now, repair, out);
    }

    /// Processes an ACK while nothing is outstanding.
    #[cold]
    fn on_idle_ack(
        &mut self,
        now: Time,
        ack: &Ack,
        before: &StateBeforeAck,
        mut findings: AckFindings,
    ) {
        self.note_marks(now, ack, before.delivered, &mut findings);
        if findings.duplicate {
            self.advance_recovery(now, ack.tsecr_ms, &mut findings);
        }
        // The D-SACK of a spurious loss probe arrives after all data is acknowledged.
        self.on_probe_acknowledged(now, ack.number, &findings);
        self.note_window(now);
    }

    /// Reports the ACK to the controller before loss detection.
    #[inline]
    fn report_raw_ack(
        &mut self,
        now: Time,
        ack: &Ack,
        acked: u32,
        rtt: Option<Span>,
        newest_prior: Option<u64>,
    ) {
        self.controller.on_ack_before_loss_detection(&RawAckSample {
            now,
            rtt,
            packets: acked,
            delivered: newest_prior.map_or(0, |prior| (self.sampler.delivered() - prior) as u32),
            sacked: self.board.sacked(),
            timestamps: Some(self.timestamps(now, ack)),
            first_unacked: u64::from(self.board.first()),
            next_to_send: u64::from(self.board.next()),
            state: self.recovery.state(),
            pacing_rate: self.visible_pacing_rate(),
        });
    }

    /// Updates cwnd by PRR or the controller (`tcp_input.c::tcp_cong_control`). Always inlined into
    /// `on_ack`, which saves 1 % per packet.
    #[inline(always)]
    fn control(
        &mut self,
        now: Time,
        before: &StateBeforeAck,
        findings: &AckFindings,
        news: AckSummary,
    ) {
        let AckSummary { rtt, lost, marked, single } = news;
        let delivered = (self.sampler.delivered() - before.delivered) as u32;
        let delivery = self.sampler.finish_ack(now, self.rtt.min_rtt());
        // "If reordering is high then always grow cwnd whenever data is delivered", otherwise only
        // if snd_una advances (RFC 5681; `tcp_input.c::tcp_may_raise_cwnd`).
        let progress = findings.advanced || (findings.sacked && self.reordering.is_high());
        let reducing = self.recovery.in_reduction();
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
            state: self.recovery.state(),
            cwnd_limited: self.is_cwnd_limited(),
            pacing_limited: false,
            can_increase_cwnd: !reducing && progress,
            recovery_ended: self.recovery.state() != before.state
                && matches!(before.state, RecoveryState::Recovery | RecoveryState::Loss),
            ce_marked: marked,
        };
        if reducing {
            self.reduce_window(delivered, lost, findings.advanced);
        } else if progress && self.owns_window() {
            // `tcp_input.c::tcp_cong_avoid` updates `snd_cwnd_stamp` with each ACK that may
            // increase the window, even if it does not. Only a flow without progress for an RTO is
            // considered not to use its window.
            self.usage.since = now;
        }
        self.controller.on_ack(&sample);
        self.copy_controller_outputs();
        if self.controller.take_cwr_request() {
            self.enter_cwr(now, CongestionSignal::Request);
        }
        if self.controller.limits_flight_on_purpose() {
            self.sampler.set_app_limited(self.board.in_flight());
        }
        self.update_pacing_rate();
    }

    #[inline]
    fn acknowledged(&self, rtt: Option<Span>, lost_packets: u32) -> AckOutcome {
        self.check();
        AckOutcome {
            rtt,
            cwnd_bytes: self.bytes_of(self.cwnd),
            in_flight_bytes: self.bytes_of(self.board.in_flight()),
            acked_bytes: self.acked_bytes,
            lost_packets,
        }
    }

    /// Returns the timestamps option as Linux would see it. The receiver's clock differs from the
    /// sender's only by an offset, because both use virtual time.
    fn timestamps(&self, now: Time, ack: &Ack) -> Timestamps {
        Timestamps {
            value_ms: ack.clock.tsval_ms(now).wrapping_add(self.options.timestamp_offset),
            echo_ms: ack.tsecr_ms,
            now_ms: timestamp_ms(now),
        }
    }

    /// Counts the packets that an ACK reports as marked, and reports them to the controller.
    #[inline]
    fn note_marks(
        &mut self,
        now: Time,
        ack: &Ack,
        prior_delivered: u64,
        findings: &mut AckFindings,
    ) -> u32 {
        if self.ecn.feedback() == EcnFeedback::None {
            return 0;
        }
        let delivered = self.sampler.delivered();
        // `FLAG_FORWARD_PROGRESS | FLAG_TS_PROGRESS`: an ACK without either may be an old one.
        let current = findings.advanced || findings.sacked || findings.timestamp_advanced;
        let marked = self.ecn.count(ack, (delivered - prior_delivered) as u32, current);
        findings.ecn_echo |= self.ecn.feedback() == EcnFeedback::AccEcn && marked > 0;
        self.controller.on_ecn_feedback(&EcnMarks {
            now,
            delivered,
            marked: self.ecn.marked(),
            first_unacked: u64::from(self.board.first()),
            next_to_send: u64::from(self.board.next()),
        });
        marked
    }

    /// `tcp_input.c::tcp_xmit_recovery`.
    fn repair(&mut self, now: Time, repair: RetransmitAction, out: &mut impl SegmentSink) {
        match repair {
            RetransmitAction::None => return,
            RetransmitAction::Lost => {}
            RetransmitAction::New => {
                self.write(now, out);
                if self.board.next() > self.recovery.high() {
                    return;
                }
                self.recovery.frto = false;
            }
        }
        self.retransmit_lost(now, out);
    }

    pub(super) fn owns_window(&self) -> bool {
        self.owner == CwndReductionBy::Transport
    }
}
