//! What leaves when: bursts, pacing, small queues, validation of the window.

use jostle_control::{RecoveryState, Sent, TcpExtension};
use jostle_units::{HEADER_BYTES, Span, Time};

use super::{Connection, Egress, Sender, timestamp_ms};
use crate::segment::{Data, Segment};
use crate::size::Divisor;

/// `GSO_MAX_SIZE`: largest burst of the segmentation offload.
const BURST_MAX_BYTES: u64 = 65_536;
/// Payload in one buffer of the socket's write queue at most (`tcp_xmit_size_goal`: `gso_max_size`
/// − 1 − `MAX_TCP_HEADER`).
const BUFFER_MAX_BYTES: u32 = 65_536 - 1 - 320;
/// `tcp_min_tso_segs`.
const BURST_MIN_SEGMENTS: u32 = 2;
/// Packets before pacing begins, as under `fq`: "does not pace first 10".
const UNPACED_PACKETS: u64 = 10;
/// `tcp_limit_output_bytes`.
const HOST_QUEUE_MAX_BYTES: u64 = 1 << 20;
/// Memory that a burst occupies in the sending host beside its payload.
const BUFFER_OVERHEAD_BYTES: u64 = 856;
/// `tcp_tso_win_divisor`: a burst may be held back while it is less than a third of the window.
const WINDOW_DIVISOR: u32 = 3;

/// Full segments in one buffer of the socket's write queue.
pub(super) const fn buffer_segments(mss_bytes: u16) -> Divisor {
    let fitting = BUFFER_MAX_BYTES / mss_bytes as u32;
    Divisor::new(if fitting == 0 { 1 } else { fitting })
}

/// How `write` treats the window and the size of bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Push {
    /// As the window allows.
    Normal,
    /// One packet whatever the window says: a loss probe.
    Probe,
}

impl Sender {
    /// The application has written data that was never sent.
    #[inline]
    pub(super) fn has_data(&self) -> bool {
        self.written > self.board.next()
    }

    /// Sends new data (`tcp_write_xmit`).
    pub(super) fn write(&mut self, now: Time, out: &mut impl Egress) {
        self.write_new(now, Push::Normal, out);
    }

    pub(super) fn write_probe(&mut self, now: Time, out: &mut impl Egress) {
        self.write_new(now, Push::Probe, out);
    }

    fn write_new(&mut self, now: Time, push: Push, out: &mut impl Egress) {
        if self.connection != Connection::Established {
            return;
        }
        let burst_max = self.burst_segments();
        let mut sent = 0;
        let mut cwnd_limited = false;
        while self.has_data() {
            if self.must_wait(now) {
                break;
            }
            let in_flight = self.board.in_flight();
            let mut quota = self.cwnd.saturating_sub(in_flight);
            // "ensure we have at least 2 GSO packets in flight"
            quota = quota.min((self.cwnd / 2).max(1));
            if quota == 0 {
                if push == Push::Normal {
                    break;
                }
                quota = 1;
            }
            let next = self.board.next();
            let offered = self.offered(next);
            if offered == 0 {
                self.await_window(now);
                break;
            }
            let boundary = self.buffer_segments.get() - self.buffer_segments.remainder(next);
            let buffered = (self.written - next).min(boundary);
            if push == Push::Normal
                && buffered > 1
                && self.should_defer(now, in_flight, offered, buffered, burst_max)
            {
                let room = self.cwnd - in_flight;
                cwnd_limited |= room < offered && room <= buffered;
                break;
            }
            let burst = quota.min(burst_max).min(offered).min(buffered);
            let burst = if push == Push::Probe { 1 } else { burst };
            if self.host_queue_is_full(burst, 1, out) {
                break;
            }
            self.send_burst(now, burst, out);
            sent += burst;
            if push == Push::Probe {
                break;
            }
        }
        debug_assert!(self.board.is_consistent() && self.board.next() <= self.written);
        cwnd_limited |= self.board.in_flight() >= self.cwnd;
        if sent > 0 || cwnd_limited {
            self.validate_window(now, cwnd_limited);
        }
        if sent > 0 {
            if self.in_reduction() {
                self.reduction.note_sent(sent);
            }
            if push == Push::Normal {
                self.schedule_probe(now, false);
            }
        }
    }

