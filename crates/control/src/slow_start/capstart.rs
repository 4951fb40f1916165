//! CapStart.

use jostle_catalogue::{Entry, Kind, Parameter, Values};
use jostle_units::{FULL_PACKET_BYTES, FULL_PAYLOAD_BYTES, Rate, Span, Time};

use super::limited::{Limited, MAX_SSTHRESH};
use super::method::SlowStart;
use crate::controller::{AckSample, Established, Measurement};
use crate::row::SlowStartRow;
use crate::window::Window;

pub(crate) const ROW: SlowStartRow = SlowStartRow {
    entry: Entry {
        name: "capstart",
        summary: "measures the path by packet pairs; limited slow start if the card is faster",
        class: "model",
        based_on: &["limited"],
        source: "Cavendish, Kumazoe, Tsuru, Oie & Gerla, CapStart, Int. J. Adv. Internet \
                 Technol. 3(1&2), 2010",
        parameters: &[
            Parameter {
                name: "nic_rate",
                summary: "rate of the sender's card",
                kind: Kind::Rate {
                    default_bps: 1_000_000_000,
                    min_bps: 1_000,
                    max_bps: 400_000_000_000,
                },
            },
            Parameter {
                name: "ratio",
                summary: "how many times as fast as the path the card has to be to be limited",
                kind: Kind::Number { default: 1.25, min: 1.0, max: 1_000.0 },
            },
            Parameter {
                name: "pairs",
                summary: "packet pairs whose median dispersion gives the path's capacity",
                kind: Kind::Integer { default: 9, min: 1, max: MOST_PAIRS as i64 },
            },
            MAX_SSTHRESH,
        ],
    },
    build: |values| Box::new(CapStart::new(values)),
};

const MOST_PAIRS: usize = 63;

/// Slow start with a look at the path's capacity. Packets that leave the card back to back reach
/// the receiver as far apart as the bottleneck sends them, and their ACKs keep that distance. Once
/// enough such pairs were seen, the median of their dispersion tells whether the card sends faster
/// than the path: then the rest is limited slow start, otherwise standard slow start.
///
/// The paper's filter and threshold are not known to us: the median and `ratio` are readings.
#[derive(Clone, Debug)]
pub struct CapStart {
    nic_rate: Rate,
    ratio: f64,
    wanted: usize,
    limited: Limited,
    /// Full packet on the wire; the headers are those of the simulated TCP.
    packet_bytes: u64,
    /// Time at which the packet that the last ACK acknowledged was sent, and that of the ACK.
    last: Option<(Time, Time)>,
    /// Dispersion per packet of the pairs so far, in ascending order.
    dispersions: [Span; MOST_PAIRS],
    pairs: usize,
    verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Measuring,
    /// The path takes what the card sends.
    Even,
    /// It does not.
    CardIsFaster,
}

impl CapStart {
    /// CapStart with the parameters of its registry row.
    pub fn new(values: &Values) -> Self {
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

    /// Time that the card needs for a full packet.
    fn packet_time(&self) -> Span {
        self.nic_rate.time_for(self.packet_bytes)
    }

    /// Takes in the dispersion of `packets` that followed one another.
    fn on_pair(&mut self, packets: u32, sent_gap: Span, ack_gap: Span) {
        // What was sent further apart than the card sends it says nothing about the bottleneck.
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
    fn on_established(&mut self, _window: &mut Window, established: &Established) {
        self.on_packet_size(established.mss_bytes);
        self.last = None;
        self.pairs = 0;
        self.verdict = Verdict::Measuring;
    }

    fn on_packet_size(&mut self, mss_bytes: u32) {
        let headers_bytes = FULL_PACKET_BYTES - FULL_PAYLOAD_BYTES;
        self.packet_bytes = u64::from(mss_bytes.saturating_add(headers_bytes));
    }

    fn on_measurement(&mut self, window: &mut Window, measurement: &Measurement) {
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

    fn grow(&mut self, window: &mut Window, ack: &AckSample) -> u32 {
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
        let mut window = Window::default();
        for i in 0..count {
            let sent = Time::ZERO + sent_gap.mul_div(i, 1);
            let now = Time::ZERO + Span::from_ms(50) + gap.mul_div(i, 1);
            capstart.on_measurement(
                &mut window,
                &Measurement {
                    now,
                    rtt: Some(now.since(sent)),
                    packets,
                    first_unacked: (i + 1) * u64::from(packets),
                    next_to_send: 1_000,
                    ..Measurement::default()
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
