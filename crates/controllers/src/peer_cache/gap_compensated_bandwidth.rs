//! Gap-compensated bandwidth estimation.

use jostle_units::{Rate, Span, Time};

use jostle_congestion::AckSample;

/// Number of cycles whose maximum is the estimate.
const CYCLES: usize = 5;
/// A cycle is valid if it has more ACKs than this.
const MIN_ACKS: u32 = 3;
/// Minimum number of packets in a valid cycle.
const MIN_PACKETS: u64 = 3;

/// Estimates the bottleneck rate from the ACKs of a flow that need not fill it.
///
/// A cycle of ACKs lasts for the latest RTT. If the flow sends less than the BDP, its packets are
/// acknowledged in bursts at the bottleneck rate, separated by silence. The largest gap between two
/// ACKs of the cycle is considered the silence. The gap and the ACK after it are excluded from the
/// cycle's time and data. The estimate is the maximum over the last five cycles.
/// out of the cycle's time and data. The estimate is the maximum over the last five cycles.
#[derive(Clone, Copy, Debug)]
pub struct GapCompensatedBandwidth {
    mss_bytes: u32,
    latest_rtt: Span,
    cycle: Option<AckCycle>,
    estimates: [Rate; CYCLES],
    next: usize,
}

/// ACKs since `start`. The ACK at `start` only opens the cycle.
#[derive(Clone, Copy, Debug)]
struct AckCycle {
    start: Time,
    last: Time,
    acks: u32,
    packets: u64,
    largest_gap: Span,
    /// Packets of the ACK after the gap.
    after_gap: u64,
}

impl AckCycle {
    fn new(now: Time) -> Self {
        Self { start: now, last: now, acks: 1, packets: 0, largest_gap: Span::ZERO, after_gap: 0 }
    }

    fn take(&mut self, now: Time, packets: u32) {
        let gap = now.since(self.last);
        if gap > self.largest_gap {
            (self.largest_gap, self.after_gap) = (gap, u64::from(packets));
        }
        self.last = now;
        self.acks += 1;
        self.packets += u64::from(packets);
    }

    fn estimate(&self, mss_bytes: u32) -> Option<Rate> {
        let packets = self.packets - self.after_gap;
        let time = self.last.since(self.start) - self.largest_gap;
        let tells = self.acks > MIN_ACKS && packets >= MIN_PACKETS && !time.is_zero();
        tells.then(|| Rate::of(packets * u64::from(mss_bytes), time))
    }
}

impl GapCompensatedBandwidth {
    /// Creates an estimator for this payload per packet.
    pub fn new(mss_bytes: u32) -> Self {
        Self {
            mss_bytes,
            latest_rtt: Span::ZERO,
            cycle: None,
            estimates: [Rate::ZERO; CYCLES],
            next: 0,
        }
    }

    /// Changes the payload of a packet. The current cycle contains packets of both sizes.
    pub fn on_mss_change(&mut self, mss_bytes: u32) {
        self.mss_bytes = mss_bytes;
        self.cycle = None;
    }

    /// An ACK was processed.
    pub fn on_ack(&mut self, ack: &AckSample) {
        if let Some(rtt) = ack.rtt {
            self.latest_rtt = rtt;
        }
        if ack.acked == 0 {
            return;
        }
        let Some(cycle) = &mut self.cycle else {
            self.cycle = Some(AckCycle::new(ack.now));
            return;
        };
        cycle.take(ack.now, ack.acked);
        if ack.now.since(cycle.start) >= self.latest_rtt {
            if let Some(estimate) = cycle.estimate(self.mss_bytes) {
                self.estimates[self.next] = estimate;
                self.next = (self.next + 1) % CYCLES;
            }
            self.cycle = Some(AckCycle::new(ack.now));
        }
    }

