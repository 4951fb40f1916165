//! rLEDBAT (RFC 9840): a receiver that runs a congestion controller and offers its cwnd as the
//! receive window.

use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CongestionSignal, EstablishedEvent,
    FirstFlightLimits, RawAckSample, RecoveryState, RttEstimator,
};
use jostle_units::{Span, Time};

use crate::segment::{Ack, Data, timestamp_ms};

/// Width of the window field in the header.
const HEADER_WINDOW_BITS: u32 = 16;
const HEADER_WINDOW_MAX: u64 = (1 << HEADER_WINDOW_BITS) - 1;
/// The rLEDBAT drafts require a shift count below 12, so that one step of the window is less than
/// several segments (RFC 7323 §2.3 alone would allow 14). A larger buffer is offered only up to the
/// resulting limit, 134 MB.
const SCALE_MAX: u32 = 11;

/// Number of recent RTTs of which the minimum is used, like the delay filter of LEDBAT++. Times in
/// which the sender had no data to send do not belong to the path.
const RECENT: usize = 4;

/// State of the receiver's controller and of the offered window.
pub(super) struct Rledbat {
    /// Controller whose cwnd is RLWND, in segments.
    controller: Box<dyn CongestionController>,
    mss_bytes: u64,
    /// Smallest step of the window that a header can express.
    granule_bytes: u64,
    /// Largest window that a header can express, in segments.
    most: u32,
    /// End of the offered window.
    end: u32,
    rtt: RttEstimator,
    recent: [Span; RECENT],
    measured: usize,
    /// Latest echoed TSval that gave an RTT sample. Only the first segment that echoes a TSval
    /// gives one.
    echoed_ms: u32,
    /// The segment after the highest that has arrived, and the TSval of the highest.
    highest: u32,
    highest_tsval_ms: u32,
    /// Until this time, retransmissions belong to a known loss and do not change the window.
    known_until: Time,
    /// Start of the current round trip; segments that arrived in it and in the previous one.
    since: Time,
    arrived: u32,
    arrived_before: u32,
    received: u64,
}

impl std::fmt::Debug for Rledbat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rledbat").field("rlwnd", &self.controller.cwnd()).finish_non_exhaustive()
    }
}

impl Rledbat {
    /// `most_bytes`: the largest window, which determines the window scale.
    pub fn new(controller: Box<dyn CongestionController>, mss_bytes: u16, most_bytes: u64) -> Self {
        // Smallest scale with which the largest window fits
        // (`tcp_output.c::tcp_select_initial_window`).
        let bits = u64::BITS - most_bytes.leading_zeros();
        let scale = bits.saturating_sub(HEADER_WINDOW_BITS).min(SCALE_MAX);
        Self {
            controller,
            mss_bytes: u64::from(mss_bytes),
            granule_bytes: 1 << scale,
            most: ((HEADER_WINDOW_MAX << scale) / u64::from(mss_bytes)) as u32,
            end: 0,
            rtt: RttEstimator::default(),
            recent: [Span::MAX; RECENT],
            measured: 0,
            echoed_ms: 0,
            highest: 0,
            highest_tsval_ms: 0,
            known_until: Time::ZERO,
            since: Time::ZERO,
            arrived: 0,
            arrived_before: 0,
            received: 0,
        }
    }

    /// Limits the first window that the receiver offers.
    pub fn on_syn(&mut self, now: Time, window: &mut u32) {
        self.controller.on_established(&EstablishedEvent {
            now,
            mss_bytes: self.mss_bytes as u32,
            initial_window: *window,
            rtt: None,
            prospect: FirstFlightLimits {
                send_backlog_packets: None,
                receive_window: *window,
                quick_start_rate: None,
            },
        });
        *window = self.offer(0, *window);
    }

    /// Limits the window of an ACK to the smaller of the free buffer and RLWND. The end of the
    /// offered window never moves back (RFC 9293 §3.8.6: "A TCP receiver SHOULD NOT shrink the
    /// window"), so that the window only closes as segments arrive.
    pub fn limit(&mut self, ack: &mut Ack) {
        ack.window = self.offer(ack.number, ack.window);
    }

    fn offer(&mut self, number: u32, room: u32) -> u32 {
        // A window that the scale cannot express is rounded up, as in Linux
        // (`tcp_output.c::__tcp_select_window`).
        let bytes = u64::from(self.controller.cwnd()) * self.mss_bytes;
        let rlwnd = (bytes.next_multiple_of(self.granule_bytes) / self.mss_bytes) as u32;
        self.end = self.end.max(number.saturating_add(rlwnd.min(room).min(self.most)));
        self.end - number
    }

