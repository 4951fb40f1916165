//! One end of a connection.

mod config;
mod reading;
mod writing;

use std::num::NonZeroUsize;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use bytes::BytesMut;
use jostle_control::memory::{HostMemory, Occasion};
use jostle_control::{Controller, EcnFeedback, Prospect};
use jostle_units::{Ecn, Rate, Span, Time};
use noq_proto::{
    Connection, ConnectionError, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint,
    EndpointEvent, Event, FourTuple, PathId, StreamEvent, VarInt,
};

use crate::clock::Clock;
use crate::crypto::Secrets;
use crate::governor::{Governor, Report, Shared, StackAnswers};
use crate::observer::Observer;
use crate::qlog::Log;
use crate::settings::{Congestion, Settings, Stack};
use crate::state::{Counters, State, Transmission};
use crate::{Error, Handshake};
use writing::Writing;

/// Room for packets that arrive is taken in blocks of this size, each of which is used again when
/// nothing of it is in use any more.
const ARENA_BYTES: usize = 1 << 16;

struct Live {
    handle: ConnectionHandle,
    connection: Connection,
    established: bool,
    closed: bool,
}

/// The sending end's own.
struct Sending {
    governor: Arc<Shared>,
    stack: Option<Stack>,
    writing: Writing,
    /// Connections opened so far.
    opened: u64,
}

/// One end of a connection: the client, which sends data, or the server, which receives them.
///
/// After every call the end may have datagrams to send ([`transmit`](Self::transmit), until there are
/// none) and another deadline ([`next_time`](Self::next_time)). Points of time may be virtual or those of
/// a clock that never goes back: only the differences between them count.
pub struct End {
    settings: Settings,
    seed: u64,
    clock: Clock,
    endpoint: Endpoint,
    live: Option<Live>,
    sending: Option<Sending>,
    delivered: u64,
    /// What the other end last wrote into its packets: an end that only acknowledges does the same.
    echoed: Ecn,
    arena: BytesMut,
    scratch: Vec<u8>,
    /// Answers that belong to no connection.
    answers: Vec<Vec<u8>>,
    secrets: Arc<Secrets>,
    log: Option<Arc<Log>>,
    error: Option<Error>,
}

impl End {
    /// The end that connects and sends data. `seed` determines all that it draws.
    ///
    /// # Errors
    ///
    /// If a setting is not possible.
    pub fn client(settings: &Settings, seed: u64, congestion: Congestion) -> Result<Self, Error> {
        settings.check()?;
        let endpoint = Endpoint::new(config::endpoint(settings, seed, "client"), None, true);
        let log = settings.log.as_ref().map(|title| Arc::new(Log::new(title, true)));
        let mut end = Self::new(settings, seed, endpoint, Arc::default(), log);
        end.sending = Some(end.sending(congestion, 0));
        Ok(end)
    }

    /// The end that accepts connections and receives data.
    ///
    /// # Errors
    ///
    /// If a setting is not possible.
    pub fn server(settings: &Settings, seed: u64) -> Result<Self, Error> {
        settings.check()?;
        let secrets = Arc::default();
        let log = settings.log.as_ref().map(|title| Arc::new(Log::new(title, false)));
        let server = Arc::new(config::server(settings, seed, &secrets, log.clone())?);
        let config = config::endpoint(settings, seed, "server");
        Ok(Self::new(settings, seed, Endpoint::new(config, Some(server), true), secrets, log))
    }

    fn new(
        settings: &Settings,
        seed: u64,
        endpoint: Endpoint,
        secrets: Arc<Secrets>,
        log: Option<Arc<Log>>,
    ) -> Self {
        Self {
            settings: settings.clone(),
            seed,
            clock: Clock::new(),
            endpoint,
            live: None,
            sending: None,
            delivered: 0,
            echoed: Ecn::NotCapable,
            arena: BytesMut::new(),
            scratch: Vec::new(),
            answers: Vec::new(),
            secrets,
            log,
            error: None,
        }
    }

