//! Controllers that are wrong in one way each, to show that the checks see it.

use std::cell::Cell;

use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CongestionSignal, CwndReductionBy,
    EstablishedEvent, LostPacket, RawAckSample, RecoveryState, SendEvent, StateObserver,
};
use jostle_units::{Rate, Time};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    NoWindowAfterTimeout,
    WindowAboveItsClamp,
    NoThresholdAfterLoss,
    ThresholdAboveTheWindow,
    ThresholdZero,
    PacingAtZero,
    EmptyBursts,
    WakeupInThePast,
    NamelessMode,
    NotANumber,
    NewNames,
    UndoShrinks,
    Undetermined,
}

impl Fault {
    /// Every fault, with a part of what the check that sees it says.
    pub const ALL: [(Self, &str); 13] = [
        (Self::NoWindowAfterTimeout, "cwnd 0"),
        (Self::WindowAboveItsClamp, "cwnd 4294967295"),
        (Self::NoThresholdAfterLoss, "no ssthresh after a signal"),
        (Self::ThresholdAboveTheWindow, "ssthresh 1000000 after a signal"),
        (Self::ThresholdZero, "ssthresh 0"),
        (Self::PacingAtZero, "a pacing rate that never sends"),
        (Self::EmptyBursts, "bursts of no packets"),
        (Self::WakeupInThePast, "woken up for the past"),
        (Self::NamelessMode, "a mode without a name"),
        (Self::NotANumber, "broken is NaN"),
        (Self::NewNames, "other names"),
        (Self::UndoShrinks, "undo went from"),
        (Self::Undetermined, "two runs differ"),
    ];
}

thread_local! {
    /// What an undetermined controller depends on: how often one was asked before.
    static ASKED: Cell<u32> = const { Cell::new(0) };
}

/// A sound window-based controller with a fault.
pub struct Broken {
    pub sound: Box<dyn CongestionController>,
    pub fault: Fault,
    pub signals: u32,
    pub last_signal: Option<CongestionSignal>,
    pub undone: bool,
    pub now: Time,
}

impl Broken {
    pub fn new(sound: Box<dyn CongestionController>, fault: Fault) -> Self {
        Self { sound, fault, signals: 0, last_signal: None, undone: false, now: Time::ZERO }
    }

    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }
}

impl CongestionController for Broken {
    fn on_established(&mut self, established: &EstablishedEvent) {
        self.sound.on_established(established);
    }

    fn on_send(&mut self, sent: &SendEvent) {
        self.sound.on_send(sent);
    }

    fn on_ack_before_loss_detection(&mut self, measurement: &RawAckSample) {
        self.now = measurement.now;
        self.sound.on_ack_before_loss_detection(measurement);
    }

    fn on_packet_lost(&mut self, lost: &LostPacket) {
        self.sound.on_packet_lost(lost);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.sound.on_ack(ack);
    }

    fn on_congestion_event(&mut self, congestion: &CongestionEvent) {
        self.signals += 1;
        self.last_signal = Some(congestion.signal);
        self.sound.on_congestion_event(congestion);
    }

    fn take_cwr_request(&mut self) -> bool {
        self.sound.take_cwr_request()
    }

    fn on_recovery_state(&mut self, now: Time, state: RecoveryState) {
        self.sound.on_recovery_state(now, state);
    }

    fn on_undo(&mut self, now: Time) {
        self.undone = true;
        self.sound.on_undo(now);
    }

    fn set_cwnd(&mut self, cwnd: u32) {
        self.sound.set_cwnd(cwnd);
    }

    fn cwnd(&self) -> u32 {
        match self.fault {
            Fault::NoWindowAfterTimeout if self.last_signal == Some(CongestionSignal::Timeout) => 0,
            Fault::WindowAboveItsClamp => u32::MAX,
            Fault::UndoShrinks if self.undone => 1,
            _ => self.sound.cwnd(),
        }
    }

    fn ssthresh(&self) -> Option<u32> {
        match self.fault {
            Fault::NoThresholdAfterLoss => None,
            Fault::ThresholdAboveTheWindow => Some(1_000_000),
            Fault::ThresholdZero => Some(0),
            _ => self.sound.ssthresh(),
        }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.is(Fault::PacingAtZero).then_some(Rate::ZERO)
    }

    fn min_burst_packets(&self) -> Option<u32> {
        self.is(Fault::EmptyBursts).then_some(0)
    }

    fn recovery_owner(&self) -> CwndReductionBy {
        CwndReductionBy::Transport
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.is(Fault::WakeupInThePast).then_some(self.now)
    }

    fn mode(&self) -> &'static str {
        if self.is(Fault::NamelessMode) { "" } else { self.sound.mode() }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        if self.is(Fault::Undetermined) {
            ASKED.set(ASKED.get() + 1);
            observer.record_value("broken", f64::from(ASKED.get()));
        } else if self.is(Fault::NotANumber) && self.signals > 0 {
            observer.record_value("broken", f64::NAN);
        } else if !self.is(Fault::NewNames) || self.signals > 0 {
            observer.record_value("broken", 1.0);
        }
    }
}
