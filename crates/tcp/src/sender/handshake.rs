//! Opening and closing of a connection: SYN, SYN-ACK and the peer cache. The sender of the end that
//! does not open the connection waits for the ACK of its SYN-ACK.

use jostle_congestion::peer_cache::{PeerCache, PeerCacheContext};
use jostle_congestion::{
    EcnFeedback, EstablishedEvent, FirstFlightLimits, QuickStartRate, TcpExtension,
};
use jostle_units::{Ecn, Rate, Span, Time};

use super::advertised_window::AdvertisedWindow;
use super::{Connection, SegmentSink, Sender, take_expired};
use crate::segment::{Ack, AckTag, Segment, Syn, SynAck, TimestampClock, timestamp_ms};

impl Sender {
    /// Opens the connection.
    pub fn open(&mut self, now: Time, out: &mut impl SegmentSink) {
        if self.connection == Connection::Closed {
            self.connection = Connection::SynSent;
            self.send_syn(now, out);
        }
    }

    pub(super) fn send_syn(&mut self, now: Time, out: &mut impl SegmentSink) {
        self.syn_sent_at = now;
        // RFC 3168 §6.1.1.1: a retransmitted SYN does not offer ECN, because the offer may have
        // caused the loss of the first SYN (`tcp_ecn_fallback`).
        let ecn = self.rto.expiries() == 0 && self.wants_ecn();
        let syn = Syn { ecn, rate: self.quick_start_request(), tsval_ms: timestamp_ms(now) };
        // RFC 3168 §6.1.1: a SYN is not ECN-capable, unless the controller requires it
        // (RFC 8257 §3.6).
        out.transmit(now, Segment::Syn(syn), self.ecn.field(false));
        self.restart_rto(now);
    }

    /// Returns the rate that the SYN or SYN-ACK requests (RFC 4782). A retransmitted one requests none,
    /// because a router may drop packets with unknown options.
    pub fn quick_start_request(&self) -> QuickStartRate {
        let first = self.rto.expiries() == 0;
        let tcp = self.controller.tcp_extension().filter(|_| first);
        tcp.map_or(QuickStartRate::NONE, TcpExtension::quick_start_request)
    }

    /// Reads the peer cache before the SYN-ACK is processed.
    #[cold]
    pub fn recall(&mut self, now: Time, memory: &mut PeerCache) {
        if self.connection == Connection::SynSent
            && let Some(host) = self.controller.host_extension()
        {
            host.on_connection_open(&mut PeerCacheContext { now, peer: self.options.peer, memory });
        }
    }

    /// Saves data in the peer cache when the connection closes.
    #[cold]
    pub fn close(&mut self, now: Time, memory: &mut PeerCache) {
        self.is_finished = true;
        if let Some(host) = self.controller.host_extension() {
            host.on_connection_close(&mut PeerCacheContext {
                now,
                peer: self.options.peer,
                memory,
            });
        }
    }

    /// Returns the ACK of a SYN-ACK that opens the connection, and its ECN field. Linux sends it before
    /// the application can write data.
    #[cold]
    pub fn handshake_ack(&self, now: Time, answer: &SynAck) -> Option<(Ack, Ecn)> {
        let ack = Ack {
            tag: AckTag::OfHandshake,
            clock: TimestampClock::at(now),
            tsecr_ms: answer.clock.tsval_ms(now),
            ..Ack::default()
        };
        (self.connection == Connection::SynSent).then_some((ack, self.ecn.field(false)))
    }

    /// Processes a SYN-ACK.
    #[cold]
    pub fn on_syn_ack(&mut self, now: Time, answer: &SynAck, out: &mut impl SegmentSink) {
        if self.connection == Connection::SynSent {
            let SynAck { ecn, rate, clock, tsecr_ms, window, .. } = *answer;
            self.echo_ms = clock.tsval_ms(now);
            self.establish(now, ecn, tsecr_ms, window, rate.rate(), out);
        }
    }

    /// Accepts the connection that the SYN of the peer opens: the caller sends a SYN-ACK.
    #[cold]
    pub fn on_syn(&mut self, now: Time) {
        if self.connection == Connection::Closed {
            self.connection = Connection::SynReceived;
            self.syn_sent_at = now;
            self.restart_rto(now);
        }
    }

    /// Returns whether the SYN-ACK is not yet acknowledged.
    #[inline]
    pub fn awaits_ack_of_syn(&self) -> bool {
        self.connection == Connection::SynReceived
    }

