//! Recovery: RFC 9002 §7.3, with its immediate reduction or PRR.

use jostle_control::transport::Reduction;
use jostle_control::{Congestion, RecoveryOwner, RecoveryState, Signal};
use jostle_units::Time;

use super::Governor;
use super::report::Report;
use crate::settings::{MIN_WINDOW_PACKETS, Recovery};

impl Governor {
    /// The window is coming down, or has for this episode.
    #[inline]
    pub(super) const fn in_reduction(&self) -> bool {
        matches!(self.state, RecoveryState::Cwr | RecoveryState::Recovery)
    }

    fn set_state(&mut self, now: Time, state: RecoveryState, report: &mut Report) {
        if self.state != state {
            self.state = state;
            report.state = Some(state);
            if let Some(controller) = &mut self.controller {
                controller.on_state(now, state);
            }
        }
    }

    fn tell_congestion(&mut self, now: Time, signal: Signal, report: &mut Report) {
        report.congestion = Some(signal);
        let in_flight = self.flights.count();
        let next_to_send = self.flights.next_number();
        if let Some(controller) = &mut self.controller {
            controller.on_congestion(&Congestion { now, signal, in_flight, next_to_send });
        }
        self.take_answers();
    }

    /// `OnCongestionEvent` (RFC 9002, B.6). `number`: the packet that was lost or marked; one that was
    /// sent before the present episode began is no news.
    pub(super) fn on_congestion(
        &mut self,
        now: Time,
        signal: Signal,
        number: u64,
        report: &mut Report,
    ) {
        let known = number < self.high;
        if known {
            if self.state == RecoveryState::Cwr && signal == Signal::Loss {
                // The window comes down already; repair begins.
                self.set_state(now, RecoveryState::Recovery, report);
                self.take_answers();
            }
            return;
        }
        self.high = self.flights.next_number();
        self.reversible = signal == Signal::Loss;
        self.reduction = Reduction::new(self.cwnd);
        self.tell_congestion(now, signal, report);
        let state = match signal {
            Signal::Loss => RecoveryState::Recovery,
            Signal::Ecn | Signal::Request => RecoveryState::Cwr,
            Signal::Timeout => RecoveryState::Loss,
        };
        self.set_state(now, state, report);
        self.take_answers();
        if self.owns_window() && self.recovery == Recovery::Rfc9002 {
            // "congestion_window = max(ssthresh, kMinimumWindow)", then "MaybeSendOnePacket()".
            self.set_cwnd(self.ssthresh.min(self.cwnd).max(MIN_WINDOW_PACKETS));
            self.extra_packet = true;
        }
    }

    /// RFC 9002 §7.6.2: "When persistent congestion is declared, the sender's congestion window MUST be
    /// reduced to the minimum congestion window". B.8 also sets `congestion_recovery_start_time` to 0:
    /// what is sent from now on may grow it.
    pub(super) fn on_persistent_congestion(&mut self, now: Time, report: &mut Report) {
        self.reversible = false;
        self.tell_congestion(now, Signal::Timeout, report);
        self.set_cwnd(MIN_WINDOW_PACKETS);
        self.high = self.flights.next_number();
        self.set_state(now, RecoveryState::Loss, report);
        self.take_answers();
    }

    /// RFC 9002 §7.3.2: "the recovery period ends ... when a packet sent during the recovery period
    /// is acknowledged". `newest`: the newest packet that was delivered. Whether it did.
    pub(super) fn try_to_leave(&mut self, now: Time, newest: u64, report: &mut Report) -> bool {
        if self.state == RecoveryState::Open || newest < self.high {
            return false;
        }
        let was_reduction = self.in_reduction();
        let left = matches!(self.state, RecoveryState::Recovery | RecoveryState::Loss);
        self.set_state(now, RecoveryState::Open, report);
        if was_reduction && self.owner == RecoveryOwner::Transport {
            if self.recovery == Recovery::Prr && self.ssthresh < u32::MAX {
                // RFC 6937 §3: "At the end of recovery, cwnd is set to ssthresh".
                self.set_cwnd(self.ssthresh);
            }
            if let Some(controller) = &mut self.controller {
                controller.on_reduction_end(now);
            }
        }
        self.take_answers();
        left
    }

    /// Everything that was deemed lost arrived: the reduction is taken back.
    pub(super) fn undo(&mut self, now: Time, report: &mut Report) {
        if !std::mem::take(&mut self.reversible) {
            return;
        }
        report.undone = true;
        self.totals.spurious += 1;
        if let Some(controller) = &mut self.controller {
            controller.on_undo(now);
        }
        self.usage.since = now;
        self.set_state(now, RecoveryState::Open, report);
        self.take_answers();
    }

    /// PRR: the window that an ACK leaves while it comes down.
    pub(super) fn reduce_window(&mut self, delivered: u32, lost: u32) {
        if delivered == 0 || !self.owns_window() || self.recovery != Recovery::Prr {
            return;
        }
        let pipe = self.flights.count();
        let window = self.reduction.window(self.ssthresh, pipe, delivered, lost == 0);
        self.set_cwnd(window);
    }
}
