//! Application of a connection whose endpoints are sockets, with a log of its messages.
//!
//! The caller owns sockets, threads and clocks. It asks for actions, performs them, and reports
//! what the sockets did.

use jostle_run_spec::{FlowRandomStreams, FlowSpec, RunSpec, SourceSpec};
use jostle_units::{Span, Time};
use serde::{Deserialize, Serialize};

use crate::{Action, ApplicationInstance, ApplicationModel, MessageSizes};

/// A message of an application. Times are in ns of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MessageRecord {
    /// Time at which it was requested or due.
    pub requested_ns: u64,
    /// Size of the message.
    pub bytes: u64,
    /// Time at which it was complete at the receiver, for applications whose messages are measured.
    pub received_ns: Option<u64>,
    /// Time at which all of it was acknowledged, if the application waited for that.
    pub acknowledged_ns: Option<u64>,
    /// Packets retransmitted since the acknowledgement of the previous message.
    pub retransmitted_packets: u64,
    /// Bitrate of a video segment.
    pub bitrate_bps: Option<u64>,
}

/// Application of a connection: what its sender writes, and what its receiver waits for.
#[derive(Debug)]
pub struct SocketApplication {
    source: ApplicationInstance,
    sizes: MessageSizes,
    messages: Vec<MessageRecord>,
    /// Number of messages complete at the receiver.
    received: usize,
    retransmitted_packets: u64,
}

impl SocketApplication {
    /// Creates the application of a flow or connection of `run`.
    pub fn new(flow: &FlowSpec, run: &RunSpec) -> Self {
        let streams = FlowRandomStreams::of(run.seed, &flow.name);
        Self::of(&flow.source, streams, run.reverse_propagation(flow))
    }

    fn of(source: &SourceSpec, streams: FlowRandomStreams, request_delay: Span) -> Self {
        Self {
            source: ApplicationModel::new(source).source(streams).with_request_delay(request_delay),
            sizes: MessageSizes::of(source, streams),
            messages: Vec::new(),
            received: 0,
            retransmitted_packets: 0,
        }
    }

    /// Returns whether the receiver requests each message after the first.
    pub fn is_requested_by_receiver(&self) -> bool {
        self.source.is_requested_by_receiver()
    }

    /// Acts when the connection opens, and at each time that the application asked for. Returns the
    /// action and the time of the next call; [`Time::NEVER`] if that depends on acknowledgements or
    /// requests.
    pub fn act(&mut self, now: Time) -> (Action, Time) {
        let (action, next) = self.source.act(now);
        if let Action::Write(bytes) | Action::Append { bytes, .. } = action {
            let requested_ns = now.as_ns();
            self.messages.push(MessageRecord { requested_ns, bytes, ..Default::default() });
        }
        (action, next)
    }

    /// Handles the acknowledgement of all messages. Returns the time of the next action; `None`
    /// after the last message. `retransmitted_packets` is the number since the connection opened.
    pub fn on_acknowledged(&mut self, now: Time, retransmitted_packets: u64) -> Option<Time> {
        if let Some(last) = self.messages.last_mut() {
            last.acknowledged_ns = Some(now.as_ns());
            last.retransmitted_packets =
                retransmitted_packets.saturating_sub(self.retransmitted_packets);
            self.retransmitted_packets = retransmitted_packets;
        }
        self.source.on_drained(now).ok()
    }

    /// Returns the size of the next message that the receiver waits for; `None` if there is none.
    pub fn next_message_bytes(&mut self) -> Option<u64> {
        self.sizes.next().or_else(|| self.source.requested_bytes())
    }

    /// Handles the completion of the oldest message at the receiver. Returns the time at which the
    /// receiver requests the next one, if it does.
    pub fn on_received(&mut self, now: Time) -> Option<Time> {
        let bitrate_bps = self.source.on_message_complete(now);
        if let Some(message) = self.messages.get_mut(self.received)
            && self.source.measures_messages()
        {
            message.received_ns = Some(now.as_ns());
            message.bitrate_bps = bitrate_bps;
        }
        self.received += 1;
        if !self.is_requested_by_receiver() {
            return None;
        }
        self.source.on_drained(now).ok()
    }