    fn sending(&self, congestion: Congestion, opened: u64) -> Sending {
        let (controller, stack) = match congestion {
            Congestion::Ours(controller) => (Some(controller), None),
            Congestion::Stack(stack) => (None, Some(stack)),
        };
        let governor = Governor::new(&self.settings, self.clock, controller, self.log.clone());
        let governor = Arc::new(Shared::new(governor));
        Sending { governor, stack, writing: Writing::default(), opened }
    }

    /// Opens the connection, unless it is open.
    ///
    /// # Errors
    ///
    /// If a setting is not possible, or this end does not connect.
    pub fn open(&mut self, now: Time) -> Result<(), Error> {
        if self.live.is_some() {
            return Ok(());
        }
        self.log_at(now);
        let Some(sending) = &mut self.sending else {
            return Err(Error::Connect("a server does not connect".to_owned()));
        };
        if let Some(log) = &self.log {
            log.parameters(&self.settings, true);
        }
        let seed = self.seed.wrapping_add(sending.opened);
        sending.opened += 1;
        let governor = Arc::clone(&sending.governor);
        let noted = (&self.secrets, self.log.as_ref());
        let config = config::client(&self.settings, seed, governor, sending.stack, noted)?;
        let instant = self.clock.instant(now);
        let (handle, connection) = self
            .endpoint
            .connect(instant, config, config::SERVER, "localhost")
            .map_err(|error| Error::Connect(error.to_string()))?;
        self.live = Some(Live { handle, connection, established: false, closed: false });
        if self.settings.handshake == Handshake::ZeroRtt {
            self.establish(now, None);
        }
        Ok(())
    }

    /// Ends the connection: what was not sent is not sent.
    pub fn close(&mut self, now: Time) {
        self.log_at(now);
        let instant = self.clock.instant(now);
        if let Some(live) = &mut self.live {
            live.connection.close(instant, VarInt::from_u32(0), bytes::Bytes::new());
            live.closed = true;
        }
    }

    /// Forgets the connection, and takes a controller for the next one, which
    /// [`open`](Self::open) makes.
    pub fn renew(&mut self, congestion: Congestion) {
        self.forget();
        let opened = self.sending.as_ref().map_or(0, |sending| sending.opened);
        self.sending = Some(self.sending(congestion, opened));
    }

    fn forget(&mut self) {
        if let Some(live) = self.live.take() {
            self.endpoint.handle_event(live.handle, EndpointEvent::drained());
        }
    }

    /// The handshake is about to end, or 0-RTT data are about to be written: what the host remembers
    /// of the peer. To be called while [`is_established`](Self::is_established) is false, before
    /// whatever may change that.
    pub fn recall(&mut self, now: Time, memory: &mut HostMemory) {
        let peer = self.settings.peer;
        self.with_controller(|controller| {
            if let Some(host) = controller.host() {
                host.on_open(&mut Occasion { now, peer, memory });
            }
        });
    }

    /// The connection closes: what the host is to remember.
    pub fn remember(&mut self, now: Time, memory: &mut HostMemory) {
        let peer = self.settings.peer;
        self.with_controller(|controller| {
            if let Some(host) = controller.host() {
                host.on_close(&mut Occasion { now, peer, memory });
            }
        });
    }

    fn with_controller(&mut self, action: impl FnOnce(&mut Box<dyn Controller>)) {
        if let Some(sending) = &self.sending
            && let Some(controller) = sending.governor.lock().controller_mut()
        {
            action(controller);
        }
    }

    /// The application writes `bytes` more, or as much as the connection will ever take.
    pub fn supply(&mut self, bytes: Option<u64>) {
        if let Some(sending) = &mut self.sending {
            sending.writing.supply(bytes, self.settings.streams);
        }
    }

    /// The application writes `bytes` more into the stream that it has, which ends with the `last`.
    pub fn append(&mut self, bytes: u64, last: bool) {
        if let Some(sending) = &mut self.sending {
            sending.writing.append(bytes, last);
        }
    }

    /// The application writes nothing more; what was not handed over yet is discarded. Returns whether
    /// anything was.
    pub fn withdraw(&mut self) -> bool {
        let connection = self.live.as_mut().map(|live| &mut live.connection);
        self.sending.as_mut().is_some_and(|sending| sending.writing.withdraw(connection))
    }

