//! The learned controller: a layer that acts at the end of each monitor interval.

use alloc::boxed::Box;

#[cfg(not(feature = "std"))]
use jostle_units::FloatMath;
use jostle_units::{Rate, Span, Time};

use super::design::{Action, AgentDesign, MOST_ACTIONS};
use super::fixed_window::FixedWindow;
use super::monitor_interval::{IntervalCounters, IntervalObservation};
use super::observation_history::ObservationHistory;
use crate::pcc::{IntervalMonitor, MIN_PACKETS_PER_RTT, NOMINAL_RTT};
use jostle_congestion::peer_cache::PeerCacheContext;
use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, EstablishedEvent, LostPacket, SendEvent,
    StateObserver,
};
use jostle_congestion::{ControllerLayer, LayeredController};

/// Lowest pacing rate, in bit/s of payload: a full-sized packet in a little over a second.
const LOWEST_BPS: f64 = 1e4;
/// Largest window, in packets.
const LARGEST_WINDOW: f64 = 1e6;

/// Selects the actions of a learned controller.
pub trait Policy: Send {
    /// Returns the action for an observation, with the number of values that the kind of action
    /// requires.
    fn act(&mut self, observation: &[f64]) -> [f64; MOST_ACTIONS];

    /// Announces the next decision at `due`, which uses all events until then.
    fn set_next_decision(&mut self, due: Time) {
        let _ = due;
    }
}

/// Creates a controller with `design` and `policy`. Actions of kind [`Action::Cubic`] correct
/// `cubic`.
pub fn learned(
    design: AgentDesign,
    policy: impl Policy + 'static,
    cubic: impl FnOnce() -> Box<dyn CongestionController>,
) -> Box<dyn CongestionController> {
    let inner = if design.action == Action::Cubic { cubic() } else { Box::new(FixedWindow::new()) };
    Box::new(LayeredController::new(Learned::new(design, policy), inner))
}

struct Learned<D> {
    history: ObservationHistory,
    design: AgentDesign,
    policy: D,
    interval: IntervalCounters,
    /// End of the interval; [`Time::NEVER`] before the connection is open.
    due: Time,
    /// Interval monitor, which paces if the action sets a rate.
    monitor: IntervalMonitor,
    /// Pacing rate that an action set.
    pacing_bps: Option<f64>,
    last: [f64; MOST_ACTIONS],
}

impl<D: Policy> Learned<D> {
    fn new(design: AgentDesign, mind: D) -> Self {
        Self {
            history: ObservationHistory::new(&design),
            design,
            policy: mind,
            interval: IntervalCounters::first(Time::ZERO, NOMINAL_RTT, 1),
            due: Time::NEVER,
            monitor: IntervalMonitor::new(LOWEST_BPS, MIN_PACKETS_PER_RTT, 1),
            pacing_bps: None,
            last: [0.0; MOST_ACTIONS],
        }
    }

    fn observed(&self, inner: &dyn CongestionController) -> IntervalObservation {
        let pacing = self.pacing_rate(inner).map_or(0.0, |rate| rate.as_bps() as f64);
        self.interval.observed(self.due, inner.cwnd(), pacing)
    }

    /// Ends the interval if its time has passed, before events at that time or later are counted.
    #[inline]
    fn end_due_intervals(&mut self, now: Time, inner: &mut dyn CongestionController) {
        if now >= self.due {
            self.act(now, inner);
        }
    }

    #[cold]
    fn act(&mut self, now: Time, inner: &mut dyn CongestionController) {
        let observed = self.observed(inner);
        self.history.push(&self.design, &observed);
        let action = self.policy.act(self.history.values());
        for ((last, given), &(low, high)) in
            self.last.iter_mut().zip(action).zip(self.design.action.bounds())
        {
            *last = if given.is_nan() { 0.0 } else { given }.clamp(low, high);
        }
        self.apply(inner);
        self.interval.begin_next(self.due, &observed);
        // A late end of an interval does not shorten the next one.
        self.wait(now, self.design.length_after(&observed));
    }

