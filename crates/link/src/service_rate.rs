//! Service rate of a link: the bytes per second that a link sends while packets wait. It is the
//! lower of the capacity and the rate of the shapers in the queue, as a function of time. Frames
//! reduce the capacity by the time for which the link waits for the medium.
//!
//! A policer limits the throughput but holds no queue: packets behind it leave at the capacity. The
//! two bounds are therefore computed separately ([`Service`]).

use std::ops::Sub;

use jostle_units::{FULL_PACKET_BYTES, Rate, Time};

use crate::{Capacity, Framing};

/// Limit that a queue discipline sets to the rate of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shaper {
    /// Long-term rate.
    pub rate: Rate,
    /// Bytes of unused rate that may be sent later: the size of a token bucket. `None`: all of it,
    /// because the shaper makes up for time in which the link was the slower one.
    pub burst_bytes: Option<u64>,
    /// Bytes that the shaper counts per packet.
    pub framing: Framing,
    /// Packets wait for the shaper. A policer drops them instead.
    pub delays: bool,
}

impl Shaper {
    /// Returns the bytes per second for packets of this mean size.
    fn bytes_per_s(&self, packet_bytes: f64) -> f64 {
        let counted_bytes = self.framing.mean_wire_bytes(packet_bytes).max(1.0);
        self.rate.as_bps() as f64 / 8.0 * packet_bytes / counted_bytes
    }
}

/// Frame aggregation, as far as the service rate depends on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrameLimits {
    /// Maximum number of packets in a frame.
    pub packets: u32,
    /// Maximum number of bytes in a frame of more than one packet.
    pub bytes: u64,
    /// Mean time that a frame waits for the medium.
    pub mean_contention_s: f64,
}

impl FrameLimits {
    /// Returns the share of the capacity that is used, if each frame has all packets that fit into
    /// it and for which the shapers have tokens.
    fn share(&self, capacity_bytes_per_s: f64, wire_bytes: f64, burst_packets: f64) -> f64 {
        let fitting = (self.bytes as f64 / wire_bytes).min(f64::from(self.packets));
        let frame_bytes = fitting.min(burst_packets).floor().max(1.0) * wire_bytes;
        frame_bytes / (frame_bytes + self.mean_contention_s * capacity_bytes_per_s)
    }
}

/// Bytes since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Service {
    /// Bytes that the link would have sent, if packets had waited all the time.
    pub throughput_bytes: f64,
    /// Bytes that would have left the queue. Larger only if a policer limits the throughput.
    pub drain_bytes: f64,
}

impl From<f64> for Service {
    fn from(bytes: f64) -> Self {
        Self { throughput_bytes: bytes, drain_bytes: bytes }
    }
}

/// Number and bytes of the packets that a link sent since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentTotals {
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent.
    pub bytes: u64,
}

impl SentTotals {
    fn mean_packet_bytes(self) -> Option<f64> {
        (self.packets > 0).then(|| self.bytes as f64 / self.packets as f64)
    }
}

impl Sub for SentTotals {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { packets: self.packets - earlier.packets, bytes: self.bytes - earlier.bytes }
    }
}

/// Service rate of a link over time.
///
/// Framing, shapers with overhead and links with frames have a rate that depends on the size of packets: the
/// mean size of the packets that were sent, or of all earlier ones if there were none. Before the
/// first packet, full-sized packets count.
pub struct ServiceRate {
    capacity: Box<dyn Capacity>,
    shapers: Vec<Shaper>,
    frames: Option<FrameLimits>,
    framing: Framing,
    throughput: Credit,
    drain: Credit,
    /// Time of the last call, the bytes of the capacity until then, and the packets sent.
    as_of: Time,
    capacity_bytes: f64,
    sent: SentTotals,
    total: Service,
}