    /// Processes a segment.
    pub fn see(&mut self, now: Time, data: &Data) {
        if data.payload_bytes == 0 {
            return;
        }
        let rtt = self.measure(now, data.tsecr_ms);
        self.count(now);
        let measurement =
            RawAckSample { now, rtt, packets: 1, delivered: 1, ..RawAckSample::default() };
        self.controller.on_ack_before_loss_detection(&measurement);
        if self.is_retransmission(data) {
            self.on_loss(now);
        } else if now >= self.known_until {
            // draft-bagnulo-iccrg-rledbat: after a reduction, the window neither grows nor is
            // reduced before `end.reduction.time`, so that there is "at most one multiplicative
            // decrease per RTT".
            self.controller.on_ack(&self.sample(now, rtt));
        }
    }

    /// Returns the RTT of the first segment that echoes the timestamp of an ACK, in whole
    /// milliseconds. Later segments with the same echo may have waited at the sender. Segments with
    /// an older echo may have been delayed in the network.
    fn measure(&mut self, now: Time, tsecr_ms: u32) -> Option<Span> {
        if tsecr_ms <= self.echoed_ms {
            return None;
        }
        self.echoed_ms = tsecr_ms;
        let elapsed_ms = timestamp_ms(now).saturating_sub(tsecr_ms).max(1);
        let rtt = Span::from_ms(u64::from(elapsed_ms));
        self.rtt.on_min_sample(now, rtt);
        self.recent[self.measured % RECENT] = rtt;
        self.measured += 1;
        let least = self.recent.iter().copied().min().unwrap_or(rtt);
        self.rtt.on_sample(least, self.received, self.received);
        Some(rtt)
    }

    /// Counts arriving segments per round trip.
    fn count(&mut self, now: Time) {
        if now.since(self.since) >= self.rtt.srtt() {
            self.since = now;
            self.arrived_before = std::mem::take(&mut self.arrived);
        }
        self.arrived += 1;
        self.received += 1;
    }

    /// Returns whether a segment was retransmitted: its number is below the highest and its
    /// timestamp is later. Segments reordered by the network have an earlier or equal timestamp.
    /// Another copy of the highest segment is a tail loss probe, which only shows that its ACK is
    /// missing.
    fn is_retransmission(&mut self, data: &Data) -> bool {
        if data.number + 1 >= self.highest {
            self.highest = data.number + 1;
            self.highest_tsval_ms = data.tsval_ms;
            return false;
        }
        data.tsval_ms > self.highest_tsval_ms
    }

    /// Reports a loss to the controller, which halves RLWND, at most once per round trip.
    fn on_loss(&mut self, now: Time) {
        if now < self.known_until {
            return;
        }
        self.known_until = now + self.rtt.srtt();
        self.controller.on_congestion_event(&CongestionEvent {
            now,
            signal: CongestionSignal::Loss,
            in_flight: self.controller.cwnd(),
            next_to_send: u64::from(self.end),
        });
        if let Some(ssthresh) = self.controller.ssthresh() {
            self.controller.set_cwnd(ssthresh.min(self.controller.cwnd()));
        }
    }

    /// Returns the sample that a sender would pass to the controller for an ACK of one segment. The
    /// receiver does not know the data in flight and uses RLWND instead.
    fn sample(&self, now: Time, rtt: Option<Span>) -> AckSample {
        let window = self.controller.cwnd();
        AckSample {
            now,
            acked: 1,
            lost: 0,
            rtt,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            rate: None,
            prior_delivered: 0,
            sent_at: Time::ZERO,
            in_flight_at_send: window,
            lost_since_send: 0,
            app_limited: false,
            ack_delayed: false,
            delivered: self.received,
            total_lost: 0,
            total_sent: self.received,
            prior_in_flight: window,
            in_flight: window,
            first_unacked: self.received,
            next_to_send: self.received,
            next_departure: now,
            state: RecoveryState::Open,
            // An unused window does not grow. In the first round trip of growth it at most doubles,
            // and a round trip may start at any segment.
            cwnd_limited: self.arrived.max(self.arrived_before).saturating_mul(4) >= window,
            pacing_limited: false,
            can_increase_cwnd: true,
            recovery_ended: false,
            ce_marked: 0,
        }
    }
}

#[cfg(test)]
mod tests;
