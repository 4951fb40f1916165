//! The sender's side of congestion control, between the stack and a controller: what is in flight, what
//! an ACK says, recovery, pacing.
//!
//! The stack tells what happens while it works on a datagram or a timer. That is written down
//! ([`Shared`] is what its hooks see), and told to the controller in the controller's own order
//! when the stack is done (`settle`): it asks for no window in between.

mod burst;
mod flights;
mod recovery;
mod report;
mod sending;
mod settle;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jostle_control::transport::{Pacer, Reduction, WindowUse};
use jostle_control::{
    Controller, EcnFeedback, Established, LostPacket, Prospect, RecoveryOwner, RecoveryState,
    RttEstimator, Sampler,
};
use jostle_units::{Rate, Span, Time};

use crate::clock::Clock;
use crate::crypto::{Level, Witness};
use crate::frames::{self, AckFrame, SentOffsets};
use crate::qlog::Log;
use crate::settings::{Recovery, Settings};
use burst::Burst;
use flights::Flights;

pub use report::Acknowledged;
pub(crate) use report::Report;

/// A governor, as the stack's hooks and the end share it. Nobody else ever holds the lock, since a
/// connection is worked on by one thread; it is there because the stack asks for `Sync`.
pub(crate) struct Shared(Mutex<Governor>);

impl Shared {
    pub fn new(governor: Governor) -> Self {
        Self(Mutex::new(governor))
    }

    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, Governor> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Witness for Shared {
    fn sealing(&self, level: Level, packet: u64, _: &[u8], payload: &[u8]) {
        self.lock().on_sealing(level, packet, payload);
    }

    fn opened(&self, level: Level, _: u64, _: &[u8], payload: &[u8]) {
        self.lock().on_opened(level, payload);
    }
}

/// What of a packet is known from its contents, until the stack says that it was sent.
#[derive(Clone, Copy, Debug)]
struct Sealed {
    level: Level,
    packet: u64,
    stream_bytes: u32,
}

/// What happened since the last settlement.
#[derive(Debug, Default)]
struct News {
    /// Packets that ACKs delivered.
    acked: u32,
    /// Bytes of streams in them.
    stream_bytes: u64,
    /// The packet delivered that was sent last: its number, and when.
    newest: Option<(u64, Time)>,
    /// The last ACK in the data space.
    ack: Option<AckFrame>,
    lost: Vec<LostPacket>,
    lost_bytes: u64,
    /// Number of the last packet lost, if losses mean congestion.
    congestion: Option<u64>,
    /// The losses span a period of persistent congestion.
    persistent: bool,
    /// Everything that was deemed lost was acknowledged after all.
    spurious: bool,
}

/// Bytes and packets since the connection began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub sent: u64,
    pub sent_bytes: u64,
    pub lost: u64,
    pub lost_bytes: u64,
    pub acked_bytes: u64,
    pub stream_bytes: u64,
    pub repeated_bytes: u64,
    pub spurious: u64,
    pub marked: u64,
}

/// What one of the stack's own controllers answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackAnswers {
    pub cwnd_bytes: u64,
    /// None where it has no such threshold, and while it is infinite.
    pub ssthresh_bytes: Option<u64>,
    pub pacing_rate: Option<Rate>,
}

/// The sender's side of congestion control.
pub(crate) struct Governor {
    pub(crate) clock: Clock,
    /// None where the stack's own controller decides.
    controller: Option<Box<dyn Controller>>,
    owner: RecoveryOwner,
    feedback: EcnFeedback,
    recovery: Recovery,
    paced: bool,
    burst_max: u32,
    initial_window: u32,
    /// `max_datagram_size`.
    datagram_bytes: u32,
    established: bool,

    flights: Flights,
    sampler: Sampler,
    rtt: RttEstimator,
    /// `max_ack_delay` of the receiver.
    max_ack_delay: Span,
    offsets: SentOffsets,
    sealed: Option<Sealed>,
    /// Level of the packet that is being taken in.
    opened: Level,
    largest_acked: Option<u64>,
    /// Packets that ACKs reported as marked.
    marked: u64,

    /// Copies of the controller's answers.
    cwnd: u32,
    ssthresh: u32,
    rate_required: bool,
    wakeup: Time,
    /// Of the stack's own controller.
    stack_rate: Option<Rate>,

    pacer: Pacer,
    burst: Burst,
    now: Time,
    /// Pacing held a packet back.
    held: bool,
    /// The window held a packet back when the end sent last.
    window_limited: bool,
    /// One packet may go beyond the window (RFC 9002, B.6: `MaybeSendOnePacket`).
    extra_packet: bool,

