//! The retransmission timer and its uses: RTO, tail loss probe, reordering, window probe.

use jostle_congestion::{RTO_MAX, RecoveryState};
use jostle_units::{HEADER_BYTES, Span, Time};

use super::tlp::TailProbe;
use super::{Connection, SegmentSink, Sender, take_expired};

/// `TCP_RTO_MIN`: allowance of a loss probe for the delayed ACK of a single packet, and minimum
/// interval of window probes.
const RTO_MIN: Span = Span::from_ms(200);

/// Number of doublings of the interval between window probes: from `TCP_RTO_MIN` to `TCP_RTO_MAX`.
const WINDOW_PROBE_DOUBLINGS: u32 = 10;

/// Purpose of the running timer (`icsk_pending`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PendingTimer {
    None,
    /// `ICSK_TIME_RETRANS`.
    Retransmission,
    /// `ICSK_TIME_LOSS_PROBE`.
    LossProbe,
    /// `ICSK_TIME_REO_TIMEOUT`.
    Reordering,
    /// `ICSK_TIME_PROBE0`.
    WindowProbe,
}

impl Sender {
    /// Sets the timer at `now` for `at`.
    pub(super) fn set_timer(&mut self, now: Time, pending: PendingTimer, at: Time) {
        self.pending = pending;
        self.deadlines.retransmission = self.options.timers.on_wheel(now, at);
    }

    /// Stops the timer.
    pub(super) const fn stop_timer(&mut self) {
        self.pending = PendingTimer::None;
        self.deadlines.retransmission = Time::NEVER;
    }

    /// Returns the time at which the RTO of the oldest outstanding packet expires.
    fn rto_of_first(&self) -> Time {
        self.board.slot(self.board.first()).stamp.sent_at + self.rto.span()
    }

    /// `tcp_input.c::tcp_rearm_rto`. RFC 6298 §5 (5.3): "When an ACK is received that acknowledges
    /// new data, restart the retransmission timer".
    pub(super) fn rearm_rto(&mut self, now: Time) {
        if self.board.outstanding() == 0 {
            self.stop_timer();
            return;
        }
        let at = match self.pending {
            // The RTO starts at the transmission of the oldest packet, not now.
            PendingTimer::Reordering | PendingTimer::LossProbe => {
                self.rto_of_first().max(now + Span::from_ms(1))
            }
            _ => now + self.rto.span(),
        };
        self.set_timer(now, PendingTimer::Retransmission, at);
    }

    pub(super) fn restart_rto(&mut self, now: Time) {
        self.set_timer(now, PendingTimer::Retransmission, now + self.rto.span());
    }

    pub(super) fn set_reordering_timer(&mut self, now: Time, wait: Span) {
        self.set_timer(
            now,
            PendingTimer::Reordering,
            now + (wait + self.options.timers.timeout_min()).min(self.rto.span()),
        );
    }

    /// `tcp_input.c::tcp_set_xmit_timer`: one timer for RTO, TLP and reordering (RFC 8985 §8).
    pub(super) fn set_probe_or_rto(&mut self, now: Time) {
        if !self.schedule_probe(now, true) {
            self.rearm_rto(now);
        }
    }

    /// `tcp_output.c::tcp_schedule_loss_probe`, RFC 8985 §7.2: PTO = 2·SRTT, plus the worst-case
    /// delayed ACK if a single packet is outstanding, never after the RTO.
    pub(super) fn schedule_probe(&mut self, now: Time, rto_advances: bool) -> bool {
        let eligible = matches!(self.recovery.state(), RecoveryState::Open | RecoveryState::Cwr);
        if self.board.outstanding() == 0 || !eligible {
            return false;
        }
        let mut at = if self.rtt.has_sample() {
            let least = self.options.timers.timeout_min();
            let allowance = if self.board.outstanding() == 1 { RTO_MIN } else { least };
            now + self.rtt.srtt() + self.rtt.srtt() + allowance
        } else {
            now + Span::from_secs(1)
        };
        let rto_at = if rto_advances { now + self.rto.span() } else { self.rto_of_first() };
        if rto_at > now {
            at = at.min(rto_at);
        }
        self.set_timer(now, PendingTimer::LossProbe, at);
        true
    }

    /// Handles an expired retransmission timer.
    pub fn on_timer(&mut self, now: Time, out: &mut impl SegmentSink) {
        if !take_expired(&mut self.deadlines.retransmission, now) {
            return;
        }
        if self.connection == Connection::SynSent {
            self.rto.back_off();
            self.send_syn(now, out);
            return;
        }
        match std::mem::replace(&mut self.pending, PendingTimer::None) {
            PendingTimer::None => {}
            PendingTimer::Retransmission => self.on_rto(now, out),
            PendingTimer::LossProbe => self.send_probe(now, out),
            PendingTimer::Reordering => self.on_reordering_timeout(now, out),
            PendingTimer::WindowProbe => self.probe_window(now, out),
        }
        self.check();
    }

    /// `tcp_timer.c::tcp_retransmit_timer`.
    fn on_rto(&mut self, now: Time, out: &mut impl SegmentSink) {
        if self.board.outstanding() == 0 {
            return;
        }
        self.enter_loss(now);
        self.rto.back_off();
        self.retransmit(now, self.board.first(), out);
        self.restart_rto(now);
    }

