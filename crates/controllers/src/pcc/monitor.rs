//! The monitor of PCC's controllers: sends at one rate per monitor interval and later collects the
//! delivery results of its packets.

use alloc::collections::VecDeque;

use jostle_units::{Rate, Span, Time};

use super::monitor_interval::MonitorInterval;
use jostle_congestion::{AckSample, EstablishedEvent, SendEvent};

/// Packets in flight that are always allowed: pacing limits the rate.
const MIN_WINDOW: f64 = 10.0;
/// Largest window, above any path's BDP.
const MAX_WINDOW: f64 = 1e9;
/// RTT that is used if the handshake gave none (`kInitialRtt` of PCC's QUIC release).
pub(crate) const NOMINAL_RTT: Span = Span::from_ms(100);
/// Minimum rate in packets per round trip (Linux port; Allegro's §3.2: the rate of the first
/// interval).
pub(crate) const MIN_PACKETS_PER_RTT: f64 = 2.0;
/// Highest rate, far above any link.
const MAX_BPS: f64 = 1e12;
/// Maximum number of intervals in progress: the trials of Proteus, three pairs.
const INTERVALS: usize = 6;

/// Paces packets and stores the intervals.
#[derive(Debug)]
pub(crate) struct IntervalMonitor {
    /// Lowest rate, in bit/s of payload.
    minimum_bps: f64,
    /// Lowest rate, in packets per round trip.
    minimum_per_rtt: f64,
    /// Minimum number of packets in an interval.
    least_packets: u64,
    pub(crate) packet_bits: f64,
    pub(crate) srtt: Span,
    /// Pacing rate, in bit/s of payload.
    pub(crate) pacing_bps: f64,
    cwnd: u32,
    /// Intervals with packets that are neither delivered nor lost, oldest first.
    intervals: VecDeque<MonitorInterval>,
    /// Whether packets are being sent for the last of `intervals`.
    pub(crate) measuring: bool,
    /// Planned end of the current interval.
    pub(crate) deadline: Time,
    /// Next wake-up to end the current interval; [`Time::NEVER`] if only a packet that is sent can
    /// end it.
    wakeup: Time,
    pub(crate) total_sent: u64,
    /// Number of packets that are known to be delivered or lost.
    pub(crate) resolved: u64,
    /// Number of packets marked lost so far, including those that a timeout marked between ACKs.
    total_lost: u64,
}

impl IntervalMonitor {
    pub(crate) fn new(minimum_bps: f64, minimum_per_rtt: f64, least_packets: u64) -> Self {
        Self {
            minimum_bps,
            minimum_per_rtt,
            least_packets,
            packet_bits: 8.0,
            srtt: NOMINAL_RTT,
            pacing_bps: minimum_bps,
            cwnd: 1,
            intervals: VecDeque::with_capacity(INTERVALS),
            measuring: false,
            deadline: Time::NEVER,
            wakeup: Time::NEVER,
            total_sent: 0,
            resolved: 0,
            total_lost: 0,
        }
    }

    /// Processes the end of the handshake. Returns the rate of the initial window.
    pub(crate) fn establish(&mut self, established: &EstablishedEvent) -> f64 {
        self.resize(established.mss_bytes);
        self.srtt = established.rtt.unwrap_or(NOMINAL_RTT).max(Span::from_us(1));
        let window_bits = f64::from(established.initial_window) * self.packet_bits;
        self.allowed(window_bits / self.srtt.as_secs_f64())
    }

    /// Changes the payload of a packet.
    pub(crate) fn resize(&mut self, mss_bytes: u32) {
        self.packet_bits = 8.0 * f64::from(mss_bytes.max(1));
    }

    /// Returns `rate_bps`, limited to the allowed range.
    pub(crate) fn allowed(&self, rate_bps: f64) -> f64 {
        let per_rtt = self.minimum_per_rtt * self.packet_bits / self.srtt.as_secs_f64().max(1e-6);
        rate_bps.max(per_rtt.max(self.minimum_bps)).min(MAX_BPS)
    }

    /// Starts an interval at `rate_bps` of `rtts` smoothed RTTs. `before` packets were sent before
    /// it.
    pub(crate) fn measure(&mut self, now: Time, before: u64, rate_bps: f64, rtts: f64) {
        self.measure_for(now, before, rate_bps, rtts * self.srtt.as_secs_f64());
    }

    /// Starts an interval at `rate_bps` of `length_s` seconds. `before` packets were sent before
    /// it.
    pub(crate) fn measure_for(&mut self, now: Time, before: u64, rate_bps: f64, length_s: f64) {
        let packets_s = self.least_packets as f64 * self.packet_bits / rate_bps;
        self.deadline = now + Span::from_secs_f64(length_s.max(packets_s));
        self.wakeup = self.deadline;
        self.measuring = true;
        self.intervals.push_back(MonitorInterval::new(now, before, rate_bps));
        self.pace(rate_bps);
    }

