//! Send permission: cwnd in bytes, pacing, bursts.

use jostle_congestion::transport::Pacer;
use jostle_congestion::{CwndReductionBy, SendEvent};
use jostle_units::{Rate, SendLimit, Time};

use super::CongestionState;
use super::burst::UnpacedBurst;
use crate::crypto::EncryptionLevel;

/// A burst contains the data that the rate sends in 1/1024 s (`tcp_output.c::tcp_tso_autosize` in
/// Linux).
const BURST_SHIFT: u32 = 10;
/// Minimum burst, if the controller sets no other minimum.
const BURST_MIN_PACKETS: u32 = 2;

/// Data that the application has written, at the end of a round of sending.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrittenData {
    /// Bytes that the stack has accepted.
    pub accepted_bytes: u64,
    /// The application has data that the stack has not accepted.
    pub has_more: bool,
    /// Maximum unacknowledged data in the stack.
    pub buffer_bytes: u64,
}

impl CongestionState {
    /// Starts a round of sending. The endpoint asks the stack for datagrams next.
    pub fn begin_sending(&mut self, now: Time) {
        self.now = now;
        if now > self.unpaced.at {
            self.unpaced = UnpacedBurst { at: now, packets: 0 };
        }
        self.held = false;
        self.window_limited = false;
    }

    /// Ends a round of sending: the stack has nothing to send or is not allowed to send.
    pub fn end_sending(&mut self, written: WrittenData) {
        self.end_burst();
        let in_flight = self.flights.count();
        if !self.established {
            return;
        }
        let is_pending = written.accepted_bytes > self.totals.stream_bytes;
        let drained = !written.has_more && !is_pending;
        self.limit = Some(self.limit_of(written, is_pending));
        // RFC 9002 §7.8: "A sender SHOULD NOT consider itself application limited if it would have
        // fully utilized the congestion window without pacing delay". A round in which pacing
        // delayed packets is therefore ignored. For a controller that paces by itself only cwnd
        // counts (draft-ietf-ccwg-bbr: "True if the connection has fully utilized C.cwnd at any
        // point in the last packet-timed round trip"), as in `tcp_output.c::tcp_cwnd_validate`.
        if self.window_limited || !self.held || self.owner == CwndReductionBy::Controller {
            self.usage.note(
                self.flights.first_number(),
                self.flights.next_number(),
                self.window_limited,
            );
        }
        // draft-cheng-iccrg-delivery-rate-estimation: application-limited if all written data are
        // in flight and cwnd has room.
        if drained && !self.held && in_flight < self.cwnd {
            self.sampler.set_app_limited(in_flight);
        }
    }

    /// Returns what ended a round of sending. `is_pending` is true if the stack has accepted data
    /// that it has not sent.
    const fn limit_of(&self, written: WrittenData, is_pending: bool) -> SendLimit {
        let unacked_bytes = written.accepted_bytes.saturating_sub(self.totals.acked_bytes);
        if self.window_limited {
            SendLimit::Cwnd
        } else if is_pending {
            // Pacing of this state, or of the stack for its own controllers.
            SendLimit::Pacing
        } else if !written.has_more {
            SendLimit::Application
        } else if self.held {
            SendLimit::Pacing
        } else if unacked_bytes >= written.buffer_bytes {
            SendLimit::SendBuffer
        } else {
            // The stack accepts what the flow control windows of stream and connection allow.
            SendLimit::ReceiveWindow
        }
    }

    /// Returns the allowed bytes in flight for the next datagram of the stack.
    pub fn window_bytes(&mut self) -> u64 {
        if self.must_wait() {
            self.held = true;
            return 0;
        }
        self.held = false;
        let window = u64::from(self.cwnd) * u64::from(self.datagram_bytes);
        if self.extra_packet {
            return window.max(self.flights.bytes() + u64::from(self.datagram_bytes));
        }
        window
    }

    /// Handles that the stack had data to send and [`window_bytes`](Self::window_bytes) did not
    /// allow it.
    pub fn on_blocked(&mut self) {
        self.window_limited |= !self.held;
    }

    /// Returns the departure time of the next packet, if pacing delays it. After an unpaced burst,
    /// the next ACK or timer lets packets leave.
    pub const fn departure(&self) -> Time {
        if self.held && self.pacer.on { self.pacer.departure } else { Time::NEVER }
    }

    /// Returns the wake-up time that the controller requested.
    pub const fn wakeup(&self) -> Time {
        self.wakeup
    }

    /// Calls the controller if its wake-up time has passed.
    pub fn on_time(&mut self, now: Time) {
        if now >= self.wakeup
            && let Some(controller) = &mut self.controller
        {
            controller.on_wakeup(now);
            self.read_controller();
        }
    }

    /// Returns whether pacing or the limit of unpaced bursts delays the next packet. RFC 9002 §7.7:
    /// "Senders MUST either use pacing or limit such bursts".
    fn must_wait(&mut self) -> bool {
        if self.controller.is_none() {
            return false;
        }
        if !self.pacer.on && self.unpaced.packets >= self.unpaced_burst_max {
            return true;
        }
        if self.burst.left > 0 {
            return false;
        }
        self.end_burst();
        self.pacer.waits_until(self.now).is_some()
    }

