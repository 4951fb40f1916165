//! Congestion control of the sender, between the QUIC stack and a controller: bytes in flight, ACK
//! processing, recovery, pacing.
//!
//! The stack reports events while it processes a datagram or a timer. [`SharedCongestionState`]
//! stores them, and `flush` passes them to the controller in the order that the controller expects
//! when the stack has finished. The stack does not read cwnd in between.

mod ack_report;
mod burst;
mod flush;
mod pacing;
mod recovery;
mod sent_packets;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jostle_congestion::transport::{CwndUsage, Pacer, ProportionalRateReduction};
use jostle_congestion::{
    CongestionController, CwndReductionBy, DeliveryRateSampler, EcnFeedback, EstablishedEvent,
    FirstFlightLimits, LostPacket, RecoveryState, RttEstimator,
};
use jostle_units::{Rate, SendLimit, Span, Time, VirtualClock};

use crate::crypto::{EncryptionLevel, PacketInspector};
use crate::frames::{self, AckFrame, SentOffsets};
use crate::qlog::QlogWriter;
use crate::settings::{Recovery, Settings};
use burst::{Burst, UnpacedBurst};
use sent_packets::SentPackets;

pub use ack_report::AckOutcome;
pub(crate) use ack_report::FlushReport;
pub(crate) use pacing::WrittenData;

/// Congestion state, shared by the stack's hooks and the endpoint. The lock is never contended,
/// because one thread processes a connection. It exists because the stack requires `Sync`.
pub(crate) struct SharedCongestionState(Mutex<CongestionState>);

impl SharedCongestionState {
    pub fn new(congestion: CongestionState) -> Self {
        Self(Mutex::new(congestion))
    }

    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, CongestionState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PacketInspector for SharedCongestionState {
    fn sealing(&self, level: EncryptionLevel, packet: u64, _: &[u8], payload: &[u8]) {
        self.lock().on_sealing(level, packet, payload);
    }

    fn opened(&self, level: EncryptionLevel, _: u64, _: &[u8], payload: &[u8]) {
        self.lock().on_opened(level, payload);
    }
}

/// Properties of a packet that are read when it is sealed, before the stack reports it as sent.
#[derive(Clone, Copy, Debug)]
struct SealedPacket {
    level: EncryptionLevel,
    packet: u64,
    stream_bytes: u32,
}

/// Events since the last flush.
#[derive(Debug, Default)]
struct PendingEvents {
    /// Packets newly acknowledged.
    acked: u32,
    /// Stream bytes in these packets.
    stream_bytes: u64,
    /// Number and send time of the acknowledged packet that was sent last.
    newest: Option<(u64, Time)>,
    /// Last ACK in the application data space.
    ack: Option<AckFrame>,
    lost: Vec<LostPacket>,
    lost_bytes: u64,
    /// Number of the last lost packet, if the losses are a congestion event.
    congestion: Option<u64>,
    /// Whether the losses establish persistent congestion.
    persistent: bool,
    /// Whether all packets declared lost were acknowledged later.
    spurious: bool,
}

/// Bytes and packets since the start of the connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CongestionTotals {
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

/// Metrics of one of the stack's own controllers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackControllerState {
    pub cwnd_bytes: u64,
    /// `None` if the controller has no ssthresh or it is infinite.
    pub ssthresh_bytes: Option<u64>,
    pub pacing_rate: Option<Rate>,
}

/// Congestion control of the sender.
pub(crate) struct CongestionState {
    pub(crate) clock: VirtualClock,
    /// `None` if one of the stack's own controllers is in use.
    controller: Option<Box<dyn CongestionController>>,
    owner: CwndReductionBy,
    feedback: EcnFeedback,
    recovery: Recovery,
    paced: bool,
    burst_max: u32,
    /// Maximum number of packets sent at one instant without pacing.
    unpaced_burst_max: u32,
    initial_window: u32,
    /// `max_datagram_size`.
    datagram_bytes: u32,
    established: bool,

    flights: SentPackets,
    sampler: DeliveryRateSampler,
    rtt: RttEstimator,
    /// `max_ack_delay` of the receiver.
    max_ack_delay: Span,
    offsets: SentOffsets,
    sealed: Option<SealedPacket>,
    /// Encryption level of the packet that is being processed.
    opened: EncryptionLevel,
    largest_acked: Option<u64>,
    /// Packets that ACKs reported with a CE mark.
    marked: u64,

