//! Loss detection and recovery, reduced to what a controller sees of them.

use jostle_congestion::{CongestionEvent, CongestionSignal, CwndReductionBy, RecoveryState};
use jostle_units::Time;

use super::Transfer;

impl Transfer {
    /// RFC 6675: lost is what has three packets delivered above it. What is sent next stands for
    /// its retransmission, and recovery does not end before that arrives.
    pub(super) fn detect_loss(&mut self) -> u32 {
        let mut lost = 0;
        let was_in_window = self.first_unacked < self.recovery_end;
        while self.first_unacked + 3 < self.delivered_end {
            // The front of the window is never a delivered packet.
            let Some(packet) = self.window.pop_front() else { break };
            let lost_packet =
                self.sampler.on_packet_lost(self.now, &packet.stamp, self.first_unacked);
            self.controller.on_packet_lost(&lost_packet);
            self.first_unacked += 1;
            lost += 1;
            self.advance();
        }
        self.in_flight -= lost;
        self.total_lost += u64::from(lost);
        if lost > 0 && self.in_recovery() && was_in_window {
            self.recovery_end = self.total_sent + u64::from(lost);
        }
        lost
    }

    pub(super) fn owner(&self) -> CwndReductionBy {
        self.controller.recovery_owner()
    }

    pub(super) fn in_recovery(&self) -> bool {
        matches!(self.state, RecoveryState::Recovery | RecoveryState::Loss)
    }

    fn set_state(&mut self, state: RecoveryState) {
        if self.state != state {
            self.state = state;
            self.controller.on_recovery_state(self.now, state);
        }
    }

    fn signal(&mut self, signal: CongestionSignal) {
        self.prior_cwnd = self.controller.cwnd();
        self.controller.on_congestion_event(&CongestionEvent {
            now: self.now,
            signal,
            in_flight: self.in_flight,
            next_to_send: self.total_sent,
        });
    }

    /// The controller asks for a reduction (`tcp_input.c::tcp_enter_cwr`).
    pub(super) fn enter_cwr(&mut self) {
        if matches!(self.state, RecoveryState::Open | RecoveryState::Disorder) {
            (self.prr_delivered, self.prr_out) = (0, 0);
            self.recovery_end = self.total_sent;
            self.signal(CongestionSignal::Request);
            self.set_state(RecoveryState::Cwr);
        }
    }

    /// PRR ends at ssthresh (`tcp_input.c::tcp_end_cwnd_reduction`).
    fn end_reduction(&mut self) {
        if self.owner() == CwndReductionBy::Transport {
            let ssthresh = self.controller.ssthresh().unwrap_or(self.prior_cwnd);
            self.controller.set_cwnd(ssthresh);
            self.controller.on_cwr_complete(self.now);
        }
    }

    /// Leaves and enters recovery (`tcp_input.c::tcp_fastretrans_alert`), and the reduction that
    /// marks ask for.
    pub(super) fn recover(&mut self, lost: u32, marked: u32) {
        if self.state == RecoveryState::Cwr && self.first_unacked > self.recovery_end {
            self.end_reduction();
            self.set_state(RecoveryState::Open);
        }
        if self.in_recovery() && self.first_unacked >= self.recovery_end {
            if self.state == RecoveryState::Recovery {
                self.end_reduction();
            }
            self.set_state(RecoveryState::Open);
        }
        if !self.in_recovery() && lost > 0 {
            self.recoveries += 1;
            if self.state != RecoveryState::Cwr {
                (self.prr_delivered, self.prr_out) = (0, 0);
                self.signal(CongestionSignal::Loss);
            }
            self.recovery_end = self.total_sent + u64::from(lost);
            self.set_state(RecoveryState::Recovery);
        } else if !self.in_recovery() && self.state != RecoveryState::Cwr && marked > 0 {
            (self.prr_delivered, self.prr_out) = (0, 0);
            self.recovery_end = self.total_sent;
            self.signal(CongestionSignal::Ecn);
            self.set_state(RecoveryState::Cwr);
        } else if !self.in_recovery() && self.state != RecoveryState::Cwr {
            let hole = self.first_unacked < self.delivered_end;
            self.set_state(if hole { RecoveryState::Disorder } else { RecoveryState::Open });
        }
    }

    /// Proportional Rate Reduction (RFC 6937) as Linux has it.
    pub(super) fn reduce(&mut self, acked: u32, advanced: bool) {
        if acked == 0 {
            return;
        }
        let ssthresh = u64::from(self.controller.ssthresh().unwrap_or(self.prior_cwnd));
        let pipe = u64::from(self.in_flight);
        self.prr_delivered += u64::from(acked);
        let may_send = if pipe > ssthresh {
            (ssthresh * self.prr_delivered)
                .div_ceil(u64::from(self.prior_cwnd))
                .saturating_sub(self.prr_out)
        } else {
            let conserve = self.prr_delivered.saturating_sub(self.prr_out).max(u64::from(acked));
            (ssthresh - pipe).min(conserve + u64::from(advanced))
        };
        // "Force a fast retransmit upon entering recovery."
        let may_send = may_send.max(u64::from(self.prr_out == 0));
        self.controller.set_cwnd((pipe + may_send) as u32);
    }

    /// The retransmission timer expired: everything in flight counts as lost. Within a window of
    /// data that has met congestion, only the state tells the controller
    /// (`tcp_input.c::tcp_enter_loss`).
    pub(super) fn time_out(&mut self) {
        let reduced = self.in_recovery() || self.state == RecoveryState::Cwr;
        let met_congestion = reduced && self.first_unacked < self.recovery_end;
        let first = !met_congestion || (self.state == RecoveryState::Loss && self.backoff == 0);
        self.timeouts += 1;
        self.backoff += 1;
        self.total_lost += u64::from(self.in_flight);
        let retransmissions = u64::from(self.in_flight);
        self.in_flight = 0;
        for (number, packet) in (self.first_unacked..).zip(self.window.drain(..)) {
            if !packet.delivered {
                let lost = self.sampler.on_packet_lost(self.now, &packet.stamp, number);
                self.controller.on_packet_lost(&lost);
            }
        }
        self.first_unacked = self.total_sent;
        self.recovery_end = self.total_sent + retransmissions;
        if first {
            self.signal(CongestionSignal::Timeout);
        }
        if self.owner() == CwndReductionBy::Transport {
            self.controller.set_cwnd(1);
        }
        self.state = RecoveryState::Loss;
        self.controller.on_recovery_state(self.now, RecoveryState::Loss);
        self.arm_timeout();
    }

    pub(super) fn arm_timeout(&mut self) {
        // RFC 6298 §5 (5.5): "The host MUST set RTO <- RTO * 2 ('back off the timer')."
        let rto = self.rtt.rto().mul_div(1 << self.backoff.min(6), 1);
        self.timeout_at = if self.in_flight > 0 { self.now + rto } else { Time::NEVER };
    }
}