impl ServiceRate {
    /// Creates the service rate of a link with this `capacity`, the `shapers` of its queue
    /// ([`QueueDiscipline::shapers`](crate::QueueDiscipline::shapers)) and `frames`. The capacity
    /// must be unused.
    pub fn new(
        capacity: Box<dyn Capacity>,
        shapers: Vec<Shaper>,
        frames: Option<FrameLimits>,
    ) -> Self {
        Self {
            capacity,
            shapers,
            frames,
            framing: Framing::NONE,
            throughput: Credit::default(),
            drain: Credit::default(),
            as_of: Time::ZERO,
            capacity_bytes: 0.0,
            sent: SentTotals::default(),
            total: Service::default(),
        }
    }

    /// Sets the framing of the link, on whose sizes the capacity depends.
    #[must_use]
    pub fn with_framing(self, framing: Framing) -> Self {
        Self { framing, ..self }
    }

    /// Returns whether the service rate is the capacity.
    pub fn is_capacity(&self) -> bool {
        self.shapers.is_empty() && self.frames.is_none() && self.framing == Framing::NONE
    }

    /// Returns the rate in bit/s of full-sized packets that leave at a capacity without a shaper.
    pub fn of_burst(&self, capacity_bps: f64) -> f64 {
        capacity_bps * self.payload_share(f64::from(FULL_PACKET_BYTES))
    }

    /// Returns the service rate in bit/s for full-sized packets and a constant capacity.
    pub fn of_capacity(&self, capacity_bps: f64) -> f64 {
        let packet_bytes = f64::from(FULL_PACKET_BYTES);
        let limit = Limit::of(&self.shapers, packet_bytes);
        let capacity_bytes_per_s = capacity_bps / 8.0;
        let share = self.capacity_share(capacity_bytes_per_s, packet_bytes, &limit);
        8.0 * (share * capacity_bytes_per_s).min(limit.bytes_per_s)
    }

    /// Returns the bytes that may leave at the capacity after a pause: the size of all token buckets.
    pub fn burst_bytes(&self) -> u64 {
        self.shapers.iter().filter_map(|shaper| shaper.burst_bytes).sum()
    }

    /// Returns the bytes until `now`, which must not be earlier than in the last call. `sent` are
    /// the packets that the link has sent.
    pub fn until(&mut self, now: Time, sent: SentTotals) -> Service {
        if self.is_capacity() {
            return self.capacity.offered_bytes(now).into();
        }
        let packet_bytes = (sent - self.sent).mean_packet_bytes();
        let packet_bytes = packet_bytes.or_else(|| sent.mean_packet_bytes());
        let packet_bytes = packet_bytes.unwrap_or(f64::from(FULL_PACKET_BYTES));
        self.sent = sent;
        let limit = Limit::of(&self.shapers, packet_bytes);
        // Packets that were taken from the queue wait for the next opportunity, while tokens for
        // the packets behind them arrive.
        let in_bursts = self.capacity.is_in_bursts();
        let most_credit = limit.burst_bytes + if in_bursts { packet_bytes } else { 0.0 };
        while self.as_of < now {
            let until = self.capacity.next_change(self.as_of).min(now);
            let length_s = until.since(self.as_of).as_secs_f64();
            let capacity_bytes = self.capacity.offered_bytes(until);
            let bytes_per_s = match in_bursts {
                true => capacity_bytes / until.as_secs_f64(),
                false => (capacity_bytes - self.capacity_bytes) / length_s,
            };
            let share = self.capacity_share(bytes_per_s, packet_bytes, &limit);
            let part = CapacityPart {
                bytes: share * (capacity_bytes - self.capacity_bytes),
                length_s,
                at_end: in_bursts,
            };
            self.total.throughput_bytes +=
                self.throughput.take(part, limit.bytes_per_s, most_credit);
            let drain_bytes_per_s = if limit.delays { limit.bytes_per_s } else { f64::INFINITY };
            self.total.drain_bytes += self.drain.take(part, drain_bytes_per_s, most_credit);
            (self.as_of, self.capacity_bytes) = (until, capacity_bytes);
        }
        self.total
    }