    /// Everything that was written is acknowledged.
    pub fn is_drained(&self) -> bool {
        let drained = self.sending.as_ref().is_none_or(|sending| sending.writing.is_drained());
        self.is_established() && drained
    }

    /// The handshake is complete.
    pub fn is_established(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.established)
    }

    /// Bytes of streams that arrived since the last call.
    pub fn take_delivered(&mut self) -> u64 {
        std::mem::take(&mut self.delivered)
    }

    /// Secrets that became known since the last call, in the form of `SSLKEYLOGFILE`: whole lines, if
    /// there are any. The server knows them all before it answers.
    pub fn take_secrets(&mut self) -> Option<String> {
        self.secrets.take()
    }

    /// Moves what was logged since the last call to the end of `text`: whole records of a qlog.
    pub fn take_log(&mut self, text: &mut String) {
        if let Some(log) = &self.log {
            log.take(text);
        }
    }

    /// What follows happens at `now`.
    fn log_at(&self, now: Time) {
        if let Some(log) = &self.log {
            log.at(now);
        }
    }

    /// How the sender stands, and the RTT that was measured last.
    fn log_state(&self, latest: Option<Span>) {
        if let Some(log) = &self.log
            && let Some(state) = self.state()
        {
            log.state(&state, latest);
        }
    }

    /// What ended the connection before its time, if anything did.
    pub fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }

    /// A datagram arrived.
    pub fn receive(&mut self, now: Time, ecn: Ecn, payload: &[u8], observer: &mut impl Observer) {
        self.log_at(now);
        let codepoint = match ecn {
            Ecn::NotCapable => None,
            // The stack knows one codepoint of senders, and takes the other one for corruption. Both
            // ends are of this crate, and what is counted is marks.
            Ecn::Capable | Ecn::L4s => Some(EcnCodepoint::Ect0),
            Ecn::Marked => Some(EcnCodepoint::Ce),
        };
        if ecn != Ecn::Marked {
            self.echoed = ecn;
        }
        if self.arena.capacity() < payload.len() {
            self.arena.reserve(ARENA_BYTES.max(payload.len()));
        }
        self.arena.extend_from_slice(payload);
        let data = self.arena.split();
        let peer = if self.sending.is_some() { config::SERVER } else { config::CLIENT };
        let instant = self.clock.instant(now);
        let path = FourTuple::from_remote(peer);
        self.scratch.clear();
        match self.endpoint.handle(instant, path, codepoint, data, &mut self.scratch) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(live) = self.live.as_mut().filter(|live| live.handle == handle) {
                    live.connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.forget();
                if let Some(log) = &self.log {
                    log.parameters(&self.settings, false);
                }
                match self.endpoint.accept(incoming, instant, &mut self.scratch, None) {
                    Ok((handle, connection)) => {
                        self.live =
                            Some(Live { handle, connection, established: false, closed: false });
                    }
                    Err(error) => self.error = Some(Error::Connect(error.cause.to_string())),
                }
            }
            Some(DatagramEvent::Response(transmit)) => {
                self.answers.push(self.scratch[..transmit.size].to_vec());
            }
            None => {}
        }
        self.settle(now, observer);
    }

    /// When [`on_time`](Self::on_time) is to be called, unless something comes before;
    /// [`Time::NEVER`]: not at all.
    pub fn next_time(&self) -> Time {
        let Some(live) = &self.live else { return Time::NEVER };
        let timeout = live.connection.poll_timeout();
        let stack = timeout.map_or(Time::NEVER, |instant| self.clock.time(instant));
        match &self.sending {
            Some(sending) if !live.closed => {
                let governor = sending.governor.lock();
                stack.min(governor.departure()).min(governor.wakeup())
            }
            _ => stack,
        }
    }

    /// A deadline may have come.
    pub fn on_time(&mut self, now: Time, observer: &mut impl Observer) {
        self.log_at(now);
        let instant = self.clock.instant(now);
        if let Some(live) = &mut self.live
            && live.connection.poll_timeout().is_some_and(|timeout| timeout <= instant)
        {
            live.connection.handle_timeout(instant);
        }
        if let Some(governor) = self.governor() {
            { governor }.on_time(now);
        }
        self.settle(now, observer);
    }

    /// What is to be sent now: datagrams, written to the empty `buffer`. To be called until there are
    /// none.
    pub fn transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Transmission> {
        buffer.clear();
        self.log_at(now);
        if let Some(answer) = self.answers.pop() {
            buffer.extend_from_slice(&answer);
            let bytes = buffer.len();
            let ecn = Ecn::NotCapable;
            return Some(Transmission { ecn, bytes, datagram_bytes: bytes, repeated_bytes: 0 });
        }
        let live = self.live.as_mut()?;
        if let Some(sending) = &mut self.sending {
            let sent = {
                let mut governor = sending.governor.lock();
                governor.begin_sending(now);
                governor.totals().stream_bytes
            };
            if live.established || live.connection.has_0rtt() {
                let burst = u64::from(self.settings.burst_datagrams);
                let unsent_max = 2 * burst * u64::from(self.settings.datagram_bytes);
                sending.writing.pump(&mut live.connection, sent, unsent_max);
            }
        }
        let most = NonZeroUsize::new(usize::from(self.settings.burst_datagrams))
            .unwrap_or(NonZeroUsize::MIN);
        let instant = self.clock.instant(now);
        let transmit = live.connection.poll_transmit(instant, most, buffer);
        let Some(transmit) = transmit else {
            if let Some(sending) = &self.sending {
                let mut governor = sending.governor.lock();
                let sent = governor.totals().stream_bytes;
                governor.end_sending(sending.writing.is_sent(sent));
            }
            self.log_state(None);
            return None;
        };
        let (ecn, repeated_bytes) = match &self.sending {
            None => (self.echoed, 0),
            Some(sending) => {
                let mut governor = sending.governor.lock();
                (codepoint(governor.feedback()), governor.take_repeated())
            }
        };
        let ecn = if transmit.ecn.is_some() { ecn } else { Ecn::NotCapable };
        let datagram_bytes = transmit.segment_size.unwrap_or(transmit.size);
        Some(Transmission { ecn, bytes: transmit.size, datagram_bytes, repeated_bytes })
    }

    /// How the sender stands; none for a server.
    pub fn state(&self) -> Option<State> {
        let sending = self.sending.as_ref()?;
        let governor = sending.governor.lock();
        let size = u64::from(governor.datagram_bytes());
        let established = self.live.as_ref().is_some_and(|live| live.established);
        let ssthresh = governor.ssthresh();
        Some(State {
            srtt: governor.srtt(),
            min_rtt: governor.min_rtt(),
            cwnd_bytes: u64::from(governor.cwnd()) * size,
            ssthresh_bytes: ssthresh.map(|packets| u64::from(packets) * size),
            in_flight_bytes: governor.in_flight_bytes(),
            pacing_rate: governor.visible_pacing_rate(),
            mode: if established { governor.mode() } else { "handshake" },
            datagram_bytes: governor.datagram_bytes(),
        })
    }

    /// What the sender has counted; none for a server.
    pub fn counters(&self) -> Option<Counters> {
        let sending = self.sending.as_ref()?;
        let governor = sending.governor.lock();
        let totals = governor.totals();
        Some(Counters {
            sent_packets: totals.sent,
            sent_bytes: totals.sent_bytes,
            lost_packets: totals.lost,
            lost_bytes: totals.lost_bytes,
            new_bytes: totals.stream_bytes,
            repeated_bytes: totals.repeated_bytes,
            acked_bytes: totals.acked_bytes,
            spurious: totals.spurious,
            marked_packets: totals.marked,
        })
    }

    /// Shows the controller's internal state.
    pub fn observe(&self, observer: &mut dyn jostle_control::Observer) {
        if let Some(governor) = self.governor()
            && let Some(controller) = governor.controller()
        {
            controller.observe(observer);
        }
    }

    fn governor(&self) -> Option<MutexGuard<'_, Governor>> {
        self.sending.as_ref().map(|sending| sending.governor.lock())
    }

    fn establish(&self, now: Time, rtt: Option<Span>) {
        let Some(sending) = &self.sending else { return };
        let size = u64::from(self.settings.datagram_bytes);
        let window = self.settings.stream_window_bytes.min(self.settings.connection_window_bytes);
        let prospect = Prospect {
            backlog: sending.writing.backlog_bytes().map(|bytes| bytes.div_ceil(size)),
            receive_window: u32::try_from(window / size).unwrap_or(u32::MAX),
            granted: None,
        };
        sending.governor.lock().establish(now, rtt, prospect);
    }

    /// What the stack has to say after a datagram or a timer, and what the controller makes of it.
    fn settle(&mut self, now: Time, observer: &mut impl Observer) {
        self.pass_events();
        while let Some(event) = self.live.as_mut().and_then(|live| live.connection.poll()) {
            self.on_event(now, event);
        }
        let answers = self.stack_answers();
        let Some(mut governor) = self.governor() else { return };
        if let Some(answers) = answers {
            governor.take_stack_answers(answers);
        }
        let report = governor.settle(now);
        drop(governor);
        self.log_state(report.acknowledged.and_then(|ack| ack.rtt));
        tell(now, &report, observer);
    }

    /// What the stack's own controller answers, if one decides.
    fn stack_answers(&self) -> Option<StackAnswers> {
        self.sending.as_ref()?.stack?;
        let metrics = self.live.as_ref()?.connection.congestion_state(PathId::ZERO)?.metrics();
        Some(StackAnswers {
            cwnd_bytes: metrics.congestion_window,
            ssthresh_bytes: metrics.ssthresh.filter(|&bytes| bytes < u64::MAX),
            pacing_rate: metrics.pacing_rate.map(Rate::from_bytes_per_s),
        })
    }

    /// Messages between the stack's connection and its endpoint.
    fn pass_events(&mut self) {
        let Some(live) = &mut self.live else { return };
        while let Some(event) = live.connection.poll_endpoint_events() {
            if event.is_drained() {
                live.closed = true;
            }
            if let Some(answer) = self.endpoint.handle_event(live.handle, event) {
                live.connection.handle_event(answer);
            }
        }
    }

    fn on_event(&mut self, now: Time, event: Event) {
        let Some(live) = &mut self.live else { return };
        match event {
            Event::Connected => {
                live.established = true;
                let refused = live.connection.has_0rtt() && !live.connection.accepted_0rtt();
                let rtt = live.connection.rtt(PathId::ZERO).map(span);
                if refused && let Some(governor) = self.governor() {
                    { governor }.on_early_data_refused();
                }
                self.establish(now, rtt);
            }
            Event::ConnectionLost { reason } => {
                live.closed = true;
                // The other end is done: that is how connections end.
                if !matches!(reason, ConnectionError::ApplicationClosed(_)) {
                    self.error = Some(Error::Lost(reason.to_string()));
                }
            }
            Event::Stream(StreamEvent::Finished { id }) => {
                if let Some(sending) = &mut self.sending {
                    sending.writing.on_finished();
                    sending.governor.lock().forget_stream(id.into());
                }
            }
            Event::Stream(StreamEvent::Opened { dir }) => {
                self.delivered += reading::opened(&mut live.connection, dir);
            }
            Event::Stream(StreamEvent::Readable { id }) => {
                self.delivered += reading::read(&mut live.connection, id);
            }
            _ => {}
        }
    }
}

fn span(duration: Duration) -> Span {
    Span::from_ns(duration.as_nanos() as u64)
}

/// What a sender writes into its packets.
const fn codepoint(feedback: EcnFeedback) -> Ecn {
    match feedback {
        EcnFeedback::None => Ecn::NotCapable,
        EcnFeedback::Classic | EcnFeedback::PerPacket => Ecn::Capable,
        EcnFeedback::Counted => Ecn::L4s,
    }
}

fn tell(now: Time, report: &Report, observer: &mut impl Observer) {
    if report.undone {
        observer.undone(now);
    }
    if report.lost > 0 {
        observer.lost(now, report.lost);
    }
    if let Some(signal) = report.congestion {
        observer.congestion(now, signal);
    }
    if let Some(state) = report.state {
        observer.state(now, state);
    }
    if let Some(ack) = &report.acknowledged {
        observer.acknowledged(now, ack);
    }
}
