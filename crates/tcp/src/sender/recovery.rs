//! The states of recovery: when a reduction begins, how PRR carries it out, when it is undone.

use jostle_control::transport::Reduction;
use jostle_control::{RecoveryOwner, RecoveryState, Signal};
use jostle_units::Time;

use super::Sender;

/// What is to be sent after an ACK was processed (`REXMIT_*` in Linux).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    /// Nothing but what the window allows anyway.
    None,
    /// What is marked lost.
    Lost,
    /// New data first, to tell whether the timeout was spurious.
    New,
}

/// What an ACK has brought to light; the flags of Linux's `tcp_ack` that outlive a line or two.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Findings {
    /// snd_una before the ACK.
    pub prior_first: u32,
    /// snd_una advanced.
    pub advanced: bool,
    /// A segment was newly SACKed.
    pub sacked: bool,
    /// Data that was never retransmitted was acknowledged, of what was sent before `high`.
    pub original: bool,
    /// A retransmitted segment was cumulatively acknowledged.
    pub retransmitted: bool,
    /// The ACK reports a duplicate.
    pub duplicate: bool,
    /// The duplicate is that of a loss probe.
    pub probe_duplicate: bool,
    /// Packets were reported as marked.
    pub ecn_echo: bool,
    /// The receiver's window has grown.
    pub window_update: bool,
    /// A retransmission was found to be lost.
    pub lost_retransmission: bool,
    /// The timer is to be set anew.
    pub set_timer: bool,
}

impl Findings {
    /// `tcp_ack_is_dubious` but for the state.
    #[inline]
    pub const fn is_dubious(&self) -> bool {
        self.no_progress() || self.sacked || self.ecn_echo || self.duplicate
    }

    /// Neither snd_una nor the window advanced (`FLAG_SND_UNA_ADVANCED`, `FLAG_NOT_DUP`).
    const fn no_progress(&self) -> bool {
        !(self.advanced || self.window_update)
    }
}

impl Sender {
    /// `tcp_any_retrans_done`.
    fn any_retransmission(&self) -> bool {
        self.board.retransmitted() > 0
            || (self.board.outstanding() > 0
                && self.board.slot(self.board.first()).ever_retransmitted())
    }

    /// `tcp_init_undo`.
    fn begin_undo(&mut self) {
        let probes = i32::from(self.tail_probe.is_retransmission());
        self.undo.begin(self.board.first(), self.board.retransmitted() as i32 + probes);
    }

    /// `tcp_init_cwnd_reduction`.
    fn begin_reduction(&mut self, now: Time, signal: Signal) {
        self.high = self.board.next();
        self.tail_probe.forget();
        self.reduction = Reduction::new(self.cwnd);
        self.congestion(now, signal);
        self.ecn.on_reduction();
    }

    /// `tcp_enter_recovery`.
    pub(super) fn enter_recovery(&mut self, now: Time, ecn_echo: bool) {
        if !self.any_retransmission() {
            self.undo.forget_stamp();
        }
        self.undo.reversible = false;
        self.begin_undo();
        if !self.in_reduction() {
            // A mark of congestion cannot prove to be spurious.
            self.undo.reversible = !ecn_echo;
            self.begin_reduction(now, Signal::Loss);
        }
        self.set_state(now, RecoveryState::Recovery);
        self.take_answers();
    }

    /// `tcp_enter_cwr`.
    pub(super) fn enter_cwr(&mut self, now: Time, signal: Signal) {
        self.undo.reversible = false;
        if matches!(self.state, RecoveryState::Open | RecoveryState::Disorder) {
            self.undo.forget();
            self.begin_reduction(now, signal);
            self.set_state(now, RecoveryState::Cwr);
            self.take_answers();
        }
    }

    /// `tcp_enter_loss`.
    pub(super) fn enter_loss(&mut self, now: Time) {
        let first_of_episode = !matches!(self.state, RecoveryState::Recovery | RecoveryState::Loss);
        self.mark_timed_out(now);
        let orderly = matches!(self.state, RecoveryState::Open | RecoveryState::Disorder);
        // The threshold falls once per window of data.
        if orderly
            || self.high <= self.board.first()
            || (self.state == RecoveryState::Loss && self.rto.expiries() == 0)
        {
            self.undo.reversible = true;
            self.reduction.prior_cwnd = self.cwnd;
            self.congestion(now, Signal::Timeout);
            self.begin_undo();
        }
        self.set_cwnd(self.board.in_flight() + 1);
        if orderly && self.board.sacked() >= 3 {
            // So many SACKs and still a timeout: reordering was overestimated.
            self.reordering = self.reordering.min(3);
        }
        self.set_state(now, RecoveryState::Loss);
        self.take_answers();
        self.high = self.board.next();
        self.tail_probe.forget();
        self.ecn.on_reduction();
        // RFC 5682 §3.2: not when a recovery was under way, except for repeated timeouts.
        self.frto = first_of_episode || self.rto.expiries() > 0;
    }

