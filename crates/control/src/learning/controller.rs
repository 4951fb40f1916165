//! The controller: a layer that acts at the end of every monitor interval.

use jostle_units::{Rate, Span, Time};

use super::design::{Action, Design, MOST_ACTIONS};
use super::held::Held;
use super::history::History;
use super::interval::{Interval, Observed};
use crate::controller::{
    AckSample, Congestion, Controller, Established, LostPacket, Observer, Sent,
};
use crate::memory::{Layer, Layered, Occasion};
use crate::pcc::{Monitor, NOMINAL_RTT};

/// Lowest pacing rate, in bit/s of payload: a full-sized packet in a little over a second.
const LOWEST_BPS: f64 = 1e4;
/// Largest window, in packets.
const LARGEST_WINDOW: f64 = 1e6;

/// Who decides what to do.
pub trait Decide: Send {
    /// The action for an observation: as many numbers as the kind of action has.
    fn decide(&mut self, observation: &[f64]) -> [f64; MOST_ACTIONS];

    /// The next decision is taken at `due`, with what has happened until then.
    fn expect(&mut self, due: Time) {
        let _ = due;
    }
}

/// A controller of a design, for which `mind` decides. `cubic` is what it corrects if its actions
/// are [`Action::Cubic`].
pub fn learned(
    design: Design,
    mind: impl Decide + 'static,
    cubic: impl FnOnce() -> Box<dyn Controller>,
) -> Box<dyn Controller> {
    let inner = if design.action == Action::Cubic { cubic() } else { Box::new(Held::new()) };
    Box::new(Layered::new(Learned::new(design, mind), inner))
}

struct Learned<D> {
    history: History,
    design: Design,
    mind: D,
    interval: Interval,
    /// When the interval ends; never before the connection is open.
    due: Time,
    /// Paces, if the action says so.
    monitor: Monitor,
    /// Pacing rate that an action set.
    pacing_bps: Option<f64>,
    last: [f64; MOST_ACTIONS],
}

impl<D: Decide> Learned<D> {
    fn new(design: Design, mind: D) -> Self {
        Self {
            history: History::new(&design),
            design,
            mind,
            interval: Interval::first(Time::ZERO, NOMINAL_RTT, 1),
            due: Time::NEVER,
            monitor: Monitor::new(LOWEST_BPS, 1),
            pacing_bps: None,
            last: [0.0; MOST_ACTIONS],
        }
    }

    fn observed(&self, inner: &dyn Controller) -> Observed {
        let pacing = self.pacing_rate(inner).map_or(0.0, |rate| rate.as_bps() as f64);
        self.interval.observed(self.due, inner.cwnd(), pacing)
    }

    /// Ends the interval if it is over: before anything else is counted that happens then, or later.
    #[inline]
    fn pass(&mut self, now: Time, inner: &mut dyn Controller) {
        if now >= self.due {
            self.act(now, inner);
        }
    }

    #[cold]
    fn act(&mut self, now: Time, inner: &mut dyn Controller) {
        let observed = self.observed(inner);
        self.history.push(&self.design, &observed);
        let action = self.mind.decide(self.history.values());
        for ((last, given), &(low, high)) in
            self.last.iter_mut().zip(action).zip(self.design.action.bounds())
        {
            *last = if given.is_nan() { 0.0 } else { given }.clamp(low, high);
        }
        self.apply(inner);
        self.interval.begin_next(self.due, &observed);
        // An interval that ends late is no reason for the next one to be short.
        self.wait(now, self.design.length_after(&observed));
    }

    fn apply(&mut self, inner: &mut dyn Controller) {
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
                // A window of a few packets would never change by a fraction of one.
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

    /// Sends at a rate, as far as that is allowed.
    fn pace(&mut self, bps: f64, inner: &mut dyn Controller) {
        self.monitor.hold(self.monitor.allowed(bps));
        self.pacing_bps = Some(self.monitor.pacing_bps);
        inner.set_cwnd(self.monitor.cwnd());
    }

    fn wait(&mut self, now: Time, length: Span) {
        self.due = now + length;
        self.mind.expect(self.due);
    }
}

impl<D: Decide> Layer for Learned<D> {
    fn open(&mut self, _occasion: &mut Occasion<'_>) {}

    fn close(&mut self, _inner: &dyn Controller, _occasion: &mut Occasion<'_>) {}

    fn on_established(&mut self, inner: &mut dyn Controller, established: &Established) {
        inner.on_established(established);
        let rtt = established.rtt.unwrap_or(NOMINAL_RTT).max(Span::from_us(1));
        self.interval = Interval::first(established.now, rtt, established.mss_bytes);
        let initial_bps = self.monitor.establish(established);
        if matches!(self.design.action, Action::Rate { .. }) {
            self.pace(initial_bps, inner);
        }
        self.wait(established.now, self.design.cadence.next(rtt.as_secs_f64()));
    }

    fn on_packet_size(&mut self, inner: &mut dyn Controller, mss_bytes: u32) {
        inner.on_packet_size(mss_bytes);
        self.interval.resize(mss_bytes);
        self.monitor.resize(mss_bytes);
    }

    fn on_send(&mut self, inner: &mut dyn Controller, sent: &Sent) {
        self.pass(sent.now, inner);
        self.interval.on_send(sent.packets, sent.prior_in_flight);
        inner.on_send(sent);
    }

    fn on_lost(&mut self, inner: &mut dyn Controller, lost: &LostPacket) {
        self.pass(lost.now, inner);
        self.interval.on_lost();
        inner.on_lost(lost);
    }

    fn on_ack(&mut self, inner: &mut dyn Controller, ack: &AckSample) {
        self.pass(ack.now, inner);
        self.interval.on_ack(ack);
        inner.on_ack(ack);
        if matches!(self.design.action, Action::Rate { .. }) {
            self.monitor.account(ack);
            self.monitor.fit_window();
            inner.set_cwnd(self.monitor.cwnd());
        }
    }

    fn on_congestion(&mut self, inner: &mut dyn Controller, congestion: &Congestion) {
        self.pass(congestion.now, inner);
        inner.on_congestion(congestion);
    }

    fn pacing_rate(&self, inner: &dyn Controller) -> Option<Rate> {
        match self.pacing_bps {
            Some(bps) => Some(Rate::from_bps(bps as u64)),
            None => inner.pacing_rate(),
        }
    }

    fn next_wakeup(&self, inner: &dyn Controller) -> Option<Time> {
        let due = (self.due < Time::NEVER).then_some(self.due);
        [due, inner.next_wakeup()].into_iter().flatten().min()
    }

    fn on_wakeup(&mut self, inner: &mut dyn Controller, now: Time) {
        self.pass(now, inner);
        if inner.next_wakeup().is_some_and(|at| at <= now) {
            inner.on_wakeup(now);
        }
    }

    /// The interval that is under way, as though it ended when it is due.
    fn observe(&self, inner: &dyn Controller, observer: &mut dyn Observer) {
        let due = self.due < Time::NEVER;
        let observed = if due { self.observed(inner) } else { Observed::default() };
        observed.show(observer);
        observer.value("action", self.last[0]);
        if self.design.action == Action::Absolute {
            observer.value("second_action", self.last[1]);
        }
    }
}
