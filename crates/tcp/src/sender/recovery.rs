//! The recovery states: start of a reduction, reduction by PRR, and undo.

use jostle_congestion::transport::{ProportionalRateReduction, RecoverFlightSize};
use jostle_congestion::{CongestionSignal, CwndReductionBy, RecoveryState};
use jostle_units::Time;

use super::Sender;
use super::scoreboard::Scoreboard;
use super::undo::UndoState;

/// Packets to send after an ACK was processed (`REXMIT_*` in Linux).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetransmitAction {
    /// Only new data that the window allows.
    None,
    /// Segments marked lost.
    Lost,
    /// New data first, to find out whether the timeout was spurious.
    New,
}

/// Findings of an ACK: the long-lived flags of Linux's `tcp_input.c::tcp_ack`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckFindings {
    /// snd_una before the ACK.
    pub prior_first: u32,
    /// snd_una advanced.
    pub advanced: bool,
    /// The ACK has a later timestamp than all before it.
    pub timestamp_advanced: bool,
    /// A segment was newly SACKed.
    pub sacked: bool,
    /// Whether data sent before `high` and never retransmitted was acknowledged.
    pub original: bool,
    /// Whether a retransmitted segment was cumulatively acknowledged.
    pub retransmitted: bool,
    /// Whether the ACK reports a duplicate.
    pub duplicate: bool,
    /// Whether the duplicate was caused by a loss probe.
    pub probe_duplicate: bool,
    /// Whether packets were reported as marked.
    pub ecn_echo: bool,
    /// Whether the receive window has grown, or the ACK came with data: RFC 5681 §2
    /// counts neither as a duplicate.
    pub window_update: bool,
    /// Whether a retransmission was found to be lost.
    pub lost_retransmission: bool,
    /// Whether to restart the timer.
    pub set_timer: bool,
}

impl AckFindings {
    /// `tcp_input.c::tcp_ack_is_dubious` without the check of the state.
    #[inline]
    pub const fn is_dubious(&self) -> bool {
        self.no_progress() || self.sacked || self.ecn_echo || self.duplicate
    }

    /// Returns whether neither snd_una nor the window advanced (`FLAG_SND_UNA_ADVANCED`,
    /// `FLAG_NOT_DUP`).
    const fn no_progress(&self) -> bool {
        !(self.advanced || self.window_update)
    }
}

/// The congestion state and its bookkeeping (`icsk_ca_state` in Linux).
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    state: RecoveryState,
    /// `high_seq`: `snd_nxt` when the current state was entered.
    high: u32,
    reduction: ProportionalRateReduction,
    /// Packets delivered before the ACK that is being processed.
    pub delivered_before_ack: u64,
    pub undo: UndoState,
    /// The timeout may prove to be spurious (RFC 5682).
    pub frto: bool,
}

impl Default for Recovery {
    fn default() -> Self {
        Self {
            state: RecoveryState::Open,
            high: 0,
            reduction: ProportionalRateReduction::default(),
            delivered_before_ack: 0,
            undo: UndoState::default(),
            frto: false,
        }
    }
}

impl Recovery {
    #[inline]
    pub const fn state(&self) -> RecoveryState {
        self.state
    }

    pub const fn enter(&mut self, state: RecoveryState) {
        self.state = state;
    }

    #[inline]
    pub const fn high(&self) -> u32 {
        self.high
    }

    /// Returns whether PRR controls cwnd: in CWR or recovery (`tcp.h::tcp_in_cwnd_reduction`).
    #[inline]
    pub fn in_reduction(&self) -> bool {
        matches!(self.state, RecoveryState::Cwr | RecoveryState::Recovery)
    }

    /// Returns whether lost packets are being retransmitted.
    #[inline]
    pub fn is_repairing(&self) -> bool {
        matches!(self.state, RecoveryState::Recovery | RecoveryState::Loss)
    }

    /// Returns whether neither a reduction nor a repair is in progress.
    #[inline]
    fn is_orderly(&self) -> bool {
        matches!(self.state, RecoveryState::Open | RecoveryState::Disorder)
    }

    /// Counts packets sent during a reduction.
    #[inline]
    pub fn note_sent(&mut self, packets: u32) {
        if self.in_reduction() {
            self.reduction.note_sent(packets);
        }
    }

    /// Returns whether the state agrees with the segments of `board`.
    pub fn is_consistent(&self, board: &Scoreboard) -> bool {
        let undamaged = board.lost() == 0 || self.state != RecoveryState::Open;
        undamaged && self.high <= board.next() && self.undo.began_before(board.next())
    }
}