    state: RecoveryState,
    /// The number of the first packet that was not yet sent when the present or the last episode began.
    high: u64,
    reduction: Reduction,
    /// The last reduction may prove to be needless.
    reversible: bool,
    usage: WindowUse,

    news: News,
    totals: Totals,
    repeated_in_datagram: u32,
    log: Option<Arc<Log>>,
}

impl Governor {
    /// `log` is told of what is lost.
    pub fn new(
        settings: &Settings,
        clock: Clock,
        controller: Option<Box<dyn Controller>>,
        log: Option<Arc<Log>>,
    ) -> Self {
        let owner = controller.as_ref().map_or(RecoveryOwner::Transport, |it| it.recovery_owner());
        let of_stack = controller.is_none();
        let required = controller.as_ref().is_some_and(|it| it.pacing_rate().is_some());
        let needed = controller.as_ref().map_or(EcnFeedback::None, |it| it.needs_ecn());
        let feedback = match (settings.ecn, needed) {
            (true, EcnFeedback::None) => EcnFeedback::Classic,
            (_, needed) => needed,
        };
        Self {
            clock,
            controller,
            owner,
            feedback,
            recovery: settings.recovery,
            // The stack paces its own controllers itself.
            paced: settings.pacing && !of_stack,
            burst_max: u32::from(settings.burst_datagrams),
            initial_window: settings.initial_window_packets,
            datagram_bytes: u32::from(settings.datagram_bytes),
            established: false,
            flights: Flights::default(),
            sampler: Sampler::default(),
            rtt: RttEstimator::default(),
            max_ack_delay: settings.max_ack_delay(),
            offsets: SentOffsets::default(),
            sealed: None,
            opened: Level::Initial,
            largest_acked: None,
            marked: 0,
            cwnd: settings.initial_window_packets,
            ssthresh: u32::MAX,
            rate_required: required,
            wakeup: Time::NEVER,
            stack_rate: None,
            pacer: Pacer::new(settings.pacing && !of_stack || required),
            burst: Burst::default(),
            now: Time::ZERO,
            held: false,
            window_limited: false,
            extra_packet: false,
            state: RecoveryState::Open,
            high: 0,
            reduction: Reduction::default(),
            reversible: false,
            usage: WindowUse::new(),
            news: News::default(),
            totals: Totals::default(),
            repeated_in_datagram: 0,
            log,
        }
    }

    /// How the receiver tells of marks.
    pub const fn feedback(&self) -> EcnFeedback {
        self.feedback
    }

    /// None: one of the stack decides.
    pub fn controller(&self) -> Option<&dyn Controller> {
        self.controller.as_deref()
    }

    pub fn controller_mut(&mut self) -> Option<&mut Box<dyn Controller>> {
        self.controller.as_mut()
    }

    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    pub fn srtt(&self) -> Span {
        self.rtt.srtt()
    }

    pub fn min_rtt(&self) -> Span {
        self.rtt.min_rtt()
    }

    pub const fn cwnd(&self) -> u32 {
        self.cwnd
    }

    pub fn in_flight_bytes(&self) -> u64 {
        self.flights.bytes()
    }

    pub const fn datagram_bytes(&self) -> u32 {
        self.datagram_bytes
    }

    pub fn visible_pacing_rate(&self) -> Option<Rate> {
        self.pacer.visible_rate().or(self.stack_rate)
    }

    /// Slow-start threshold in packets; none while there is none.
    pub fn ssthresh(&self) -> Option<u32> {
        match &self.controller {
            Some(controller) => controller.ssthresh(),
            None => (self.ssthresh < u32::MAX).then_some(self.ssthresh),
        }
    }

