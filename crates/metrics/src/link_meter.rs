//! Counters and distributions of one link.

use jostle_link::{DropReason, Service};
use jostle_units::{Span, Time};

use crate::histogram::Histogram;
use crate::interval_stats::{bits_per_s, ratio};
use crate::tables::{LinkTable, seconds};
use crate::timeline::{Timeline, TimelineCursor};

pub(crate) const REASONS: usize = DropReason::ALL.len();

/// Smallest and largest queue length that lasted for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueRange {
    min_bytes: u64,
    max_bytes: u64,
}

impl Default for QueueRange {
    fn default() -> Self {
        Self { min_bytes: u64::MAX, max_bytes: 0 }
    }
}

impl QueueRange {
    #[inline]
    fn add(&mut self, other: Self) {
        self.min_bytes = self.min_bytes.min(other.min_bytes);
        self.max_bytes = self.max_bytes.max(other.max_bytes);
    }
}

/// Counters of a link in an interval. All values are integers, so that merging does not depend on
/// the order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkCounters {
    pub sent_bytes: u64,
    pub sent_packets: u64,
    pub dropped: [u64; REASONS],
    pub marked: [u64; REASONS],
    /// Packets duplicated after their transmission.
    pub duplicated: u64,
    /// Sum of the queueing delays of the packets sent.
    pub waited_sum_ns: u64,
    /// Bytes of the packets that were dropped after they had waited in the queue.
    pub discarded_bytes: u64,
    /// ∫ queue length dt.
    pub queue_bytes_ns: u128,
    pub queue_range: QueueRange,
}

impl LinkCounters {
    /// Returns the mean queueing delay of the packets sent.
    pub(crate) fn waited_mean_s(&self) -> Option<f64> {
        ratio(self.waited_sum_ns as f64 / 1e9, self.sent_packets as f64)
    }

    fn add(&mut self, other: &Self) {
        self.sent_bytes += other.sent_bytes;
        self.sent_packets += other.sent_packets;
        for i in 0..REASONS {
            self.dropped[i] += other.dropped[i];
            self.marked[i] += other.marked[i];
        }
        self.duplicated += other.duplicated;
        self.waited_sum_ns += other.waited_sum_ns;
        self.discarded_bytes += other.discarded_bytes;
        self.queue_bytes_ns += other.queue_bytes_ns;
        self.queue_range.add(other.queue_range);
    }
}

/// Counters and distributions of a link in an interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkTotals {
    pub counters: LinkCounters,
    /// Nanoseconds spent at each queue length.
    pub queue_bytes: Histogram,
    /// Queueing delays of the packets sent.
    pub waited_ns: Histogram,
}

impl LinkTotals {
    /// Merges the values of a disjoint interval.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.counters.add(&other.counters);
        self.queue_bytes.merge(&other.queue_bytes);
        self.waited_ns.merge(&other.waited_ns);
    }
}

/// State of a link at the end of an interval, as reported by the simulator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkState {
    pub queue_bytes: u64,
    pub service: Service,
}

/// Transmission of a packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sending {
    pub start: Time,
    pub finish: Time,
    pub bytes: u32,
}

impl Sending {
    /// Returns the bytes transmitted after `cut`, at a constant rate.
    fn after(&self, cut: Time) -> u64 {
        let (left, whole) = (self.finish.since(cut), self.finish.since(self.start));
        let bytes = u128::from(self.bytes) * u128::from(left.min(whole).as_ns());
        bytes.checked_div(u128::from(whole.as_ns())).unwrap_or(0) as u64
    }
}

/// Counters since the last cut, of the queue or of the wire.
#[derive(Clone, Copy, Debug)]
struct Side {
    cursor: TimelineCursor,
    counters: LinkCounters,
}

/// Meter of one link. It closes intervals and phases by itself, because the link's events may be
/// ahead of the calls that end them. Queue and wire are cut independently, because an event of the
/// wire is reported when a transmission starts, with the time at which it ends.
#[derive(Clone, Debug)]
pub(crate) struct LinkMeter {
    /// Queue length, and packets dropped and marked by the queue.
    queue: Side,
    /// Packets sent, and losses on the wire.
    wire: Side,
    /// Last transmission.
    sending: Sending,
    waited_ns: Histogram,
    queue_now_bytes: u64,
    /// Time up to which the queue length is integrated.
    queue_until: Time,
    queue_bytes: Histogram,
    bins: Vec<LinkCounters>,
    segments: Vec<LinkTotals>,
    states: Vec<LinkState>,
}

