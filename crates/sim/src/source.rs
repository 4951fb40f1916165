//! Applications: what they write, and when.

use jostle_record::SourceSpec;
use jostle_units::{Span, Stream, Time};

use crate::viewer::Viewer;

/// What an application does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Does not open the connection yet.
    Wait,
    /// Writes that many bytes.
    Write(u64),
    /// Writes as long as the connection takes more.
    WriteForever,
    /// Stops writing; what was not sent is not sent.
    Pause,
    /// Has written everything it ever will.
    Finish,
}

/// An application on the sending side.
#[derive(Debug)]
pub struct Source {
    spec: SourceSpec,
    random: Stream,
    on: bool,
    answered: u64,
    /// Of a video.
    viewer: Option<Box<Viewer>>,
    /// What a first request takes that nothing else stands for: the client's, whose first packet is
    /// under way for so long before the server can answer.
    trip: Span,
}

impl Source {
    /// What `spec` says, with its own random numbers.
    pub fn new(spec: &SourceSpec, seed: u64, flow: &str) -> Self {
        let random = Stream::new(seed, &format!("flow/{flow}/source"));
        let viewer = match spec {
            SourceSpec::Video(video) => Some(Box::new(Viewer::new(video.clone(), random.clone()))),
            _ => None,
        };
        let spec = spec.clone();
        Self { spec, random, on: false, answered: 0, viewer, trip: Span::ZERO }
    }

    /// The same, with a client whose first packet needs so long to the server.
    pub fn asked_over(self, trip: Span) -> Self {
        Self { trip, ..self }
    }

    /// The connection opens, or the time that was last asked for has come: what to do, and when to
    /// ask again ([`Time::NEVER`]: not by the clock).
    pub fn act(&mut self, now: Time) -> (Action, Time) {
        match self.spec {
            SourceSpec::Bulk => (Action::WriteForever, Time::NEVER),
            SourceSpec::Fixed { bytes } => (Action::Write(bytes), Time::NEVER),
            SourceSpec::OnOff { on_ns, off_ns, exponential } => {
                self.on = !self.on;
                let mean_ns = if self.on { on_ns } else { off_ns };
                let span = self.span(mean_ns, exponential);
                let action = if self.on { Action::WriteForever } else { Action::Pause };
                (action, now + span)
            }
            SourceSpec::RequestResponse { bytes, .. } => (Action::Write(bytes), Time::NEVER),
            SourceSpec::Video(_) => self.show(now),
            // Datagrams have no connection that could be written to; see `pinger`.
            SourceSpec::Ping { .. } => (Action::Pause, Time::NEVER),
        }
    }

    /// A video's segment that was asked for; before the first, its request is under way.
    fn show(&mut self, now: Time) -> (Action, Time) {
        let Some(viewer) = &mut self.viewer else { return (Action::Finish, Time::NEVER) };
        if !self.on {
            self.on = true;
            viewer.open(now);
            if !self.trip.is_zero() {
                return (Action::Wait, now + self.trip);
            }
        }
        (Action::Write(viewer.bytes()), Time::NEVER)
    }

    /// Whether what it writes are answers to requests.
    pub fn is_asked(&self) -> bool {
        matches!(self.spec, SourceSpec::RequestResponse { .. } | SourceSpec::Video(_))
    }

    /// An answer is whole at the receiver: its bitrate, if it was a segment of a video.
    pub fn on_whole(&mut self, now: Time) -> Option<u64> {
        self.viewer.as_mut().map(|viewer| viewer.loaded(now))
    }

    /// Everything written so far is acknowledged: when to act again, or that this was all.
    ///
    /// # Errors
    /// That this was all.
    pub fn on_drained(&mut self, now: Time) -> Result<Time, Action> {
        match self.spec {
            SourceSpec::Fixed { .. } => Err(Action::Finish),
            SourceSpec::RequestResponse { think_ns, exponential, count, .. } => {
                self.answered += 1;
                if count == Some(self.answered) {
                    return Err(Action::Finish);
                }
                Ok(now + self.span(think_ns, exponential))
            }
            SourceSpec::Video(_) => {
                let pause = self.viewer.as_ref().and_then(|viewer| viewer.pause());
                pause.map(|pause| now + pause.max(Span::from_us(1))).ok_or(Action::Finish)
            }
            SourceSpec::Bulk | SourceSpec::OnOff { .. } | SourceSpec::Ping { .. } => {
                Ok(Time::NEVER)
            }
        }
    }

    fn span(&mut self, mean_ns: u64, exponential: bool) -> Span {
        let mean = Span::from_ns(mean_ns);
        let span = if exponential {
            Span::from_secs_f64(self.random.exponential(mean.as_secs_f64()))
        } else {
            mean
        };
        // A source that acts again at the same instant would never let time pass.
        span.max(Span::from_us(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(spec: SourceSpec) -> Source {
        Source::new(&spec, 1, "flow")
    }

    #[test]
    fn on_and_off_take_turns() {
        let mut source =
            source(SourceSpec::OnOff { on_ns: 2_000, off_ns: 3_000, exponential: false });
        assert_eq!(source.act(Time::ZERO), (Action::WriteForever, Time::from_ns(2_000)));
        assert_eq!(source.act(Time::from_ns(2_000)), (Action::Pause, Time::from_ns(5_000)));
        assert_eq!(source.act(Time::from_ns(5_000)).0, Action::WriteForever);
    }

    #[test]
    fn responses_follow_a_think_time_until_they_are_all_sent() {
        let mut source = source(SourceSpec::RequestResponse {
            bytes: 100,
            think_ns: 10_000,
            exponential: false,
            count: Some(2),
        });
        assert_eq!(source.act(Time::ZERO), (Action::Write(100), Time::NEVER));
        assert_eq!(source.on_drained(Time::from_ns(5)), Ok(Time::from_ns(10_005)));
        assert_eq!(source.on_drained(Time::from_ns(20_000)), Err(Action::Finish));
    }

    #[test]
    fn exponential_periods_have_their_mean() {
        let mut source =
            source(SourceSpec::OnOff { on_ns: 1_000_000, off_ns: 1_000_000, exponential: true });
        let mut now = Time::ZERO;
        for _ in 0..10_000 {
            now = source.act(now).1;
        }
        let mean_ms = now.as_secs_f64() * 1e3 / 10_000.0;
        assert!((mean_ms - 1.0).abs() < 0.05, "{mean_ms} ms");
    }
}
