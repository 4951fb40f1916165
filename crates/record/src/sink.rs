//! What a simulator tells whoever records a run.

use jostle_path::Ecn;
use jostle_units::{Rate, Span, Time};

/// An instant of a flow, taken at the end of every interval.
#[derive(Clone, Copy, Debug)]
pub struct FlowState {
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Slow-start threshold, if there is one.
    pub ssthresh_bytes: Option<u64>,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Pacing rate, if packets are paced.
    pub pacing_rate: Option<Rate>,
    /// Name of the controller's mode.
    pub mode: &'static str,
}

/// An ACK as the sender saw it.
#[derive(Clone, Copy, Debug)]
pub struct AckRow {
    /// RTT sample, if the ACK gave one.
    pub rtt: Option<Span>,
    /// Congestion window after the ACK.
    pub cwnd_bytes: u64,
    /// Bytes in flight after the ACK.
    pub in_flight_bytes: u64,
    /// Payload bytes acknowledged since the connection began, cumulatively.
    pub acked_bytes: u64,
    /// Packets marked lost by this ACK.
    pub lost_packets: u32,
}

/// One end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where data come from.
    Sender,
    /// Where they go to.
    Receiver,
}

/// What a segment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderKind {
    /// Opens the connection, from the sender.
    Syn,
    /// Answers it.
    SynAck,
    /// Data, from the sender.
    Data,
    /// An ACK, from the receiver.
    Ack,
}

/// What the headers of a segment say. Sequence numbers count segments.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// What it is for.
    pub kind: HeaderKind,
    /// Data: its number. ACK: the first segment that has not arrived.
    pub number: u32,
    /// Payload that travels with it.
    pub payload_bytes: u16,
    /// ECN field of its IP header.
    pub ecn: Ecn,
    /// Data: CWR (RFC 3168). ACK: ECE. SYN and SYN-ACK: ECN is understood.
    pub ecn_flag: bool,
    /// Time stamp, in milliseconds.
    pub tsval_ms: u32,
    /// Time stamp that it echoes.
    pub tsecr_ms: u32,
    /// ACK and SYN-ACK: segments that the receiver can take beyond `number`.
    pub window_packets: u32,
    /// Selective acknowledgements, ends excluded; `block_count` of them.
    pub blocks: [(u32, u32); 3],
    /// How many there are.
    pub block_count: u8,
}

impl Header {
    /// The selective acknowledgements.
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.block_count)]
    }
}

/// A datagram, with what is in the header of IP.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// The end that sent it.
    pub from: End,
    /// ECN field of its IP header.
    pub ecn: Ecn,
    /// Payload of UDP.
    pub payload: &'a [u8],
}