impl LinkMeter {
    /// Memory per interval, including the row of the link's series.
    pub(crate) const BIN_BYTES: usize = 2 * (size_of::<LinkCounters>() + size_of::<LinkState>());

    pub(crate) fn new(timeline: &Timeline) -> Self {
        let side =
            Side { cursor: TimelineCursor::new(timeline), counters: LinkCounters::default() };
        Self {
            queue: side,
            wire: side,
            sending: Sending::default(),
            waited_ns: Histogram::default(),
            queue_now_bytes: 0,
            queue_until: Time::ZERO,
            queue_bytes: Histogram::default(),
            bins: vec![LinkCounters::default(); timeline.bins()],
            segments: vec![LinkTotals::default(); timeline.segments()],
            states: Vec::with_capacity(timeline.bins()),
        }
    }

    /// Closes the intervals of the queue that end until `now`.
    #[inline]
    fn advance_queue(&mut self, now: Time, timeline: &Timeline) {
        if now >= self.queue.cursor.cut() {
            self.cut_queue(now, timeline);
        }
    }

    #[cold]
    fn cut_queue(&mut self, now: Time, timeline: &Timeline) {
        while self.queue.cursor.is_due(now) {
            self.hold_queue(self.queue.cursor.cut(), self.queue_now_bytes);
            let counters = std::mem::take(&mut self.queue.counters);
            let segment = &mut self.segments[self.queue.cursor.segment()];
            segment.counters.add(&counters);
            self.bins[self.queue.cursor.bin()].add(&counters);
            if self.queue.cursor.step(timeline) {
                segment.queue_bytes = std::mem::take(&mut self.queue_bytes);
            }
        }
    }

    /// Closes the intervals of the wire that end until `now`.
    #[inline]
    fn advance_wire(&mut self, now: Time, timeline: &Timeline) {
        if now >= self.wire.cursor.cut() {
            self.cut_wire(now, timeline);
        }
    }

    #[cold]
    fn cut_wire(&mut self, now: Time, timeline: &Timeline) {
        while self.wire.cursor.is_due(now) {
            let mut counters = std::mem::take(&mut self.wire.counters);
            // A packet that crosses the cut is split, so that no interval exceeds the capacity.
            let rest_bytes = self.sending.after(self.wire.cursor.cut());
            counters.sent_bytes -= rest_bytes;
            self.wire.counters.sent_bytes = rest_bytes;
            let segment = &mut self.segments[self.wire.cursor.segment()];
            segment.counters.add(&counters);
            self.bins[self.wire.cursor.bin()].add(&counters);
            if self.wire.cursor.step(timeline) {
                segment.waited_ns = std::mem::take(&mut self.waited_ns);
            }
        }
    }

    /// Integrates the queue length until `now`, then sets it to `bytes`.
    #[inline]
    fn hold_queue(&mut self, now: Time, bytes: u64) {
        debug_assert!(now >= self.queue_until, "a queue's time went back");
        let held_ns = now.since(self.queue_until).as_ns();
        let held_bytes = std::mem::replace(&mut self.queue_now_bytes, bytes);
        // Packets of a burst arrive at the same time.
        if held_ns == 0 {
            return;
        }
        self.queue_until = now;
        self.queue.counters.queue_bytes_ns += u128::from(held_bytes) * u128::from(held_ns);
        let range = QueueRange { min_bytes: held_bytes, max_bytes: held_bytes };
        self.queue.counters.queue_range.add(range);
        self.queue_bytes.record(held_bytes, held_ns);
    }

    #[inline]
    pub(crate) fn queue_changed(&mut self, now: Time, bytes: u64, timeline: &Timeline) {
        self.advance_queue(now, timeline);
        self.hold_queue(now, bytes);
    }

    #[inline]
    pub(crate) fn sent(&mut self, sending: Sending, waited: Span, timeline: &Timeline) {
        self.advance_wire(sending.start, timeline);
        self.sending = sending;
        self.wire.counters.sent_bytes += u64::from(sending.bytes);
        self.wire.counters.sent_packets += 1;
        self.wire.counters.waited_sum_ns += waited.as_ns();
        self.waited_ns.record(waited.as_ns(), 1);
    }