    /// Name of the mode for plots: recovery hides the controller's own.
    pub fn mode(&self) -> &'static str {
        match (self.state, self.owner, &self.controller) {
            (RecoveryState::Loss, ..) => "timeout",
            (RecoveryState::Recovery, RecoveryOwner::Transport, _) => "recovery",
            (RecoveryState::Cwr, RecoveryOwner::Transport, _) => "cwr",
            (.., Some(controller)) => controller.mode(),
            (.., None) if self.ssthresh == u32::MAX => "stack",
            (.., None) if self.cwnd < self.ssthresh => "slow_start",
            (.., None) => "congestion_avoidance",
        }
    }

    /// A stream is over.
    pub fn forget_stream(&mut self, stream: u64) {
        self.offsets.forget(stream);
    }

    /// The handshake is complete, or data are about to leave before it is. `rtt`: what was measured of it.
    pub fn establish(&mut self, now: Time, rtt: Option<Span>, prospect: Prospect) {
        if self.established {
            return;
        }
        self.established = true;
        if let Some(rtt) = rtt {
            self.rtt.on_sample(rtt, 0, 1);
            self.rtt.on_min_sample(now, rtt);
        }
        self.usage.since = now;
        let (mss_bytes, initial_window) = (self.datagram_bytes, self.initial_window);
        if let Some(controller) = &mut self.controller {
            controller.on_ecn_negotiated(self.feedback);
            // A controller that falls back to another one is that from here on.
            self.owner = controller.recovery_owner();
            controller.on_established(&Established {
                now,
                mss_bytes,
                initial_window,
                rtt,
                prospect,
            });
        }
        self.take_answers();
        self.update_pacing_rate();
        // The first write finds the network idle, as in this project's TCP.
        self.sampler.set_app_limited(0);
    }

    /// Data that were sent before the handshake was complete are not accepted.
    pub fn on_early_data_refused(&mut self) {
        self.flights.clear();
    }

    /// A packet is about to be sealed.
    pub fn on_sealing(&mut self, level: Level, packet: u64, payload: &[u8]) {
        let mut stream_bytes = 0;
        if level == Level::Data {
            let frames = frames::read(payload, Some(&mut self.offsets));
            stream_bytes = frames.stream_bytes;
            self.totals.stream_bytes += u64::from(stream_bytes - frames.repeated_bytes);
            self.totals.repeated_bytes += u64::from(frames.repeated_bytes);
            self.repeated_in_datagram += frames.repeated_bytes;
        }
        self.sealed = Some(Sealed { level, packet, stream_bytes });
    }

    /// A packet was opened. What its ACK brings about follows.
    pub fn on_opened(&mut self, level: Level, payload: &[u8]) {
        self.opened = level;
        if level == Level::Data
            && let Some(ack) = frames::read(payload, None).ack
        {
            self.news.ack = Some(ack);
        }
    }

    /// What one of the stack's own controllers answers.
    pub fn take_stack_answers(&mut self, answers: StackAnswers) {
        let packets = |bytes: u64| {
            let packets = bytes / u64::from(self.datagram_bytes);
            u32::try_from(packets).unwrap_or(u32::MAX)
        };
        self.cwnd = packets(answers.cwnd_bytes).max(1);
        self.ssthresh = answers.ssthresh_bytes.map_or(u32::MAX, packets);
        self.stack_rate = answers.pacing_rate;
    }

    /// Copies all of the controller's answers.
    fn take_answers(&mut self) {
        let Some(controller) = &self.controller else { return };
        debug_assert!(controller.cwnd() >= 1, "no window");
        self.cwnd = controller.cwnd().max(1);
        self.ssthresh = controller.ssthresh().unwrap_or(u32::MAX);
        let required = controller.pacing_rate();
        if let Some(rate) = required {
            self.pacer.rate = rate;
        }
        self.rate_required = required.is_some();
        self.pacer.on = self.paced || self.rate_required;
        self.wakeup = controller.next_wakeup().unwrap_or(Time::NEVER);
    }

    fn set_cwnd(&mut self, cwnd: u32) {
        if let Some(controller) = &mut self.controller {
            controller.set_cwnd(cwnd.max(1));
            self.cwnd = controller.cwnd().max(1);
        }
    }

    fn owns_window(&self) -> bool {
        self.owner == RecoveryOwner::Transport
    }

    /// The path takes datagrams of another size: as many bytes stay in flight
    /// (`tcp_mtup_probe_success` in Linux), and no fewer packets than the initial window that is
    /// still unused. RFC 9002 §7.2: "the initial congestion window SHOULD be recalculated with the
    /// new size".
    pub fn on_datagram_size(&mut self, bytes: u16) {
        let (old, new) = (self.datagram_bytes, u32::from(bytes));
        if old == new {
            return;
        }
        self.datagram_bytes = new;
        if let Some(controller) = &mut self.controller
            && self.established
        {
            controller.on_packet_size(new);
            let cwnd = (u64::from(self.cwnd) * u64::from(old)).div_ceil(u64::from(new)) as u32;
            let least = self.cwnd.min(self.initial_window);
            if self.owner == RecoveryOwner::Transport {
                self.set_cwnd(cwnd.max(least));
            }
            self.take_answers();
        }
    }
}