impl Sender {
    /// `tcp_input.c::tcp_any_retrans_done`.
    fn any_retransmission(&self) -> bool {
        self.board.retransmitted() > 0
            || (self.board.outstanding() > 0
                && self.board.slot(self.board.first()).ever_retransmitted())
    }

    /// `tcp_input.c::tcp_init_undo`.
    fn begin_undo(&mut self) {
        let probes = i32::from(self.tail_probe.is_retransmission());
        self.recovery.undo.begin(self.board.first(), self.board.retransmitted() as i32 + probes);
    }

    /// `tcp_input.c::tcp_init_cwnd_reduction`.
    fn begin_reduction(&mut self, now: Time, signal: CongestionSignal) {
        self.recovery.high = self.board.next();
        self.tail_probe.forget();
        let recover_flight_size = match self.options.recover_flight_size {
            RecoverFlightSize::PriorCwnd => self.cwnd,
            RecoverFlightSize::Outstanding => {
                let delivered = self.sampler.delivered() - self.recovery.delivered_before_ack;
                self.board.outstanding() - self.board.sacked() + delivered as u32
            }
        };
        self.recovery.reduction = ProportionalRateReduction::new(recover_flight_size);
        self.congestion(now, signal);
        self.ecn.on_reduction();
    }

    /// `tcp_input.c::tcp_enter_recovery`.
    pub(super) fn enter_recovery(&mut self, now: Time, ecn_echo: bool) {
        if !self.any_retransmission() {
            self.recovery.undo.forget_stamp();
        }
        self.recovery.undo.reversible = false;
        self.begin_undo();
        if !self.recovery.in_reduction() {
            // A reduction after an ECN mark cannot be spurious.
            self.recovery.undo.reversible = !ecn_echo;
            self.begin_reduction(now, CongestionSignal::Loss);
        }
        self.set_state(now, RecoveryState::Recovery);
        self.copy_controller_outputs();
    }

    /// `tcp_input.c::tcp_enter_cwr`.
    pub(super) fn enter_cwr(&mut self, now: Time, signal: CongestionSignal) {
        self.recovery.undo.reversible = false;
        if self.recovery.is_orderly() {
            self.recovery.undo.forget();
            self.begin_reduction(now, signal);
            self.set_state(now, RecoveryState::Cwr);
            self.copy_controller_outputs();
        }
    }

    /// `tcp_input.c::tcp_enter_loss`.
    pub(super) fn enter_loss(&mut self, now: Time) {
        let first_of_episode = !self.recovery.is_repairing();
        self.mark_timed_out(now);
        let orderly = self.recovery.is_orderly();
        // Reduce ssthresh once per window of data.
        if orderly
            || self.recovery.high <= self.board.first()
            || (self.recovery.state == RecoveryState::Loss && self.rto.expiries() == 0)
        {
            self.recovery.undo.reversible = true;
            self.congestion(now, CongestionSignal::Timeout);
            self.begin_undo();
        }
        self.set_cwnd(self.board.in_flight() + 1);
        if orderly && self.board.sacked() >= 3 {
            // A timeout despite many SACKs: reordering was overestimated.
            self.reordering.reset();
        }
        self.set_state(now, RecoveryState::Loss);
        self.copy_controller_outputs();
        self.recovery.high = self.board.next();
        self.tail_probe.forget();
        self.ecn.on_reduction();
        // RFC 5682 §3.2: no F-RTO if a recovery was in progress, except for repeated timeouts.
        self.recovery.frto = first_of_episode || self.rto.expiries() > 0;
    }

    /// Ends PRR at ssthresh (RFC 9937 §6.4, `tcp_input.c::tcp_end_cwnd_reduction`).
    fn end_reduction(&mut self, now: Time) {
        if self.owner == CwndReductionBy::Controller {
            return;
        }
        let stands = self.recovery.state == RecoveryState::Cwr || self.recovery.undo.is_watching();
        if self.ssthresh < u32::MAX && stands {
            self.set_cwnd(self.ssthresh);
        }
        // `CA_EVENT_COMPLETE_CWR`, also after an undone reduction.
        self.controller.on_cwr_complete(now);
        self.copy_controller_outputs();
    }

    /// Applies Proportional Rate Reduction (RFC 9937, `tcp_input.c::tcp_cwnd_reduction`).
    pub(super) fn reduce_window(&mut self, delivered: u32, lost: u32, advanced: bool) {
        if delivered == 0 || self.owner == CwndReductionBy::Controller {
            return;
        }
        let progress = advanced && lost == 0;
        let pipe = self.board.in_flight();
        let cwnd = self.recovery.reduction.window(self.ssthresh, pipe, delivered, progress);
        self.set_cwnd(cwnd);
    }

