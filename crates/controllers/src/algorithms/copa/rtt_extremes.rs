//! RTT filters of Copa.

use jostle_units::{Span, Time};

use super::parameters::Parameters;
use crate::estimators::WindowedMax;

/// Returns an RTT in seconds. An RTT is far below 2⁶³ ns, up to which the processor converts
/// integers directly; [`Span::as_secs_f64`] supports all spans.
#[inline]
pub(super) fn seconds(rtt: Span) -> f64 {
    rtt.as_ns().cast_signed() as f64 * 1e-9
}

/// Minimum over a sliding window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowedMin(WindowedMax);

impl WindowedMin {
    pub(super) fn update(&mut self, window: Span, now: Time, rtt: Span) {
        self.0.update(window.as_ns(), now.as_ns(), u64::MAX - rtt.as_ns());
    }

    pub(super) fn get(&self) -> Span {
        Span::from_ns(u64::MAX - self.0.get())
    }
}

/// Extreme RTTs. Only data samples are used: the RTT of the smaller SYN is so much shorter that the
/// queue of a slow path would never look empty.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rtts {
    /// RTTmin over a long window.
    least: WindowedMin,
    /// Length of this window; zero before the first sample.
    least_window: Span,
    /// RTTstanding: minimum over srtt/2, without noise of delayed and aggregated ACKs.
    standing: WindowedMin,
    /// Minimum over the last RTTs, to detect a nearly empty queue.
    recent_least: WindowedMin,
    /// Maximum over the last RTTs.
    recent_most: WindowedMax,
    sampled: bool,
    /// RTT of the handshake, for pacing until data is acknowledged.
    assumed: Span,
}

/// §2.2: RTTmax "is measured over the past four RTTs".
const MOST_RTTS: u64 = 4;

impl Rtts {
    pub(super) fn assume(&mut self, rtt: Option<Span>) {
        self.assumed = rtt.unwrap_or(Span::ZERO);
    }

    pub(super) fn update(&mut self, now: Time, rtt: Span, srtt: Span, parameters: &Parameters) {
        if !self.sampled {
            self.sampled = true;
            self.set_least_window(rtt, parameters);
        }
        let before = self.least.get();
        self.least.update(self.least_window, now, rtt);
        if self.least.get() != before {
            self.set_least_window(self.least.get(), parameters);
        }
        let window = Span::from_secs_f64(parameters.standing_rtts * seconds(srtt));
        self.standing.update(window, now, rtt);
        self.recent_least.update(srtt.mul_div(parameters.empty_rtts, 1), now, rtt);
        self.recent_most.update(srtt.mul_div(MOST_RTTS, 1).as_ns(), now.as_ns(), rtt.as_ns());
    }

    /// Release: the window of the minimum is max(10 s, 20 · RTTmin), with the RTTmin before a
    /// sample. On a path of 600 ms, a flow that keeps a queue for ten seconds therefore still knows
    /// the base RTT.
    fn set_least_window(&mut self, least: Span, parameters: &Parameters) {
        let rtts = least.mul_div(parameters.min_rtt_rtts, 1);
        self.least_window = parameters.min_rtt_window.max(rtts);
    }

    /// RTTstanding; zero before the first sample.
    pub(super) fn standing(&self) -> Span {
        if self.sampled { self.standing.get() } else { Span::ZERO }
    }

    pub(super) fn standing_or_assumed(&self) -> Span {
        if self.sampled { self.standing.get() } else { self.assumed }
    }

    /// dq = RTTstanding − RTTmin; zero if the minima of the windows expire at different times.
    pub(super) fn queueing(&self) -> Span {
        if self.sampled { self.standing.get() - self.least.get() } else { Span::ZERO }
    }

    /// Returns whether the queueing delay was recently below `share` of RTTmax − RTTmin.
    pub(super) fn nearly_empty(&self, share: f64) -> bool {
        let least = self.least.get();
        let lowest = seconds(self.recent_least.get() - least);
        let swing = seconds(Span::from_ns(self.recent_most.get()) - least);
        lowest <= share * swing
    }
}
