//! TIMELY: controls the rate by the gradient of the RTT.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{Rate, Span, Time};

use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CongestionSignal, CwndReductionBy,
    EstablishedEvent, StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "timely",
        summary: "for data centers: adjusts the pacing rate by the RTT gradient",
        class: "delay",
        based_on: &[],
        source: "Mittal et al., TIMELY: RTT-based Congestion Control for the Datacenter, \
                 SIGCOMM 2015, and the authors' timely-code-snippet.cc; patched: Zhu et al., ECN or \
                 Delay, CoNEXT 2016",
        parameters: &[
            Parameter::choice("variant", "paper", &["paper", "patched"])
                .summary("rule of the paper, or patched to have one fixed point"),
            Parameter::span("t_low", Span::from_us(50), Span::ZERO..=Span::from_secs(60))
                .summary("RTT below which the rate only grows"),
            Parameter::span("t_high", Span::from_us(500), Span::from_ns(1)..=Span::from_secs(60))
                .summary("RTT above which the rate only shrinks"),
            Parameter::span("min_rtt", Span::from_us(20), Span::ZERO..=Span::from_secs(60))
                .summary("RTT to which gradients are relative; 0: the smallest observed RTT"),
            Parameter::rate(
                "delta",
                Rate::from_mbps(10),
                Rate::from_bps(1)..=Rate::from_mbps(1_000_000),
            )
            .summary("additive increase per update"),
            Parameter::number("beta", 0.8, 0.0..=1.0)
                .summary("factor of the multiplicative decrease"),
            Parameter::number("patched_beta", 0.008, 0.0..=1.0)
                .summary("factor of the multiplicative decrease of the patched variant"),
            Parameter::number("alpha", 0.02, 0.001..=1.0)
                .summary("weight of a new RTT difference in the moving average"),
            Parameter::integer("hai_thresh", 5, 1..=1_000).summary(
                "successive decreases of the RTT after which growth is five times as fast",
            ),
            Parameter::integer("segment_packets", 11, 1..=1_000).summary(
                "acknowledged packets between two updates; 11 correspond to the paper's 16 kB",
            ),
            Parameter::rate("initial_rate", Rate::ZERO, Rate::ZERO..=Rate::from_mbps(1_000_000))
                .summary("rate of the first packets; 0: the initial window per RTT"),
        ],
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| Box::new(Timely::new(&parts.values)),
};

/// Hyperactive increase: N of the paper.
const HYPERACTIVE: f64 = 5.0;
const MIN_RATE_BPS: f64 = 100_000.0;
const MAX_RATE_BPS: f64 = 1e12;
/// The window only limits the packets in flight, to this multiple of rate × RTT.
const WINDOW_GAIN: f64 = 2.0;
const MIN_WINDOW: f64 = 4.0;

/// TIMELY: per completed segment the rate grows by δ while the RTT is below `t_low` or does not
/// rise, and shrinks in proportion to the excess over `t_high`. Between the two it shrinks in
/// proportion to the gradient. Patched TIMELY combines growth and decrease between the two
/// thresholds, weighted by the gradient, and shrinks in proportion to the distance from `t_low`.
#[derive(Clone, Debug)]
pub struct Timely {
    patched: bool,
    t_low_s: f64,
    t_high_s: f64,
    min_rtt: Span,
    delta_bps: f64,
    beta: f64,
    alpha: f64,
    hai_thresh: u32,
    segment_packets: u32,
    initial_rate: Rate,
    packet_bits: f64,
    rate_bps: f64,
    cwnd: u32,
    /// Packets acknowledged towards the next update.
    acked: u32,
    last_update: Option<Time>,
    prior_rtt_s: Option<f64>,
    /// Moving average of RTT differences.
    rtt_diff_s: f64,
    gradient: f64,
    /// Consecutive updates with a falling RTT.
    falling: u32,
}

