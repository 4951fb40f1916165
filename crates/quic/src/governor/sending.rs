//! What leaves when: the window in bytes, pacing, bursts.

use jostle_control::{RecoveryOwner, Sent};
use jostle_units::{Rate, Time};

use super::Governor;
use crate::crypto::Level;

/// Packets before pacing begins, as under `fq` in this project's TCP: an initial window.
const UNPACED_PACKETS: u64 = 10;
/// A burst is what the rate sends in 1/1024 s (`tcp_tso_autosize` in Linux).
const BURST_SHIFT: u32 = 10;
/// Least that a burst comes to, where nothing says less.
const BURST_MIN_PACKETS: u32 = 2;

impl Governor {
    /// The end is about to ask the stack for datagrams.
    pub fn begin_sending(&mut self, now: Time) {
        self.now = now;
        self.held = false;
        self.window_limited = false;
    }

    /// The stack has nothing more to send at the moment, or may not. `drained`: the application has
    /// nothing either.
    pub fn end_sending(&mut self, drained: bool) {
        self.end_burst();
        let in_flight = self.flights.count();
        if !self.established {
            return;
        }
        // RFC 9002 §7.8: "A sender SHOULD NOT consider itself application limited if it would have
        // fully utilized the congestion window without pacing delay": what was held back says
        // nothing. A controller that paces of itself asks for the window alone
        // (draft-ietf-ccwg-bbr: "True if the connection has fully utilized C.cwnd at any point in
        // the last packet-timed round trip"), as `tcp_cwnd_validate` tells it.
        if self.window_limited || !self.held || self.owner == RecoveryOwner::Controller {
            self.usage.note(
                self.flights.first_number(),
                self.flights.next_number(),
                self.window_limited,
            );
        }
        // draft-cheng-iccrg-delivery-rate-estimation: all that was written is in flight, and the
        // window would take more.
        if drained && !self.held && in_flight < self.cwnd {
            self.sampler.set_app_limited(in_flight);
        }
    }

    /// Bytes that may be in flight, for the datagram that the stack would send now.
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

    /// The stack had something to send, and [`window_bytes`](Self::window_bytes) forbade it.
    pub fn on_blocked(&mut self) {
        self.window_limited |= !self.held;
    }

    /// When pacing lets the next packet leave, if it held one back.
    pub const fn departure(&self) -> Time {
        if self.held { self.pacer.departure } else { Time::NEVER }
    }

    /// When the controller wants to be woken.
    pub const fn wakeup(&self) -> Time {
        self.wakeup
    }

    /// The controller's deadline may have come.
    pub fn on_time(&mut self, now: Time) {
        if now >= self.wakeup
            && let Some(controller) = &mut self.controller
        {
            controller.on_wakeup(now);
            self.take_answers();
        }
    }

    /// Whether pacing holds the next packet back.
    fn must_wait(&mut self) -> bool {
        if self.controller.is_none() || self.burst.left > 0 {
            return false;
        }
        self.end_burst();
        self.pacer.waits_until(self.now).is_some()
    }

    /// Packets in one burst.
    fn burst_packets(&self) -> u32 {
        let Some(controller) = &self.controller else { return self.burst_max };
        if self.start_is_paced() && controller.packet_gap().is_some() {
            return 1;
        }
        let bytes = self.pacer.rate.as_bytes_per_s() >> BURST_SHIFT;
        let packets = u32::try_from(bytes / u64::from(self.datagram_bytes)).unwrap_or(u32::MAX);
        let least = controller.burst_packets().unwrap_or(BURST_MIN_PACKETS);
        let most = controller.burst_limit().unwrap_or(u32::MAX).max(1);
        packets.max(least).min(most).min(self.burst_max)
    }

    /// A packet was sent that elicits an ACK. `packet`: its packet number.
    pub fn on_sent(&mut self, now: Time, bytes: u16, packet: u64) {
        self.now = now;
        let Some(sealed) = self.sealed.take().filter(|it| it.packet == packet) else { return };
        // Packets of the handshake are not the controller's, as SYNs are not; nor are probes of the
        // path's MTU (RFC 9000 §14.4: "Loss of a QUIC packet that is carried in a PMTU probe is
        // therefore not a reliable indication of congestion").
        if sealed.level != Level::Data || u32::from(bytes) > self.datagram_bytes {
            return;
        }
        let begins = self.burst.bytes == 0;
        if begins {
            self.burst.departure = self.pacer.depart(now);
            self.burst.left = self.burst_packets();
        }
        let prior = self.flights.count();
        let stamp = self.sampler.on_send(self.burst.departure, prior == 0, prior + 1);
        self.flights.push(packet, stamp, bytes, sealed.stream_bytes as u16);
        self.burst.left = self.burst.left.saturating_sub(1);
        self.burst.bytes += u64::from(bytes);
        self.totals.sent += 1;
        self.totals.sent_bytes += u64::from(bytes);
        self.extra_packet = false;
        if self.in_reduction() {
            self.reduction.note_sent(1);
        }
        if let Some(controller) = &mut self.controller {
            controller.on_send(&Sent {
                now,
                packets: 1,
                total_sent: self.totals.sent,
                next_to_send: self.flights.next_number(),
                prior_in_flight: prior,
                after_idle: prior == 0 && self.sampler.is_app_limited(),
            });
            if prior == 0 || self.start_is_paced() {
                self.take_answers();
            }
        }
        if self.burst.left == 0 {
            self.end_burst();
        }
    }

    /// A burst is complete: pacing moves on.
    fn end_burst(&mut self) {
        self.burst.left = 0;
        let bytes = std::mem::take(&mut self.burst.bytes);
        if bytes == 0 {
            return;
        }
        let departure = self.burst.departure;
        if self.start_is_paced()
            && let Some(gap) = self.controller.as_ref().and_then(|it| it.packet_gap())
        {
            self.pacer.advance_by(departure, gap);
            return;
        }
        let begun = self.totals.sent >= UNPACED_PACKETS || self.start_is_paced();
        self.pacer.advance(departure, bytes, begun);
    }

    /// A window-based controller requires a rate, as it does while its start-up paces.
    fn start_is_paced(&self) -> bool {
        self.rate_required && self.owns_window()
    }

    /// RFC 9002 §7.7: "N * congestion_window / smoothed_rtt", with the N of its example, 1.25.
    pub(super) fn update_pacing_rate(&mut self) {
        if self.rate_required || self.owner == RecoveryOwner::Controller || self.rtt.srtt_8us() == 0
        {
            return;
        }
        let window = u64::from(self.cwnd) * u64::from(self.datagram_bytes);
        // bytes/s = 5/4 · window / (srtt_8us / 8 · 10⁻⁶)
        self.pacer.rate = Rate::from_bytes_per_s(window * 10_000_000 / self.rtt.srtt_8us());
    }

    /// Of the datagrams since the last call, bytes that had been sent before.
    pub fn take_repeated(&mut self) -> u32 {
        std::mem::take(&mut self.repeated_in_datagram)
    }
}
