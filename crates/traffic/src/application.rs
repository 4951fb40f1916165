//! Applications: times and sizes of their writes.

use jostle_run_spec::{
    FlowRandomStreams, Quantity, QuantitySampler, Sizes, SourceSpec, VideoSpec, responses,
};
use jostle_units::{RandomStream, Span, Time};

use crate::video_player::VideoPlayer;

/// Next action of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Wait; the connection is not opened yet.
    Wait,
    /// Write this number of bytes.
    Write(u64),
    /// Append bytes to the same stream.
    Append {
        /// Number of bytes.
        bytes: u64,
        /// Whether the stream ends after them.
        last: bool,
    },
    /// Write unlimited data.
    WriteForever,
    /// Stop writing and discard unsent data.
    Pause,
    /// All data have been written.
    Finish,
    /// Continue without a change.
    Nothing,
}

/// Application of the sender.
#[derive(Debug)]
pub struct ApplicationInstance {
    kind: Kind,
    /// Random stream for times.
    random: RandomStream,
}

/// State of an application by type.
#[derive(Debug)]
enum Kind {
    Bulk,
    Fixed {
        sizes: Sizes,
    },
    OnOff {
        periods: [QuantitySampler; 2],
        on: bool,
    },
    RequestResponse {
        sizes: Sizes,
        think: QuantitySampler,
        count: Option<u64>,
        answered: u64,
    },
    Video {
        viewer: Box<VideoPlayer>,
        /// Delay of the client's first packet, before which the server cannot send.
        trip: Span,
        opened: bool,
    },
    /// Writes on a schedule.
    Timed(Box<TimedWrites>),
    /// Responds to the requests of a browser.
    Pages {
        /// Number of responses completed at the receiver since the last query.
        whole: u32,
    },
    /// Forwards data of a proxy, or packets of a tunnel.
    Relay,
    /// Datagrams have no connection; see `pings` and `datagrams`.
    Datagrams,
}

/// Prepared model of a flow's applications, shared by all of its connections. Clones are cheap.
#[derive(Clone, Debug)]
pub enum ApplicationModel {
    /// Unlimited data.
    Bulk,
    /// One transfer of this size.
    Fixed(QuantitySampler),
    /// Alternation of off and on periods of these durations.
    OnOff([QuantitySampler; 2]),
    /// Responses, limited to a number of requests if `count` is set.
    RequestResponse {
        /// Sizes of the responses.
        bytes: QuantitySampler,
        /// Think times between responses.
        think: QuantitySampler,
        /// Number of responses.
        count: Option<QuantitySampler>,
    },
    /// Video segments.
    Video(VideoSpec),
    /// Writes on a schedule.
    Timed(Box<SourceSpec>),
    /// Responses to a browser.
    Pages,
    /// Data of another connection that a proxy forwards, or packets that a tunnel carries.
    Relay,
    /// Datagrams.
    Datagrams,
}

impl ApplicationModel {
    /// Creates the model of a source.
    pub fn new(spec: &SourceSpec) -> Self {
        match spec {
            SourceSpec::Bulk => Self::Bulk,
            SourceSpec::Fixed { bytes } => Self::Fixed(QuantitySampler::new(bytes.clone())),
            SourceSpec::OnOff { on_ns, off_ns } => Self::OnOff([
                QuantitySampler::new(off_ns.clone()),
                QuantitySampler::new(on_ns.clone()),
            ]),
            SourceSpec::RequestResponse { bytes, think_ns, count } => Self::RequestResponse {
                bytes: QuantitySampler::new(bytes.clone()),
                think: QuantitySampler::new(think_ns.clone()),
                count: count.clone().map(QuantitySampler::new),
            },
            SourceSpec::Video(video) => Self::Video(video.clone()),
            SourceSpec::Media(_) | SourceSpec::Trace(_) => Self::Timed(Box::new(spec.clone())),
            SourceSpec::Web(_) => Self::Pages,
            SourceSpec::Relay { .. } | SourceSpec::Tunnel(_) => Self::Relay,
            SourceSpec::Ping { .. } | SourceSpec::Cbr(_) => Self::Datagrams,
        }
    }