    fn apply(&mut self, inner: &mut dyn CongestionController) {
        let [first, second] = self.last;
        let window = |packets: f64| packets.clamp(1.0, LARGEST_WINDOW) as u32;
        match self.design.action {
            Action::Rate { scale } => {
                let bps = self.monitor.pacing_bps;
                let changed = if first >= 0.0 {
                    bps * (1.0 + scale * first)
                } else {
                    bps / (1.0 - scale * first)
                };
                self.pace(changed, inner);
            }
            Action::Window { scale } => {
                let packets = f64::from(inner.cwnd()) * libm::exp2(scale * first);
                // Rounding to the nearest packet would never change a window of a few packets by a
                // fraction.
                let rounded = if first > 0.0 { packets.ceil() } else { packets.floor() };
                inner.set_cwnd(window(rounded));
            }
            Action::Cubic => {
                inner.set_cwnd(window(f64::from(inner.cwnd()) * libm::exp2(2.0 * first)));
            }
            Action::Absolute => {
                inner.set_cwnd(window(libm::exp2(first)));
                self.pacing_bps = Some(libm::exp2(second) * 1e6);
            }
        }
    }

    /// Sets the pacing rate within the allowed range.
    fn pace(&mut self, bps: f64, inner: &mut dyn CongestionController) {
        self.monitor.hold(self.monitor.allowed(bps));
        self.pacing_bps = Some(self.monitor.pacing_bps);
        inner.set_cwnd(self.monitor.cwnd());
    }

    fn wait(&mut self, now: Time, length: Span) {
        self.due = now + length;
        self.policy.set_next_decision(self.due);
    }
}

impl<D: Policy> ControllerLayer for Learned<D> {
    fn on_connection_open(&mut self, _occasion: &mut PeerCacheContext<'_>) {}

    fn on_connection_close(
        &mut self,
        _inner: &dyn CongestionController,
        _occasion: &mut PeerCacheContext<'_>,
    ) {
    }

    fn on_established(
        &mut self,
        inner: &mut dyn CongestionController,
        established: &EstablishedEvent,
    ) {
        inner.on_established(established);
        let rtt = established.rtt.unwrap_or(NOMINAL_RTT).max(Span::from_us(1));
        self.interval = IntervalCounters::first(established.now, rtt, established.mss_bytes);
        let initial_bps = self.monitor.establish(established);
        if matches!(self.design.action, Action::Rate { .. }) {
            self.pace(initial_bps, inner);
        }
        self.wait(established.now, self.design.cadence.next(rtt.as_secs_f64()));
    }

    fn on_mss_change(&mut self, inner: &mut dyn CongestionController, mss_bytes: u32) {
        inner.on_mss_change(mss_bytes);
        self.interval.resize(mss_bytes);
        self.monitor.resize(mss_bytes);
    }

    fn on_send(&mut self, inner: &mut dyn CongestionController, sent: &SendEvent) {
        self.end_due_intervals(sent.now, inner);
        self.interval.on_send(sent.packets, sent.prior_in_flight);
        inner.on_send(sent);
    }

    fn on_packet_lost(&mut self, inner: &mut dyn CongestionController, lost: &LostPacket) {
        self.end_due_intervals(lost.now, inner);
        self.interval.on_packet_lost();
        inner.on_packet_lost(lost);
    }

    fn on_ack(&mut self, inner: &mut dyn CongestionController, ack: &AckSample) {
        self.end_due_intervals(ack.now, inner);
        self.interval.on_ack(ack);
        inner.on_ack(ack);
        if matches!(self.design.action, Action::Rate { .. }) {
            self.monitor.account(ack);
            self.monitor.fit_window();
            inner.set_cwnd(self.monitor.cwnd());
        }
    }

    fn on_congestion_event(
        &mut self,
        inner: &mut dyn CongestionController,
        congestion: &CongestionEvent,
    ) {
        self.end_due_intervals(congestion.now, inner);
        inner.on_congestion_event(congestion);
    }

    fn pacing_rate(&self, inner: &dyn CongestionController) -> Option<Rate> {
        match self.pacing_bps {
            Some(bps) => Some(Rate::from_bps(bps as u64)),
            None => inner.pacing_rate(),
        }
    }

    fn next_wakeup(&self, inner: &dyn CongestionController) -> Option<Time> {
        let due = (self.due < Time::NEVER).then_some(self.due);
        [due, inner.next_wakeup()].into_iter().flatten().min()
    }

    fn on_wakeup(&mut self, inner: &mut dyn CongestionController, now: Time) {
        self.end_due_intervals(now, inner);
        if inner.next_wakeup().is_some_and(|at| at <= now) {
            inner.on_wakeup(now);
        }
    }

    /// Returns the current interval as if it ended at its deadline.
    fn observe(&self, inner: &dyn CongestionController, observer: &mut dyn StateObserver) {
        let due = self.due < Time::NEVER;
        let observed = if due { self.observed(inner) } else { IntervalObservation::default() };
        observed.report_to(observer);
        observer.record_value("action", self.last[0]);
        if self.design.action == Action::Absolute {
            observer.record_value("second_action", self.last[1]);
        }
    }
}