    pub(crate) fn dropped(
        &mut self,
        now: Time,
        reason: DropReason,
        queued_bytes: u32,
        timeline: &Timeline,
    ) {
        if reason.is_after_queue() {
            self.advance_wire(now, timeline);
            self.wire.counters.dropped[reason as usize] += 1;
        } else {
            self.advance_queue(now, timeline);
            self.queue.counters.dropped[reason as usize] += 1;
            self.queue.counters.discarded_bytes += u64::from(queued_bytes);
        }
    }

    pub(crate) fn marked(&mut self, now: Time, reason: DropReason, timeline: &Timeline) {
        if reason.is_after_queue() {
            self.advance_wire(now, timeline);
            self.wire.counters.marked[reason as usize] += 1;
        } else {
            self.advance_queue(now, timeline);
            self.queue.counters.marked[reason as usize] += 1;
        }
    }

    pub(crate) fn duplicated(&mut self, now: Time, timeline: &Timeline) {
        self.advance_wire(now, timeline);
        self.wire.counters.duplicated += 1;
    }

    /// Records the state at the end of an interval.
    pub(crate) fn state(&mut self, state: LinkState) {
        self.states.push(state);
    }

    /// Closes all intervals at the end of the run.
    pub(crate) fn finish(&mut self, timeline: &Timeline) {
        self.advance_queue(timeline.end(), timeline);
        self.advance_wire(timeline.end(), timeline);
    }

    /// Returns the counters of each bin of the series.
    pub(crate) fn bins(&self) -> &[LinkCounters] {
        &self.bins
    }

    /// Returns the values of each segment between phase boundaries.
    pub(crate) fn segments(&self) -> &[LinkTotals] {
        &self.segments
    }

    /// Returns the states at the ends of the bins.
    pub(crate) fn states(&self) -> &[LinkState] {
        &self.states
    }
}

impl LinkTable {
    /// Creates the table from what the meters measured in each interval.
    pub(crate) fn new(timeline: &Timeline, links: &[LinkMeter]) -> Self {
        let mut table = Self::default();
        for bin in 0..timeline.bins() {
            for (link, meter) in links.iter().enumerate() {
                // The run stopped before the end of this interval, so there is no state.
                let Some(state) = meter.states().get(bin) else { continue };
                let counters = &meter.bins()[bin];
                let before = match bin {
                    0 => Service::default(),
                    _ => meter.states()[bin - 1].service,
                };
                let service = state.service.since(before);
                let service_bytes = service.throughput_bytes;
                let drain_bytes = service.drain_bytes + counters.discarded_bytes as f64;
                let length_ns = timeline.bin_length(bin).as_ns() as f64;
                table.time_s.push(seconds(timeline.bin_end(bin).as_ns()));
                table.link.push(link as u32);
                let sent_bytes = counters.sent_bytes as f64;
                table.throughput_bps.push(bits_per_s(sent_bytes, length_ns));
                table.capacity_bps.push(bits_per_s(service_bytes, length_ns));
                let utilisation = ratio(sent_bytes, service_bytes).map(|share| share.min(1.0));
                table.utilisation.push(utilisation.unwrap_or(f64::NAN));
                table.queue_bytes.push(state.queue_bytes as f64);
                let queue_bytes_ns = counters.queue_bytes_ns as f64;
                table.queue_length_mean_bytes.push(queue_bytes_ns / length_ns);
                table.queue_length_min_bytes.push(counters.queue_range.min_bytes as f64);
                table.queue_length_max_bytes.push(counters.queue_range.max_bytes as f64);
                let queue_s = ratio(queue_bytes_ns / 1e9, drain_bytes);
                table.queue_delay_estimate_mean_s.push(queue_s.unwrap_or(f64::NAN));
                table.sent_packets.push(counters.sent_packets as u32);
                table.queueing_delay_mean_s.push(counters.waited_mean_s().unwrap_or(f64::NAN));
                for (column, count) in table.dropped.iter_mut().zip(counters.dropped) {
                    column.push(count as u32);
                }
                for (column, count) in table.marked.iter_mut().zip(counters.marked) {
                    column.push(count as u32);
                }
            }
        }
        table
    }
}
