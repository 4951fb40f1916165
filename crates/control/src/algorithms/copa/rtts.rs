//! The RTTs that Copa judges the queue by.

use jostle_units::{Span, Time};

use super::parameters::Parameters;
use crate::estimate::WindowedMax;

/// An RTT in seconds. One is far below the 2⁶³ ns up to which the processor converts a number by
/// itself; [`Span::as_secs_f64`] is for all spans.
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

/// Extremes of the RTT. Samples are those of data: a SYN is shorter, and its RTT so much below
/// that of any data packet that a slow path's queue would never look empty.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rtts {
    /// RTTmin, over a long time.
    least: WindowedMin,
    /// That time; zero before the first sample.
    least_window: Span,
    /// RTTstanding, over srtt/2: without the noise of what delays and aggregates ACKs.
    standing: WindowedMin,
    /// Least RTT of the last RTTs, by which the queue is judged nearly empty.
    recent_least: WindowedMin,
    /// Largest RTT of the last RTTs.
    recent_most: WindowedMax,
    sampled: bool,
    /// RTT of the handshake; for pacing until data is acknowledged.
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

    /// Release: the minimum over max(10 s, 20 · RTTmin), with the RTTmin from before a sample, so that
    /// on a path of 600 ms a flow that keeps a queue for ten seconds still knows the path's own RTT.
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

    /// dq = RTTstanding − RTTmin; zero where the windows' minima age differently.
    pub(super) fn queueing(&self) -> Span {
        if self.sampled { self.standing.get() - self.least.get() } else { Span::ZERO }
    }

    /// Whether the queueing delay was below `share` of RTTmax − RTTmin lately.
    pub(super) fn nearly_empty(&self, share: f64) -> bool {
        let least = self.least.get();
        let lowest = seconds(self.recent_least.get() - least);
        let swing = seconds(Span::from_ns(self.recent_most.get()) - least);
        lowest <= share * swing
    }
}
