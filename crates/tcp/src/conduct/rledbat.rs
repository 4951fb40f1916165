//! rLEDBAT (RFC 9840): a receiver that runs a congestion controller, and has the window that it offers
//! for a congestion window.

use jostle_control::{
    AckSample, Congestion, Controller, Established, Measurement, Prospect, RecoveryState,
    RttEstimator, Signal,
};
use jostle_units::{Span, Time};

use crate::segment::{Ack, Data, SynAck, timestamp_ms};

/// Bits of a window that a header holds.
const HEADER_WINDOW_BITS: u32 = 16;
const HEADER_WINDOW_MAX: u64 = (1 << HEADER_WINDOW_BITS) - 1;
/// The drafts of rLEDBAT ask for a shift count below 12, lest one step of the window be several segments
/// (RFC 7323 §2.3 alone would allow 14). A larger buffer is offered as far as that goes, 134 MB.
const SCALE_MAX: u32 = 11;

/// RTTs of which the least counts, as LEDBAT++ has it of delays: time that a sender had nothing to send for
/// is none of the path's.
const RECENT: usize = 4;

/// What the receiver's controller knows, and what it has offered.
pub(super) struct Rledbat {
    /// Its window is RLWND, in segments.
    controller: Box<dyn Controller>,
    mss_bytes: u64,
    /// Least difference of two windows that a header can say.
    granule_bytes: u64,
    /// Largest window that a header can say, in segments.
    most: u32,
    /// End of what was offered.
    end: u32,
    rtt: RttEstimator,
    recent: [Span; RECENT],
    measured: usize,
    /// TSval of the ACK that gave the latest RTT: the first segment that echoes it does.
    echoed_ms: u32,
    /// The segment after the highest that has arrived, and that one's TSval.
    highest: u32,
    highest_tsval_ms: u32,
    /// A retransmission until then belongs to a loss that is known, and the window stays as it is.
    known_until: Time,
    /// When the present round trip began, segments that have come in it, and in the one before.
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
    /// `most_bytes`: the largest window, by which the scale of windows is chosen.
    pub fn new(controller: Box<dyn Controller>, mss_bytes: u16, most_bytes: u64) -> Self {
        // As little as makes the largest window fit (`tcp_select_initial_window`).
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

    /// The answer to a SYN leaves.
    pub fn greet(&mut self, now: Time, syn_ack: &mut SynAck) {
        self.controller.on_established(&Established {
            now,
            mss_bytes: self.mss_bytes as u32,
            initial_window: syn_ack.window,
            rtt: None,
            prospect: Prospect { backlog: None, receive_window: syn_ack.window, granted: None },
        });
        syn_ack.window = self.offer(0, syn_ack.window);
    }

    /// An ACK is due: its window is the smaller of what the buffer holds and of RLWND, except that
    /// what was offered stays offered (RFC 9293 §3.8.6: "A TCP receiver SHOULD NOT shrink the window").
    /// It closes as segments come in.
    pub fn limit(&mut self, ack: &mut Ack) {
        ack.window = self.offer(ack.number, ack.window);
    }

    fn offer(&mut self, number: u32, room: u32) -> u32 {
        // A window that the scale cannot say is rounded up, as Linux does (`__tcp_select_window`).
        let bytes = u64::from(self.controller.cwnd()) * self.mss_bytes;
        let rlwnd = (bytes.next_multiple_of(self.granule_bytes) / self.mss_bytes) as u32;
        self.end = self.end.max(number.saturating_add(rlwnd.min(room).min(self.most)));
        self.end - number
    }

    /// A segment arrived.
    pub fn see(&mut self, now: Time, data: &Data) {
        if data.payload_bytes == 0 {
            return;
        }
        let rtt = self.measure(now, data.tsecr_ms);
        self.count(now);
        let measurement =
            Measurement { now, rtt, packets: 1, delivered: 1, ..Measurement::default() };
        self.controller.on_measurement(&measurement);
        if self.is_retransmission(data) {
            self.on_loss(now);
        } else if now >= self.known_until {
            // draft-bagnulo-iccrg-rledbat: after a reduction neither growth nor another one until
            // `end.reduction.time`, so that there is "at most one multiplicative decrease per RTT".
            self.controller.on_ack(&self.sample(now, rtt));
        }
    }

    /// The RTT that a segment tells of, which echoes the clock of an ACK, to a millisecond. Those after
    /// it that echo the same may have waited at the sender, and those that echo an older one in the network.
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

    /// Counts an arrival, by round trips.
    fn count(&mut self, now: Time) {
        if now.since(self.since) >= self.rtt.srtt() {
            self.since = now;
            self.arrived_before = std::mem::take(&mut self.arrived);
        }
        self.arrived += 1;
        self.received += 1;
    }

    /// Whether a segment was sent again: it comes below the highest, and its clock is later than that
    /// one's. What the network reordered has an earlier clock, or the same. The highest one once more is a
    /// probe of the tail, which only says that its ACK is missing.
    fn is_retransmission(&mut self, data: &Data) -> bool {
        if data.number + 1 >= self.highest {
            self.highest = data.number + 1;
            self.highest_tsval_ms = data.tsval_ms;
            return false;
        }
        data.tsval_ms > self.highest_tsval_ms
    }

    /// RLWND is halved, once per round trip.
    fn on_loss(&mut self, now: Time) {
        if now < self.known_until {
            return;
        }
        self.known_until = now + self.rtt.srtt();
        self.controller.on_congestion(&Congestion {
            now,
            signal: Signal::Loss,
            in_flight: self.controller.cwnd(),
            next_to_send: u64::from(self.end),
        });
        if let Some(ssthresh) = self.controller.ssthresh() {
            self.controller.set_cwnd(ssthresh.min(self.controller.cwnd()));
        }
    }

    /// What a sender would tell the controller of an ACK of one segment. What is in flight a receiver
    /// does not see: RLWND is.
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
            // A window that is not used does not grow. Its first growth in a round trip doubles it at
            // most, and round trips are counted from any segment.
            cwnd_limited: self.arrived.max(self.arrived_before).saturating_mul(4) >= window,
            may_grow: true,
            left_recovery: false,
            ce_marked: 0,
        }
    }
}

#[cfg(test)]
mod tests;