    /// Sends a loss probe: new data if available, otherwise the last packet again
    /// (RFC 8985 §7.3, `tcp_output.c::tcp_send_loss_probe`).
    fn send_probe(&mut self, now: Time, out: &mut impl SegmentSink) {
        if !self.tail_probe.is_out() && self.board.outstanding() > 0 {
            let mut again = false;
            let sent = if self.has_data() && self.board.next() < self.peer_window.end {
                let before = self.board.outstanding();
                self.write_probe(now, out);
                self.board.outstanding() > before
            } else {
                again = self.fits_window(self.board.next() - 1);
                if again {
                    self.retransmit_last(now, out);
                }
                again
            };
            if sent {
                self.tail_probe = TailProbe::sent(self.board.next(), again);
                // Start the RTO now.
                self.pending = PendingTimer::None;
                self.rearm_rto(now);
                return;
            }
        }
        self.pending = PendingTimer::LossProbe;
        self.rearm_rto(now);
    }

    /// Sets the timer for window probes if the receive window blocks data. RFC 9293 §3.8.6.1: "The
    /// sending TCP peer must regularly transmit at least one octet of new data (if available), or
    /// retransmit to the receiving TCP peer even if the send window is zero, in order to 'probe'
    /// the window." Outstanding data uses the retransmission timer instead
    /// (`tcp.h::tcp_check_probe_timer`).
    #[cold]
    pub(super) fn await_window(&mut self, now: Time) {
        if self.board.outstanding() == 0 && self.pending == PendingTimer::None {
            self.set_timer(now, PendingTimer::WindowProbe, now + self.window_probe_interval());
        }
    }

    /// Returns the interval of window probes (`tcp.h::tcp_probe0_when`). RFC 9293 §3.8.6.1: the
    /// first probe is due "when a zero window has existed for the retransmission timeout period",
    /// and the interval increases exponentially.
    fn window_probe_interval(&self) -> Span {
        let base_ns = self.rto.span().max(RTO_MIN).as_ns();
        Span::from_ns(base_ns << self.peer_window.probes.min(WINDOW_PROBE_DOUBLINGS)).min(RTO_MAX)
    }

    /// Sends a window probe (`tcp_timer.c::tcp_probe_timer`, `tcp_output.c::tcp_write_wakeup`): a
    /// segment without data before the first unacknowledged one, to which every receiver responds.
    #[cold]
    fn probe_window(&mut self, now: Time, out: &mut impl SegmentSink) {
        if self.board.outstanding() > 0 || !self.has_data() {
            self.peer_window.probes = 0;
            return;
        }
        let number = self.board.first().wrapping_sub(1);
        let probe = self.data(now, number, 0, false);
        out.note_sent(now, 1, u64::from(HEADER_BYTES), false);
        out.transmit(now, probe, self.ecn.field(false));
        self.peer_window.probes = self.peer_window.probes.saturating_add(1);
        self.set_timer(now, PendingTimer::WindowProbe, now + self.window_probe_interval());
    }

    /// Processes the window of an ACK while nothing is outstanding (`tcp_input.c::tcp_ack_probe`).
    pub(super) fn note_window(&mut self, now: Time) {
        if self.pending != PendingTimer::WindowProbe {
            return;
        }
        if self.board.next() < self.peer_window.end {
            self.peer_window.probes = 0;
            self.stop_timer();
        } else {
            self.set_timer(now, PendingTimer::WindowProbe, now + self.window_probe_interval());
        }
    }

    /// `tcp_recovery.c::tcp_rack_reo_timeout`.
    fn on_reordering_timeout(&mut self, now: Time, out: &mut impl SegmentSink) {
        self.pending = PendingTimer::Reordering;
        let (in_flight, lost) = (self.board.in_flight(), self.board.total_lost());
        self.recovery.delivered_before_ack = self.sampler.delivered();
        self.detect_losses(now);
        if self.board.in_flight() != in_flight {
            if self.recovery.state() != RecoveryState::Recovery {
                self.enter_recovery(now, false);
                let newly_lost = self.board.total_lost() - lost;
                self.reduce_window(1, newly_lost as u32, false);
            }
            self.retransmit_lost(now, out);
        }
        if self.pending != PendingTimer::Retransmission {
            self.rearm_rto(now);
        }
    }

    /// Handles an expired pacing timer.
    pub fn on_pacing_timer(&mut self, now: Time, out: &mut impl SegmentSink) {
        if take_expired(&mut self.deadlines.pacing, now) {
            self.retransmit_lost(now, out);
            self.write(now, out);
            self.check();
        }
    }

    /// Handles an expired timer of the controller. The timer of a finished connection is not set
    /// again, because a controller with monitor intervals would continue until the end of the run.
    pub fn on_wakeup(&mut self, now: Time, out: &mut impl SegmentSink) {
        if take_expired(&mut self.deadlines.wakeup, now) && !self.is_finished {
            self.controller.on_wakeup(now);
            self.copy_controller_outputs();
            self.retransmit_lost(now, out);
            self.write(now, out);
            self.check();
        }
    }
}
