//! CapStart.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{FULL_PACKET_BYTES, FULL_PAYLOAD_BYTES, Rate, Span, Time};

use super::algorithm::SlowStart;
use super::limited::{Limited, MAX_SSTHRESH};
use crate::cwnd::CongestionWindow;
use crate::registry_rows::SlowStartEntry;
use jostle_congestion::{AckSample, EstablishedEvent, RawAckSample};

pub(crate) const ROW: SlowStartEntry = SlowStartEntry {
    entry: RegistryEntry {
        name: "capstart",
        summary: "compares packet pairs with the NIC rate; limited slow start if the NIC is faster",
        class: "model",
        based_on: &["limited"],
        source: "Cavendish, Kumazoe, Tsuru, Oie & Gerla, CapStart, Int. J. Adv. Internet \
                 Technol. 3(1&2), 2010",
        parameters: &[
            Parameter::rate(
                "nic_rate",
                Rate::from_mbps(1000),
                Rate::from_bps(1000)..=Rate::from_mbps(400_000),
            )
            .summary("rate of the sender's network card"),
            Parameter::number("ratio", 1.25, 1.0..=1_000.0)
                .summary("ratio of the rates of card and path above which slow start is limited"),
            Parameter::integer("pairs", 9, 1..=MOST_PAIRS as i64)
                .summary("packet pairs whose median dispersion gives the path's capacity"),
            MAX_SSTHRESH,
        ],
    },
    build: |values| Box::new(CapStart::new(values)),
};

const MOST_PAIRS: usize = 63;

/// Slow start with an estimate of the path's capacity. Packets that leave the NIC back to back
/// arrive with the spacing of the bottleneck, and their ACKs keep this spacing. After enough such
/// pairs, the median of their dispersion shows whether the NIC is faster than the path. If it is,
/// limited slow start follows, otherwise standard slow start.
///
/// The paper's filter and threshold are unknown: the median and `ratio` are assumptions.
#[derive(Clone, Debug)]
pub struct CapStart {
    nic_rate: Rate,
    ratio: f64,
    wanted: usize,
    limited: Limited,
    /// Size of a full-sized packet on the wire, with the headers of the simulated TCP.
    packet_bytes: u64,
    /// Send time of the packet that the last ACK acknowledged, and arrival time of that ACK.
    last: Option<(Time, Time)>,
    /// Dispersions per packet of the pairs so far, in ascending order.
    dispersions: [Span; MOST_PAIRS],
    pairs: usize,
    verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Measuring,
    /// The path is as fast as the NIC.
    Even,
    /// The NIC is faster than the path.
    CardIsFaster,
}

impl CapStart {
    /// Creates CapStart with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        Self {
            nic_rate: values.rate("nic_rate"),
            ratio: values.number("ratio"),
            wanted: (values.u32("pairs") as usize).clamp(1, MOST_PAIRS),
            limited: Limited::new(values),
            packet_bytes: u64::from(FULL_PACKET_BYTES),
            last: None,
            dispersions: [Span::ZERO; MOST_PAIRS],
            pairs: 0,
            verdict: Verdict::Measuring,
        }
    }

    /// Returns the time in which the NIC sends a full-sized packet.
    fn packet_time(&self) -> Span {
        self.nic_rate.time_for(self.packet_bytes)
    }

    /// Adds the dispersion of `packets` consecutive packets.
    fn on_pair(&mut self, packets: u32, sent_gap: Span, ack_gap: Span) {
        // Packets sent further apart than the NIC's spacing do not show the bottleneck's rate.
        if sent_gap > self.packet_time().mul_div(u64::from(packets), 1) {
            return;
        }
        let dispersion = ack_gap.mul_div(1, u64::from(packets));
        let known = &self.dispersions[..self.pairs];
        let at = known.partition_point(|smaller| *smaller <= dispersion);
        self.dispersions.copy_within(at..self.pairs, at + 1);
        self.dispersions[at] = dispersion;
        self.pairs += 1;
        if self.pairs == self.wanted {
            let median = self.dispersions[self.pairs / 2].as_ns() as f64;
            let limit = self.packet_time().as_ns() as f64 * self.ratio;
            self.verdict = if median > limit { Verdict::CardIsFaster } else { Verdict::Even };
        }
    }
}

