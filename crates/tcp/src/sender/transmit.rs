//! Transmission of new data, limited by the window, pacing and TCP small queues.

use jostle_congestion::transport::Pacer;
use jostle_congestion::{SendEvent, TcpExtension};
use jostle_units::{HEADER_BYTES, SendLimit, Time};

use super::timers::PendingTimer;
use super::{Connection, SegmentSink, Sender, timestamp_ms};
use crate::segment::{Data, Segment, TransitTimes};

/// `tcp_limit_output_bytes`.
const HOST_QUEUE_MAX_BYTES: u64 = 1 << 20;
/// Memory overhead of a burst in the sending host.
const BUFFER_OVERHEAD_BYTES: u64 = 856;

/// Handling of the window and the burst size in `write`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteMode {
    /// Respects the window.
    Normal,
    /// Sends one packet regardless of the window, as a loss probe.
    Probe,
}

/// Returns what a burst that is deferred waits for (the three cases of
/// `tcp_output.c::tcp_tso_should_defer`). A burst can only wait for the application if it would end
/// the data.
const fn deferral_limit(room: u32, offered: u32, buffered: u32) -> SendLimit {
    if room < offered && room <= buffered {
        SendLimit::Cwnd
    } else if offered <= room && offered <= buffered {
        SendLimit::ReceiveWindow
    } else {
        SendLimit::Application
    }
}

impl Sender {
    /// Returns whether the application has written data that was never sent.
    #[inline]
    pub(super) fn has_data(&self) -> bool {
        self.queue.end() > self.board.next()
    }

    /// Sends new data (`tcp_output.c::tcp_write_xmit`).
    pub(super) fn write(&mut self, now: Time, out: &mut impl SegmentSink) {
        self.write_new(now, WriteMode::Normal, out);
    }

    /// Sends data that the application is writing; `is_long`: the first leave before it has written the
    /// last.
    pub(super) fn write_appended(&mut self, now: Time, is_long: bool, out: &mut impl SegmentSink) {
        self.write(now, out);
        if is_long {
            self.queue.go_on(self.board.next(), self.peer_window.largest);
        }
    }

    pub(super) fn write_probe(&mut self, now: Time, out: &mut impl SegmentSink) {
        self.write_new(now, WriteMode::Probe, out);
    }

    fn write_new(&mut self, now: Time, push: WriteMode, out: &mut impl SegmentSink) {
        if self.connection != Connection::Established {
            return;
        }
        let burst_max = self.burst_segments();
        let mut sent = 0;
        let (mut cwnd_limited, mut limit) = (false, SendLimit::Application);
        while self.has_data() {
            if self.must_wait(now) {
                limit = SendLimit::Pacing;
                break;
            }
            let in_flight = self.board.in_flight();
            let mut quota = self.cwnd.saturating_sub(in_flight);
            // "ensure we have at least 2 GSO packets in flight"
            quota = quota.min((self.cwnd / 2).max(1));
            if quota == 0 {
                limit = SendLimit::Cwnd;
                if push == WriteMode::Normal {
                    break;
                }
                quota = 1;
            }
            let next = self.board.next();
            let offered = self.offered(next);
            if offered == 0 {
                limit = SendLimit::ReceiveWindow;
                self.await_window(now);
                break;
            }
            let buffered = self.queue.buffered(next, self.peer_window.largest);
            if push == WriteMode::Normal
                && buffered > 1
                && self.should_defer(now, in_flight, offered, buffered, burst_max)
            {
                let room = self.cwnd - in_flight;
                cwnd_limited |= room < offered && room <= buffered;
                limit = deferral_limit(room, offered, buffered);
                break;
            }
            let burst = quota.min(burst_max).min(offered).min(buffered);
            let burst = if push == WriteMode::Probe { 1 } else { burst };
            if self.host_queue_is_full(burst, 1, out) {
                limit = SendLimit::Pacing;
                break;
            }
            self.send_burst(now, burst, out);
            sent += burst;
            if push == WriteMode::Probe {
                break;
            }
        }
        if push == WriteMode::Normal {
            self.note_limit(now, limit, out);
        }
        debug_assert!(self.board.is_consistent() && self.board.next() <= self.queue.end());
        cwnd_limited |= self.board.in_flight() >= self.cwnd;
        if sent > 0 || cwnd_limited {
            self.validate_window(now, cwnd_limited);
        }
        if sent > 0 {
            self.recovery.note_sent(sent);
            if push == WriteMode::Normal {
                self.schedule_probe(now, false);
            }
        }
    }

    /// Records what ended the transmission of new data. Without new data the application is the
    /// limit, unless a lost segment waits for cwnd (as in
    /// `tcp_rate.c::tcp_rate_check_app_limited`).
    #[inline]
    fn note_limit(&mut self, now: Time, ended_by: SendLimit, out: &mut impl SegmentSink) {
        let repairs = self.board.lost() > self.board.retransmitted();
        let limit = match ended_by {
            SendLimit::Application if repairs => {
                let waits = self.throttled || self.deadlines.pacing < Time::NEVER;
                if waits { SendLimit::Pacing } else { SendLimit::Cwnd }
            }
            limit => limit,
        };
        if self.limit != Some(limit) {
            self.limit = Some(limit);
            out.note_limit(now, limit);
        }
    }

