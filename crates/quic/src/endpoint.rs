//! One endpoint of a QUIC connection.

mod config;
mod datagrams;
mod sender_state;
mod stream_reader;
mod stream_writer;

use std::num::NonZeroUsize;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use bytes::BytesMut;
use jostle_congestion::peer_cache::{PeerCache, PeerCacheContext};
use jostle_congestion::{CongestionController, EcnFeedback, FirstFlightLimits};
use jostle_units::{Ecn, Rate, Span, Time, VirtualClock};
use noq_proto::{
    Connection, ConnectionError, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint,
    EndpointEvent, Event, FourTuple, PathId, StreamEvent, VarInt,
};

use crate::congestion::{CongestionState, SharedCongestionState, StackControllerState};
use crate::crypto::Secrets;
use crate::qlog::QlogWriter;
use crate::sender_observer::{SenderObserver, report_flush};
use crate::settings::{Congestion, Settings, StackController};
use crate::stats::Transmission;
use crate::{Error, Handshake};
use stream_reader::{ArrivedFrames, StreamReader};
use stream_writer::StreamWriter;

/// Block size of the receive buffer. A block is reused when nothing refers to it any more.
const ARENA_BYTES: usize = 1 << 16;

struct ActiveConnection {
    handle: ConnectionHandle,
    connection: Connection,
    established: bool,
    closed: bool,
    /// The next datagrams may be probes: a timer has expired, or the handshake is not complete.
    may_probe: bool,
}

impl ActiveConnection {
    const fn new(handle: ConnectionHandle, connection: Connection) -> Self {
        Self { handle, connection, established: false, closed: false, may_probe: true }
    }
}

/// State of a sending endpoint.
struct SenderSide {
    congestion: Arc<SharedCongestionState>,
    stack: Option<StackController>,
    writing: StreamWriter,
    /// Number of connections opened so far.
    opened: u64,
}

/// One endpoint of a connection: the client, which sends data, or the server, which receives them.
///
/// After every call the endpoint can have datagrams to send (call [`transmit`](Self::transmit)
/// until it returns `None`) and a new deadline ([`next_time`](Self::next_time)). Times can be
/// virtual or come from a monotonic clock: only their differences matter.
pub struct QuicEndpoint {
    settings: Settings,
    seed: u64,
    clock: VirtualClock,
    endpoint: Endpoint,
    live: Option<ActiveConnection>,
    sending: Option<SenderSide>,
    reading: StreamReader,
    /// Frames of a server.
    arrived: Arc<ArrivedFrames>,
    delivered: u64,
    /// Space in the stack's send buffer for datagrams when it is empty.
    datagram_space: usize,
    /// ECN codepoint that the peer used last. An endpoint that only sends ACKs uses the same.
    echoed: Ecn,
    arena: BytesMut,
    scratch: Vec<u8>,
    /// Responses that belong to no connection.
    answers: Vec<Vec<u8>>,
    secrets: Arc<Secrets>,
    log: Option<Arc<QlogWriter>>,
    error: Option<Error>,
}

impl QuicEndpoint {
    /// Creates the client, which connects and sends data. `seed` determines all random numbers.
    ///
    /// # Errors
    ///
    /// If a setting is out of range.
    pub fn client(settings: &Settings, seed: u64, congestion: Congestion) -> Result<Self, Error> {
        settings.check()?;
        let endpoint = Endpoint::new(config::endpoint(settings, seed, "client"), None, true);
        let log = settings.log.as_ref().map(|title| Arc::new(QlogWriter::new(title, true)));
        let mut end = Self::new(settings, seed, endpoint, Default::default(), log);
        end.sending = Some(end.sending(congestion, 0));
        Ok(end)
    }

    /// Creates the server, which accepts connections and receives data.
    ///
    /// # Errors
    ///
    /// If a setting is out of range.
    pub fn server(settings: &Settings, seed: u64) -> Result<Self, Error> {
        settings.check()?;
        let shared = <(Arc<Secrets>, Arc<ArrivedFrames>)>::default();
        let log = settings.log.as_ref().map(|title| Arc::new(QlogWriter::new(title, false)));
        let server = Arc::new(config::server(settings, seed, &shared, log.clone())?);
        let config = config::endpoint(settings, seed, "server");
        Ok(Self::new(settings, seed, Endpoint::new(config, Some(server), true), shared, log))
    }

    fn new(
        settings: &Settings,
        seed: u64,
        endpoint: Endpoint,
        (secrets, arrived): (Arc<Secrets>, Arc<ArrivedFrames>),
        log: Option<Arc<QlogWriter>>,
    ) -> Self {
        Self {
            settings: settings.clone(),
            seed,
            clock: VirtualClock::new(),
            endpoint,
            live: None,
            sending: None,
            reading: StreamReader::new(settings),
            arrived,
            delivered: 0,
            datagram_space: 0,
            echoed: Ecn::NotCapable,
            arena: BytesMut::new(),
            scratch: Vec::new(),
            answers: Vec::new(),
            secrets,
            log,
            error: None,
        }
    }