    /// Creates the application of the flow or connection with these `streams`.
    pub fn source(self, streams: FlowRandomStreams) -> ApplicationInstance {
        let random = || streams.stream("source");
        let kind = match self {
            Self::Bulk => Kind::Bulk,
            Self::Fixed(bytes) => Kind::Fixed { sizes: Sizes::of(bytes, streams) },
            Self::OnOff(periods) => Kind::OnOff { periods, on: false },
            Self::RequestResponse { bytes, think, count } => Kind::RequestResponse {
                sizes: Sizes::of(bytes, streams),
                think,
                count: count.map(|count| responses(&count, streams)),
                answered: 0,
            },
            Self::Video(video) => {
                let viewer = Box::new(VideoPlayer::new(video, random()));
                Kind::Video { viewer, trip: Span::ZERO, opened: false }
            }
            Self::Timed(spec) => {
                Kind::Timed(Box::new(TimedWrites { spec: *spec, written: 0, opened: None }))
            }
            Self::Pages => Kind::Pages { whole: 0 },
            Self::Relay => Kind::Relay,
            Self::Datagrams => Kind::Datagrams,
        };
        ApplicationInstance { kind, random: random() }
    }
}

impl ApplicationInstance {
    /// Sets the delay of the client's first packet to the server.
    pub fn with_request_delay(mut self, span: Span) -> Self {
        if let Kind::Video { trip, .. } = &mut self.kind {
            *trip = span;
        }
        self
    }

    /// Acts when the connection opens, and at each requested time. Returns the action and the time
    /// of the next call; [`Time::NEVER`] if the next call does not depend on time.
    pub fn act(&mut self, now: Time) -> (Action, Time) {
        match &mut self.kind {
            Kind::Bulk => (Action::WriteForever, Time::NEVER),
            Kind::Fixed { sizes } | Kind::RequestResponse { sizes, .. } => {
                (Action::Write(sizes.draw()), Time::NEVER)
            }
            Kind::OnOff { periods, on } => {
                *on = !*on;
                let span = lasting(periods[usize::from(*on)].span(&mut self.random));
                let action = if *on { Action::WriteForever } else { Action::Pause };
                (action, now + span)
            }
            Kind::Video { viewer, trip, opened } => show(viewer, *trip, opened, now),
            Kind::Timed(timed) => timed.act(now),
            Kind::Relay => (Action::Write(0), Time::NEVER),
            Kind::Datagrams | Kind::Pages { .. } => (Action::Pause, Time::NEVER),
        }
    }

    /// Returns whether response times are measured for the writes of the application.
    pub fn measures_messages(&self) -> bool {
        matches!(self.kind, Kind::RequestResponse { .. } | Kind::Timed(_) | Kind::Video { .. })
    }

    /// Returns whether the receiver requests each message after the first.
    pub fn is_requested_by_receiver(&self) -> bool {
        matches!(self.kind, Kind::Video { .. })
    }

    /// Returns the size of the message that the receiver requested last; `None` if the receiver
    /// requests none.
    pub(crate) fn requested_bytes(&self) -> Option<u64> {
        match &self.kind {
            Kind::Video { viewer, .. } => viewer.pause().map(|_| viewer.bytes()),
            _ => None,
        }
    }

    /// Handles the completion of a message at the receiver. Returns the bitrate if it is a video
    /// segment.
    pub fn on_message_complete(&mut self, now: Time) -> Option<u64> {
        match &mut self.kind {
            Kind::Video { viewer, .. } => Some(viewer.loaded(now)),
            Kind::Pages { whole } => {
                *whole += 1;
                None
            }
            _ => None,
        }
    }

    /// Returns whether responses to a browser have completed since the last call of
    /// [`take_completed`](Self::take_completed).
    pub const fn has_completed(&self) -> bool {
        matches!(self.kind, Kind::Pages { whole: 1.. })
    }

    /// Returns the number of responses to a browser that completed since the last call.
    pub fn take_completed(&mut self) -> u32 {
        match &mut self.kind {
            Kind::Pages { whole } => std::mem::take(whole),
            _ => 0,
        }
    }

    /// Handles the acknowledgement of all written data. Returns the time of the next action.
    ///
    /// # Errors
    /// [`Action::Finish`] if these were all data of the application.
    pub fn on_drained(&mut self, now: Time) -> Result<Time, Action> {
        match &mut self.kind {
            Kind::Fixed { .. } => Err(Action::Finish),
            Kind::RequestResponse { think, count, answered, .. } => {
                *answered += 1;
                if *count == Some(*answered) {
                    return Err(Action::Finish);
                }
                Ok(now + lasting(think.span(&mut self.random)))
            }
            Kind::Video { viewer, .. } => {
                viewer.pause().map(|pause| now + lasting(pause)).ok_or(Action::Finish)
            }
            Kind::Timed(timed) if timed.next().is_none() => Err(Action::Finish),
            Kind::Bulk
            | Kind::OnOff { .. }
            | Kind::Timed(_)
            | Kind::Relay
            | Kind::Pages { .. }
            | Kind::Datagrams => Ok(Time::NEVER),
        }
    }
}