    /// `tcp_end_cwnd_reduction`: PRR ends at ssthresh.
    fn end_reduction(&mut self, now: Time) {
        if self.owner == RecoveryOwner::Controller {
            return;
        }
        let stands = self.state == RecoveryState::Cwr || self.undo.is_watching();
        if self.ssthresh < u32::MAX && stands {
            self.set_cwnd(self.ssthresh);
        }
        // `CA_EVENT_COMPLETE_CWR`, after an undone reduction too.
        self.controller.on_reduction_end(now);
        self.take_answers();
    }

    /// Proportional Rate Reduction (RFC 6937, `tcp_cwnd_reduction`).
    pub(super) fn reduce_window(&mut self, delivered: u32, lost: u32, advanced: bool) {
        if delivered == 0 || self.owner == RecoveryOwner::Controller {
            return;
        }
        let progress = advanced && lost == 0;
        let pipe = self.board.in_flight();
        let cwnd = self.reduction.window(self.ssthresh, pipe, delivered, progress);
        self.set_cwnd(cwnd);
    }

    /// `tcp_undo_cwnd_reduction`.
    fn undo_reduction(&mut self, now: Time, unmark: bool) {
        if unmark {
            self.board.unmark_lost();
        }
        if self.undo.reversible {
            self.controller.on_undo(now);
            self.take_answers();
            self.ecn.withdraw_cwr();
        }
        self.usage.since = now;
        self.undo.forget();
        self.rack.advanced = true;
    }

    /// `tcp_try_undo_recovery`.
    fn leave_recovery(&mut self, now: Time, echo_ms: u32) {
        if self.undo.is_due(echo_ms) {
            self.undo_reduction(now, false);
        } else {
            self.rack.persist = self.rack.persist.saturating_sub(1);
        }
        self.set_state(now, RecoveryState::Open);
        self.take_answers();
    }

    /// `tcp_try_undo_loss`.
    fn try_undo_loss(&mut self, now: Time, echo_ms: u32, proven: bool) -> bool {
        if !proven && !self.undo.is_due(echo_ms) {
            return false;
        }
        self.undo_reduction(now, true);
        self.rto.on_progress();
        self.set_state(now, RecoveryState::Open);
        self.take_answers();
        true
    }

    /// `tcp_try_undo_dsack`: every retransmission was reported as a duplicate.
    fn try_undo_duplicates(&mut self, now: Time) -> bool {
        if self.undo.all_were_duplicates() {
            self.rack.note_recovery_undone();
            self.undo_reduction(now, false);
            return true;
        }
        false
    }

    /// `tcp_try_keep_open`.
    fn keep_open(&mut self, now: Time) {
        let orderly = self.board.sacked() + self.board.lost() == 0 && !self.any_retransmission();
        let state = if orderly { RecoveryState::Open } else { RecoveryState::Disorder };
        if self.state != state {
            self.set_state(now, state);
            self.take_answers();
            self.high = self.board.next();
        }
    }

    /// `tcp_try_to_open`.
    fn try_to_open(&mut self, now: Time, findings: &Findings) {
        if !self.any_retransmission() {
            self.undo.forget_stamp();
        }
        if findings.ecn_echo {
            self.enter_cwr(now, Signal::Ecn);
        }
        if self.state != RecoveryState::Cwr {
            self.keep_open(now);
        }
    }