    /// Returns the number of packets in one burst.
    fn min_burst_packets(&self) -> u32 {
        let Some(controller) = &self.controller else { return self.burst_max };
        if self.start_is_paced() && controller.next_packet_gap().is_some() {
            return 1;
        }
        let bytes = self.pacer.rate.as_bytes_per_s() >> BURST_SHIFT;
        let packets = u32::try_from(bytes / u64::from(self.datagram_bytes)).unwrap_or(u32::MAX);
        let least = controller.min_burst_packets().unwrap_or(BURST_MIN_PACKETS);
        let most = controller.max_burst_packets().unwrap_or(u32::MAX).max(1);
        packets.max(least).min(most).min(self.burst_max)
    }

    /// Handles an ack-eliciting packet that was sent. `packet` is its packet number.
    pub fn on_sent(&mut self, now: Time, bytes: u16, packet: u64) {
        self.now = now;
        let Some(sealed) = self.sealed.take().filter(|it| it.packet == packet) else { return };
        // Handshake packets do not count for the controller, like SYNs of TCP. MTU probes do not
        // count either (RFC 9000 §14.4: "Loss of a QUIC packet that is carried in a PMTU probe is
        // therefore not a reliable indication of congestion").
        if sealed.level != EncryptionLevel::Data || u32::from(bytes) > self.datagram_bytes {
            return;
        }
        let begins = self.burst.bytes == 0;
        if begins {
            self.burst.departure = self.pacer.depart(now);
            self.burst.left = self.min_burst_packets();
        }
        let prior = self.flights.count();
        // A probe or a control frame that bypasses pacing leaves before the departure of its burst.
        let stamp = self.sampler.on_send(now, prior == 0, prior + 1);
        self.flights.push(packet, stamp, bytes, sealed.stream_bytes as u16);
        self.burst.left = self.burst.left.saturating_sub(1);
        self.burst.bytes += u64::from(bytes);
        self.unpaced.packets += 1;
        self.totals.sent += 1;
        self.totals.sent_bytes += u64::from(bytes);
        self.extra_packet = false;
        if self.in_reduction() {
            self.reduction.note_sent(1);
        }
        if let Some(controller) = &mut self.controller {
            controller.on_send(&SendEvent {
                now,
                packets: 1,
                total_sent: self.totals.sent,
                next_to_send: self.flights.next_number(),
                prior_in_flight: prior,
                after_idle: prior == 0 && self.sampler.is_app_limited(),
            });
            if prior == 0 || self.start_is_paced() {
                self.read_controller();
            }
        }
        if self.burst.left == 0 {
            self.end_burst();
        }
    }

    /// Ends a burst and advances the pacing time.
    fn end_burst(&mut self) {
        self.burst.left = 0;
        let bytes = std::mem::take(&mut self.burst.bytes);
        if bytes == 0 {
            return;
        }
        let departure = self.burst.departure;
        if self.start_is_paced()
            && let Some(gap) = self.controller.as_ref().and_then(|it| it.next_packet_gap())
        {
            self.pacer.advance_by(departure, gap);
            return;
        }
        let begun = self.totals.sent >= Pacer::UNPACED_PACKETS || self.start_is_paced();
        self.pacer.advance(departure, bytes, begun);
    }

    /// Returns whether a window-based controller requires a pacing rate, as a paced slow start
    /// does.
    fn start_is_paced(&self) -> bool {
        self.rate_required && self.owns_window()
    }

    /// RFC 9002 §7.7: "N * congestion_window / smoothed_rtt", with the N of its example, 1.25.
    pub(super) fn update_pacing_rate(&mut self) {
        if self.rate_required
            || self.owner == CwndReductionBy::Controller
            || self.rtt.srtt_8us() == 0
        {
            return;
        }
        let window = u64::from(self.cwnd) * u64::from(self.datagram_bytes);
        // bytes/s = 5/4 · window / (srtt_8us / 8 · 10⁻⁶)
        self.pacer.rate = Rate::from_bytes_per_s(window * 10_000_000 / self.rtt.srtt_8us());
    }

    /// Returns the retransmitted bytes in the datagrams since the last call.
    pub fn take_retransmitted_bytes(&mut self) -> u32 {
        std::mem::take(&mut self.repeated_in_datagram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use jostle_units::VirtualClock;

    /// Limit after 1000 bytes were sent and `acked_bytes` of them acknowledged.
    fn limit(
        written: WrittenData,
        acked_bytes: u64,
        change: fn(&mut CongestionState),
    ) -> SendLimit {
        let mut state = CongestionState::new(&Settings::default(), VirtualClock::new(), None, None);
        state.established = true;
        state.totals.stream_bytes = 1_000;
        state.totals.acked_bytes = acked_bytes;
        change(&mut state);
        state.end_sending(written);
        state.send_limit().unwrap()
    }

    #[test]
    fn what_ends_a_round_of_sending_is_the_limit() {
        let all = WrittenData { accepted_bytes: 1_000, has_more: false, buffer_bytes: 1_000 };
        let more = WrittenData { has_more: true, ..all };
        let pending = WrittenData { accepted_bytes: 1_500, ..more };
        assert_eq!(limit(all, 0, |_| ()), SendLimit::Application);
        assert_eq!(limit(more, 0, |_| ()), SendLimit::SendBuffer);
        assert_eq!(limit(more, 1, |_| ()), SendLimit::ReceiveWindow);
        assert_eq!(limit(more, 1, |state| state.held = true), SendLimit::Pacing);
        assert_eq!(limit(pending, 0, |_| ()), SendLimit::Pacing);
        assert_eq!(limit(pending, 0, |state| state.window_limited = true), SendLimit::Cwnd);
        // Lost data wait for cwnd although the application has no more.
        assert_eq!(limit(all, 0, |state| state.window_limited = true), SendLimit::Cwnd);
    }
}
