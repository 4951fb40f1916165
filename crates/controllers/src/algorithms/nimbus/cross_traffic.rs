//! Estimation of the cross traffic's rate from the rates of sending and arrival.
//!
//! For the same packets, S is their sending rate and R their arrival rate. A busy link of rate μ
//! serves all traffic in proportion, R = μ S/(S + z), so that z = μ S/R − S.

use alloc::vec;
use alloc::vec::Vec;

use jostle_units::{Span, Time};

use jostle_congestion::AckSample;

/// Weight of the latest arrival rate in the average whose maximum is μ (release, per report).
const RECEIVED_WEIGHT: f64 = 0.2;
/// Minimum time between recorded ACKs.
const MARK_GAP: Span = Span::from_ms(1);
/// Number of recorded ACKs, which limits the averaging time of S and R to a second.
const MARKS: usize = 1024;
/// Minimum averaging time of rates: the time between samples. Otherwise it is a round trip.
const LEAST_WINDOW: Span = Span::from_ms(10);

/// A recorded ACK.
#[derive(Clone, Copy, Debug, Default)]
struct AckRecord {
    now: Time,
    /// Send time of the most recently sent packet among those that the ACK acknowledged.
    sent_at: Time,
    delivered: u64,
}

/// The estimator. Rates are in bit/s of payload.
#[derive(Clone, Debug)]
pub(super) struct CrossTrafficEstimator {
    /// μ, if it is known.
    given_bps: Option<f64>,
    marks: Vec<AckRecord>,
    /// The oldest mark that may be needed, and the number of marks from there on.
    oldest: usize,
    known: usize,
    pub(super) sent_bps: f64,
    pub(super) received_bps: f64,
    average_bps: f64,
    most_bps: f64,
}

impl CrossTrafficEstimator {
    pub(super) fn new(given_bps: Option<f64>) -> Self {
        Self {
            given_bps,
            marks: vec![AckRecord::default(); MARKS],
            oldest: 0,
            known: 0,
            sent_bps: 0.0,
            received_bps: 0.0,
            average_bps: 0.0,
            most_bps: 0.0,
        }
    }

    fn mark(&self, index: usize) -> AckRecord {
        self.marks[(self.oldest + index) % MARKS]
    }

    /// Records an ACK that acknowledged packets.
    pub(super) fn on_ack(&mut self, ack: &AckSample) {
        if self.known > 0 && ack.now < self.mark(self.known - 1).now + MARK_GAP {
            return;
        }
        if self.known == MARKS {
            self.oldest = (self.oldest + 1) % MARKS;
            self.known -= 1;
        }
        let next = (self.oldest + self.known) % MARKS;
        self.marks[next] =
            AckRecord { now: ack.now, sent_at: ack.sent_at, delivered: ack.delivered };
        self.known += 1;
    }

    /// Measures S and R of the latest round trip, and updates μ.
    pub(super) fn measure(&mut self, ack: &AckSample, packet_bits: f64) {
        let window = ack.srtt.max(LEAST_WINDOW);
        while self.known > 1 && self.mark(1).now + window <= ack.now {
            self.oldest = (self.oldest + 1) % MARKS;
            self.known -= 1;
        }
        if self.known == 0 {
            return;
        }
        let from = self.mark(0);
        let bits = packet_bits * ack.delivered.saturating_sub(from.delivered) as f64;
        let (sending, arriving) = (ack.sent_at.since(from.sent_at), ack.now.since(from.now));
        if sending.is_zero() || arriving.is_zero() || bits <= 0.0 {
            return;
        }
        self.sent_bps = bits / sending.as_secs_f64();
        self.received_bps = bits / arriving.as_secs_f64();
        self.average_bps += RECEIVED_WEIGHT * (self.received_bps - self.average_bps);
        self.most_bps = self.most_bps.max(self.average_bps);
    }

    /// μ: the link rate, as configured or as the maximum arrival rate; 0 before any arrival.
    pub(super) fn link_bps(&self) -> f64 {
        self.given_bps.unwrap_or(self.most_bps)
    }

    /// z = μ S/R − S.
    pub(super) fn cross_bps(&self) -> f64 {
        if self.received_bps > 0.0 {
            self.link_bps() * self.sent_bps / self.received_bps - self.sent_bps
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::ack;

    /// Packets of 1000 bytes, sent every millisecond (8 Mbit/s), that come in every `gap_us`.
    fn measured(given_bps: Option<f64>, gap_us: u64) -> CrossTrafficEstimator {
        let mut cross = CrossTrafficEstimator::new(given_bps);
        for i in 0..400 {
            let sent_at = Time::ZERO + Span::from_ms(i);
            let now = Time::ZERO + Span::from_ms(100) + Span::from_us(i * gap_us);
            let sample = AckSample { now, sent_at, ..ack(i) };
            cross.on_ack(&sample);
            cross.measure(&sample, 8_000.0);
        }
        cross
    }

    /// Every 1.5 ms: R = 5.33 Mbit/s. On a link of 20 Mbit/s z = 20 · 1.5 − 8 = 22 Mbit/s.
    #[test]
    fn the_cross_traffic_follows_from_the_rates() {
        let cross = measured(Some(20e6), 1_500);
        assert!((cross.sent_bps / 8e6 - 1.0).abs() < 1e-9);
        assert!((cross.received_bps / (8e6 / 1.5) - 1.0).abs() < 1e-9);
        assert!((cross.cross_bps() / 22e6 - 1.0).abs() < 1e-9);
    }

    /// Alone, what arrives is what the link carries, and nothing is left for others.
    #[test]
    fn the_link_is_what_arrives_at_most() {
        let cross = measured(None, 1_000);
        assert!((cross.link_bps() / 8e6 - 1.0).abs() < 1e-6, "{}", cross.link_bps());
        assert!(cross.cross_bps().abs() < 10.0);
        let nothing = CrossTrafficEstimator::new(None);
        assert_eq!((nothing.link_bps(), nothing.cross_bps()), (0.0, 0.0));
    }

    #[test]
    fn only_so_many_marks_are_kept() {
        let mut cross = CrossTrafficEstimator::new(None);
        for i in 0..3_000 {
            let now = Time::ZERO + Span::from_ms(5 * i);
            let sample = AckSample { now, sent_at: now, srtt: Span::from_ms(60_000), ..ack(i) };
            cross.on_ack(&sample);
            cross.measure(&sample, 8_000.0);
        }
        assert_eq!(cross.known, MARKS);
        assert!((cross.received_bps / 1.6e6 - 1.0).abs() < 1e-9);
    }
}