/// Defines [`Sink`] with its events, and what passes all of them on: whoever adds an event cannot
/// forget a place.
macro_rules! events {
    ($($(#[$about:meta])* fn $event:ident($($argument:ident: $type:ty),+);)+) => {
        /// Records a run. A generic parameter of the simulator: recording nothing costs nothing.
        ///
        /// Times never decrease for a flow. Those of a link never decrease for its queue (changes,
        /// drops and marks by the discipline) nor for its wire (sending, losses), but a link works
        /// out its departures when it is asked, and tells a loss when sending starts with the time at
        /// which it ends.
        pub trait Sink {
            /// Whether [`segment`](Self::segment), [`datagram`](Self::datagram),
            /// [`secrets`](Self::secrets) and [`logged`](Self::logged) are to be called.
            fn wants_segments(&self) -> bool {
                false
            }

            /// Whether [`travelled`](Self::travelled) is to be called.
            fn wants_trips(&self) -> bool {
                false
            }

            $(
                $(#[$about])*
                #[allow(unused_variables, reason = "a sink may have no use for an event")]
                #[inline]
                fn $event(&mut self, $($argument: $type),+) {}
            )+
        }

        /// Both record.
        impl<A: Sink, B: Sink> Sink for (A, B) {
            #[inline]
            fn wants_segments(&self) -> bool {
                self.0.wants_segments() || self.1.wants_segments()
            }

            #[inline]
            fn wants_trips(&self) -> bool {
                self.0.wants_trips() || self.1.wants_trips()
            }

            $(
                #[inline]
                fn $event(&mut self, $($argument: $type),+) {
                    self.0.$event($($argument),+);
                    self.1.$event($($argument),+);
                }
            )+
        }

        /// Writes down what it is told.
        #[cfg(test)]
        #[derive(Debug, Default)]
        struct Told(Vec<(&'static str, String)>);

        #[cfg(test)]
        impl Told {
            /// Every event that there is.
            const EVENTS: &[&str] = &[$(stringify!($event)),+];
        }

        #[cfg(test)]
        impl Sink for Told {
            $(
                fn $event(&mut self, $($argument: $type),+) {
                    self.0.push((stringify!($event), format!("{:?}", ($($argument,)+))));
                }
            )+
        }
    };
}

events! {
    /// The application of a flow opens its connection.
    fn opened(now: Time, flow: u32);
    /// A TCP segment left one end of its flow, or reached the other. Times never decrease.
    fn segment(now: Time, flow: u32, end: End, header: &Header);
    /// The same of a datagram that has a payload.
    fn datagram(now: Time, flow: u32, end: End, datagram: &Datagram<'_>);
    /// Secrets that open packets of a flow which are seen from now on, in lines of the form of
    /// `SSLKEYLOGFILE`. Told as those two are.
    fn secrets(flow: u32, lines: &str);
    /// An end of a flow wrote down what it did: whole records of a qlog. Told as those three are.
    fn logged(flow: u32, end: End, records: &str);
    /// A sender put `packets` packets of together `wire_bytes` on its way at once.
    fn sent(now: Time, flow: u32, packets: u32, wire_bytes: u64, retransmission: bool);
    /// A data packet reached the receiver.
    fn received(now: Time, flow: u32, wire_bytes: u32);
    /// The packet that reached the receiver had left its sender's host `delay` before, and had
    /// `waited` of that in queues.
    fn travelled(now: Time, flow: u32, delay: Span, waited: Span);
    /// The datagram `number`, counted from 0, reached the receiver, which does not answer, `delay`
    /// after it was sent.
    fn arrived(now: Time, flow: u32, number: u32, delay: Span);
    /// Payload reached the application in order.
    fn delivered(now: Time, flow: u32, payload_bytes: u64);
    /// An ACK was processed by the sender.
    fn acked(now: Time, flow: u32, row: &AckRow);
    /// The sender knows of a round trip shorter than any so far, which was not told as a sample.
    fn least_rtt(now: Time, flow: u32, rtt: Span);
    /// A ping is back, `rtt` after it was sent.
    fn echoed(now: Time, flow: u32, rtt: Span);
    /// The ping `number`, counted from 0, was not back in time. They are told in their order.
    fn unanswered(now: Time, flow: u32, number: u32);
    /// A response that was asked for is whole at the receiver, `after` the sender was asked.
    fn responded(now: Time, flow: u32, after: Span);
    /// A connection of `flow`, one that is many, opens. What becomes of it is told under the number
    /// `connection`: it is one above the last one's, the first is as many as the flows of the run.
    fn connected(now: Time, connection: u32, flow: u32);
    /// The application asks for a transfer of so many bytes.
    fn asked(now: Time, flow: u32, payload_bytes: u64);
    /// A segment of a video is whole at the receiver.
    fn segment_loaded(now: Time, flow: u32, bitrate_bps: u64);
    /// A browser asks for a page.
    fn page_asked(now: Time, flow: u32);
    /// A browser's page is whole, `after` it was asked for.
    fn page_loaded(now: Time, flow: u32, after: Span);
    /// All data of a fixed-size flow were acknowledged, `after` its start.
    fn completed(now: Time, flow: u32, after: Span);
    /// A queue changed.
    fn queue_changed(now: Time, link: u32, bytes: u64, packets: u64);
    /// A link puts a packet on the wire from `start` to `finish`, which had `waited` in its queue.
    fn link_sent(start: Time, finish: Time, link: u32, wire_bytes: u32, waited: Span);
    /// A packet of `flow` was dropped at a link; `reason` is the position in `path::Reason::ALL`.
    fn dropped(now: Time, link: u32, flow: u32, reason: u8);
    /// A packet of `flow` was marked at a link.
    fn marked(now: Time, link: u32, flow: u32, reason: u8);
    /// The end of an interval: one call per flow, in order, …
    fn flow_state(now: Time, flow: u32, state: &FlowState);
    /// … with the controller's internal values, …
    fn internal(now: Time, flow: u32, quantity: &'static str, value: f64);
    /// … then one call per link, with the bytes that its capacity could have carried so far.
    fn link_state(now: Time, link: u32, queue_bytes: u64, offered_bytes: f64);
    /// A phase begins or ends at `now`: called for every boundary, in order, after everything that
    /// happened before it. `offered_bytes` of each link, as in `link_state`.
    fn boundary(now: Time, offered_bytes: &[f64]);
}

/// Records nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Sink for Nothing {}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: FlowState = FlowState {
        srtt: Span::ZERO,
        cwnd_bytes: 14_480,
        ssthresh_bytes: None,
        in_flight_bytes: 0,
        pacing_rate: None,
        mode: "slow_start",
    };
    const ROW: AckRow = AckRow {
        rtt: None,
        cwnd_bytes: 14_480,
        in_flight_bytes: 0,
        acked_bytes: 1_448,
        lost_packets: 0,
    };
    const HEADER: Header = Header {
        kind: HeaderKind::Data,
        number: 1,
        payload_bytes: 1_448,
        ecn: Ecn::NotCapable,
        ecn_flag: false,
        tsval_ms: 0,
        tsecr_ms: 0,
        window_packets: 0,
        blocks: [(0, 0); 3],
        block_count: 0,
    };

    const DATAGRAM: Datagram<'_> =
        Datagram { from: End::Receiver, ecn: Ecn::Capable, payload: &[45, 46] };

    /// Tells every event once, with arguments that differ.
    fn tell_all(sink: &mut impl Sink) {
        let now = Time::from_ns(7);
        sink.opened(now, 1);
        sink.segment(now, 2, End::Receiver, &HEADER);
        sink.datagram(now, 44, End::Sender, &DATAGRAM);
        sink.secrets(47, "CLIENT_TRAFFIC_SECRET_0 48 49");
        sink.logged(50, End::Sender, "{}");
        sink.sent(now, 3, 4, 5, true);
        sink.received(now, 6, 7);
        sink.travelled(now, 39, Span::from_ns(40), Span::from_ns(41));
        sink.arrived(now, 44, 45, Span::from_ns(46));
        sink.delivered(now, 8, 9);
        sink.acked(now, 10, &ROW);
        sink.least_rtt(now, 35, Span::from_ns(36));
        sink.echoed(now, 11, Span::from_ns(12));
        sink.unanswered(now, 13, 14);
        sink.responded(now, 37, Span::from_ns(38));
        sink.connected(now, 47, 48);
        sink.asked(now, 49, 50);
        sink.segment_loaded(now, 51, 52);
        sink.page_asked(now, 53);
        sink.page_loaded(now, 54, Span::from_ns(55));
        sink.completed(now, 15, Span::from_ns(16));
        sink.queue_changed(now, 17, 18, 19);
        sink.link_sent(now, Time::from_ns(42), 20, 21, Span::from_ns(43));
        sink.dropped(now, 22, 23, 24);
        sink.marked(now, 25, 26, 27);
        sink.flow_state(now, 28, &STATE);
        sink.internal(now, 29, "k_s", 30.0);
        sink.link_state(now, 31, 32, 33.0);
        sink.boundary(now, &[34.0]);
    }

    #[test]
    fn a_pair_passes_every_event_on_to_both_as_it_came() {
        let mut alone = Told::default();
        tell_all(&mut alone);
        let told: Vec<_> = alone.0.iter().map(|(event, _)| *event).collect();
        assert_eq!(told, Told::EVENTS, "an event that this test does not tell");

        let mut pair = (Told::default(), Told::default());
        tell_all(&mut pair);
        assert_eq!(pair.0.0, alone.0);
        assert_eq!(pair.1.0, alone.0);
    }

    #[test]
    fn a_pair_wants_segments_if_either_does() {
        struct Wants;
        impl Sink for Wants {
            fn wants_segments(&self) -> bool {
                true
            }
        }
        assert!(!(Nothing, Nothing).wants_segments());
        assert!((Nothing, Wants).wants_segments());
        assert!((Wants, Nothing).wants_segments());
    }
}