    /// Sends `burst` segments as one skb, with one timestamp and one step of pacing.
    fn send_burst(&mut self, now: Time, burst: u32, out: &mut impl SegmentSink) {
        let prior_in_flight = self.board.in_flight();
        let idle = self.board.outstanding() == 0;
        let departure = self.pacer.depart(now);
        let ecn = self.ecn.field(true);
        let payload_bytes = self.queue.payload_of(self.board.next(), burst);
        let wire_bytes = payload_bytes + u64::from(burst * HEADER_BYTES);
        // Record the burst before any of its packets can be dropped.
        out.note_sent(now, burst, wire_bytes, false);
        for i in 0..burst {
            let number = self.board.next();
            let payload = self.queue.take_payload(number);
            let stamp = self.sampler.on_send(departure, idle && i == 0, prior_in_flight + i + 1);
            self.board.push(stamp, payload);
            let cwr = self.ecn.take_cwr();
            out.transmit(now, self.data(now, number, payload, cwr), ecn);
        }
        self.account(now, burst, prior_in_flight);
        self.pace(departure, payload_bytes);
        if idle || self.pending == PendingTimer::LossProbe {
            self.rearm_rto(now);
        }
    }

    /// Returns segment `number` as sent at `now`.
    #[inline]
    pub(super) const fn data(
        &self,
        now: Time,
        number: u32,
        payload_bytes: u16,
        cwr: bool,
    ) -> Segment {
        let tsval_ms = timestamp_ms(now);
        Segment::Data(Data {
            cwr,
            payload_bytes,
            number,
            tsval_ms,
            tsecr_ms: self.echo_ms,
            trip: TransitTimes::NONE,
        })
    }

    /// Counts sent packets and reports them to the controller.
    pub(super) fn account(&mut self, now: Time, packets: u32, prior_in_flight: u32) {
        self.total_sent += u64::from(packets);
        self.last_send = now;
        self.controller.on_send(&SendEvent {
            now,
            packets,
            total_sent: self.total_sent,
            next_to_send: u64::from(self.board.next()),
            prior_in_flight,
            after_idle: prior_in_flight == 0 && self.sampler.is_app_limited(),
        });
        if prior_in_flight == 0 || self.start_is_paced() {
            self.copy_controller_outputs();
        }
    }

    /// Returns whether pacing delays the next packet, and sets the timer if so
    /// (`tcp_output.c::tcp_pacing_check`).
    #[inline]
    pub(super) fn must_wait(&mut self, now: Time) -> bool {
        let Some(departure) = self.pacer.waits_until(now) else { return false };
        self.deadlines.pacing = self.options.timers.with_slack(departure);
        true
    }

    /// Schedules the next packet after `payload_bytes` left at `departure`.
    pub(super) fn pace(&mut self, departure: Time, payload_bytes: u64) {
        if self.start_is_paced()
            && let Some(gap) = self.controller.next_packet_gap()
        {
            self.pacer.advance_by(departure, gap);
            return;
        }
        let begun = self.pacer.on
            && (self.total_sent >= Pacer::UNPACED_PACKETS || self.spreads_first_flight());
        self.pacer.advance(departure, payload_bytes, begun);
    }

    /// Returns the number of segments from `number` on that the receive window allows.
    #[inline]
    pub(super) fn offered(&self, number: u32) -> u32 {
        let offered = self.peer_window.sendable_segments(number);
        let narrow = offered < self.cwnd && self.peer_window.end > self.board.first();
        if narrow && self.overrides_receive_window() { self.cwnd } else { offered }
    }

    fn overrides_receive_window(&self) -> bool {
        self.controller.tcp_extension().is_some_and(TcpExtension::ignores_receive_window)
    }

    /// Returns whether pacing applies to the first packets, too. It does if the first
    /// flight is spread over a round trip, or if a window-based controller requires a rate.
    fn spreads_first_flight(&self) -> bool {
        self.first_flight_rate.is_some() || self.start_is_paced()
    }

    /// Returns whether a window-based controller requires a pacing rate, as during a paced
    /// start-up.
    #[inline]
    pub(super) fn start_is_paced(&self) -> bool {
        self.rate_required && self.owns_window()
    }

    /// Returns whether the host's queue of this flow is full (TCP small queues,
    /// `tcp_output.c::tcp_small_queue_check`). The limit is about 1 ms of the flow's rate, but at
    /// least two bursts, times `factor` for retransmissions.
    #[inline]
    pub(super) fn host_queue_is_full(
        &mut self,
        burst: u32,
        factor: u64,
        out: &impl SegmentSink,
    ) -> bool {
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

    /// Continues sending after the host has sent a packet, if TCP small queues had stopped it
    /// (`tcp_output.c::tcp_wfree`, `TSQ_THROTTLED`).
    pub fn on_host_queue_drained(&mut self, now: Time, out: &mut impl SegmentSink) {
        if !std::mem::take(&mut self.throttled) {
            return;
        }
        self.retransmit_lost(now, out);
        self.write(now, out);
    }

    /// Marks sending as application-limited before the application writes, if the network is idle
    /// although the window would allow more (`tcp_rate.c::tcp_rate_check_app_limited`).
    pub(super) fn note_application_limit(&mut self, out: &impl SegmentSink) {
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
