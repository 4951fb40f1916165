//! How a connection opens and closes: the SYN and its answer, and what the host remembers of its peer.

use jostle_control::memory::{HostMemory, Occasion};
use jostle_control::{EcnFeedback, Established, Prospect, RateCode, TcpExtension};
use jostle_units::{Rate, Span, Time};

use super::peer_window::PeerWindow;
use super::timers::Pending;
use super::{Connection, Egress, Sender};
use crate::segment::{Segment, Syn, SynAck, timestamp_ms};

impl Sender {
    /// Opens the connection.
    pub fn open(&mut self, now: Time, out: &mut impl Egress) {
        if self.connection == Connection::Closed {
            self.connection = Connection::SynSent;
            self.send_syn(now, out);
        }
    }

    pub(super) fn send_syn(&mut self, now: Time, out: &mut impl Egress) {
        self.syn_sent_at = now;
        // RFC 3168 §6.1.1.1: a SYN that is sent again offers no ECN, for the offer may be what kept
        // the first one from arriving (`tcp_ecn_fallback`). Nor does it ask for a rate: a router
        // may be there that drops packets with options it does not know.
        let first = self.rto.expiries() == 0;
        let tcp = self.controller.tcp().filter(|_| first);
        let rate = tcp.map_or(RateCode::NONE, TcpExtension::rate_request);
        let syn = Syn { ecn: first && self.wants_ecn(), rate, tsval_ms: timestamp_ms(now) };
        // RFC 3168 §6.1.1: a SYN is not ECN-capable itself, unless the controller needs it.
        out.transmit(now, Segment::Syn(syn), self.ecn.field(false));
        self.pending = Pending::Retransmission;
        self.deadlines.retransmission = now + self.rto.span();
    }

    /// A SYN-ACK is about to be taken: what the host remembers of the peer.
    #[cold]
    pub fn recall(&mut self, now: Time, memory: &mut HostMemory) {
        if self.connection == Connection::SynSent
            && let Some(host) = self.controller.host()
        {
            host.on_open(&mut Occasion { now, peer: self.options.peer, memory });
        }
    }

    /// The connection closes: what the host is to remember.
    #[cold]
    pub fn close(&mut self, now: Time, memory: &mut HostMemory) {
        self.is_finished = true;
        if let Some(host) = self.controller.host() {
            host.on_close(&mut Occasion { now, peer: self.options.peer, memory });
        }
    }

    /// A SYN-ACK arrived.
    #[cold]
    pub fn on_syn_ack(&mut self, now: Time, answer: &SynAck, out: &mut impl Egress) {
        if self.connection != Connection::SynSent {
            return;
        }
        self.connection = Connection::Established;
        self.pending = Pending::None;
        self.deadlines.retransmission = Time::NEVER;
        self.ecn.agree(self.wants_ecn() && answer.ecn);
        self.controller.on_ecn_negotiated(self.ecn.feedback());
        // A controller that falls back to another one is that from here on.
        self.owner = self.controller.recovery_owner();
        self.hears_headers = self.controller.tcp().is_some_and(TcpExtension::hears_headers);
        self.pacer.on = self.options.pacing || self.controller.pacing_rate().is_some();
        self.peer_window = PeerWindow::of_handshake(answer.window);
        self.echo_ms = answer.clock.tsval_ms(now);
        let rtt = if self.rto.expiries() == 0 {
            now.since(self.syn_sent_at)
        } else {
            // Karn's algorithm: the RTT of a retransmitted SYN is ambiguous, but for its timestamp.
            let elapsed_ms = timestamp_ms(now).saturating_sub(answer.tsecr_ms).max(1);
            Span::from_ms(u64::from(elapsed_ms))
        };
        self.rtt.on_sample(rtt, 0, 1);
        self.rtt.on_min_sample(now, rtt);
        self.rto.on_sample(self.rtt.rto());
        // RFC 6298 (5.7) allows IW of one segment only if the SYN was lost; Linux reduces it when
        // more than one retransmission was needed.
        let initial_window = if self.rto.expiries() > 1 { 1 } else { self.options.initial_window };
        self.rto.on_progress();
        self.usage.since = now;
        self.controller.on_established(&Established {
            now,
            mss_bytes: self.mss.get(),
            initial_window,
            rtt: Some(rtt),
            prospect: Prospect {
                backlog: (self.written < u32::MAX).then_some(u64::from(self.written)),
                receive_window: self.peer_window.end,
                granted: answer.rate.rate(),
            },
        });
        if self.options.initial_pacing {
            let window_bytes = self.bytes_of(self.controller.cwnd());
            self.first_flight_rate = Some(Rate::of(window_bytes, rtt));
        }
        self.take_answers();
        self.update_pacing_rate();
        // The first write finds the network idle: Linux calls its first samples app-limited.
        self.sampler.set_app_limited(0);
        self.write(now, out);
    }

    pub(super) fn wants_ecn(&self) -> bool {
        self.options.ecn || self.ecn.feedback() != EcnFeedback::None
    }
}