    /// Sends at `rate_bps` without measuring.
    pub(crate) fn hold(&mut self, rate_bps: f64) {
        self.measuring = false;
        self.pace(rate_bps);
    }

    fn pace(&mut self, rate_bps: f64) {
        debug_assert!(rate_bps >= self.minimum_bps && rate_bps <= MAX_BPS, "{rate_bps} bit/s");
        self.pacing_bps = rate_bps;
        self.fit_window();
    }

    /// Linux port: the window is twice rate × SRTT, so that it only limits what pacing cannot
    /// control.
    pub(crate) fn fit_window(&mut self) {
        let bdp = self.pacing_bps * self.srtt.as_secs_f64() / self.packet_bits;
        self.cwnd = (2.0 * bdp).clamp(MIN_WINDOW, MAX_WINDOW) as u32;
    }

    /// Counts sent packets. Returns the number of packets sent before them.
    pub(crate) fn on_send(&mut self, sent: &SendEvent) -> u64 {
        self.total_sent = sent.total_sent;
        sent.total_sent.saturating_sub(u64::from(sent.packets))
    }

    /// Ends the current interval if it is long enough. Returns whether it ended.
    pub(crate) fn close_interval(&mut self, now: Time) -> bool {
        if !self.measuring || now < self.deadline {
            return false;
        }
        let Some(interval) = self.intervals.back_mut() else { return false };
        if self.total_sent.saturating_sub(interval.first) < self.least_packets {
            self.wakeup = Time::NEVER;
            return false;
        }
        interval.close(now, self.total_sent);
        true
    }

    /// Returns the current interval if its deadline has passed.
    pub(crate) fn due(&self, now: Time) -> Option<&MonitorInterval> {
        if self.measuring && now >= self.deadline { self.intervals.back() } else { None }
    }

    /// Continues the overdue interval until an ACK asks again, or until `limit`.
    pub(crate) fn wait(&mut self, limit: Time) {
        self.wakeup = limit;
    }

    /// Doubles the length of the overdue interval.
    pub(crate) fn extend(&mut self) {
        if let Some(interval) = self.intervals.back_mut() {
            interval.extended = true;
            self.deadline += self.deadline.since(interval.start);
            self.wakeup = self.deadline;
        }
    }

    /// Returns the interval in which a packet was sent at `at`, if it is not complete.
    pub(crate) fn interval_at(&mut self, at: Time) -> Option<&mut MonitorInterval> {
        self.intervals.iter_mut().find(|interval| interval.covers(at))
    }

    /// Assigns the packets that an ACK delivers or marks lost to the intervals.
    pub(crate) fn account(&mut self, ack: &AckSample) {
        if !ack.srtt.is_zero() {
            self.srtt = ack.srtt;
        }
        self.total_sent = ack.total_sent;
        // Packets that are no longer in flight are delivered or lost. The number in flight, unlike
        // a sum of deliveries and losses, does not drift when a loss proves to be spurious.
        let resolved = ack.total_sent.saturating_sub(u64::from(ack.in_flight));
        let lost = ack.total_lost.saturating_sub(self.total_lost);
        self.total_lost = ack.total_lost;
        if resolved > self.resolved {
            for interval in &mut self.intervals {
                interval.account(self.resolved, resolved, ack.acked, lost);
            }
            self.resolved = resolved;
        }
        debug_assert!(self.intervals.len() <= INTERVALS, "{} intervals", self.intervals.len());
    }

    /// Returns the oldest interval if all its packets are delivered or lost.
    pub(crate) fn take_finished_interval(&mut self) -> Option<MonitorInterval> {
        let oldest = self.intervals.front()?;
        let known = oldest.end.is_some() && oldest.last <= self.resolved;
        if known { self.intervals.pop_front() } else { None }
    }

    /// Returns the number of incomplete intervals.
    pub(crate) fn pending(&self) -> usize {
        self.intervals.len()
    }

    /// Discards the measurements in progress.
    pub(crate) fn drop_measurements(&mut self) {
        self.intervals.clear();
        self.measuring = false;
    }

    /// Sets cwnd after a timeout. The value lasts until the next ACK.
    pub(crate) fn set_cwnd(&mut self, cwnd: u32) {
        self.cwnd = cwnd.max(1);
    }

    pub(crate) fn cwnd(&self) -> u32 {
        self.cwnd
    }

    pub(crate) fn pacing_rate(&self) -> Rate {
        Rate::from_bps(self.pacing_bps as u64)
    }

    /// Returns the planned end of the current interval.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        (self.measuring && self.wakeup < Time::NEVER).then_some(self.wakeup)
    }
}