/// Returns the action for the requested video segment. Before the first segment, its request is in
/// flight.
fn show(viewer: &mut VideoPlayer, trip: Span, opened: &mut bool, now: Time) -> (Action, Time) {
    if !std::mem::replace(opened, true) {
        viewer.open(now);
        if !trip.is_zero() {
            return (Action::Wait, now + trip);
        }
    }
    (Action::Write(viewer.bytes()), Time::NEVER)
}

/// Writes on a schedule.
#[derive(Debug)]
struct TimedWrites {
    spec: SourceSpec,
    written: u64,
    opened: Option<Time>,
}

impl TimedWrites {
    /// Performs the next write. A trace may begin later than the flow.
    fn act(&mut self, now: Time) -> (Action, Time) {
        self.opened.get_or_insert(now);
        let Some((at, bytes)) = self.next() else { return (Action::Nothing, Time::NEVER) };
        if now < at {
            return (Action::Nothing, at);
        }
        self.written += 1;
        let next = self.next().map(|(at, _)| at);
        (Action::Append { bytes, last: next.is_none() }, next.unwrap_or(Time::NEVER))
    }

    fn next(&self) -> Option<(Time, u64)> {
        let write = self.spec.write(self.written)?;
        Some((self.opened? + Span::from_ns(write.at_ns), write.bytes))
    }
}

/// Maximum number of randomly sized messages whose total is computed in advance.
const ADDED_UP: u64 = 1 << 20;

/// Sizes of the messages that an application writes, in stream order. Sizes that the receiver
/// chooses are not included.
#[derive(Clone, Debug)]
pub struct MessageSizes(SizeKind);

#[derive(Clone, Debug)]
enum SizeKind {
    /// There are no messages, or the receiver chooses their sizes.
    None,
    /// Randomly sized messages.
    Drawn {
        sizes: Sizes,
        /// Number of messages left; `None` if unlimited.
        left: Option<u64>,
    },
    /// Writes on a schedule.
    Timed { spec: Box<SourceSpec>, number: u64 },
}

impl MessageSizes {
    /// Creates the sizes of the flow or connection with these `streams`.
    pub fn of(source: &SourceSpec, streams: FlowRandomStreams) -> Self {
        let sampler = |quantity: &Quantity| QuantitySampler::new(quantity.clone());
        let sizes = |bytes| Sizes::of(sampler(bytes), streams);
        Self(match source {
            SourceSpec::Fixed { bytes } => SizeKind::Drawn { sizes: sizes(bytes), left: Some(1) },
            SourceSpec::RequestResponse { bytes, count, .. } => {
                let left = count.as_ref().map(|count| responses(&sampler(count), streams));
                SizeKind::Drawn { sizes: sizes(bytes), left }
            }
            timed if timed.is_timed() => {
                SizeKind::Timed { spec: Box::new(timed.clone()), number: 0 }
            }
            _ => SizeKind::None,
        })
    }
}

impl MessageSizes {
    /// Returns the sum of all sizes; `None` if they have no end, or are too many to add up.
    pub fn total_bytes(self) -> Option<u64> {
        match &self.0 {
            SizeKind::Drawn { sizes, left: Some(count) } => {
                if let Some(bytes) = sizes.constant() {
                    return Some(bytes.saturating_mul(*count));
                }
                if *count > ADDED_UP {
                    return None;
                }
            }
            SizeKind::Timed { spec, .. } if matches!(**spec, SourceSpec::Trace(_)) => {}
            _ => return None,
        }
        Some(self.fold(0, u64::saturating_add))
    }
}

impl Iterator for MessageSizes {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        match &mut self.0 {
            SizeKind::None => None,
            SizeKind::Drawn { sizes, left } => {
                if let Some(left) = left {
                    *left = left.checked_sub(1)?;
                }
                Some(sizes.draw())
            }
            SizeKind::Timed { spec, number } => {
                let write = spec.write(*number)?;
                *number += 1;
                Some(write.bytes)
            }
        }
    }
}

