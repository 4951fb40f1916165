//! Service rate of a link: the bytes per second that a link sends while packets wait. It is the
//! lower of the capacity and the rate of the shapers in the queue, as a function of time. Frames
//! reduce the capacity by the time for which the link waits for the medium.
//!
//! A policer limits the throughput but holds no queue: packets behind it leave at the capacity. The
//! two bounds are therefore computed separately ([`Service`]).
//!
//! Overhead and cells make the rate of packets depend on their sizes. The totals are therefore in
//! *counted bytes*: the sizes that the framing of the link or of its shapers gives to packets. Their
//! rate does not depend on the traffic, so that a total does not depend on the times at which it is
//! read.

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
    /// Returns the counted bytes per second for packets of these sizes.
    fn bytes_per_s(&self, sizes: &Sizes, counting: Framing) -> f64 {
        let bytes_per_s = self.rate.as_bps() as f64 / 8.0;
        if self.framing == counting {
            return bytes_per_s;
        }
        let shaped_bytes = self.framing.mean_wire_bytes(sizes.packet_bytes).max(1.0);
        bytes_per_s * sizes.counted_bytes / shaped_bytes
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

/// Bytes since the start of the run, as the link or its shapers count packets. [`since`](Self::since)
/// returns bytes of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Service {
    /// Bytes that the link would have sent, if packets had waited all the time; NaN if unknown.
    pub throughput_bytes: f64,
    /// Bytes that would have left the queue. Larger only if a policer limits the throughput.
    pub drain_bytes: f64,
    /// Bytes of the packets sent.
    sent_bytes: f64,
    /// Counted bytes of the packets sent.
    counted_bytes: f64,
    /// Bytes of packets ÷ counted bytes of the latest packets.
    latest_share: f64,
}

impl Service {
    /// Creates the service of a link that another component empties: the limit of its throughput is
    /// unknown here.
    pub(crate) fn of_drain(bytes: f64) -> Self {
        Self { throughput_bytes: f64::NAN, ..Self::from(bytes) }
    }

    /// Returns the service after `earlier`, in bytes of packets of the sizes that were sent
    /// meanwhile, or of the latest earlier ones if there were none.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let sent_bytes = self.sent_bytes - earlier.sent_bytes;
        let counted_bytes = self.counted_bytes - earlier.counted_bytes;
        let share =
            if counted_bytes > 0.0 { sent_bytes / counted_bytes } else { self.latest_share };
        Self {
            throughput_bytes: (self.throughput_bytes - earlier.throughput_bytes) * share,
            drain_bytes: (self.drain_bytes - earlier.drain_bytes) * share,
            sent_bytes,
            counted_bytes: sent_bytes,
            latest_share: 1.0,
        }
    }
}

impl From<f64> for Service {
    /// Creates the service of a link that counts the bytes of packets.
    fn from(bytes: f64) -> Self {
        Self { throughput_bytes: bytes, drain_bytes: bytes, latest_share: 1.0, ..Self::default() }
    }
}

/// Mean sizes of the latest packets that a link sent; before the first one, of full-sized packets.
#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    packets: f64,
    packet_bytes: f64,
    /// On the wire.
    wire_bytes: f64,
    counted_bytes: f64,
}

impl Sizes {
    /// Number of packets whose mean counts: longer than a frame, shorter than most phases.
    const LATEST: f64 = 256.0;

    fn of(packets: f64, packet_bytes: f64, wire: Framing, counting: Framing) -> Self {
        let size = |framing: Framing| framing.mean_wire_bytes(packet_bytes).max(1.0);
        let (wire_bytes, counted_bytes) = (size(wire), size(counting));
        Self { packets, packet_bytes, wire_bytes, counted_bytes }
    }

    fn add(&mut self, other: &Self) {
        self.packets = (self.packets + other.packets).min(Self::LATEST);
        let weight = (other.packets / self.packets).min(1.0);
        self.packet_bytes += weight * (other.packet_bytes - self.packet_bytes);
        self.wire_bytes += weight * (other.wire_bytes - self.wire_bytes);
        self.counted_bytes += weight * (other.counted_bytes - self.counted_bytes);
    }
}