    /// Returns whether to retransmit the SYN-ACK, because its timer has expired.
    #[cold]
    pub fn on_syn_ack_timer(&mut self, now: Time) -> bool {
        let expired = take_expired(&mut self.deadlines.retransmission, now);
        if expired {
            self.rto.back_off();
            self.restart_rto(now);
        }
        expired
    }

    /// Processes the first ACK of an accepted connection. `ecn`: whether both ends support ECN.
    /// `rate`: the rate that routers granted to the SYN-ACK.
    #[cold]
    pub fn on_ack_of_syn(
        &mut self,
        now: Time,
        ecn: bool,
        rate: QuickStartRate,
        ack: &Ack,
        out: &mut impl SegmentSink,
    ) {
        if self.connection == Connection::SynReceived {
            self.echo_ms = ack.clock.tsval_ms(now);
            self.establish(now, ecn, ack.tsecr_ms, ack.window, rate.rate(), out);
        }
    }

    /// Begins to send. `tsecr_ms` and `window` are from the segment that completes the handshake at
    /// this end.
    fn establish(
        &mut self,
        now: Time,
        ecn: bool,
        tsecr_ms: u32,
        window: u32,
        quick_start_rate: Option<Rate>,
        out: &mut impl SegmentSink,
    ) {
        self.connection = Connection::Established;
        // Linux, too, counts idle time from the end of the handshake (`lsndtime`).
        self.last_send = now;
        self.stop_timer();
        self.ecn.agree(self.wants_ecn() && ecn);
        self.controller.on_ecn_negotiated(self.ecn.feedback());
        // If the controller falls back to another algorithm, it does so from here on.
        self.owner = self.controller.recovery_owner();
        self.wants_ack_events =
            self.controller.tcp_extension().is_some_and(TcpExtension::wants_ack_events);
        self.pacer.on = self.options.pacing || self.controller.pacing_rate().is_some();
        self.peer_window = AdvertisedWindow::of_handshake(window);
        let rtt = if self.rto.expiries() == 0 {
            now.since(self.syn_sent_at)
        } else {
            // Karn's algorithm: the RTT of a retransmitted SYN is ambiguous, so use its timestamp.
            let elapsed_ms = timestamp_ms(now).saturating_sub(tsecr_ms).max(1);
            Span::from_ms(u64::from(elapsed_ms))
        };
        self.rtt.on_sample(rtt, 0, 1);
        self.rtt.on_min_sample(now, rtt);
        self.rto.on_sample(self.rtt.rto());
        // RFC 6298 §5 (5.7) allows an initial window of one segment only if the SYN was lost. Linux
        // reduces the initial window after more than one retransmission.
        let initial_window = if self.rto.expiries() > 1 { 1 } else { self.options.initial_window };
        self.rto.on_progress();
        self.usage.since = now;
        let event = EstablishedEvent {
            now,
            mss_bytes: self.queue.mss_bytes(),
            initial_window,
            rtt: Some(rtt),
            prospect: FirstFlightLimits {
                send_backlog_packets: None,
                receive_window: self.peer_window.end,
                quick_start_rate,
            },
        };
        // The network is idle at the first write: Linux marks its first samples as
        // application-limited.
        self.sampler.set_app_limited(0);
        if self.options.is_server {
            self.unstarted = Some(Box::new(event));
            return;
        }
        self.start_controller(event);
        let is_long = self.queue.go_on(self.board.next(), window);
        self.write_appended(now, is_long, out);
    }

    /// Starts the controller of a server when it writes its first response, so that the controller
    /// knows the data to send.
    #[cold]
    pub(super) fn start_server(&mut self, now: Time) {
        if let Some(event) = self.unstarted.take() {
            self.usage.restart(now);
            self.start_controller(EstablishedEvent { now, ..*event });
        }
    }

    fn start_controller(&mut self, mut event: EstablishedEvent) {
        event.prospect.send_backlog_packets = self.queue.limit().map(u64::from);
        self.controller.on_established(&event);
        if let (true, Some(rtt)) = (self.options.initial_pacing, event.rtt) {
            let window_bytes = self.bytes_of(self.controller.cwnd());
            self.first_flight_rate = Some(Rate::of(window_bytes, rtt));
        }
        self.copy_controller_outputs();
        self.update_pacing_rate();
    }

    pub(super) fn wants_ecn(&self) -> bool {
        self.options.ecn || self.ecn.feedback() != EcnFeedback::None
    }
}