    /// `tcp_input.c::tcp_undo_cwnd_reduction`.
    fn undo_reduction(&mut self, now: Time, unmark: bool) {
        if unmark {
            self.board.unmark_lost();
        }
        if self.recovery.undo.reversible {
            self.controller.on_undo(now);
            self.copy_controller_outputs();
            self.ecn.withdraw_cwr();
        }
        self.usage.since = now;
        self.recovery.undo.forget();
        self.rack.advanced = true;
    }

    /// `tcp_input.c::tcp_try_undo_recovery`.
    fn leave_recovery(&mut self, now: Time, echo_ms: u32) {
        if self.recovery.undo.is_due(echo_ms) {
            self.undo_reduction(now, false);
        } else {
            self.rack.persist = self.rack.persist.saturating_sub(1);
        }
        self.set_state(now, RecoveryState::Open);
        self.copy_controller_outputs();
    }

    /// `tcp_input.c::tcp_try_undo_loss`.
    fn try_undo_loss(&mut self, now: Time, echo_ms: u32, proven: bool) -> bool {
        if !proven && !self.recovery.undo.is_due(echo_ms) {
            return false;
        }
        self.undo_reduction(now, true);
        self.rto.on_progress();
        self.set_state(now, RecoveryState::Open);
        self.copy_controller_outputs();
        true
    }

    /// Undoes the reduction if each retransmission was reported as a duplicate
    /// (`tcp_input.c::tcp_try_undo_dsack`).
    fn try_undo_duplicates(&mut self, now: Time) -> bool {
        if self.recovery.undo.all_were_duplicates() {
            self.rack.note_recovery_undone();
            self.undo_reduction(now, false);
            return true;
        }
        false
    }

    /// `tcp_input.c::tcp_try_keep_open`.
    fn keep_open(&mut self, now: Time) {
        let orderly = self.board.sacked() + self.board.lost() == 0 && !self.any_retransmission();
        let state = if orderly { RecoveryState::Open } else { RecoveryState::Disorder };
        if self.recovery.state != state {
            self.set_state(now, state);
            self.copy_controller_outputs();
            self.recovery.high = self.board.next();
        }
    }

    /// `tcp_input.c::tcp_try_to_open`.
    fn try_to_open(&mut self, now: Time, findings: &AckFindings) {
        if !self.any_retransmission() {
            self.recovery.undo.forget_stamp();
        }
        if findings.ecn_echo {
            self.enter_cwr(now, CongestionSignal::Ecn);
        }
        if self.recovery.state != RecoveryState::Cwr {
            self.keep_open(now);
        }
    }

    /// `tcp_input.c::tcp_identify_packet_loss`.
    fn identify_losses(&mut self, now: Time, findings: &mut AckFindings) {
        if self.board.outstanding() == 0 || !self.rack.advanced {
            return;
        }
        self.rack.advanced = false;
        let retransmitted = self.board.retransmitted();
        if let Some(wait) = self.detect_losses(now) {
            self.set_reordering_timer(now, wait);
            findings.set_timer = false;
        }
        if self.board.retransmitted() < retransmitted {
            findings.lost_retransmission = true;
        }
    }

    /// Processes the ACK of a loss probe, which may have repaired a loss
    /// (`tcp_input.c::tcp_process_tlp_ack`, RFC 8985 §7.4).
    pub(super) fn on_probe_acknowledged(&mut self, now: Time, ack: u32, findings: &AckFindings) {
        let repeated = findings.no_progress() && !findings.sacked;
        if self.tail_probe.repaired(ack, findings.probe_duplicate, repeated) {
            // The probe repaired a loss: RFC 8985 §7.4.2 requires a congestion response. The undo
            // state of an earlier episode (D-SACKs) remains unchanged.
            self.begin_reduction(now, CongestionSignal::Loss);
            self.set_state(now, RecoveryState::Cwr);
            self.copy_controller_outputs();
            self.end_reduction(now);
            self.keep_open(now);
        }
    }