impl Timely {
    /// Creates TIMELY with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        let patched = values.choice("variant") == "patched";
        Self {
            patched,
            t_low_s: values.span("t_low").as_secs_f64(),
            t_high_s: values.span("t_high").as_secs_f64(),
            min_rtt: values.span("min_rtt"),
            delta_bps: values.rate("delta").as_bps() as f64,
            beta: values.number(if patched { "patched_beta" } else { "beta" }),
            alpha: values.number("alpha"),
            hai_thresh: values.u32("hai_thresh"),
            segment_packets: values.u32("segment_packets"),
            initial_rate: values.rate("initial_rate"),
            packet_bits: 8.0 * 1448.0,
            rate_bps: MIN_RATE_BPS,
            cwnd: 10,
            acked: 0,
            last_update: None,
            prior_rtt_s: None,
            rtt_diff_s: 0.0,
            gradient: 0.0,
            falling: 0,
        }
    }

    /// Updates the rate after a segment with RTT `rtt_s` (Algorithm 1 of the paper, Algorithm 2 of
    /// Zhu et al.). `share`: time since the last update, in minimum RTTs. It scales all changes
    /// except the decrease by the gradient, so that frequent updates do not change the rate faster.
    fn update(&mut self, rtt_s: f64, min_rtt_s: f64, share: f64) {
        let diff_s = rtt_s - self.prior_rtt_s.replace(rtt_s).unwrap_or(rtt_s);
        self.falling = if diff_s < 0.0 { self.falling.saturating_add(1) } else { 0 };
        self.rtt_diff_s += self.alpha * (diff_s - self.rtt_diff_s);
        self.gradient = self.rtt_diff_s / min_rtt_s;
        let delta_bps = share * self.delta_bps;
        let rate_bps = if rtt_s < self.t_low_s {
            self.rate_bps + delta_bps
        } else if rtt_s > self.t_high_s {
            self.rate_bps * (1.0 - share * self.beta * (1.0 - self.t_high_s / rtt_s))
        } else if self.patched {
            let weight = (2.0 * self.gradient + 0.5).clamp(0.0, 1.0);
            // RTT_ref is T_low. No RTT is below a T_low of zero.
            let error = (rtt_s - self.t_low_s) / self.t_low_s.max(1e-9);
            (1.0 - weight) * delta_bps + self.rate_bps * (1.0 - share * self.beta * weight * error)
        } else if self.gradient <= 0.0 {
            let n = if self.falling >= self.hai_thresh { HYPERACTIVE } else { 1.0 };
            self.rate_bps + n * delta_bps
        } else {
            self.rate_bps * (1.0 - self.beta * self.gradient)
        };
        self.set_rate(rate_bps.max(self.rate_bps / 2.0));
    }

    fn set_rate(&mut self, rate_bps: f64) {
        self.rate_bps = rate_bps.clamp(MIN_RATE_BPS, MAX_RATE_BPS);
    }

    fn set_window(&mut self, srtt: Span) {
        let bdp = self.rate_bps * srtt.as_secs_f64() / self.packet_bits;
        // A float-to-integer cast saturates.
        self.cwnd = (WINDOW_GAIN * bdp).max(MIN_WINDOW) as u32;
    }
}

impl CongestionController for Timely {
    fn on_established(&mut self, established: &EstablishedEvent) {
        self.on_mss_change(established.mss_bytes);
        let rtt = established.rtt.unwrap_or(Span::from_ms(1)).as_secs_f64().max(1e-6);
        let window_bits = f64::from(established.initial_window) * self.packet_bits;
        let given = self.initial_rate > Rate::ZERO;
        self.set_rate(if given { self.initial_rate.as_bps() as f64 } else { window_bits / rtt });
        self.cwnd = established.initial_window.max(1);
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.packet_bits = 8.0 * f64::from(mss_bytes);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.acked = self.acked.saturating_add(ack.acked);
        if let Some(rtt) = ack.transmission_rtt()
            && self.acked >= self.segment_packets
        {
            self.acked = 0;
            let min_rtt = if self.min_rtt.is_zero() { ack.min_rtt } else { self.min_rtt };
            let min_rtt_s = min_rtt.as_secs_f64().max(1e-9);
            let last = self.last_update.replace(ack.now);
            let share = last.map_or(1.0, |last| ack.now.since(last).as_secs_f64() / min_rtt_s);
            self.update(rtt.as_secs_f64(), min_rtt_s, share.min(1.0));
        }
        self.set_window(ack.srtt);
    }

    /// The paper assumes lossless fabrics. A timeout means that the rate is far too high.
    fn on_congestion_event(&mut self, congestion: &CongestionEvent) {
        if congestion.signal == CongestionSignal::Timeout {
            self.set_rate(self.rate_bps / 2.0);
        }
    }

    fn on_undo(&mut self, _now: Time) {}

