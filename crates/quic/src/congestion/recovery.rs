//! Recovery (RFC 9002 §7.3), with an immediate reduction or PRR.

use jostle_congestion::transport::ProportionalRateReduction;
use jostle_congestion::{CongestionEvent, CongestionSignal, CwndReductionBy, RecoveryState};
use jostle_units::Time;

use super::CongestionState;
use super::ack_report::FlushReport;
use crate::settings::{MIN_WINDOW_PACKETS, Recovery};

impl CongestionState {
    /// Returns whether cwnd is being reduced or was reduced in the current recovery period.
    #[inline]
    pub(super) const fn in_reduction(&self) -> bool {
        matches!(self.state, RecoveryState::Cwr | RecoveryState::Recovery)
    }

    fn set_state(&mut self, now: Time, state: RecoveryState, report: &mut FlushReport) {
        if self.state != state {
            self.state = state;
            report.state = Some(state);
            if let Some(controller) = &mut self.controller {
                controller.on_recovery_state(now, state);
            }
        }
    }

    fn report_congestion_event(
        &mut self,
        now: Time,
        signal: CongestionSignal,
        report: &mut FlushReport,
    ) {
        report.congestion = Some(signal);
        let in_flight = self.flights.count();
        let next_to_send = self.flights.next_number();
        if let Some(controller) = &mut self.controller {
            controller.on_congestion_event(&CongestionEvent {
                now,
                signal,
                in_flight,
                next_to_send,
            });
        }
        self.read_controller();
    }

    /// Implements `OnCongestionEvent` (RFC 9002 §B.6). `number` is the lost or marked packet.
    /// Packets sent before the current recovery period began are ignored.
    pub(super) fn on_congestion_event(
        &mut self,
        now: Time,
        signal: CongestionSignal,
        number: u64,
        report: &mut FlushReport,
    ) {
        let known = number < self.high;
        if known {
            if self.state == RecoveryState::Cwr && signal == CongestionSignal::Loss {
                // cwnd is already being reduced; retransmissions begin.
                self.set_state(now, RecoveryState::Recovery, report);
                self.read_controller();
            }
            return;
        }
        self.high = self.flights.next_number();
        self.reversible = signal == CongestionSignal::Loss;
        self.reduction = ProportionalRateReduction::new(self.cwnd);
        self.report_congestion_event(now, signal, report);
        let state = match signal {
            CongestionSignal::Loss => RecoveryState::Recovery,
            CongestionSignal::Ecn | CongestionSignal::Request => RecoveryState::Cwr,
            CongestionSignal::Timeout => RecoveryState::Loss,
        };
        self.set_state(now, state, report);
        self.read_controller();
        if self.owns_window() && self.recovery == Recovery::Rfc9002 {
            // "congestion_window = max(ssthresh, kMinimumWindow)", then "MaybeSendOnePacket()".
            self.set_cwnd(self.ssthresh.min(self.cwnd).max(MIN_WINDOW_PACKETS));
            self.extra_packet = true;
        }
    }

    /// RFC 9002 §7.6.2: "When persistent congestion is declared, the sender's congestion window
    /// MUST be reduced to the minimum congestion window". `number` is the last of the lost packets.
    ///
    /// The losses are one congestion event: B.8 reduces ssthresh at most once, in
    /// `OnCongestionEvent`, and not at all in a recovery period (as `tcp_input.c::tcp_enter_loss` in
    /// Linux). A controller that sets cwnd itself is also told in a recovery period. B.8 then sets
    /// `congestion_recovery_start_time` to 0, so that ACKs may increase cwnd.
    pub(super) fn on_persistent_congestion(
        &mut self,
        now: Time,
        number: u64,
        report: &mut FlushReport,
    ) {
        if number >= self.high {
            self.on_congestion_event(now, CongestionSignal::Timeout, number, report);
        } else if !self.owns_window() {
            self.report_congestion_event(now, CongestionSignal::Timeout, report);
        }
        self.reversible = false;
        self.set_cwnd(MIN_WINDOW_PACKETS);
        self.high = self.flights.next_number();
        self.set_state(now, RecoveryState::Loss, report);
        self.read_controller();
    }

    /// Leaves recovery if its condition holds, and returns whether it did. `newest` is the most
    /// recently sent packet that was acknowledged. RFC 9002 §7.3.2: "the recovery period ends ...
    /// when a packet sent during the recovery period is acknowledged".
    pub(super) fn try_to_leave(
        &mut self,
        now: Time,
        newest: u64,
        report: &mut FlushReport,
    ) -> bool {
        if self.state == RecoveryState::Open || newest < self.high {
            return false;
        }
        let was_reduction = self.in_reduction();
        let left = matches!(self.state, RecoveryState::Recovery | RecoveryState::Loss);
        self.set_state(now, RecoveryState::Open, report);
        if was_reduction && self.owner == CwndReductionBy::Transport {
            if self.recovery == Recovery::Prr && self.ssthresh < u32::MAX {
                // RFC 9937: cwnd is ssthresh at the end of recovery.
                self.set_cwnd(self.ssthresh);
            }
            if let Some(controller) = &mut self.controller {
                controller.on_cwr_complete(now);
            }
        }
        self.read_controller();
        left
    }

    /// Undoes the reduction, because all packets declared lost have arrived.
    pub(super) fn undo(&mut self, now: Time, report: &mut FlushReport) {
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
        self.read_controller();
    }

    /// Takes back an increase of a window that the flow does not use. RFC 9002 §7.8: "the congestion
    /// window SHOULD NOT be increased". Most controllers do not increase it; Vegas of Linux does. A
    /// start-up that paces its flights is limited by its pacing.
    pub(super) fn keep_unused_window(&mut self, before: u32) {
        if self.cwnd > before && self.owns_window() && !self.rate_required {
            self.set_cwnd(before);
        }
    }

    /// Updates cwnd by PRR after an ACK.
    pub(super) fn reduce_window(&mut self, delivered: u32, lost: u32) {
        if delivered == 0 || !self.owns_window() || self.recovery != Recovery::Prr {
            return;
        }
        let pipe = self.flights.count();
        let window = self.reduction.window(self.ssthresh, pipe, delivered, lost == 0);
        self.set_cwnd(window);
    }
}
