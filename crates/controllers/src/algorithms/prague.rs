//! Prague, the reference controller of L4S.

mod scalable;

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{Rate, Span, Time};

use super::Reno;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::slow_start::Standard;
use crate::window_based::WindowBasedController;
use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CwndReductionBy, EcnFeedback,
    EstablishedEvent, RawAckSample, RecoveryState, SendEvent, StateObserver,
};
use scalable::Scalable;

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "prague",
        summary: "L4S reference: DCTCP with ECT(1), pacing and less dependence on the RTT",
        class: "ecn",
        based_on: &["dctcp"],
        source: "draft-briscoe-iccrg-prague-congestion-control; TCP Prague 0.7, and 0.6 \
                 for its RTT modes, for Linux (L4STeam); RFC 9331",
        parameters: &[
            Parameter::choice(
                "prague_rtt_scaling",
                "rate",
                &["none", "rate", "scalable", "additive"],
            )
            .summary(
                "dependence of the rate on the RTT (modes 0 to 3 of release 0.6): none: like a \
                 flow with its RTT; rate: like a flow with the target RTT, if its RTT is shorter; \
                 scalable: less so on short paths, for marks in every few rounds; additive: like a \
                 flow with the sum of its RTT and the target",
            ),
            Parameter::span(
                "prague_rtt_target",
                Span::from_ms(25),
                Span::from_us(1)..=Span::from_secs(1),
            )
            .summary(
                "RTT of the modes rate and additive, and minimum time between two reductions in \
                 all modes but none",
            ),
            Parameter::integer("prague_rtt_transition", 500, 0..=1_000_000_000).summary(
                "rounds after slow start before prague_rtt_scaling applies (newer releases: 4)",
            ),
            Parameter::integer("prague_alpha_mode", 1, 0..=1)
                .summary("1: alpha starts at 1; 0: it starts at 0, and the first mark halves"),
            Parameter::integer("prague_rate_offset", 4, 0..=127)
                .summary("deviation of the pacing rate from its mean, above then below, in 128ths"),
            Parameter::integer("prague_burst_shift", 12, 0..=30)
                .summary("bursts last at most 2^-shift s"),
        ],
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| Box::new(Prague::new(&parts.values)),
};

/// Prague: a scalable controller if the receiver counts marks, Reno without ECN.
pub struct Prague {
    scalable: Scalable,
    /// Reno, if ECN was not negotiated.
    reno: Option<WindowBasedController<Reno>>,
}

impl Prague {
    /// Creates Prague with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self { scalable: Scalable::new(values), reno: None }
    }
}

/// Calls the active controller directly. A trait object would need an additional table look-up in
/// each of the many calls per ACK.
macro_rules! active {
    ($me:ident.$method:ident($($argument:ident),*)) => {
        match &$me.reno {
            Some(reno) => reno.$method($($argument),*),
            None => $me.scalable.$method($($argument),*),
        }
    };
    (mut $me:ident.$method:ident($($argument:ident),*)) => {
        match &mut $me.reno {
            Some(reno) => reno.$method($($argument),*),
            None => $me.scalable.$method($($argument),*),
        }
    };
}

impl CongestionController for Prague {
    fn required_ecn_feedback(&self) -> EcnFeedback {
        EcnFeedback::AccEcn
    }

    /// `prague_init`: "Switching to pure reno".
    fn on_ecn_negotiated(&mut self, feedback: EcnFeedback) {
        self.reno = (feedback == EcnFeedback::None)
            .then(|| WindowBasedController::new(Reno, Box::new(Standard)));
    }

    fn on_established(&mut self, established: &EstablishedEvent) {
        active!(mut self.on_established(established));
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        active!(mut self.on_mss_change(mss_bytes));
    }

    fn on_send(&mut self, sent: &SendEvent) {
        active!(mut self.on_send(sent));
    }

    fn on_ack_before_loss_detection(&mut self, measurement: &RawAckSample) {
        active!(mut self.on_ack_before_loss_detection(measurement));
    }

    fn on_ack(&mut self, ack: &AckSample) {
        active!(mut self.on_ack(ack));
    }

    fn on_congestion_event(&mut self, congestion: &CongestionEvent) {
        active!(mut self.on_congestion_event(congestion));
    }

    fn on_recovery_state(&mut self, now: Time, state: RecoveryState) {
        active!(mut self.on_recovery_state(now, state));
    }

    fn on_undo(&mut self, now: Time) {
        active!(mut self.on_undo(now));
    }

    fn set_cwnd(&mut self, cwnd: u32) {
        active!(mut self.set_cwnd(cwnd));
    }

    fn set_ssthresh(&mut self, ssthresh: u32) {
        active!(mut self.set_ssthresh(ssthresh));
    }

    fn cwnd(&self) -> u32 {
        active!(self.cwnd())
    }

    fn ssthresh(&self) -> Option<u32> {
        active!(self.ssthresh())
    }

    fn pacing_rate(&self) -> Option<Rate> {
        active!(self.pacing_rate())
    }

    fn max_burst_packets(&self) -> Option<u32> {
        active!(self.max_burst_packets())
    }

    fn recovery_owner(&self) -> CwndReductionBy {
        active!(self.recovery_owner())
    }

    fn mode(&self) -> &'static str {
        active!(self.mode())
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        self.scalable.observe(observer);
    }
}

#[cfg(test)]
mod tests;