impl SlowStart for CapStart {
    fn on_established(&mut self, _window: &mut CongestionWindow, established: &EstablishedEvent) {
        self.on_mss_change(established.mss_bytes);
        self.last = None;
        self.pairs = 0;
        self.verdict = Verdict::Measuring;
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        let headers_bytes = FULL_PACKET_BYTES - FULL_PAYLOAD_BYTES;
        self.packet_bytes = u64::from(mss_bytes.saturating_add(headers_bytes));
    }

    fn on_ack_before_loss_detection(
        &mut self,
        window: &mut CongestionWindow,
        measurement: &RawAckSample,
    ) {
        if self.verdict != Verdict::Measuring || !window.in_slow_start() {
            return;
        }
        let Some(rtt) = measurement.rtt.filter(|_| measurement.packets > 0) else {
            self.last = None;
            return;
        };
        let this = (measurement.now - rtt, measurement.now);
        if let Some((sent, acked)) = self.last.replace(this) {
            self.on_pair(measurement.packets, this.0.since(sent), this.1.since(acked));
        }
    }

    fn grow(&mut self, window: &mut CongestionWindow, ack: &AckSample) -> u32 {
        match self.verdict {
            Verdict::CardIsFaster => self.limited.increase(window, ack.acked),
            Verdict::Measuring | Verdict::Even => window.slow_start(ack.acked),
        }
    }

    fn on_timeout(&mut self, _now: Time, _next_to_send: u64) {
        self.last = None;
    }

    fn mode(&self) -> &'static str {
        match self.verdict {
            Verdict::CardIsFaster => "limited_slow_start",
            Verdict::Measuring | Verdict::Even => "slow_start",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The method after ACKs of `packets` each that arrive `gap` apart, for packets that were sent
    /// `sent_gap` apart.
    fn after(count: u64, packets: u32, sent_gap: Span, gap: Span) -> CapStart {
        let mut capstart = CapStart::new(&ROW.entry.defaults());
        hear(&mut capstart, count, packets, sent_gap, gap);
        capstart
    }

    fn hear(capstart: &mut CapStart, count: u64, packets: u32, sent_gap: Span, gap: Span) {
        let mut window = CongestionWindow::default();
        for i in 0..count {
            let sent = Time::ZERO + sent_gap.mul_div(i, 1);
            let now = Time::ZERO + Span::from_ms(50) + gap.mul_div(i, 1);
            capstart.on_ack_before_loss_detection(
                &mut window,
                &RawAckSample {
                    now,
                    rtt: Some(now.since(sent)),
                    packets,
                    first_unacked: (i + 1) * u64::from(packets),
                    next_to_send: 1_000,
                    ..RawAckSample::default()
                },
            );
        }
    }

    fn wire_time(mbps: u64) -> Span {
        Rate::from_mbps(mbps).time_for(u64::from(FULL_PACKET_BYTES))
    }

    #[test]
    fn nine_pairs_decide() {
        let gap = wire_time(100);
        assert_eq!(after(9, 1, Span::ZERO, gap).verdict, Verdict::Measuring);
        assert_eq!(after(10, 1, Span::ZERO, gap).verdict, Verdict::CardIsFaster);
        // A delayed ACK for two packets comes after twice the time.
        assert_eq!(after(10, 2, Span::ZERO, gap + gap).verdict, Verdict::CardIsFaster);
    }

    #[test]
    fn a_path_as_fast_as_the_card_is_even() {
        for mbps in [900, 1_000, 10_000] {
            assert_eq!(after(10, 1, Span::ZERO, wire_time(mbps)).verdict, Verdict::Even, "{mbps}");
        }
        assert_eq!(after(10, 1, Span::ZERO, wire_time(790)).verdict, Verdict::CardIsFaster);
    }

    #[test]
    fn packets_sent_apart_are_no_pair() {
        let gap = wire_time(100);
        assert_eq!(after(100, 1, gap, gap).verdict, Verdict::Measuring);
        assert_eq!(after(10, 1, wire_time(1_000), gap).verdict, Verdict::CardIsFaster);
    }

    #[test]
    fn the_median_outweighs_a_minority() {
        let mut capstart = after(6, 1, Span::ZERO, wire_time(1_000));
        capstart.last = None;
        hear(&mut capstart, 5, 1, Span::ZERO, wire_time(10));
        assert_eq!(capstart.pairs, 9);
        assert_eq!(capstart.verdict, Verdict::Even);
        assert!(capstart.dispersions[..9].is_sorted());
    }
}