    /// Copies of the controller's outputs.
    cwnd: u32,
    ssthresh: u32,
    rate_required: bool,
    wakeup: Time,
    /// Pacing rate of the stack's own controller.
    stack_rate: Option<Rate>,

    pacer: Pacer,
    burst: Burst,
    unpaced: UnpacedBurst,
    now: Time,
    /// Pacing or the limit of unpaced bursts delayed a packet.
    held: bool,
    /// cwnd prevented a packet when the endpoint sent last.
    window_limited: bool,
    /// Limit that ended the last round of sending. `None` before the handshake is complete.
    limit: Option<SendLimit>,
    /// One packet may exceed cwnd (RFC 9002 §B.6: `MaybeSendOnePacket`).
    extra_packet: bool,

    state: RecoveryState,
    /// First packet number that was not sent yet when the current or last recovery period began.
    high: u64,
    reduction: ProportionalRateReduction,
    /// The last reduction can be undone.
    reversible: bool,
    usage: CwndUsage,

    news: PendingEvents,
    totals: CongestionTotals,
    repeated_in_datagram: u32,
    log: Option<Arc<QlogWriter>>,
}

impl CongestionState {
    /// Creates the state. Lost packets are written to `log`.
    pub fn new(
        settings: &Settings,
        clock: VirtualClock,
        controller: Option<Box<dyn CongestionController>>,
        log: Option<Arc<QlogWriter>>,
    ) -> Self {
        let owner =
            controller.as_ref().map_or(CwndReductionBy::Transport, |it| it.recovery_owner());
        let of_stack = controller.is_none();
        let required = controller.as_ref().is_some_and(|it| it.pacing_rate().is_some());
        let needed = controller.as_ref().map_or(EcnFeedback::None, |it| it.required_ecn_feedback());
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
            // The stack paces its own controllers.
            paced: settings.pacing && !of_stack,
            burst_max: u32::from(settings.burst_datagrams),
            unpaced_burst_max: settings
                .unpaced_burst_packets
                .unwrap_or(settings.initial_window_packets),
            initial_window: settings.initial_window_packets,
            datagram_bytes: u32::from(settings.datagram_bytes),
            established: false,
            flights: SentPackets::default(),
            sampler: DeliveryRateSampler::default(),
            rtt: RttEstimator::default(),
            max_ack_delay: settings.max_ack_delay(),
            offsets: SentOffsets::default(),
            sealed: None,
            opened: EncryptionLevel::Initial,
            largest_acked: None,
            marked: 0,
            cwnd: settings.initial_window_packets,
            ssthresh: u32::MAX,
            rate_required: required,
            wakeup: Time::NEVER,
            stack_rate: None,
            pacer: Pacer::new(settings.pacing && !of_stack || required),
            burst: Burst::default(),
            unpaced: UnpacedBurst::default(),
            now: Time::ZERO,
            held: false,
            window_limited: false,
            limit: None,
            extra_packet: false,
            state: RecoveryState::Open,
            high: 0,
            reduction: ProportionalRateReduction::default(),
            reversible: false,
            usage: CwndUsage::new(),
            news: PendingEvents::default(),
            totals: CongestionTotals::default(),
            repeated_in_datagram: 0,
            log,
        }
    }

    /// Returns how the receiver reports ECN marks.
    pub const fn feedback(&self) -> EcnFeedback {
        self.feedback
    }

    /// Returns the controller, or `None` if the stack's own controller is in use.
    pub fn controller(&self) -> Option<&dyn CongestionController> {
        self.controller.as_deref()
    }

    pub fn controller_mut(&mut self) -> Option<&mut Box<dyn CongestionController>> {
        self.controller.as_mut()
    }

    pub const fn totals(&self) -> &CongestionTotals {
        &self.totals
    }

    pub fn srtt(&self) -> Span {
        self.rtt.srtt()
    }

    pub fn min_rtt(&self) -> Span {
        self.rtt.min_rtt()
    }

    pub const fn send_limit(&self) -> Option<SendLimit> {
        self.limit
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

    /// Returns ssthresh in packets, or `None` if it is not set.
    pub fn ssthresh(&self) -> Option<u32> {
        match &self.controller {
            Some(controller) => controller.ssthresh(),
            None => (self.ssthresh < u32::MAX).then_some(self.ssthresh),
        }
    }

    /// Returns the name of the mode for plots. During recovery it replaces the controller's mode.
    pub fn mode(&self) -> &'static str {
        match (self.state, self.owner, &self.controller) {
            (RecoveryState::Loss, ..) => "timeout",
            (RecoveryState::Recovery, CwndReductionBy::Transport, _) => "recovery",
            (RecoveryState::Cwr, CwndReductionBy::Transport, _) => "cwr",
            (.., Some(controller)) => controller.mode(),
            (.., None) if self.ssthresh == u32::MAX => "stack",
            (.., None) if self.cwnd < self.ssthresh => "slow_start",
            (.., None) => "congestion_avoidance",
        }
    }

    /// Removes a completed stream.
    pub fn forget_stream(&mut self, stream: u64) {
        self.offsets.forget(stream);
    }

    /// Handles the end of the handshake, or the first 0-RTT data before it. `rtt` is its RTT
    /// sample, if there is one.
    pub fn establish(&mut self, now: Time, rtt: Option<Span>, prospect: FirstFlightLimits) {
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
            // A controller that falls back to another one behaves like that one from here on.
            self.owner = controller.recovery_owner();
            controller.on_established(&EstablishedEvent {
                now,
                mss_bytes,
                initial_window,
                rtt,
                prospect,
            });
        }
        self.read_controller();
        self.update_pacing_rate();
        // Before the first write the connection is idle, as in jostle's TCP.
        self.sampler.set_app_limited(0);
    }

    /// Discards 0-RTT packets that the server rejected.
    pub fn on_early_data_refused(&mut self) {
        self.flights.clear();
    }

    /// Handles a packet that is about to be sealed.
    pub fn on_sealing(&mut self, level: EncryptionLevel, packet: u64, payload: &[u8]) {
        let (mut stream_bytes, mut repeated_bytes) = (0, 0);
        if level == EncryptionLevel::Data {
            let others = frames::read(payload, |frame| {
                stream_bytes += frame.length as u32;
                repeated_bytes += self.offsets.note(frame) as u32;
            });
            stream_bytes += others.datagram_bytes as u32;
            self.totals.stream_bytes += u64::from(stream_bytes - repeated_bytes);
            self.totals.repeated_bytes += u64::from(repeated_bytes);
            self.repeated_in_datagram += repeated_bytes;
        }
        self.sealed = Some(SealedPacket { level, packet, stream_bytes });
    }

    /// Handles a packet that was opened. The effects of its ACK are reported later.
    pub fn on_opened(&mut self, level: EncryptionLevel, payload: &[u8]) {
        self.opened = level;
        if level == EncryptionLevel::Data
            && let Some(ack) = frames::read(payload, |_| ()).ack
        {
            self.news.ack = Some(ack);
        }
    }

    /// Stores the metrics of the stack's own controller.
    pub fn read_stack_controller(&mut self, answers: StackControllerState) {
        let packets = |bytes: u64| {
            let packets = bytes / u64::from(self.datagram_bytes);
            u32::try_from(packets).unwrap_or(u32::MAX)
        };
        self.cwnd = packets(answers.cwnd_bytes).max(1);
        self.ssthresh = answers.ssthresh_bytes.map_or(u32::MAX, packets);
        self.stack_rate = answers.pacing_rate;
    }

    /// Copies the controller's outputs.
    fn read_controller(&mut self) {
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
        self.owner == CwndReductionBy::Transport
    }

    /// Handles a change of the datagram size. Keeps cwnd in bytes
    /// (`tcp_input.c::tcp_mtup_probe_success` in Linux), but at least the unused initial window in
    /// packets. RFC 9002 §7.2: "the initial congestion window SHOULD be recalculated with the new
    /// size".
    pub fn on_datagram_size(&mut self, bytes: u16) {
        let (old, new) = (self.datagram_bytes, u32::from(bytes));
        if old == new {
            return;
        }
        self.datagram_bytes = new;
        if let Some(controller) = &mut self.controller
            && self.established
        {
            controller.on_mss_change(new);
            let cwnd = (u64::from(self.cwnd) * u64::from(old)).div_ceil(u64::from(new)) as u32;
            let least = self.cwnd.min(self.initial_window);
            if self.owner == CwndReductionBy::Transport {
                self.set_cwnd(cwnd.max(least));
            }
            self.read_controller();
        }
    }
}
