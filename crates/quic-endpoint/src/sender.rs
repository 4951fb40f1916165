//! Sending endpoint, which opens the connection.

use jostle_controller_library::Failure;
use jostle_quic::{AckOutcome, QuicEndpoint, SenderObserver, Transmission};
use jostle_run_spec::FlowSpec;
use jostle_sim::QuicEndpoints;
use jostle_traffic::{Action, ApplicationInstance};
use jostle_units::{Rate, Span, Time};

use crate::event_loop::{HEADER_BYTES, SocketEndpoint};
use crate::monotonic_clock::Clock;
use crate::output_files::OutputFiles;
use crate::samples::{Internals, Samples, SenderSample};
use crate::socket::Socket;
use crate::{HostError, Job};

pub(crate) fn run(
    job: &Job,
    flow: &FlowSpec,
    ends: QuicEndpoints,
    failure: &Failure,
    completed: impl Fn(u64),
) -> Result<(), HostError> {
    let clock = Clock::new(job.start_ns);
    let mut wired = SocketEndpoint::new(ends.client, clock, Socket::bind(job.local)?, job.peer);
    let mut samples = Samples::create(&job.samples, &job.moments_ns)?;
    let mut application = Application::new(job, flow, ends.source);
    let mut counted = SentCounters::default();
    let mut notes = OutputFiles::beside(&job.samples);
    while !samples.is_over() {
        let now = wired.turn(samples.next().min(application.next()), &mut counted)?;
        if application.act(now, &mut wired.end)? {
            completed(now.as_ns());
        }
        wired.flush(now, |sent| counted.sent(sent))?;
        notes.take(&mut wired.end)?;
        samples.take(now, || counted.sample(&wired.end, &mut application.requested))?;
        if let Some(text) = failure.text() {
            return Err(HostError::Job(text.to_owned()));
        }
    }
    notes.finish(&mut wired.end)?;
    samples.finish()
}

/// Application of the flow's source.
struct Application {
    source: ApplicationInstance,
    stop: Time,
    /// Time of the source's next action.
    turn: Time,
    opened: bool,
    is_stopped: bool,
    /// The source waits until all written data are acknowledged.
    awaits: bool,
    /// Request times and sizes of messages since the previous sample.
    requested: Vec<(u64, u64)>,
}

impl Application {
    fn new(job: &Job, flow: &FlowSpec, source: ApplicationInstance) -> Self {
        Self {
            source,
            stop: flow.stop_ns.map_or(Time::NEVER, Time::from_ns),
            turn: Time::from_ns(job.due_ns),
            opened: false,
            is_stopped: false,
            awaits: false,
            requested: Vec::new(),
        }
    }

    fn next(&self) -> Time {
        self.turn.min(self.stop)
    }

    /// Runs the source. Returns whether all data of an ending source were just acknowledged.
    fn act(&mut self, now: Time, end: &mut QuicEndpoint) -> Result<bool, HostError> {
        if now >= self.stop {
            // Data that were never sent are not acknowledged, either.
            self.awaits &= !end.withdraw();
            (self.turn, self.stop) = (Time::NEVER, Time::NEVER);
            self.is_stopped = true;
            return Ok(false);
        }
        if self.awaits && end.is_drained() {
            self.awaits = false;
            match self.source.on_drained(now) {
                Ok(_) if self.is_stopped => {}
                Ok(turn) => self.turn = turn,
                Err(_) => {
                    end.close(now);
                    return Ok(true);
                }
            }
        }
        if now < self.turn {
            return Ok(false);
        }
        if !self.opened {
            self.opened = true;
            end.open(now)?;
        }
        let asked = self.turn;
        let (action, turn) = self.source.act(asked);
        self.turn = turn;
        match action {
            Action::Write(bytes) => {
                self.awaits = true;
                if self.source.measures_messages() {
                    self.requested.push((asked.as_ns(), bytes));
                }
                end.supply(Some(bytes));
            }
            Action::Append { bytes, last } => {
                self.awaits = true;
                self.requested.push((asked.as_ns(), bytes));
                end.append(bytes, last);
            }
            Action::Nothing => {}
            Action::WriteForever => end.supply(None),
            Action::Wait => {}
            Action::Pause | Action::Finish => {
                end.withdraw();
            }
        }
        Ok(false)
    }
}

/// Counters of packets sent and RTT samples.
#[derive(Debug, Default)]
struct SentCounters {
    rtt_samples: u64,
    rtt_sum_ns: u64,
    rtt_min: Option<Span>,
    sent_packets: u64,
    sent_bytes: u64,
    repeated_packets: u64,
}

impl SenderObserver for SentCounters {
    fn on_ack(&mut self, _now: Time, ack: &AckOutcome) {
        if let Some(rtt) = ack.rtt {
            self.rtt_samples += 1;
            self.rtt_sum_ns += rtt.as_ns();
            self.rtt_min = self.rtt_min.into_iter().chain([rtt]).min();
        }
    }
}

impl SentCounters {
    fn sent(&mut self, sent: &Transmission) {
        let packets = sent.bytes.div_ceil(sent.datagram_bytes.max(1)) as u64;
        self.sent_packets += packets;
        self.sent_bytes += sent.bytes as u64 + packets * HEADER_BYTES;
        let repeated =
            u64::from(sent.retransmitted_bytes).div_ceil(sent.datagram_bytes.max(1) as u64);
        self.repeated_packets += repeated.min(packets);
    }

    fn sample(&self, end: &QuicEndpoint, requested: &mut Vec<(u64, u64)>) -> SenderSample {
        let mut internals = Internals::default();
        end.observe(&mut internals);
        let state = end.state();
        let of =
            |value: fn(&jostle_quic::SenderState) -> Option<u64>| state.as_ref().and_then(value);
        SenderSample {
            connected: end.is_established(),
            rtt_samples: self.rtt_samples,
            rtt_sum_ns: self.rtt_sum_ns,
            rtt_min_ns: self.rtt_min.map(Span::as_ns),
            srtt_ns: of(|state| (state.srtt > Span::ZERO).then(|| state.srtt.as_ns())),
            cwnd_bytes: of(|state| Some(state.cwnd_bytes)).unwrap_or(0),
            ssthresh_bytes: of(|state| state.ssthresh_bytes),
            in_flight_bytes: of(|state| Some(state.in_flight_bytes)).unwrap_or(0),
            pacing_rate_bps: of(|state| state.pacing_rate.map(Rate::as_bps)),
            mode: state.map_or("handshake", |state| state.mode),
            sent_packets: self.sent_packets,
            sent_bytes: self.sent_bytes,
            repeated_packets: self.repeated_packets,
            requested: std::mem::take(requested),
            internals,
        }
    }
}