    fn set_cwnd(&mut self, cwnd: u32) {
        self.cwnd = cwnd.max(1);
    }

    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps(self.rate_bps as u64))
    }

    fn recovery_owner(&self) -> CwndReductionBy {
        CwndReductionBy::Controller
    }

    fn mode(&self) -> &'static str {
        match self.patched {
            true => "weighted",
            false if self.falling >= self.hai_thresh => "hyperactive",
            false => "gradient",
        }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        observer.record_value("rate_bps", self.rate_bps);
        observer.record_value("gradient", self.gradient);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::ack;
    use jostle_registry::ParameterValue;

    fn at(rate_mbps: f64, prior_us: f64, given: &[(&str, ParameterValue)]) -> Timely {
        let given = given.iter().map(|(name, value)| (name.to_string(), value.clone()));
        let mut timely = Timely::new(&ROW.entry.resolve(&given.collect()).unwrap());
        timely.rate_bps = rate_mbps * 1e6;
        timely.prior_rtt_s = Some(prior_us * 1e-6);
        timely
    }

    fn paper(rate_mbps: f64, prior_us: f64) -> Timely {
        at(rate_mbps, prior_us, &[])
    }

    fn patched(rate_mbps: f64, prior_us: f64) -> Timely {
        at(rate_mbps, prior_us, &[("variant", ParameterValue::Text("patched".to_owned()))])
    }

    fn after(mut timely: Timely, rtt_us: f64, share: f64) -> f64 {
        timely.update(rtt_us * 1e-6, 20e-6, share);
        timely.rate_bps / 1e6
    }

    #[test]
    fn the_window_follows_the_size_of_packets() {
        let mut timely = paper(1_000.0, 100.0);
        let windows = [724, 1448].map(|mss_bytes| {
            timely.on_mss_change(mss_bytes);
            timely.set_window(Span::from_ms(10));
            timely.cwnd()
        });
        // Twice 1 Gbit/s · 10 ms, in packets.
        assert_eq!(windows, [3_453, 1_726]);
    }

    /// The four branches of the paper's Algorithm 1 at 1 Gbit/s: δ below 50 µs even if the RTT
    /// rises, 1 − 0.8 (1 − 500/1000) above 500 µs even if it falls, δ where it does not rise, and
    /// a gradient of 0.02 · 200/20 = 0.2 takes 0.8 · 0.2.
    #[test]
    fn the_rate_follows_the_paper() {
        for (prior_us, rtt_us, share, mbps) in [
            (20.0, 40.0, 1.0, 1_010.0),
            (20.0, 40.0, 0.25, 1_002.5),
            (1_100.0, 1_000.0, 1.0, 600.0),
            (1_100.0, 1_000.0, 0.5, 800.0),
            (100.0, 100.0, 1.0, 1_010.0),
            (110.0, 100.0, 0.25, 1_002.5),
            // The decrease by the gradient knows no share.
            (100.0, 300.0, 1.0, 840.0),
            (100.0, 300.0, 0.25, 840.0),
            // At most half per update.
            (100.0, 1e6, 1.0, 500.0),
        ] {
            let rate = after(paper(1_000.0, prior_us), rtt_us, share);
            assert!((rate - mbps).abs() < 1e-6, "{prior_us} to {rtt_us}, {share}: {rate}");
        }
    }

    /// Algorithm 2 of Zhu et al. at 1 Gbit/s. 100 µs are an error of 1: with the weight of a steady
    /// RTT half of δ is added and half of 0.008 taken, with those of gradients of a quarter all of
    /// either.
    #[test]
    fn patched_it_blends_growth_and_decrease() {
        for (prior_us, rtt_us, share, mbps) in [
            (100.0, 100.0, 1.0, 1_000.0 + 5.0 - 4.0),
            (100.0, 100.0, 0.5, 1_000.0 + 2.5 - 2.0),
            (400.0, 100.0, 1.0, 1_010.0),
            (100.0, 400.0, 1.0, 1_000.0 * (1.0 - 0.008 * 7.0)),
            // A gradient of 0.02 · 100/20 = 0.1 weighs 0.7.
            (100.0, 200.0, 1.0, 1_000.0 + 0.3 * 10.0 - 0.7 * 0.008 * 3.0 * 1_000.0),
            (20.0, 40.0, 1.0, 1_010.0),
            (1_000.0, 1_000.0, 1.0, 996.0),
        ] {
            let rate = after(patched(1_000.0, prior_us), rtt_us, share);
            assert!((rate - mbps).abs() < 1e-6, "{prior_us} to {rtt_us}, {share}: {rate}");
        }
    }

    /// Their fixed point: at a quarter of 10 Gbit/s an error of δ / (β R) = 0.5, which is 75 µs.
    #[test]
    fn patched_it_rests_where_growth_equals_decrease() {
        let rate = after(patched(2_500.0, 75.0), 75.0, 1.0);
        assert!((rate - 2_500.0).abs() < 1e-6, "{rate}");
    }

    #[test]
    fn five_falls_of_the_rtt_make_growth_five_times_as_quick() {
        let mut timely = paper(1_000.0, 120.0);
        let mut steps = [0.0; 7];
        for (step, rtt_us) in
            steps.iter_mut().zip([119.0, 118.0, 117.0, 116.0, 115.0, 114.0, 114.0])
        {
            let before = timely.rate_bps;
            timely.update(rtt_us * 1e-6, 20e-6, 1.0);
            *step = libm::round((timely.rate_bps - before) / 1e6);
        }
        assert_eq!(steps, [10.0, 10.0, 10.0, 10.0, 50.0, 50.0, 10.0]);
    }

    /// Retransmissions alone are acknowledged: the rate follows their RTTs.
    #[test]
    fn rtts_of_retransmissions_count() {
        let mut timely = paper(1_000.0, 1_000.0);
        let now = Time::ZERO + Span::from_secs(1);
        let sent_at = Time::ZERO + Span::from_ms(999);
        let min_rtt = Span::from_us(900);
        timely.on_ack(&AckSample { now, sent_at, min_rtt, acked: 11, ..ack(11) });
        assert!((timely.rate_bps / 1e6 - 600.0).abs() < 1e-6, "{}", timely.rate_bps);
    }
}
