//! Applications: what they write, and when.

use jostle_record::SourceSpec;
use jostle_units::{Span, Stream, Time};

/// What an application does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
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
}

impl Source {
    /// What `spec` says, with its own random numbers.
    pub fn new(spec: SourceSpec, random: Stream) -> Self {
        Self { spec, random, on: false, answered: 0 }
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
            // What it writes is what comes in; see `relay`.
            SourceSpec::Relay { .. } => (Action::Write(0), Time::NEVER),
            // Datagrams have no connection that could be written to; see `pinger`.
            SourceSpec::Ping { .. } => (Action::Pause, Time::NEVER),
        }
    }

    /// Whether what it writes are answers to requests.
    pub fn is_asked(&self) -> bool {
        matches!(self.spec, SourceSpec::RequestResponse { .. })
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
            SourceSpec::Bulk
            | SourceSpec::OnOff { .. }
            | SourceSpec::Ping { .. }
            | SourceSpec::Relay { .. } => Ok(Time::NEVER),
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
        Source::new(spec, Stream::new(1, "source"))
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