    /// Sends `burst` segments as one skb: one time stamp, one step of pacing.
    fn send_burst(&mut self, now: Time, burst: u32, out: &mut impl Egress) {
        let prior_in_flight = self.board.in_flight();
        let idle = self.board.outstanding() == 0;
        let departure = self.pacer.depart(now);
        let ecn = self.ecn.field(true);
        let payload_bytes = self.payload_of(burst);
        let wire_bytes = payload_bytes + u64::from(burst * HEADER_BYTES);
        // Before any of them can be dropped.
        out.note_sent(now, burst, wire_bytes, false);
        for i in 0..burst {
            let number = self.board.next();
            let payload = self.take_payload(number);
            let stamp = self.sampler.on_send(departure, idle && i == 0, prior_in_flight + i + 1);
            self.board.push(stamp, payload);
            let cwr = self.ecn.take_cwr();
            out.transmit(now, self.data(now, number, payload, cwr), ecn);
        }
        self.account(now, burst, prior_in_flight);
        self.pace(departure, payload_bytes);
        if idle || self.pending == super::Pending::LossProbe {
            self.rearm_rto(now);
        }
    }

    /// The segment `number` as it leaves now.
    #[inline]
    pub(super) const fn data(
        &self,
        now: Time,
        number: u32,
        payload_bytes: u16,
        cwr: bool,
    ) -> Segment {
        let tsval_ms = timestamp_ms(now);
        Segment::Data(Data { cwr, payload_bytes, number, tsval_ms, tsecr_ms: self.echo_ms })
    }

    /// Payload bytes of the next `burst` segments.
    #[inline]
    fn payload_of(&self, burst: u32) -> u64 {
        let end = self.board.next() + burst;
        let short = self.short.iter().take_while(|(number, _)| *number < end);
        let lacking: u64 = short.map(|(_, it)| u64::from(self.mss.get()) - u64::from(*it)).sum();
        self.bytes_of(burst) - lacking
    }

    /// Payload of the new segment `number`.
    #[inline]
    fn take_payload(&mut self, number: u32) -> u16 {
        match self.short.front() {
            Some(&(short, payload)) if short == number => {
                self.short.pop_front();
                payload
            }
            _ => self.mss.get() as u16,
        }
    }

    /// Counts packets that leave and tells the controller.
    fn account(&mut self, now: Time, packets: u32, prior_in_flight: u32) {
        self.total_sent += u64::from(packets);
        self.last_send = now;
        self.controller.on_send(&Sent {
            now,
            packets,
            total_sent: self.total_sent,
            next_to_send: u64::from(self.board.next()),
            prior_in_flight,
            after_idle: prior_in_flight == 0 && self.sampler.is_app_limited(),
        });
        if prior_in_flight == 0 || self.start_is_paced() {
            self.take_answers();
        }
    }

    /// Retransmits what is marked lost, lowest first (`tcp_xmit_retransmit_queue`).
    pub(super) fn retransmit_lost(&mut self, now: Time, out: &mut impl Egress) {
        if self.connection != Connection::Established {
            return;
        }
        while self.board.in_flight() < self.cwnd {
            let Some(number) = self.board.next_lost() else { return };
            if !self.fits_window(number) {
                return;
            }
            // "factor 1" of `tcp_small_queue_check`: repairs may queue twice as much.
            if self.must_wait(now) || self.host_queue_is_full(1, 2, out) {
                return;
            }
            let first = number == self.board.first();
            self.retransmit(now, number, out);
            if self.in_reduction() {
                self.reduction.note_sent(1);
            }
            if first && self.pending != super::Pending::Reordering {
                self.restart_rto(now);
            }
        }
    }

    /// Whether `number` may be sent again as far as the receiver is concerned: what was sent beyond
    /// its window may not, but for the first, which then probes the window (`__tcp_retransmit_skb`).
    #[inline]
    pub(super) fn fits_window(&self, number: u32) -> bool {
        number < self.peer_window.end || number == self.board.first()
    }

    /// Sends `number` again (`tcp_retransmit_skb`).
    pub(super) fn retransmit(&mut self, now: Time, number: u32, out: &mut impl Egress) {
        self.send_again(now, number, out, |board, stamp| board.retransmit(number, stamp));
        self.undo.note_retransmission(timestamp_ms(now));
    }