/// Returns `span`, at least 1 µs: a source without a pause would stop simulated time.
fn lasting(span: Span) -> Span {
    span.max(Span::from_us(1))
}

#[cfg(test)]
mod tests {
    use jostle_run_spec::{
        Distribution, DistributionKind, MediaSpec, Quantity, TraceSpec, WriteSpec,
    };

    use super::*;

    fn source(spec: SourceSpec) -> ApplicationInstance {
        ApplicationModel::new(&spec).source(FlowRandomStreams::of(1, "source"))
    }

    fn exponential(mean: f64) -> Quantity {
        Quantity::Drawn(Distribution::of(DistributionKind::Exponential { mean }))
    }

    #[test]
    fn on_and_off_take_turns() {
        let mut source = source(SourceSpec::OnOff { on_ns: 2_000.into(), off_ns: 3_000.into() });
        assert_eq!(source.act(Time::ZERO), (Action::WriteForever, Time::from_ns(2_000)));
        assert_eq!(source.act(Time::from_ns(2_000)), (Action::Pause, Time::from_ns(5_000)));
        assert_eq!(source.act(Time::from_ns(5_000)).0, Action::WriteForever);
    }

    #[test]
    fn responses_follow_a_think_time_until_they_are_all_sent() {
        let mut source = source(SourceSpec::RequestResponse {
            bytes: 100.into(),
            think_ns: 10_000.into(),
            count: Some(2.into()),
        });
        assert_eq!(source.act(Time::ZERO), (Action::Write(100), Time::NEVER));
        assert_eq!(source.on_drained(Time::from_ns(5)), Ok(Time::from_ns(10_005)));
        assert_eq!(source.on_drained(Time::from_ns(20_000)), Err(Action::Finish));
    }

    #[test]
    fn frames_are_written_by_the_clock_and_a_trace_ends() {
        let at = Time::from_ns;
        let writes = [(5, 100), (9, 50)].map(|(at_ns, bytes)| WriteSpec { at_ns, bytes }).to_vec();
        let mut trace = source(SourceSpec::Trace(TraceSpec { writes, deadline_ns: None }));
        assert_eq!(trace.act(at(1_000)), (Action::Nothing, at(1_005)));
        assert_eq!(trace.act(at(1_005)), (Action::Append { bytes: 100, last: false }, at(1_009)));
        assert_eq!(trace.on_drained(at(1_007)), Ok(Time::NEVER));
        assert_eq!(trace.act(at(1_009)), (Action::Append { bytes: 50, last: true }, Time::NEVER));
        assert_eq!(trace.on_drained(at(1_020)), Err(Action::Finish));

        let mut audio = source(SourceSpec::Media(MediaSpec {
            frames_per_1000_s: 50_000,
            key_bytes: 80,
            delta_bytes: 60,
            key_every: 2,
            deadline_ns: 1,
        }));
        for (number, bytes) in [80, 60, 80, 60].into_iter().enumerate() {
            let now = at(7 + 20_000_000 * number as u64);
            let expected = (Action::Append { bytes, last: false }, now + Span::from_ms(20));
            assert_eq!(audio.act(now), expected);
        }
    }

    #[test]
    fn exponential_periods_have_their_mean() {
        let mut source =
            source(SourceSpec::OnOff { on_ns: exponential(1e6), off_ns: exponential(1e6) });
        let mut now = Time::ZERO;
        for _ in 0..10_000 {
            now = source.act(now).1;
        }
        let mean_ms = now.as_secs_f64() * 1e3 / 10_000.0;
        assert!((mean_ms - 1.0).abs() < 0.05, "{mean_ms} ms");
    }
    #[test]
    fn sizes_do_not_depend_on_the_times_that_are_drawn() {
        let sizes = |think_ns| {
            let bytes = exponential(2e4);
            let mut source = source(SourceSpec::RequestResponse { bytes, think_ns, count: None });
            let mut written = Vec::new();
            for _ in 0..3 {
                written.push(source.act(Time::ZERO).0);
                let _ = source.on_drained(Time::ZERO);
            }
            written
        };
        assert_eq!(sizes(10_000.into()), sizes(exponential(1e6)));
        assert_ne!(sizes(10_000.into())[0], sizes(10_000.into())[1]);
    }
}
