//! Applications: what they write, and when.

use jostle_record::{FlowStreams, Sampler, Sizes, SourceSpec, VideoSpec, responses};
use jostle_units::{Span, Stream, Time};

use crate::viewer::Viewer;

/// What an application does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Does not open the connection yet.
    Wait,
    /// Writes that many bytes.
    Write(u64),
    /// Writes that many bytes more into the same stream.
    Append {
        /// How many.
        bytes: u64,
        /// Nothing comes after them.
        last: bool,
    },
    /// Writes as long as the connection takes more.
    WriteForever,
    /// Stops writing; what was not sent is not sent.
    Pause,
    /// Has written everything it ever will.
    Finish,
    /// Goes on as it was.
    Nothing,
}

/// An application on the sending side.
#[derive(Debug)]
pub struct Source {
    kind: Kind,
    /// Of its times.
    random: Stream,
}

/// What it does.
#[derive(Debug)]
enum Kind {
    Bulk,
    Fixed {
        sizes: Sizes,
    },
    OnOff {
        periods: [Sampler; 2],
        on: bool,
    },
    RequestResponse {
        sizes: Sizes,
        think: Sampler,
        count: Option<u64>,
        answered: u64,
    },
    Video {
        viewer: Box<Viewer>,
        /// What the client's first packet takes, before which the server can do nothing.
        trip: Span,
        opened: bool,
    },
    /// Writes by the clock.
    Timed(Box<Timed>),
    /// Answers a browser, which is asked what it wants.
    Pages {
        /// Answers that have become whole at the receiver and were not asked for.
        whole: u32,
    },
    /// What it writes is what comes in; see `relay`.
    Relay,
    /// They have no connection that could be written to; see `pings` and `datagrams`.
    Datagrams,
}

/// What the applications of a flow's connections have in common, prepared once: each connection that
/// comes gets a copy, which costs little.
#[derive(Clone, Debug)]
pub enum Application {
    /// Sends without an end.
    Bulk,
    /// Transfers something of this size.
    Fixed(Sampler),
    /// Is silent and sends by turns, for these times.
    OnOff([Sampler; 2]),
    /// Responds, to so many requests if they are counted.
    RequestResponse {
        /// Sizes of the responses.
        bytes: Sampler,
        /// The times between them.
        think: Sampler,
        /// How many they are.
        count: Option<Sampler>,
    },
    /// Sends segments of a video.
    Video(VideoSpec),
    /// Writes by the clock.
    Timed(Box<SourceSpec>),
    /// Answers a browser.
    Pages,
    /// Passes on what comes in.
    Relay,
    /// Sends datagrams.
    Datagrams,
}

impl Application {
    /// What `spec` says.
    pub fn new(spec: &SourceSpec) -> Self {
        match spec {
            SourceSpec::Bulk => Self::Bulk,
            SourceSpec::Fixed { bytes } => Self::Fixed(Sampler::new(bytes.clone())),
            SourceSpec::OnOff { on_ns, off_ns } => {
                Self::OnOff([Sampler::new(off_ns.clone()), Sampler::new(on_ns.clone())])
            }
            SourceSpec::RequestResponse { bytes, think_ns, count } => Self::RequestResponse {
                bytes: Sampler::new(bytes.clone()),
                think: Sampler::new(think_ns.clone()),
                count: count.clone().map(Sampler::new),
            },
            SourceSpec::Video(video) => Self::Video(video.clone()),
            SourceSpec::Media(_) | SourceSpec::Trace(_) => Self::Timed(Box::new(spec.clone())),
            SourceSpec::Web(_) => Self::Pages,
            SourceSpec::Relay { .. } => Self::Relay,
            SourceSpec::Ping { .. } | SourceSpec::Cbr(_) => Self::Datagrams,
        }
    }

    /// The application of the flow or connection with these `streams`.
    pub fn source(self, streams: FlowStreams) -> Source {
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
                let viewer = Box::new(Viewer::new(video, random()));
                Kind::Video { viewer, trip: Span::ZERO, opened: false }
            }
            Self::Timed(spec) => {
                Kind::Timed(Box::new(Timed { spec: *spec, written: 0, opened: None }))
            }
            Self::Pages => Kind::Pages { whole: 0 },
            Self::Relay => Kind::Relay,
            Self::Datagrams => Kind::Datagrams,
        };
        Source { kind, random: random() }
    }
}

impl Source {
    /// The same, with a client whose first packet needs so long to the server.
    pub fn asked_over(mut self, span: Span) -> Self {
        if let Kind::Video { trip, .. } = &mut self.kind {
            *trip = span;
        }
        self
    }

    /// The connection opens, or the time that was last asked for has come: what to do, and when to
    /// ask again ([`Time::NEVER`]: not by the clock).
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

    /// Whether what it writes are messages of which it is measured how long they take.
    pub fn is_asked(&self) -> bool {
        matches!(self.kind, Kind::RequestResponse { .. } | Kind::Timed(_) | Kind::Video { .. })
    }

    /// An answer is whole at the receiver: its bitrate, if it was a segment of a video.
    pub fn on_whole(&mut self, now: Time) -> Option<u64> {
        match &mut self.kind {
            Kind::Video { viewer, .. } => Some(viewer.loaded(now)),
            Kind::Pages { whole } => {
                *whole += 1;
                None
            }
            _ => None,
        }
    }

    /// Answers to a browser that have become whole since this was last asked.
    pub fn take_whole(&mut self) -> u32 {
        match &mut self.kind {
            Kind::Pages { whole } => std::mem::take(whole),
            _ => 0,
        }
    }

    /// Everything written so far is acknowledged: when to act again, or that this was all.
    ///
    /// # Errors
    /// That this was all.
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

/// A video's segment that was asked for; before the first, its request is under way.
fn show(viewer: &mut Viewer, trip: Span, opened: &mut bool, now: Time) -> (Action, Time) {
    if !std::mem::replace(opened, true) {
        viewer.open(now);
        if !trip.is_zero() {
            return (Action::Wait, now + trip);
        }
    }
    (Action::Write(viewer.bytes()), Time::NEVER)
}

/// Writes by the clock.
#[derive(Debug)]
struct Timed {
    spec: SourceSpec,
    written: u64,
    opened: Option<Time>,
}

impl Timed {
    /// The next of what there is to write. A trace may begin later than the flow.
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

/// A source that acts again at the same instant would never let time pass.
fn lasting(span: Span) -> Span {
    span.max(Span::from_us(1))
}

#[cfg(test)]
mod tests {
    use jostle_record::{Distribution, Law, MediaSpec, Quantity, TraceSpec, WriteSpec};

    use super::*;

    fn source(spec: SourceSpec) -> Source {
        Application::new(&spec).source(FlowStreams::of(1, "source"))
    }

    fn exponential(mean: f64) -> Quantity {
        Quantity::Drawn(Distribution::of(Law::Exponential { mean }))
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