/// Service rate of a link over time.
///
/// Links with frames, and shapers that count other bytes than the link, have a rate that depends on
/// the size of packets: the mean size of the latest ones.
pub struct ServiceRate {
    capacity: Box<dyn Capacity>,
    shapers: Vec<Shaper>,
    frames: Option<FrameLimits>,
    framing: Framing,
    /// Framing by which the totals count packets: the shapers' if all have the same overhead or cells,
    /// otherwise the link's.
    counting: Framing,
    throughput: Credit,
    drain: Credit,
    /// Time of the last call, and the bytes of the capacity until then.
    as_of: Time,
    capacity_bytes: f64,
    sizes: Sizes,
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
        let rate = Self {
            capacity,
            shapers,
            frames,
            framing: Framing::NONE,
            counting: Framing::NONE,
            throughput: Credit::default(),
            drain: Credit::default(),
            as_of: Time::ZERO,
            capacity_bytes: 0.0,
            sizes: Sizes::default(),
            total: Service::default(),
        };
        rate.with_framing(Framing::NONE)
    }

    /// Sets the framing of the link, on whose sizes the capacity depends.
    #[must_use]
    pub fn with_framing(self, framing: Framing) -> Self {
        let of_shapers = self.shapers.first().map_or(Framing::NONE, |shaper| shaper.framing);
        let is_common = self.shapers.iter().all(|shaper| shaper.framing == of_shapers);
        let counting = if is_common && of_shapers != Framing::NONE { of_shapers } else { framing };
        let sizes = Sizes::of(0.0, f64::from(FULL_PACKET_BYTES), framing, counting);
        Self { framing, counting, sizes, ..self }
    }

    /// Returns whether the service rate is the capacity.
    pub fn is_capacity(&self) -> bool {
        self.shapers.is_empty() && self.frames.is_none() && self.framing == Framing::NONE
    }

    /// Returns the rate in bit/s of full-sized packets that leave at a capacity without a shaper.
    pub fn of_burst(&self, capacity_bps: f64) -> f64 {
        let sizes = self.full_sizes();
        capacity_bps * sizes.packet_bytes / sizes.wire_bytes
    }

    /// Returns the service rate in bit/s for full-sized packets and a constant capacity.
    pub fn of_capacity(&self, capacity_bps: f64) -> f64 {
        let sizes = self.full_sizes();
        let limit = Limit::of(&self.shapers, &sizes, self.counting);
        let capacity_bytes_per_s = capacity_bps / 8.0;
        let share = self.capacity_share(capacity_bytes_per_s, &sizes, &limit);
        let counted_bytes_per_s = (share * capacity_bytes_per_s).min(limit.bytes_per_s);
        8.0 * counted_bytes_per_s * sizes.packet_bytes / sizes.counted_bytes
    }

    fn full_sizes(&self) -> Sizes {
        Sizes::of(0.0, f64::from(FULL_PACKET_BYTES), self.framing, self.counting)
    }

    /// Returns the bytes that may leave at the capacity after a pause: the size of all token buckets.
    pub fn burst_bytes(&self) -> u64 {
        self.shapers.iter().filter_map(|shaper| shaper.burst_bytes).sum()
    }

    /// Counts packets that the link has sent, with the mean of their sizes. The times must not
    /// decrease.
    pub fn count(&mut self, now: Time, packets: u64, packet_bytes: f64) {
        if packets == 0 {
            return;
        }
        if self.depends_on_sizes() {
            self.until(now);
        }
        let packets = packets as f64;
        let sizes = Sizes::of(packets, packet_bytes, self.framing, self.counting);
        self.total.sent_bytes += packets * sizes.packet_bytes;
        self.total.counted_bytes += packets * sizes.counted_bytes;
        self.sizes.add(&sizes);
    }

    /// Returns whether the rate of counted bytes depends on the sizes of packets.
    fn depends_on_sizes(&self) -> bool {
        self.frames.is_some()
            || self.framing != self.counting
            || self.shapers.iter().any(|shaper| shaper.framing != self.counting)
            || (!self.shapers.is_empty() && self.capacity.is_in_bursts())
    }

    /// Returns the bytes until `now`, which must not be earlier than in the last call.
    pub fn until(&mut self, now: Time) -> Service {
        if self.is_capacity() {
            return self.capacity.offered_bytes(now).into();
        }
        let sizes = self.sizes;
        let limit = Limit::of(&self.shapers, &sizes, self.counting);
        // Packets that were taken from the queue wait for the next opportunity, while tokens for
        // the packets behind them arrive.
        let in_bursts = self.capacity.is_in_bursts();
        let most_credit = limit.burst_bytes + if in_bursts { sizes.counted_bytes } else { 0.0 };
        while self.as_of < now {
            let until = self.capacity.next_change(self.as_of).min(now);
            let length_s = until.since(self.as_of).as_secs_f64();
            let capacity_bytes = self.capacity.offered_bytes(until);
            let bytes_per_s = match in_bursts {
                true => capacity_bytes / until.as_secs_f64(),
                false => (capacity_bytes - self.capacity_bytes) / length_s,
            };
            let share = self.capacity_share(bytes_per_s, &sizes, &limit);
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
        Service { latest_share: sizes.packet_bytes / sizes.counted_bytes, ..self.total }
    }

    /// Handles a packet that arrives at an empty queue. A shaper without a token bucket makes up
    /// for lost time only while packets wait.
    pub fn on_first_packet(&mut self, now: Time) {
        if self.shapers.iter().any(|shaper| shaper.burst_bytes.is_none()) {
            self.until(now);
            (self.throughput, self.drain) = (Credit::default(), Credit::default());
        }
    }

    /// Returns the counted bytes per byte of the capacity, without the time in which frames wait
    /// for the medium.
    fn capacity_share(&self, capacity_bytes_per_s: f64, sizes: &Sizes, limit: &Limit) -> f64 {
        let burst_bytes = if limit.delays { limit.burst_bytes } else { f64::INFINITY };
        let burst_packets = burst_bytes / sizes.counted_bytes;
        let share = |frames: &FrameLimits| {
            frames.share(capacity_bytes_per_s, sizes.wire_bytes, burst_packets)
        };
        sizes.counted_bytes / sizes.wire_bytes * self.frames.as_ref().map_or(1.0, share)
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
    fn of(shapers: &[Shaper], sizes: &Sizes, counting: Framing) -> Self {
        if shapers.is_empty() {
            return Self { bytes_per_s: f64::INFINITY, burst_bytes: f64::INFINITY, delays: false };
        }
        let burst_bytes = |shaper: &Shaper| shaper.burst_bytes.map_or(f64::INFINITY, |n| n as f64);
        Self {
            bytes_per_s: shapers.iter().map(|shaper| shaper.bytes_per_s(sizes, counting)).sum(),
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

    fn constant(mbps: u64) -> Box<dyn Capacity> {
        Box::new(Constant::new(Rate::from_mbps(mbps)))
    }

    fn steps(list: &[(u64, u64)]) -> Box<dyn Capacity> {
        let list = list.iter().map(|(ms, mbps)| (at(*ms), Rate::from_mbps(*mbps)));
        Box::new(Steps::new(list.collect()).unwrap())
    }

    /// Bytes of throughput until `ms`, in which packets of one size were sent.
    fn throughput_bytes(rate: &mut ServiceRate, ms: u64, packet_bytes: f64) -> f64 {
        rate.count(Time::ZERO, 1_000, packet_bytes);
        rate.until(at(ms)).since(Service::default()).throughput_bytes
    }

    /// Bytes of throughput and drain in each interval between `times_ms`.
    fn parts(rate: &mut ServiceRate, times_ms: &[u64]) -> Vec<(f64, f64)> {
        let totals = times_ms.iter().map(|ms| rate.until(at(*ms)));
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
        idle.on_first_packet(at(1_000));
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
        let found = throughput_bytes(&mut rate, 1_000, 300.0);
        assert_eq!(found.round(), 750_000.0);
        // A second without packets counts packets of the same size.
        let earlier = rate.until(at(1_000));
        let later = rate.until(at(2_000)).since(earlier).throughput_bytes;
        assert_eq!(later.round(), 750_000.0);
    }

    /// 1 Mbyte/s of 1749 and 106 bytes per packet, read once or after every packet.
    #[test]
    fn a_total_does_not_depend_on_the_times_at_which_it_is_read() {
        let framing = Framing { overhead_bytes: 40, min_bytes: 0, cells: crate::Cells::Atm };
        let shaper = Shaper { framing, ..SHAPER };
        let rates: [fn(Framing, Shaper) -> ServiceRate; 3] = [
            |framing, _| ServiceRate::new(constant(8), Vec::new(), None).with_framing(framing),
            |_, shaper| ServiceRate::new(constant(100), vec![shaper], None),
            |framing, shaper| {
                ServiceRate::new(constant(100), vec![shaper], None).with_framing(framing)
            },
        ];
        for build in rates {
            let read = |often: bool| {
                let mut rate = build(framing, shaper);
                for ms in 0..1_000 {
                    rate.count(at(ms), 1, if ms % 10 < 3 { 1_514.0 } else { 66.0 });
                    if often {
                        rate.until(at(ms));
                    }
                }
                rate.until(at(1_000)).since(Service::default()).throughput_bytes
            };
            let (sent_bytes, counted_bytes) = (300 * 1_514 + 700 * 66, 300 * 1_749 + 700 * 106);
            let expected = 1e6 * f64::from(sent_bytes) / f64::from(counted_bytes);
            for often in [false, true] {
                let found = read(often);
                assert!((found / expected - 1.0).abs() < 1e-9, "{often} {found} {expected}");
            }
        }
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
        let found = throughput_bytes(&mut rate, 1_000, 66.0);
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
        let found = throughput_bytes(&mut rate, 1_000, 1_000.0);
        assert_eq!(found.round(), (8_000.0_f64 / 1.64e-3).round());
        // With tokens for 10 kB, 6 full-sized packets form a frame.
        let shaper = Shaper { rate: Rate::from_mbps(90), ..SHAPER };
        let mut rate = ServiceRate::new(constant(100), vec![shaper], Some(frames));
        let found = rate.until(at(1_000)).throughput_bytes;
        let frame_bytes = 6.0_f64 * 1_514.0;
        assert_eq!(found.round(), (frame_bytes / (1e-3 + frame_bytes / 12.5e6)).round());
    }
}