    /// Returns the payload rate of the bottleneck, or `None` before a valid cycle.
    pub fn bandwidth(&self) -> Option<Rate> {
        self.estimates.iter().copied().max().filter(|rate| *rate > Rate::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::ack;

    const MSS: u32 = 1448;
    const RTT: Span = Span::from_ms(50);
    /// 100 packets in 12.1 ms: 95.7 Mbit/s of payload.
    const GAP: Span = Span::from_us(121);

    fn rate() -> f64 {
        Rate::of(u64::from(MSS), GAP).as_bps() as f64
    }

    /// Rounds of so many packets, an ACK each, at the bottleneck's rate; RTTs apart.
    fn rounds(sizes: &[u32], stall: impl Fn(usize, u32) -> Span) -> GapCompensatedBandwidth {
        let mut gcbe = GapCompensatedBandwidth::new(MSS);
        let mut start = Time::ZERO + RTT;
        for (round, &size) in sizes.iter().enumerate() {
            let mut now = start;
            for i in 0..size {
                now += stall(round, i);
                gcbe.on_ack(&AckSample { now, rtt: Some(RTT), ..ack(1) });
                now += GAP;
            }
            start = (start + RTT).max(now);
        }
        gcbe
    }

    fn smooth(_round: usize, _packet: u32) -> Span {
        Span::ZERO
    }

    #[test]
    fn bursts_tell_the_rate_that_silence_hides() {
        for sizes in [&[10u32, 20, 1][..], &[10, 20, 40, 80, 1], &[400, 400, 400]] {
            let estimate = rounds(sizes, smooth).bandwidth().unwrap().as_bps() as f64;
            assert!((estimate / rate() - 1.0).abs() < 0.01, "{sizes:?}: {estimate}");
        }
    }

    /// ACKs of a full link, of which 20 ms in every 100 ms are missing. `made_up`: the next ACK
    /// acknowledges what they would have. Returns the estimates of GCBE and of a plain mean per RTT.
    fn stalled(made_up: bool) -> (f64, f64) {
        let rtt = Span::from_ms(100);
        let mut gcbe = GapCompensatedBandwidth::new(MSS);
        let mut means = Vec::new();
        let start = Time::ZERO + rtt;
        let (mut cycle_start, mut packets, mut missing) = (start, 0u64, 0);
        for i in 0..5_000u64 {
            let now = start + GAP.mul_div(i, 1);
            let phase = now.since(start).as_ns() % rtt.as_ns();
            if (30_000_000..50_000_000).contains(&phase) {
                missing += u32::from(made_up);
                continue;
            }
            let acked = 1 + core::mem::take(&mut missing);
            gcbe.on_ack(&AckSample { now, rtt: Some(rtt), acked, ..ack(1) });
            packets += u64::from(acked);
            if now.since(cycle_start) >= rtt {
                means.push(Rate::of(packets * u64::from(MSS), now.since(cycle_start)).as_bps());
                (cycle_start, packets) = (now, 0);
            }
        }
        let mean = means.iter().max().copied().unwrap();
        (gcbe.bandwidth().unwrap().as_bps() as f64, mean as f64)
    }

    /// algorithms.md: "A 20 ms ACK stall changes GCBE < 5 % (naïve ≈ −20 %)."
    #[test]
    fn a_stall_of_acks_is_left_out() {
        for made_up in [false, true] {
            let (estimate, mean) = stalled(made_up);
            assert!((estimate / rate() - 1.0).abs() < 0.05, "{estimate}");
            if !made_up {
                assert!((mean / rate() - 0.8).abs() < 0.02, "{mean}");
            }
        }
    }

    #[test]
    fn too_few_acks_tell_nothing() {
        assert_eq!(rounds(&[3, 1], smooth).bandwidth(), None);
        assert_eq!(rounds(&[10], smooth).bandwidth(), None, "no cycle is over");
    }

    #[test]
    fn five_cycles_are_remembered() {
        // One fast cycle, then slow ones.
        let slow = |round: usize, _: u32| if round > 0 { GAP } else { Span::ZERO };
        let after_4 = rounds(&[10, 10, 10, 10, 10, 1], slow).bandwidth().unwrap().as_bps() as f64;
        assert!((after_4 / rate() - 1.0).abs() < 0.01, "{after_4}");
        let after_9 = rounds(&[10; 11], slow).bandwidth().unwrap().as_bps() as f64;
        assert!((after_9 / rate() - 0.5).abs() < 0.01, "{after_9}");
    }
}