    /// Returns the log. `retransmitted_packets` is the number since the connection opened, and
    /// counts for the last message if that is not acknowledged.
    pub fn messages(&self, retransmitted_packets: u64) -> Vec<MessageRecord> {
        let mut messages = self.messages.clone();
        if let Some(last) = messages.last_mut()
            && last.acknowledged_ns.is_none()
        {
            last.retransmitted_packets =
                retransmitted_packets.saturating_sub(self.retransmitted_packets);
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jostle_run_spec::{TraceSpec, VideoChoice, VideoSpec, WriteSpec};

    fn application(source: &SourceSpec) -> SocketApplication {
        let streams = FlowRandomStreams::of(1, "one");
        SocketApplication::of(source, streams, Span::from_ns(9))
    }

    fn at(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    #[test]
    fn responses_are_logged_with_their_requests() {
        let mut application = application(&SourceSpec::RequestResponse {
            bytes: 100.into(),
            think_ns: 5_000.into(),
            count: Some(2.into()),
        });
        assert_eq!(application.next_message_bytes(), Some(100));
        assert_eq!(application.act(at(10)), (Action::Write(100), Time::NEVER));
        assert_eq!(application.on_received(at(30)), None);
        assert_eq!(application.next_message_bytes(), Some(100));
        assert_eq!(application.on_acknowledged(at(40), 3), Some(at(5_040)));
        application.act(at(5_040));
        assert_eq!(application.next_message_bytes(), None);
        let open = MessageRecord { requested_ns: 5_040, bytes: 100, ..Default::default() };
        assert_eq!(application.messages(7)[1], MessageRecord { retransmitted_packets: 4, ..open });
        assert_eq!(application.on_acknowledged(at(6_000), 4), None);
        let first = MessageRecord {
            requested_ns: 10,
            bytes: 100,
            received_ns: Some(30),
            acknowledged_ns: Some(40),
            retransmitted_packets: 3,
            bitrate_bps: None,
        };
        let second =
            MessageRecord { acknowledged_ns: Some(6_000), retransmitted_packets: 1, ..open };
        assert_eq!(application.messages(9), [first, second]);
    }

    #[test]
    fn a_receiver_requests_the_segments_of_a_video() {
        let mut application = application(&SourceSpec::Video(VideoSpec {
            bitrates_bps: vec![1_000_000, 2_000_000],
            segment_ns: 1_000_000_000,
            segments: Some(2),
            variation: 0.0,
            choice: VideoChoice::Throughput { samples: 1, safety: 1.0 },
            startup_ns: 1_000_000_000,
            buffer_ns: 1_000_000_000,
        }));
        assert!(application.is_requested_by_receiver());
        assert_eq!(application.act(at(1)), (Action::Wait, at(10)));
        assert_eq!(application.act(at(10)), (Action::Write(125_000), Time::NEVER));
        assert_eq!(application.next_message_bytes(), Some(125_000));
        // The buffer has no room for another segment until this one was played.
        assert_eq!(application.on_received(at(1_000)), Some(at(1_000_001_000)));
        assert_eq!(application.next_message_bytes(), Some(250_000));
        assert_eq!(application.act(at(1_000_001_000)).0, Action::Write(250_000));
        assert_eq!(application.on_received(at(2_000_000_000)), None);
        assert_eq!(application.next_message_bytes(), None);
        let bitrates = application.messages(0).iter().map(|it| it.bitrate_bps).collect::<Vec<_>>();
        assert_eq!(bitrates, [Some(1_000_000), Some(2_000_000)]);
    }

    #[test]
    fn a_receiver_knows_the_sizes_of_a_trace() {
        let writes = [(5, 100), (9, 50)].map(|(at_ns, bytes)| WriteSpec { at_ns, bytes }).to_vec();
        let mut trace = application(&SourceSpec::Trace(TraceSpec { writes, deadline_ns: None }));
        let sizes: Vec<_> = std::iter::from_fn(|| trace.next_message_bytes()).collect();
        assert_eq!(sizes, [100, 50]);
        let mut bulk = application(&SourceSpec::Bulk);
        assert_eq!((bulk.next_message_bytes(), bulk.act(at(0)).0), (None, Action::WriteForever));
    }
}