    /// `tcp_identify_packet_loss`.
    fn identify_losses(&mut self, now: Time, findings: &mut Findings) {
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

    /// `tcp_process_tlp_ack`, RFC 8985 §7.4: did the loss probe repair a loss?
    pub(super) fn on_probe_acknowledged(&mut self, now: Time, ack: u32, findings: &Findings) {
        let repeated = findings.no_progress() && !findings.sacked;
        if self.tail_probe.repaired(ack, findings.probe_duplicate, repeated) {
            // The probe was needed: RFC 8985 §7.4.2 asks for a congestion response. What an earlier
            // episode may still be undone by, D-SACKs, stays as it is.
            self.begin_reduction(now, Signal::Loss);
            self.set_state(now, RecoveryState::Cwr);
            self.take_answers();
            self.end_reduction(now);
            self.keep_open(now);
        }
    }

    /// The state machine of recovery (`tcp_fastretrans_alert`). `echo_ms`: TSecr of the ACK.
    pub(super) fn advance_recovery(
        &mut self,
        now: Time,
        echo_ms: u32,
        findings: &mut Findings,
    ) -> Repair {
        if findings.ecn_echo {
            self.undo.reversible = false;
        }
        let covered = self.board.first() >= self.high;
        match self.state {
            RecoveryState::Open => self.undo.forget_stamp(),
            // CWR is held until something beyond `high` is acknowledged, so that the receiver
            // has seen the CWR flag.
            RecoveryState::Cwr if self.board.first() > self.high => {
                self.end_reduction(now);
                self.set_state(now, RecoveryState::Open);
                self.take_answers();
            }
            RecoveryState::Recovery if covered => {
                self.leave_recovery(now, echo_ms);
                // Linux runs this in state Open: only an episode that was not undone ends at
                // ssthresh.
                self.end_reduction(now);
            }
            _ => {}
        }
        match self.state {
            RecoveryState::Recovery => {
                if findings.advanced && self.undo_partially(now, echo_ms, findings.prior_first) {
                    return Repair::None;
                }
                if self.try_undo_duplicates(now) {
                    self.try_to_open(now, findings);
                }
                self.identify_losses(now, findings);
                if self.state != RecoveryState::Recovery {
                    if self.board.lost() == 0 {
                        return Repair::None;
                    }
                    self.enter_recovery(now, findings.ecn_echo);
                }
                return Repair::Lost;
            }
            RecoveryState::Loss => {
                let repair = self.process_loss(now, echo_ms, findings);
                self.identify_losses(now, findings);
                if self.state != RecoveryState::Open && !findings.lost_retransmission {
                    return repair;
                }
            }
            _ => {}
        }
        if matches!(self.state, RecoveryState::Open | RecoveryState::Disorder) {
            self.try_undo_duplicates(now);
        }
        self.identify_losses(now, findings);
        if self.board.lost() == 0 {
            self.try_to_open(now, findings);
            return Repair::None;
        }
        self.enter_recovery(now, findings.ecn_echo);
        Repair::Lost
    }

    /// `tcp_try_undo_partial`: a hole was filled by the original, not by its retransmission.
    /// `hole`: its number. Returns whether to send new data only.
    fn undo_partially(&mut self, now: Time, echo_ms: u32, hole: u32) -> bool {
        if !self.undo.is_watching() || !self.undo.was_only_delayed(echo_ms) {
            return false;
        }
        self.note_reordering(hole);
        if self.board.retransmitted() > 0 {
            return true;
        }
        if !self.any_retransmission() {
            self.undo.forget_stamp();
        }
        self.undo_reduction(now, true);
        self.keep_open(now);
        false
    }

    /// `tcp_process_loss`: the timeout's own recovery, with F-RTO (RFC 5682 §3.1).
    fn process_loss(&mut self, now: Time, echo_ms: u32, findings: &Findings) -> Repair {
        let recovered = self.board.first() >= self.high;
        if findings.advanced && self.try_undo_loss(now, echo_ms, false) {
            return Repair::None;
        }
        if self.frto {
            // Step 3.b: data sent before the timeout and never again was acknowledged.
            if findings.original && self.try_undo_loss(now, echo_ms, true) {
                return Repair::None;
            }
            if self.board.next() > self.high {
                if findings.sacked || (findings.no_progress() && !findings.duplicate) {
                    // Step 3.a: the loss was real.
                    self.frto = false;
                }
            } else if findings.advanced && !recovered {
                self.high = self.board.next();
                // Step 2.b: "transmit up to two new (previously unsent) segments".
                if self.has_data() && self.board.next() < self.peer_window.end {
                    return Repair::New;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.leave_recovery(now, echo_ms);
            return Repair::None;
        }
        Repair::Lost
    }

    /// `tcp_check_sack_reordering`: a segment was delivered after later ones. `low`: its number.
    pub(super) fn note_reordering(&mut self, low: u32) {
        let high = self.board.highest_sacked();
        if low >= high {
            return;
        }
        // `tcp_max_reordering`: 300.
        self.reordering = self.reordering.max((high - low).min(300));
        self.reordering_seen = true;
    }
}