    /// Sends the last outstanding segment again as a loss probe: not counted as a retransmission
    /// in flight.
    pub(super) fn retransmit_last(&mut self, now: Time, out: &mut impl Egress) {
        let number = self.board.next() - 1;
        self.send_again(now, number, out, |board, stamp| board.probe(number, stamp));
    }

    fn send_again(
        &mut self,
        now: Time,
        number: u32,
        out: &mut impl Egress,
        record: impl FnOnce(&mut super::Scoreboard, jostle_control::SendStamp),
    ) {
        let prior_in_flight = self.board.in_flight();
        let payload = self.board.slot(number).payload;
        let departure = self.pacer.depart(now);
        let stamp = self.sampler.on_send(departure, false, prior_in_flight + 1);
        record(&mut self.board, stamp);
        out.note_sent(now, 1, u64::from(HEADER_BYTES) + u64::from(payload), true);
        let segment = self.data(now, number, payload, false);
        out.transmit(now, segment, self.ecn.field(false));
        self.total_retransmitted += 1;
        self.account(now, 1, prior_in_flight);
        self.pace(departure, u64::from(payload));
    }

    /// Packets in one burst (`tcp_tso_autosize`): what the pacing rate sends in about 1 ms, more
    /// on very short paths.
    pub(super) fn burst_segments(&self) -> u32 {
        if self.start_is_paced() && self.controller.packet_gap().is_some() {
            return 1;
        }
        let mut bytes = self.pacer.rate.as_bytes_per_s() >> 10;
        // `tcp_tso_rtt_log`: gso_max_size, halved for every 512 us of min RTT.
        let halvings = self.rtt.min_rtt().as_us() >> 9;
        if halvings < 32 && self.options.short_path_bursts {
            bytes = bytes.saturating_add(BURST_MAX_BYTES >> halvings);
        }
        let segments = self.mss.divide(bytes.min(BURST_MAX_BYTES));
        let least = self.controller.burst_packets().unwrap_or(BURST_MIN_SEGMENTS);
        let most = self.controller.burst_limit().unwrap_or(u32::MAX).max(1);
        (segments as u32).max(least).min(most)
    }

    /// `tcp_tso_should_defer`: wait for a larger burst if the next ACK is about to come.
    fn should_defer(
        &self,
        now: Time,
        in_flight: u32,
        offered: u32,
        buffered: u32,
        burst_max: u32,
    ) -> bool {
        if matches!(self.state, RecoveryState::Recovery | RecoveryState::Loss)
            || now.since(self.pacer.departure) > Span::from_ms(1)
            || self.board.outstanding() == 0
        {
            return false;
        }
        let room = self.cwnd.saturating_sub(in_flight);
        let limit = room.min(offered);
        let last_buffer = self.written - self.board.next() <= buffered;
        let first = self.board.first();
        let window = self.cwnd.min(self.offered(first));
        if limit >= burst_max
            || (!last_buffer && limit >= buffered)
            || limit * WINDOW_DIVISOR >= window
        {
            return false;
        }
        let srtt = self.rtt.srtt();
        let expected = self.board.slot(self.board.first()).stamp.sent_at + srtt;
        let patience = srtt.mul_div(1, 2).min(Span::from_ms(1));
        expected.since(now) <= patience
    }

    /// Whether pacing holds the next packet back; sets the timer if so (`tcp_pacing_check`).
    #[inline]
    fn must_wait(&mut self, now: Time) -> bool {
        let Some(departure) = self.pacer.waits_until(now) else { return false };
        self.deadlines.pacing = departure;
        true
    }

    /// `payload_bytes` left at `departure`: when the next packet may.
    fn pace(&mut self, departure: Time, payload_bytes: u64) {
        if self.start_is_paced()
            && let Some(gap) = self.controller.packet_gap()
        {
            self.pacer.advance_by(departure, gap);
            return;
        }
        let begun =
            self.pacer.on && (self.total_sent >= UNPACED_PACKETS || self.spreads_first_flight());
        self.pacer.advance(departure, payload_bytes, begun);
    }

    /// Segments from `number` on that may be sent as far as the receiver is concerned.
    #[inline]
    fn offered(&self, number: u32) -> u32 {
        let offered = self.peer_window.room(number);
        let narrow = offered < self.cwnd && self.peer_window.end > self.board.first();
        if narrow && self.overrides_receive_window() { self.cwnd } else { offered }
    }

    fn overrides_receive_window(&self) -> bool {
        self.controller.tcp().is_some_and(TcpExtension::overrides_receive_window)
    }