    /// Runs the recovery state machine (`tcp_input.c::tcp_fastretrans_alert`). `echo_ms`: TSecr of
    /// the ACK.
    pub(super) fn advance_recovery(
        &mut self,
        now: Time,
        echo_ms: u32,
        findings: &mut AckFindings,
    ) -> RetransmitAction {
        if findings.ecn_echo {
            self.recovery.undo.reversible = false;
        }
        let covered = self.board.first() >= self.recovery.high;
        match self.recovery.state {
            RecoveryState::Open => self.recovery.undo.forget_stamp(),
            // CWR lasts until data beyond `high` is acknowledged, so that the receiver has seen the
            // CWR flag.
            RecoveryState::Cwr if self.board.first() > self.recovery.high => {
                self.end_reduction(now);
                self.set_state(now, RecoveryState::Open);
                self.copy_controller_outputs();
            }
            RecoveryState::Recovery if covered => {
                self.leave_recovery(now, echo_ms);
                // Linux runs this in state Open: only an episode that was not undone ends at
                // ssthresh.
                self.end_reduction(now);
            }
            _ => {}
        }
        match self.recovery.state {
            RecoveryState::Recovery => {
                if findings.advanced && self.undo_partially(now, echo_ms, findings.prior_first) {
                    return RetransmitAction::None;
                }
                if self.try_undo_duplicates(now) {
                    self.try_to_open(now, findings);
                }
                self.identify_losses(now, findings);
                if self.recovery.state != RecoveryState::Recovery {
                    if self.board.lost() == 0 {
                        return RetransmitAction::None;
                    }
                    self.enter_recovery(now, findings.ecn_echo);
                }
                return RetransmitAction::Lost;
            }
            RecoveryState::Loss => {
                let repair = self.process_loss(now, echo_ms, findings);
                self.identify_losses(now, findings);
                if self.recovery.state != RecoveryState::Open && !findings.lost_retransmission {
                    return repair;
                }
            }
            _ => {}
        }
        if self.recovery.is_orderly() {
            self.try_undo_duplicates(now);
        }
        self.identify_losses(now, findings);
        if self.board.lost() == 0 {
            self.try_to_open(now, findings);
            return RetransmitAction::None;
        }
        self.enter_recovery(now, findings.ecn_echo);
        RetransmitAction::Lost
    }

    /// Undoes the reduction if a hole was filled by the original and not by its retransmission
    /// (`tcp_input.c::tcp_try_undo_partial`). `hole`: number of the segment. Returns whether to
    /// send only new data.
    fn undo_partially(&mut self, now: Time, echo_ms: u32, hole: u32) -> bool {
        if !self.recovery.undo.is_watching() || !self.recovery.undo.was_only_delayed(echo_ms) {
            return false;
        }
        self.reordering.note(hole, self.board.highest_sacked());
        if self.board.retransmitted() > 0 {
            return true;
        }
        if !self.any_retransmission() {
            self.recovery.undo.forget_stamp();
        }
        self.undo_reduction(now, true);
        self.keep_open(now);
        false
    }

    /// Runs the recovery of a timeout, with F-RTO (RFC 5682 §3.1, `tcp_input.c::tcp_process_loss`).
    fn process_loss(
        &mut self,
        now: Time,
        echo_ms: u32,
        findings: &AckFindings,
    ) -> RetransmitAction {
        let recovered = self.board.first() >= self.recovery.high;
        if findings.advanced && self.try_undo_loss(now, echo_ms, false) {
            return RetransmitAction::None;
        }
        if self.recovery.frto {
            // Step 3.b: data sent before the timeout and never retransmitted was acknowledged.
            if findings.original && self.try_undo_loss(now, echo_ms, true) {
                return RetransmitAction::None;
            }
            if self.board.next() > self.recovery.high {
                if findings.sacked || (findings.no_progress() && !findings.duplicate) {
                    // Step 3.a: the loss was real.
                    self.recovery.frto = false;
                }
            } else if findings.advanced && !recovered {
                self.recovery.high = self.board.next();
                // Step 2.b: "transmit up to two new (previously unsent) segments".
                if self.has_data() && self.board.next() < self.peer_window.end {
                    return RetransmitAction::New;
                }
                self.recovery.frto = false;
            }
        }
        if recovered {
            self.leave_recovery(now, echo_ms);
            return RetransmitAction::None;
        }
        RetransmitAction::Lost
    }
}

#[cfg(test)]
mod tests {
    use jostle_congestion::PacketDeliveryState;

    use super::*;

    #[test]
    fn states_that_contradict_the_scoreboard_are_inconsistent() {
        let mut board = Scoreboard::default();
        for _ in 0..3 {
            board.push(PacketDeliveryState::default(), 1448);
        }
        let mut recovery = Recovery { high: 3, ..Recovery::default() };
        assert!(recovery.is_consistent(&board));
        recovery.high = 4;
        assert!(!recovery.is_consistent(&board), "ends after the last segment");
        recovery.high = 3;
        recovery.undo.begin(4, 0);
        assert!(!recovery.is_consistent(&board), "began after the last segment");
        recovery.undo.begin(3, 0);
        board.mark_lost(0);
        assert!(!recovery.is_consistent(&board), "open despite a loss");
        recovery.state = RecoveryState::Loss;
        assert!(recovery.is_consistent(&board));
    }
}