    fn sending(&self, congestion: Congestion, opened: u64) -> SenderSide {
        let (controller, stack) = match congestion {
            Congestion::Ours(controller) => (Some(controller), None),
            Congestion::Stack(stack) => (None, Some(stack)),
        };
        let congestion =
            CongestionState::new(&self.settings, self.clock, controller, self.log.clone());
        let congestion = Arc::new(SharedCongestionState::new(congestion));
        SenderSide { congestion, stack, writing: StreamWriter::default(), opened }
    }

    /// Opens the connection, unless it is open.
    ///
    /// # Errors
    ///
    /// If a setting is out of range, or this endpoint is a server.
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
        let congestion = Arc::clone(&sending.congestion);
        let noted = (&self.secrets, self.log.as_ref());
        let config = config::client(&self.settings, seed, congestion, sending.stack, noted)?;
        let instant = self.clock.instant(now);
        let (handle, connection) = self
            .endpoint
            .connect(instant, config, config::SERVER, "localhost")
            .map_err(|error| Error::Connect(error.to_string()))?;
        self.live = Some(ActiveConnection::new(handle, connection));
        if self.settings.handshake == Handshake::ZeroRtt {
            self.establish(now, None);
        }
        Ok(())
    }

    /// Closes the connection. Unsent data are discarded.
    pub fn close(&mut self, now: Time) {
        self.log_at(now);
        let instant = self.clock.instant(now);
        if let Some(live) = &mut self.live {
            live.connection.close(instant, VarInt::from_u32(0), bytes::Bytes::new());
            live.closed = true;
        }
    }

    /// Discards the connection and sets the controller for the next one, which [`open`](Self::open)
    /// creates.
    pub fn renew(&mut self, congestion: Congestion) {
        self.forget();
        let opened = self.sending.as_ref().map_or(0, |sending| sending.opened);
        self.sending = Some(self.sending(congestion, opened));
    }

    fn forget(&mut self) {
        self.reading = StreamReader::new(&self.settings);
        self.arrived.lock().clear();
        if let Some(live) = self.live.take() {
            self.endpoint.handle_event(live.handle, EndpointEvent::drained());
        }
    }

    /// Passes the peer cache to the controller at the start of the connection. Call it while
    /// [`is_established`](Self::is_established) is false, before any call that can complete the
    /// handshake or write 0-RTT data.
    pub fn recall(&mut self, now: Time, memory: &mut PeerCache) {
        let peer = self.settings.peer;
        self.with_controller(|controller| {
            if let Some(host) = controller.host_extension() {
                host.on_connection_open(&mut PeerCacheContext { now, peer, memory });
            }
        });
    }

    /// Passes the peer cache to the controller at the end of the connection, to save its state.
    pub fn remember(&mut self, now: Time, memory: &mut PeerCache) {
        let peer = self.settings.peer;
        self.with_controller(|controller| {
            if let Some(host) = controller.host_extension() {
                host.on_connection_close(&mut PeerCacheContext { now, peer, memory });
            }
        });
    }

    fn with_controller(&mut self, action: impl FnOnce(&mut Box<dyn CongestionController>)) {
        if let Some(sending) = &self.sending
            && let Some(controller) = sending.congestion.lock().controller_mut()
        {
            action(controller);
        }
    }

    /// Supplies `bytes` of application data, or unlimited data if `bytes` is `None`.
    pub fn supply(&mut self, bytes: Option<u64>) {
        if let Some(sending) = &mut self.sending {
            sending.writing.supply(bytes, self.settings.streams);
        }
    }

    /// Appends `bytes` of application data to the open stream. The `last` data end the stream.
    pub fn append(&mut self, bytes: u64, last: bool) {
        if let Some(sending) = &mut self.sending {
            sending.writing.append(bytes, last);
        }
    }

    /// Ends the application data and discards data that the stack has not accepted yet. Returns
    /// whether any data were discarded.
    pub fn withdraw(&mut self) -> bool {
        let connection = self.live.as_mut().map(|live| &mut live.connection);
        self.sending.as_mut().is_some_and(|sending| sending.writing.withdraw(connection))
    }

    /// Returns whether all written data are acknowledged.
    pub fn is_drained(&self) -> bool {
        let drained = self.sending.as_ref().is_none_or(|sending| sending.writing.is_drained());
        self.is_established() && drained
    }

    /// Returns whether the handshake is complete.
    pub fn is_established(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.established)
    }

    /// Returns the stream bytes that arrived since the last call.
    pub fn take_delivered(&mut self) -> u64 {
        std::mem::take(&mut self.delivered)
    }

    /// Returns the stream bytes that a slow application has not read
    /// ([`Settings::slow_reader`]).
    pub const fn unread_bytes(&self) -> u64 {
        self.reading.backlog_bytes()
    }

    /// Reads `bytes` of the unread data, which returns their part of the receive window.
    pub fn read(&mut self, bytes: u64) {
        self.reading.consume(bytes);
        if let Some(live) = &mut self.live {
            self.reading.adapt_credit(&mut live.connection);
        }
    }

    /// Returns the secrets that became known since the last call, as complete lines in the format
    /// of `SSLKEYLOGFILE`, or `None`. The server knows all of them before it responds.
    pub fn take_secrets(&mut self) -> Option<String> {
        self.secrets.take()
    }

    /// Moves the qlog records since the last call to the end of `text`.
    pub fn take_log(&mut self, text: &mut String) {
        if let Some(log) = &self.log {
            log.take(text);
        }
    }

    /// Sets the time of the following log records.
    fn log_at(&self, now: Time) {
        if let Some(log) = &self.log {
            log.at(now);
        }
    }

    /// Logs the state of the sender and its latest RTT sample.
    fn log_state(&self, latest: Option<Span>) {
        if let Some(log) = &self.log
            && let Some(state) = self.state()
        {
            log.state(&state, latest);
        }
    }

    /// Returns the error that ended the connection, if there was one.
    pub fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }

    /// Processes a received datagram.
    pub fn receive(
        &mut self,
        now: Time,
        ecn: Ecn,
        payload: &[u8],
        observer: &mut impl SenderObserver,
    ) {
        self.log_at(now);
        let codepoint = match ecn {
            Ecn::NotCapable => None,
            // The stack supports one ECT codepoint and treats the other one as corruption. Both
            // endpoints are of this crate, and only CE marks are counted.
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
                        self.live = Some(ActiveConnection::new(handle, connection));
                    }
                    Err(error) => self.error = Some(Error::Connect(error.cause.to_string())),
                }
            }
            Some(DatagramEvent::Response(transmit)) => {
                self.answers.push(self.scratch[..transmit.size].to_vec());
            }
            None => {}
        }
        self.flush_events(now, observer);
    }

    /// Returns the time at which to call [`on_time`](Self::on_time) if nothing happens before;
    /// [`Time::NEVER`] if no deadline is set.
    pub fn next_time(&self) -> Time {
        let Some(live) = &self.live else { return Time::NEVER };
        let timeout = live.connection.poll_timeout();
        let stack = timeout.map_or(Time::NEVER, |instant| self.clock.time(instant));
        let next = match &self.sending {
            Some(sending) if !live.closed => {
                let congestion = sending.congestion.lock();
                stack.min(congestion.departure()).min(congestion.wakeup())
            }
            _ => stack,
        };
        self.settings.timers.with_slack(next)
    }

    /// Handles deadlines that have passed.
    pub fn on_time(&mut self, now: Time, observer: &mut impl SenderObserver) {
        self.log_at(now);
        let instant = self.clock.instant(now);
        if let Some(live) = &mut self.live
            && live.connection.poll_timeout().is_some_and(|timeout| timeout <= instant)
        {
            live.connection.handle_timeout(instant);
            live.may_probe = true;
        }
        if let Some(congestion) = self.congestion() {
            { congestion }.on_time(now);
        }
        self.flush_events(now, observer);
    }

    /// Writes the next datagrams to `buffer`, which is cleared first. Call it until it returns
    /// `None`.
    pub fn transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Transmission> {
        buffer.clear();
        self.log_at(now);
        if let Some(answer) = self.answers.pop() {
            buffer.extend_from_slice(&answer);
            let bytes = buffer.len();
            let ecn = Ecn::NotCapable;
            return Some(Transmission {
                ecn,
                bytes,
                datagram_bytes: bytes,
                retransmitted_bytes: 0,
            });
        }
        let live = self.live.as_mut()?;
        if let Some(sending) = &mut self.sending {
            let (sent, acked) = {
                let mut congestion = sending.congestion.lock();
                congestion.begin_sending(now);
                let totals = congestion.totals();
                (totals.stream_bytes, totals.acked_bytes)
            };
            if live.established || live.connection.has_0rtt() {
                let burst = u64::from(self.settings.burst_datagrams);
                let unsent_max = 2 * burst * u64::from(self.settings.datagram_bytes);
                sending.writing.pump(&mut live.connection, sent, acked, unsent_max);
            }
        }
        // The first datagram of a batch determines the size of the others. After a probe, the stack
        // would write an ACK_FREQUENCY frame into too little space, and panic (noq-proto 1.4).
        let is_single = live.may_probe && self.settings.ack_frequency.is_some();
        let most = if is_single { 1 } else { usize::from(self.settings.burst_datagrams) };
        let most = NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN);
        let instant = self.clock.instant(now);
        let transmit = live.connection.poll_transmit(instant, most, buffer);
        let Some(transmit) = transmit else {
            live.may_probe = !live.established;
            if let Some(sending) = &self.sending {
                let mut congestion = sending.congestion.lock();
                congestion.end_sending(sending.writing.written(self.settings.send_buffer_bytes));
            }
            self.log_state(None);
            return None;
        };
        let (ecn, repeated_bytes) = match &self.sending {
            None => (self.echoed, 0),
            Some(sending) => {
                let mut congestion = sending.congestion.lock();
                (codepoint(congestion.feedback()), congestion.take_retransmitted_bytes())
            }
        };
        let ecn = if transmit.ecn.is_some() { ecn } else { Ecn::NotCapable };
        let datagram_bytes = transmit.segment_size.unwrap_or(transmit.size);
        Some(Transmission {
            ecn,
            bytes: transmit.size,
            datagram_bytes,
            retransmitted_bytes: repeated_bytes,
        })
    }

    fn congestion(&self) -> Option<MutexGuard<'_, CongestionState>> {
        self.sending.as_ref().map(|sending| sending.congestion.lock())
    }

    fn establish(&self, now: Time, rtt: Option<Span>) {
        let Some(sending) = &self.sending else { return };
        let size = u64::from(self.settings.datagram_bytes);
        let window = self.settings.stream_window_bytes.min(self.settings.connection_window_bytes);
        let prospect = FirstFlightLimits {
            send_backlog_packets: sending.writing.backlog_bytes().map(|bytes| bytes.div_ceil(size)),
            receive_window: u32::try_from(window / size).unwrap_or(u32::MAX),
            quick_start_rate: None,
        };
        sending.congestion.lock().establish(now, rtt, prospect);
    }

    /// Passes the stack's events after a datagram or a timer to the controller.
    fn flush_events(&mut self, now: Time, observer: &mut impl SenderObserver) {
        self.exchange_endpoint_events();
        for frame in self.arrived.lock().drain(..) {
            self.delivered += self.reading.add(frame);
        }
        while let Some(event) = self.live.as_mut().and_then(|live| live.connection.poll()) {
            self.on_event(now, event);
        }
        if let Some(live) = self.live.as_mut().filter(|_| self.sending.is_none()) {
            self.reading.adapt_credit(&mut live.connection);
        }
        let answers = self.stack_controller_state();
        let Some(mut congestion) = self.congestion() else { return };
        if let Some(answers) = answers {
            congestion.read_stack_controller(answers);
        }
        let report = congestion.flush(now);
        drop(congestion);
        self.log_state(report.acknowledged.and_then(|ack| ack.rtt));
        report_flush(now, &report, observer);
    }

    /// Returns the metrics of the stack's own controller, if it is in use.
    fn stack_controller_state(&self) -> Option<StackControllerState> {
        self.sending.as_ref()?.stack?;
        let metrics = self.live.as_ref()?.connection.congestion_state(PathId::ZERO)?.metrics();
        Some(StackControllerState {
            cwnd_bytes: metrics.congestion_window,
            ssthresh_bytes: metrics.ssthresh.filter(|&bytes| bytes < u64::MAX),
            pacing_rate: metrics.pacing_rate.map(Rate::from_bytes_per_s),
        })
    }

    /// Exchanges events between the stack's connection and its endpoint.
    fn exchange_endpoint_events(&mut self) {
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
                if refused && let Some(congestion) = self.congestion() {
                    { congestion }.on_early_data_refused();
                }
                self.establish(now, rtt);
            }
            Event::ConnectionLost { reason } => {
                live.closed = true;
                // The peer closed the connection, which is the regular end.
                if !matches!(reason, ConnectionError::ApplicationClosed(_)) {
                    self.error = Some(Error::Lost(reason.to_string()));
                }
            }
            Event::Stream(StreamEvent::Finished { id }) => {
                if let Some(sending) = &mut self.sending {
                    sending.writing.on_finished();
                    sending.congestion.lock().forget_stream(id.into());
                }
            }
            Event::Stream(StreamEvent::Opened { dir }) => {
                self.reading.read_opened(&mut live.connection, dir);
            }
            Event::Stream(StreamEvent::Readable { id }) => {
                self.reading.read(&mut live.connection, id);
            }
            _ => {}
        }
    }
}

fn span(duration: Duration) -> Span {
    Span::from_ns(duration.as_nanos() as u64)
}

/// Returns the ECN codepoint of the sender's packets.
const fn codepoint(feedback: EcnFeedback) -> Ecn {
    match feedback {
        EcnFeedback::None => Ecn::NotCapable,
        EcnFeedback::Classic | EcnFeedback::DctcpEcho => Ecn::Capable,
        EcnFeedback::AccEcn => Ecn::L4s,
    }
}
