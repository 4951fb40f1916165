//! Events that a simulator reports to the recorder of a run.

use jostle_link::{DropReason, Ecn, Service};
use jostle_units::{ConnectionId, FlowId, LinkId, Rate, SendLimit, Span, Time};

/// State of a flow at the end of an interval.
#[derive(Clone, Copy, Debug)]
pub struct FlowState {
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Slow-start threshold, if it is set.
    pub ssthresh_bytes: Option<u64>,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Pacing rate, if the sender paces.
    pub pacing_rate: Option<Rate>,
    /// Name of the controller's mode.
    pub mode: &'static str,
}

impl FlowState {
    /// State of a sender of datagrams: there is no cwnd, and the bytes in flight are unknown.
    pub const DATAGRAMS: Self = Self {
        srtt: Span::ZERO,
        cwnd_bytes: 0,
        ssthresh_bytes: None,
        in_flight_bytes: 0,
        pacing_rate: None,
        mode: "datagrams",
    };
}

/// ACK as processed by the sender.
#[derive(Clone, Copy, Debug)]
pub struct AckEvent {
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

/// End of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointRole {
    /// Sender of the data.
    Sender,
    /// Receiver of the data.
    Receiver,
}

/// Type of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderKind {
    /// SYN of the sender.
    Syn,
    /// SYN-ACK of the receiver.
    SynAck,
    /// ACK of the SYN-ACK.
    HandshakeAck,
    /// Data of the sender.
    Data,
    /// ACK of the receiver.
    Ack,
}

/// Header fields of a segment. Sequence numbers count segments.
#[derive(Clone, Copy, Debug)]
pub struct SegmentHeader {
    /// Type of the segment.
    pub kind: HeaderKind,
    /// Data: sequence number. ACK: first segment that has not arrived.
    pub number: u32,
    /// Payload size.
    pub payload_bytes: u16,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// Data: CWR (RFC 3168). ACK: ECN-Echo. SYN and SYN-ACK: the end supports ECN.
    pub ecn_flag: bool,
    /// ACK with AccECN feedback (RFC 9768): marked packets modulo 8, and those that its option
    /// counts, if it has one.
    pub accecn: Option<(u8, Option<u16>)>,
    /// Timestamp, in milliseconds.
    pub tsval_ms: u32,
    /// Echoed timestamp, in milliseconds.
    pub tsecr_ms: u32,
    /// ACK and SYN-ACK: receive window, in segments from `number`.
    pub window_packets: u32,
    /// SACK blocks as half-open ranges; the first `block_count` are valid.
    pub blocks: [(u32, u32); 3],
    /// Number of valid SACK blocks.
    pub block_count: u8,
}

impl SegmentHeader {
    /// Returns the valid SACK blocks.
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.block_count)]
    }
}

/// Datagram with the ECN field of its IP header.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Sending end.
    pub from: EndpointRole,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// UDP payload.
    pub payload: &'a [u8],
}