    /// Handles a packet that arrives at an empty queue. A shaper without a token bucket makes up
    /// for lost time only while packets wait. `sent` are the packets that the link has sent.
    pub fn on_first_packet(&mut self, now: Time, sent: SentTotals) {
        if self.shapers.iter().any(|shaper| shaper.burst_bytes.is_none()) {
            self.until(now, sent);
            (self.throughput, self.drain) = (Credit::default(), Credit::default());
        }
    }

    /// Returns the share of the capacity that packets get, without the framing and the time in
    /// which frames wait for the medium.
    fn capacity_share(&self, capacity_bytes_per_s: f64, packet_bytes: f64, limit: &Limit) -> f64 {
        let burst_bytes = if limit.delays { limit.burst_bytes } else { f64::INFINITY };
        let (wire_bytes, burst_packets) =
            (self.framing.mean_wire_bytes(packet_bytes).max(1.0), burst_bytes / packet_bytes);
        let share =
            |frames: &FrameLimits| frames.share(capacity_bytes_per_s, wire_bytes, burst_packets);
        self.payload_share(packet_bytes) * self.frames.as_ref().map_or(1.0, share)
    }

    /// Returns the size of packets divided by their size on the wire.
    fn payload_share(&self, packet_bytes: f64) -> f64 {
        packet_bytes / self.framing.mean_wire_bytes(packet_bytes).max(1.0)
    }
}

/// Sum of the shapers of a queue. Classes without a shaper can use the whole capacity.
#[derive(Clone, Copy, Debug)]
struct Limit {
    bytes_per_s: f64,
    burst_bytes: f64,
    /// Every packet waits for a shaper.
    delays: bool,
}

impl Limit {
    fn of(shapers: &[Shaper], packet_bytes: f64) -> Self {
        if shapers.is_empty() {
            return Self { bytes_per_s: f64::INFINITY, burst_bytes: f64::INFINITY, delays: false };
        }
        let burst_bytes = |shaper: &Shaper| shaper.burst_bytes.map_or(f64::INFINITY, |n| n as f64);
        Self {
            bytes_per_s: shapers.iter().map(|shaper| shaper.bytes_per_s(packet_bytes)).sum(),
            burst_bytes: shapers.iter().map(burst_bytes).sum(),
            delays: shapers.iter().all(|shaper| shaper.delays),
        }
    }
}

/// Time in which a capacity sends bytes at a constant rate, or all of them at its end.
#[derive(Clone, Copy, Debug)]
struct CapacityPart {
    bytes: f64,
    length_s: f64,
    at_end: bool,
}

/// Unused rate of a shaper, which may be used later. It is 0 at the start, because the burst of a
/// full bucket is no part of the rate.
#[derive(Clone, Copy, Debug, Default)]
struct Credit {
    bytes: f64,
}

impl Credit {
    /// Returns the bytes that capacity and shaper allow.
    fn take(&mut self, part: CapacityPart, bytes_per_s: f64, most_bytes: f64) -> f64 {
        if bytes_per_s == f64::INFINITY {
            return part.bytes;
        }
        let mut allowed_bytes = self.bytes + bytes_per_s * part.length_s;
        if part.at_end {
            allowed_bytes = allowed_bytes.min(most_bytes);
        }
        let taken_bytes = part.bytes.min(allowed_bytes);
        self.bytes = (allowed_bytes - taken_bytes).min(most_bytes);
        taken_bytes
    }
}

#[cfg(test)]
mod tests {
    use jostle_units::Span;

    use super::*;
    use crate::capacity::{Constant, DeliveryTrace, Steps};