    /// A rate that is required of a window-based controller's start holds for its first packets,
    /// too: without them it would not be a rate.
    fn spreads_first_flight(&self) -> bool {
        self.first_flight_rate.is_some() || self.start_is_paced()
    }

    /// A window-based controller requires a rate, as it does while its start-up paces.
    #[inline]
    fn start_is_paced(&self) -> bool {
        self.rate_required && self.owns_window()
    }

    /// TCP small queues (`tcp_small_queue_check`): no more than about 1 ms of the flow's rate
    /// waits in its own host, but always two bursts. `factor` times that for repairs.
    #[inline]
    fn host_queue_is_full(&mut self, burst: u32, factor: u64, out: &impl Egress) -> bool {
        let queued = out.host_queue_bytes();
        if queued == 0 || self.board.outstanding() <= 1 {
            return false;
        }
        let bursts = 2 * (self.bytes_of(burst) + BUFFER_OVERHEAD_BYTES);
        let mut limit = (self.pacer.rate.as_bytes_per_s() >> 10).max(bursts);
        if !self.pacer.on {
            limit = limit.min(HOST_QUEUE_MAX_BYTES);
        }
        let full = queued > limit * factor;
        self.throttled |= full;
        full
    }

    /// The host has sent a packet: what TSQ held back may leave (`tcp_wfree`, `TSQ_THROTTLED`).
    pub fn on_host_queue_drained(&mut self, now: Time, out: &mut impl Egress) {
        if !std::mem::take(&mut self.throttled) {
            return;
        }
        self.retransmit_lost(now, out);
        self.write(now, out);
    }

    /// `tcp_cwnd_validate`, RFC 2861: was the window the limit?
    fn validate_window(&mut self, now: Time, cwnd_limited: bool) {
        let (first, next) = (self.board.first(), self.board.next());
        self.usage.note(first, next, cwnd_limited);
        if self.is_cwnd_limited() {
            self.usage.restart(now);
            return;
        }
        self.usage.note_unused(next - first);
        if now.since(self.usage.since) >= self.rto.span() && self.owns_window() {
            self.shrink_unused(now);
        }
    }

    /// `tcp_cwnd_application_limited`: after an RTO of under-use the window moves half-way to what
    /// was used. An application that fills its socket buffer is exempt: it is not the limit.
    #[cold]
    #[inline(never)]
    fn shrink_unused(&mut self, now: Time) {
        if self.state == RecoveryState::Open && self.written < u32::MAX {
            let used = self.usage.take_used().max(self.options.initial_window);
            if used < self.cwnd {
                self.keep_threshold();
                self.set_cwnd((self.cwnd + used) / 2);
            }
        }
        self.usage.since = now;
    }

    /// `tcp_current_ssthresh`: a window that shrinks for want of data is remembered by ¾ of it.
    fn keep_threshold(&mut self) {
        let threshold = if self.in_reduction() {
            self.ssthresh
        } else {
            self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4)
        };
        self.controller.set_ssthresh(threshold);
        self.take_answers();
    }

    /// `tcp_slow_start_after_idle_check`, RFC 5681 §4.1 as refined by RFC 2861: the window halves
    /// for every RTO of silence, down to the initial window.
    pub(super) fn restart_after_idle(&mut self, now: Time) {
        let idle = now.since(self.last_send);
        if self.board.outstanding() > 0 || !self.owns_window() || idle <= self.rto.span() {
            return;
        }
        self.controller.on_idle_restart(now);
        self.keep_threshold();
        let least = self.options.initial_window.min(self.cwnd);
        let mut cwnd = self.cwnd;
        let mut left = idle - self.rto.span();
        while !left.is_zero() && cwnd > least {
            cwnd /= 2;
            left = left - self.rto.span();
        }
        self.set_cwnd(cwnd.max(least));
        self.usage.restart(now);
    }

    /// `tcp_rate_check_app_limited`, before the application writes: the network idles although the
    /// window would allow more.
    pub(super) fn note_application_limit(&mut self, out: &impl Egress) {
        let in_flight = self.board.in_flight();
        if !self.has_data()
            && out.host_queue_bytes() == 0
            && in_flight < self.cwnd
            && self.board.lost() <= self.board.retransmitted()
        {
            self.sampler.set_app_limited(in_flight);
        }
    }
}