/// Defines [`EventSink`] with its events and the implementations that forward all events. A new
/// event is therefore forwarded everywhere.
macro_rules! events {
    ($($(#[$about:meta])* fn $event:ident($($argument:ident: $type:ty),+);)+) => {
        /// Recorder of the events of a run. The simulator is generic over it, so that a run without
        /// recording has no overhead.
        ///
        /// Times never decrease for a flow. For a link they never decrease within the events of its
        /// queue (changes, drops and marks by the queue discipline), nor within the events of the
        /// wire (transmissions, losses). A link computes its departures lazily. It reports a loss
        /// when the transmission starts, with the time at which the transmission ends.
        pub trait EventSink {
            /// Returns whether the simulator calls [`segment`](Self::segment),
            /// [`datagram`](Self::datagram), [`secrets`](Self::secrets) and
            /// [`qlog_records`](Self::qlog_records).
            fn wants_segments(&self) -> bool {
                false
            }

            /// Returns whether the simulator calls [`packet_transit`](Self::packet_transit).
            fn wants_transit_times(&self) -> bool {
                false
            }

            $(
                $(#[$about])*
                #[allow(unused_variables, reason = "a sink may have no use for an event")]
                #[inline]
                fn $event(&mut self, $($argument: $type),+) {}
            )+
        }

        /// Forwards each event to both sinks.
        impl<A: EventSink, B: EventSink> EventSink for (A, B) {
            #[inline]
            fn wants_segments(&self) -> bool {
                self.0.wants_segments() || self.1.wants_segments()
            }

            #[inline]
            fn wants_transit_times(&self) -> bool {
                self.0.wants_transit_times() || self.1.wants_transit_times()
            }

            $(
                #[inline]
                fn $event(&mut self, $($argument: $type),+) {
                    self.0.$event($($argument),+);
                    self.1.$event($($argument),+);
                }
            )+
        }

        /// Records only if there is a sink. Most runs have no capture, and one simulator serves all
        /// runs.
        impl<S: EventSink> EventSink for Option<S> {
            #[inline]
            fn wants_segments(&self) -> bool {
                self.as_ref().is_some_and(EventSink::wants_segments)
            }

            #[inline]
            fn wants_transit_times(&self) -> bool {
                self.as_ref().is_some_and(EventSink::wants_transit_times)
            }

            $(
                #[inline]
                fn $event(&mut self, $($argument: $type),+) {
                    if let Some(sink) = self {
                        sink.$event($($argument),+);
                    }
                }
            )+
        }

        /// Test sink that stores all events.
        #[cfg(test)]
        #[derive(Debug, Default)]
        struct RecordingSink(Vec<(&'static str, String)>);

        #[cfg(test)]
        impl RecordingSink {
            /// Names of all events.
            const EVENTS: &[&str] = &[$(stringify!($event)),+];
        }

        #[cfg(test)]
        impl EventSink for RecordingSink {
            $(
                fn $event(&mut self, $($argument: $type),+) {
                    self.0.push((stringify!($event), format!("{:?}", ($($argument,)+))));
                }
            )+
        }
    };
}

events! {
    /// The application of a flow opened its connection.
    fn opened(now: Time, flow: FlowId);
    /// A TCP segment left one end of its flow or arrived at the other. Times never decrease.
    fn segment(now: Time, connection: ConnectionId, end: EndpointRole, header: &SegmentHeader);
    /// A datagram with payload left one end of its flow or arrived at the other. Times never
    /// decrease.
    fn datagram(now: Time, connection: ConnectionId, end: EndpointRole, datagram: &Datagram<'_>);
    /// Secrets that decrypt later packets of a flow, as lines in the format of `SSLKEYLOGFILE`.
    /// Called only if [`wants_segments`](Self::wants_segments) returns true.
    fn secrets(connection: ConnectionId, lines: &str);
    /// Complete qlog records of one end of a flow. Called only if
    /// [`wants_segments`](Self::wants_segments) returns true.
    fn qlog_records(connection: ConnectionId, end: EndpointRole, records: &str);
    /// A sender sent a burst of `packets` packets with `wire_bytes` in total.
    fn sent(now: Time, connection: ConnectionId, packets: u32, wire_bytes: u64, retransmission: bool);
    /// A packet of the last burst carries `bytes` of TCP options that the burst does not count: those
    /// of an ACK that data carry, without the timestamps.
    fn options_sent(now: Time, connection: ConnectionId, bytes: u32);
    /// From `now` on, `limit` keeps the sender of a flow from sending. Called only if it changes.
    fn send_limit(now: Time, connection: ConnectionId, limit: SendLimit);
    /// A data packet reached the receiver.
    fn received(now: Time, connection: ConnectionId, wire_bytes: u32);
    /// The packet that reached the receiver left the sender's host `delay` before, and waited
    /// `waited` of that time in queues.
    fn packet_transit(now: Time, connection: ConnectionId, delay: Span, waited: Span);
    /// A one-way datagram with this `number`, counted from 0, reached the receiver `delay` after it
    /// was sent.
    fn datagram_received(now: Time, connection: ConnectionId, number: u32, delay: Span);
    /// Payload was delivered to the application in order.
    fn delivered(now: Time, connection: ConnectionId, payload_bytes: u64);
    /// The sender processed an ACK.
    fn acked(now: Time, connection: ConnectionId, row: &AckEvent);
    /// The sender's minimum RTT decreased to a value that was not reported as a sample.
    fn min_rtt(now: Time, connection: ConnectionId, rtt: Span);
    /// The reply to a ping arrived, `rtt` after the ping was sent.
    fn ping_reply(now: Time, connection: ConnectionId, rtt: Span);
    /// No reply to the ping `number`, counted from 0, arrived in time. Numbers are reported in
    /// increasing order.
    fn ping_lost(now: Time, connection: ConnectionId, number: u32);
    /// A response is complete at the receiver, `after` the request.
    fn response_complete(now: Time, connection: ConnectionId, after: Span);
    /// A multi-connection `flow` opened a connection. Events of the connection use the number
    /// `connection`. Numbers increase by one; the first equals the number of flows in the run.
    fn connection_opened(now: Time, connection: ConnectionId, flow: FlowId);
    /// The application requested a transfer of `payload_bytes`.
    fn transfer_requested(now: Time, connection: ConnectionId, payload_bytes: u64);
    /// A video segment is complete at the receiver.
    fn segment_loaded(now: Time, connection: ConnectionId, bitrate_bps: u64);
    /// A browser requested a page.
    fn page_requested(now: Time, flow: FlowId);
    /// A page is complete at the browser, `after` its request.
    fn page_loaded(now: Time, flow: FlowId, after: Span);
    /// All data of a fixed-size flow were acknowledged, `after` its start.
    fn flow_completed(now: Time, connection: ConnectionId, after: Span);
    /// The queue length of a link changed.
    fn queue_changed(now: Time, link: LinkId, bytes: u64, packets: u64);
    /// A link transmits a packet from `start` to `finish`. The packet `waited` in the link's queue
    /// until it left the queue, alone or with its frame.
    fn link_sent(start: Time, finish: Time, link: LinkId, wire_bytes: u32, waited: Span);
    /// A link dropped a packet of `flow`.
    /// `queued_bytes` is its size if it had waited in the queue before, and 0 otherwise.
    fn dropped(now: Time, link: LinkId, connection: ConnectionId, reason: DropReason, queued_bytes: u32);
    /// A link marked a packet of `flow`.
    fn marked(now: Time, link: LinkId, connection: ConnectionId, reason: DropReason);
    /// A link duplicated a packet of `flow` after its transmission.
    fn duplicated(now: Time, link: LinkId, connection: ConnectionId);
    /// State at the end of an interval, one call per flow in order.
    fn flow_state(now: Time, flow: FlowId, state: &FlowState);
    /// Internal value of a flow's controller at the end of an interval.
    fn controller_state(now: Time, flow: FlowId, quantity: &'static str, value: f64);
    /// State of a link at the end of an interval, one call per link in order. `service` are the
    /// bytes that the service rate allowed since the start of the run.
    fn link_state(now: Time, link: LinkId, queue_bytes: u64, service: Service);
    /// A phase begins or ends at `now`. Called for every boundary in order, after all earlier
    /// events. `services` has one value per link, as in `link_state`.
    fn phase_boundary(now: Time, services: &[Service]);
}

/// Sink that discards all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullSink;

impl EventSink for NullSink {}

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
    const ROW: AckEvent = AckEvent {
        rtt: None,
        cwnd_bytes: 14_480,
        in_flight_bytes: 0,
        acked_bytes: 1_448,
        lost_packets: 0,
    };
    const HEADER: SegmentHeader = SegmentHeader {
        accecn: None,
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
        Datagram { from: EndpointRole::Receiver, ecn: Ecn::Capable, payload: &[45, 46] };

    /// Tells every event once, with arguments that differ.
    fn emit_all_events(sink: &mut impl EventSink) {
        let now = Time::from_ns(7);
        sink.opened(now, FlowId(1));
        sink.segment(now, ConnectionId(2), EndpointRole::Receiver, &HEADER);
        sink.datagram(now, ConnectionId(44), EndpointRole::Sender, &DATAGRAM);
        sink.secrets(ConnectionId(47), "CLIENT_TRAFFIC_SECRET_0 48 49");
        sink.qlog_records(ConnectionId(50), EndpointRole::Sender, "{}");
        sink.sent(now, ConnectionId(3), 4, 5, true);
        sink.options_sent(now, ConnectionId(59), 60);
        sink.send_limit(now, ConnectionId(51), SendLimit::Pacing);
        sink.received(now, ConnectionId(6), 7);
        sink.packet_transit(now, ConnectionId(39), Span::from_ns(40), Span::from_ns(41));
        sink.datagram_received(now, ConnectionId(44), 45, Span::from_ns(46));
        sink.delivered(now, ConnectionId(8), 9);
        sink.acked(now, ConnectionId(10), &ROW);
        sink.min_rtt(now, ConnectionId(35), Span::from_ns(36));
        sink.ping_reply(now, ConnectionId(11), Span::from_ns(12));
        sink.ping_lost(now, ConnectionId(13), 14);
        sink.response_complete(now, ConnectionId(37), Span::from_ns(38));
        sink.connection_opened(now, ConnectionId(47), FlowId(48));
        sink.transfer_requested(now, ConnectionId(49), 50);
        sink.segment_loaded(now, ConnectionId(51), 52);
        sink.page_requested(now, FlowId(53));
        sink.page_loaded(now, FlowId(54), Span::from_ns(55));
        sink.flow_completed(now, ConnectionId(15), Span::from_ns(16));
        sink.queue_changed(now, LinkId(17), 18, 19);
        sink.link_sent(now, Time::from_ns(42), LinkId(20), 21, Span::from_ns(43));
        sink.dropped(now, LinkId(22), ConnectionId(23), DropReason::Red, 56);
        sink.marked(now, LinkId(25), ConnectionId(26), DropReason::Codel);
        sink.duplicated(now, LinkId(57), ConnectionId(58));
        sink.flow_state(now, FlowId(28), &STATE);
        sink.controller_state(now, FlowId(29), "k_s", 30.0);
        sink.link_state(now, LinkId(31), 32, Service::from(33.0));
        sink.phase_boundary(now, &[Service::from(34.0)]);
    }

    #[test]
    fn a_pair_passes_every_event_on_to_both_as_it_came() {
        let mut alone = RecordingSink::default();
        emit_all_events(&mut alone);
        let told: Vec<_> = alone.0.iter().map(|(event, _)| *event).collect();
        assert_eq!(told, RecordingSink::EVENTS, "an event that this test does not tell");

        let mut pair = (RecordingSink::default(), RecordingSink::default());
        emit_all_events(&mut pair);
        assert_eq!(pair.0.0, alone.0);
        assert_eq!(pair.1.0, alone.0);
    }

    #[test]
    fn a_pair_wants_segments_if_either_does() {
        struct Wants;
        impl EventSink for Wants {
            fn wants_segments(&self) -> bool {
                true
            }
        }
        assert!(!(NullSink, NullSink).wants_segments());
        assert!((NullSink, Wants).wants_segments());
        assert!((Wants, NullSink).wants_segments());
    }
}