    const SHAPER: Shaper = Shaper {
        rate: Rate::from_mbps(8),
        burst_bytes: Some(10_000),
        framing: Framing::NONE,
        delays: true,
    };

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn sent(packets: u64, packet_bytes: u64) -> SentTotals {
        SentTotals { packets, bytes: packets * packet_bytes }
    }

    fn constant(mbps: u64) -> Box<dyn Capacity> {
        Box::new(Constant::new(Rate::from_mbps(mbps)))
    }

    fn steps(list: &[(u64, u64)]) -> Box<dyn Capacity> {
        let list = list.iter().map(|(ms, mbps)| (at(*ms), Rate::from_mbps(*mbps)));
        Box::new(Steps::new(list.collect()).unwrap())
    }

    /// Bytes of throughput and drain in each interval between `times_ms`.
    fn parts(rate: &mut ServiceRate, times_ms: &[u64]) -> Vec<(f64, f64)> {
        let totals = times_ms.iter().map(|ms| rate.until(at(*ms), SentTotals::default()));
        let totals: Vec<_> = std::iter::once(Service::default()).chain(totals).collect();
        let part = |pair: &[Service]| {
            (
                (pair[1].throughput_bytes - pair[0].throughput_bytes).round(),
                (pair[1].drain_bytes - pair[0].drain_bytes).round(),
            )
        };
        totals.windows(2).map(part).collect()
    }

    #[test]
    fn the_lower_of_capacity_and_shaper_counts() {
        let mut rate = ServiceRate::new(constant(100), vec![SHAPER], None);
        assert_eq!(parts(&mut rate, &[1_000, 3_000]), [(1e6, 1e6), (2e6, 2e6)]);
        let mut rate = ServiceRate::new(constant(4), vec![SHAPER], None);
        assert_eq!(parts(&mut rate, &[1_000]), [(0.5e6, 0.5e6)]);
        assert_eq!(rate.of_capacity(100e6), 8e6);
        assert_eq!(rate.of_capacity(4e6), 4e6);
    }

    #[test]
    fn a_policer_limits_the_throughput_and_not_the_drain() {
        let policer = Shaper { delays: false, ..SHAPER };
        let mut rate = ServiceRate::new(constant(16), vec![policer], None);
        assert_eq!(parts(&mut rate, &[1_000]), [(1e6, 2e6)]);
    }

    #[test]
    fn a_shaper_makes_up_for_a_slow_link_by_its_burst() {
        let changing = || steps(&[(0, 0), (1_000, 80), (2_000, 4), (3_000, 80)]);
        let times_ms = [1_000, 2_000, 3_000, 4_000];
        let mut bucket = ServiceRate::new(changing(), vec![SHAPER], None);
        let made_up = [(0.0, 0.0), (1.01e6, 1.01e6), (0.5e6, 0.5e6), (1.01e6, 1.01e6)];
        assert_eq!(parts(&mut bucket, &times_ms), made_up);
        let virtual_clock = Shaper { burst_bytes: None, ..SHAPER };
        let mut clock = ServiceRate::new(changing(), vec![virtual_clock], None);
        let made_up = [(0.0, 0.0), (2e6, 2e6), (0.5e6, 0.5e6), (1.5e6, 1.5e6)];
        assert_eq!(parts(&mut clock, &times_ms), made_up);
        let mut idle = ServiceRate::new(changing(), vec![virtual_clock], None);
        idle.on_first_packet(at(1_000), SentTotals::default());
        assert_eq!(parts(&mut idle, &[2_000]), [(1e6, 1e6)], "nothing waited in the first second");
    }

    #[test]
    fn opportunities_of_a_trace_carry_what_the_shaper_allows() {
        // 1514 bytes per ms are 12.1 Mbit/s, then nothing for 10 ms.
        let opportunities_ms: Vec<u32> = (1..=10).chain([20]).collect();
        let trace = || Box::new(DeliveryTrace::new(&opportunities_ms, 1_514).unwrap());
        let mut rate = ServiceRate::new(trace(), vec![SHAPER], None);
        // 10 kB by the shaper, 1514 bytes by the opportunity; then by the shaper again, with what
        // was left over.
        assert_eq!(
            parts(&mut rate, &[10, 20, 30]),
            [(10_000.0, 10_000.0), (1_514.0, 1_514.0), (15_140.0, 15_140.0)]
        );
    }

    #[test]
    fn shapers_of_classes_add_up_unless_a_class_has_none() {
        let rate = ServiceRate::new(constant(100), vec![SHAPER, SHAPER], None);
        assert_eq!(rate.of_capacity(100e6), 16e6);
        assert!(ServiceRate::new(constant(100), Vec::new(), None).is_capacity());
    }

    #[test]
    fn overhead_counts_per_packet() {
        let framing = Framing { overhead_bytes: 114, ..Framing::NONE };
        let shaper = Shaper { framing, ..SHAPER };
        let mut rate = ServiceRate::new(constant(100), vec![shaper], None);
        let found = rate.until(at(1_000), sent(1_000, 300)).throughput_bytes;
        assert_eq!(found.round(), 750_000.0);
        // A second without packets counts packets of the same size.
        let both = rate.until(at(2_000), sent(1_000, 300)).throughput_bytes;
        assert_eq!(both.round(), 1_500_000.0);
    }

    /// Full packets have 1749 bytes in ATM cells, ACKs of 66 bytes 106.
    #[test]
    fn framing_counts_per_packet() {
        let framing = Framing { overhead_bytes: 40, min_bytes: 0, cells: crate::Cells::Atm };
        let line = |shapers| ServiceRate::new(constant(8), shapers, None).with_framing(framing);
        let mut rate = line(Vec::new());
        assert!(!rate.is_capacity());
        assert_eq!(rate.of_capacity(8e6).round(), (8e6_f64 * 1_514.0 / 1_749.0).round());
        assert_eq!(rate.of_burst(8e6).round(), (8e6_f64 * 1_514.0 / 1_749.0).round());
        let found = rate.until(at(1_000), sent(1_000, 66)).throughput_bytes;
        assert_eq!(found.round(), (1e6_f64 * 66.0 / 106.0).round());
        // A shaper for 80 % of the wire that counts the same bytes leaves 80 % of the packets.
        let shaper = Shaper { rate: Rate::from_bps(6_400_000), framing, ..SHAPER };
        let expected = (6.4e6_f64 * 1_514.0 / 1_749.0).round();
        assert_eq!(line(vec![shaper]).of_capacity(8e6).round(), expected);
        // One that counts Ethernet frames is too fast for the line.
        let shaper = Shaper { framing: Framing::NONE, rate: Rate::from_mbps(7), ..SHAPER };
        let expected = (8e6_f64 * 1_514.0 / 1_749.0).round();
        assert_eq!(line(vec![shaper]).of_capacity(8e6).round(), expected);
    }

    #[test]
    fn frames_wait_for_the_medium() {
        let frames = FrameLimits { packets: 8, bytes: 65_536, mean_contention_s: 1e-3 };
        let mut rate = ServiceRate::new(constant(100), Vec::new(), Some(frames));
        // 8 kB take 0.64 ms.
        let found = rate.until(at(1_000), sent(1_000, 1_000)).throughput_bytes;
        assert_eq!(found.round(), (8_000.0_f64 / 1.64e-3).round());
        // With tokens for 10 kB, 6 full-sized packets form a frame.
        let shaper = Shaper { rate: Rate::from_mbps(90), ..SHAPER };
        let mut rate = ServiceRate::new(constant(100), vec![shaper], Some(frames));
        let found = rate.until(at(1_000), SentTotals::default()).throughput_bytes;
        let frame_bytes = 6.0_f64 * 1_514.0;
        assert_eq!(found.round(), (frame_bytes / (1e-3 + frame_bytes / 12.5e6)).round());
    }
}
