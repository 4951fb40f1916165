//! Careful Resume: starts with half of a saved capacity, paced over a round trip, after the path is
//! confirmed.

use alloc::boxed::Box;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{Rate, Span, Time};

use crate::estimators::WindowedMax;
use crate::registry_rows::PeerCacheEntry;
use jostle_congestion::peer_cache::PeerCacheContext;
use jostle_congestion::peer_cache::SavedCapacity;
use jostle_congestion::peer_cache::{PeerLookup, PeerTableConfig};
use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CongestionSignal, CwndReductionBy,
    EstablishedEvent, SendEvent, StateObserver,
};
use jostle_congestion::{ControllerLayer, LayeredController};

pub(crate) const ROW: PeerCacheEntry = PeerCacheEntry {
    entry: RegistryEntry {
        name: "careful-resume",
        summary: "confirms the path with an initial window, then jumps to half of the saved cwnd",
        class: "window",
        based_on: &[],
        source: "Kuhn, Stephan, Fairhurst, Secchi & Huitema, Convergence of Congestion Control \
                 from Retained State, RFC 9959; draft-ietf-tsvwg-careful-resume-24",
        parameters: &[
            Parameter::span(
                "lifetime",
                Span::from_secs(3600),
                Span::from_ms(1)..=Span::from_ns(1 << 53),
            )
            .summary("age at which saved parameters are no longer used"),
            Parameter::integer("max_jump", 0, 0..=1 << 31)
                .summary("largest resumed window in packets; 0: half of the saved volume"),
            Parameter::number("beta", 0.5, 0.5..=1.0)
                .summary("ssthresh after a safe retreat, as a share of the acknowledged volume"),
            Parameter::integer("slots", 1_048_576, 1..=1 << 31).summary(
                "entries of the host's table; the slot of a peer is its address modulo this number",
            ),
        ],
    },
    build: |values, inner| Box::new(LayeredController::new(CarefulResume::new(values), inner)),
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Normal congestion control, which observes the deliveries per round trip (RFC 9959 §3.1).
    Observing,
    /// RFC 9959 §3.2.
    Reconnaissance,
    /// RFC 9959 §3.3.
    Unvalidated {
        since: Time,
        rtt: Span,
        jump: u32,
        /// First packet of the phase.
        first: u64,
    },
    /// RFC 9959 §3.4.
    Validating {
        /// Packet after the last one of the Unvalidated Phase.
        end: u64,
    },
    /// RFC 9959 §3.5.
    SafeRetreat { end: u64, window: u32 },
    /// "When the flow is controlled using BBR": the rate has a minimum for two rounds of STARTUP.
    Resuming { rate: Rate, window: u32, until_round: u64 },
}

/// The phases of RFC 9959 for any controller. Windows are in packets. Comments quote the clauses of
/// the RFC. A controller with a model of the path (BBR) is resumed according to RFC 9959 §C.
pub struct CarefulResume {
    usage: PeerTableConfig,
    max_jump: u32,
    beta: f64,
    found: PeerLookup<SavedCapacity>,
    /// Parameters taken from the host's table, and the time at which they were saved.
    saved: Option<(SavedCapacity, Time)>,
    phase: Phase,
    initial_window: u32,
    mss_bytes: u32,
    min_rtt: Span,
    delivered: u64,
    pipe: PipeSize,
    /// Number of the current round, and the packet whose acknowledgement ends it.
    round: u64,
    round_end: u64,
    round_delivered: u64,
    observed: WindowedMax,
}

/// `PipeSize`: "a measure of the validated available capacity based on the acknowledged data".
#[derive(Clone, Copy, Debug, Default)]
struct PipeSize {
    /// `flight_size` "on entry to the Unvalidated Phase".
    at_entry: u32,
    /// Number of packets delivered when all of these packets are delivered.
    delivered_before: u64,
}

impl PipeSize {
    /// "An unvalidated packet …, if such a packet is acknowledged by an ACK, it contributes to the
    /// PipeSize": packets in flight on entry are included from the start, so that their ACKs add
    /// nothing (RFC 9959 §B: 29 + 34, not 29 + 29 + 34).
    fn size(self, delivered: u64) -> u32 {
        let validated = delivered.saturating_sub(self.delivered_before);
        self.at_entry.saturating_add(u32::try_from(validated).unwrap_or(u32::MAX))
    }
}

impl CarefulResume {
    /// Number of rounds over which the maximum volume is computed: the last rounds of a connection
    /// carry less.
    const OBSERVED_ROUNDS: u64 = 10;
    /// "If the measured CWND is less than four times the IW, the sender can choose to not save".
    const LEAST_WINDOWS: u64 = 4;
    /// "The minimum CWND in QUIC is 2 packets".
    const LEAST_WINDOW: u32 = 2;
    /// `BBRStartupCwndGain`.
    const MODEL_GAIN: u32 = 2;
    const MODEL_ROUNDS: u64 = 2;

    fn new(values: &ParameterValues) -> Self {
        Self {
            usage: PeerTableConfig { slots: values.u32("slots"), max_age: values.span("lifetime") },
            max_jump: match values.u32("max_jump") {
                0 => u32::MAX,
                packets => packets,
            },
            beta: values.number("beta"),
            found: PeerLookup::Miss,
            saved: None,
            phase: Phase::Observing,
            initial_window: 0,
            mss_bytes: 1,
            min_rtt: Span::ZERO,
            delivered: 0,
            pipe: PipeSize::default(),
            round: 0,
            round_end: 0,
            round_delivered: 0,
            observed: WindowedMax::default(),
        }
    }

    /// "Jump_cwnd is less than or equal to Min(max_jump,(saved_cwnd/2))".
    fn jump(&self) -> u32 {
        let saved = self.saved.map_or(0, |(it, _)| it.bytes / u64::from(self.mss_bytes.max(1)));
        u32::try_from(saved / 2).unwrap_or(u32::MAX).min(self.max_jump)
    }

    /// "The volume of bytes sent during an RTT", by "the volume of data acknowledged in one RTT".
    fn count_round(&mut self, ack: &AckSample) {
        if ack.first_unacked < self.round_end {
            return;
        }
        if self.phase == Phase::Observing && self.round > 0 {
            let volume = ack.delivered - self.round_delivered;
            self.observed.update(Self::OBSERVED_ROUNDS, self.round, volume);
        }
        (self.round_end, self.round_delivered) = (ack.next_to_send, ack.delivered);
        self.round += 1;
    }

    fn reconnoitre(&mut self, inner: &mut dyn CongestionController, ack: &AckSample) {
        let Some((saved, _)) = self.saved else { return };
        let current = ack.rtt.unwrap_or(ack.srtt);
        // "If the minimum RTT recorded in the Reconnaissance Phase is less than or equal to
        // (saved_rtt / 2)"; "a current RTT that is more than ten times the saved_rtt is indicative
        // of a path change".
        let another_path =
            ack.min_rtt.mul_div(2, 1) <= saved.min_rtt || current > saved.min_rtt.mul_div(10, 1);
        if ack.lost > 0 || ack.ce_marked > 0 || another_path {
            self.phase = Phase::Observing;
            return;
        }
        // "An ACK that acknowledges all the initial data (usually the IW)"; "this transition MAY be
        // deferred to the time at which more data is sent than would have normally permitted".
        if ack.first_unacked < u64::from(self.initial_window) || !ack.cwnd_limited {
            return;
        }
        let jump = self.jump();
        if jump <= inner.cwnd() {
            self.phase = Phase::Observing;
            return;
        }
        self.pipe = PipeSize {
            at_entry: ack.in_flight,
            delivered_before: ack.delivered + u64::from(ack.in_flight),
        };
        self.phase = if inner.recovery_owner() == CwndReductionBy::Transport {
            inner.set_cwnd(jump);
            Phase::Unvalidated { since: ack.now, rtt: current, jump, first: ack.next_to_send }
        } else {
            Phase::Resuming {
                rate: self.rate(jump, current),
                window: jump.saturating_mul(Self::MODEL_GAIN),
                until_round: self.round + Self::MODEL_ROUNDS,
            }
        };
    }

    fn rate(&self, packets: u32, over: Span) -> Rate {
        Rate::of(u64::from(packets) * u64::from(self.mss_bytes), over)
    }

    /// "Unvalidated Phase (Check flight_size)".
    fn leave_unvalidated(
        &mut self,
        inner: &mut dyn CongestionController,
        flight: u32,
        next_to_send: u64,
    ) {
        let pipe = self.pipe.size(self.delivered);
        if flight < self.initial_window || flight <= pipe {
            // "In the absence of detected congestion, CWND is not reduced below IW."
            inner.set_cwnd(pipe.max(self.initial_window));
            self.phase = Phase::Observing;
        } else {
            inner.set_cwnd(flight);
            self.phase = Phase::Validating { end: next_to_send };
        }
    }

    fn on_unvalidated_ack(&mut self, inner: &mut dyn CongestionController, ack: &AckSample) {
        let Phase::Unvalidated { since, rtt, jump, first } = self.phase else { return };
        let changed =
            self.saved.is_some_and(|(saved, _)| ack.min_rtt.mul_div(2, 1) <= saved.min_rtt);
        if ack.ce_marked > 0 || changed {
            self.retreat(inner, ack.next_to_send);
            return;
        }
        inner.set_cwnd(inner.cwnd().min(jump));
        if ack.first_unacked > first || ack.now.since(since) > rtt {
            self.leave_unvalidated(inner, ack.in_flight, ack.next_to_send);
        }
    }

    fn retreat(&mut self, inner: &mut dyn CongestionController, next_to_send: u64) {
        // "The set of saved CC parameters for the path are deleted."
        self.saved = None;
        // "The CWND MUST be reduced to no more than (PipeSize/2)."
        let window = (self.pipe.size(self.delivered) / 2).max(Self::LEAST_WINDOW);
        // "The loss recovery continues until acknowledgment of the last packet number (or a later
        // packet) sent in the Unvalidated or Validating Phase."
        self.phase = Phase::SafeRetreat { end: next_to_send, window };
        inner.set_cwnd(inner.cwnd().min(window));
    }

    /// "The ssthresh MUST be set to no larger than the most recently measured PipeSize * Beta".
    fn leave_retreat(&mut self, inner: &mut dyn CongestionController, window: u32) {
        let bound = (f64::from(self.pipe.size(self.delivered)) * self.beta) as u32;
        let ssthresh = inner.ssthresh().unwrap_or(u32::MAX).min(bound.max(Self::LEAST_WINDOW));
        inner.set_ssthresh(ssthresh);
        inner.set_cwnd(inner.cwnd().min(window));
        self.phase = Phase::Observing;
    }
}

impl ControllerLayer for CarefulResume {
    /// "Only one connection can use a specific set of saved CC parameters": the entry is removed
    /// from the table until the connection closes.
    fn on_connection_open(&mut self, occasion: &mut PeerCacheContext<'_>) {
        let table = &mut occasion.memory.capacities;
        (self.found, self.saved) = table.take(self.usage, occasion.peer, occasion.now);
    }

    fn on_established(
        &mut self,
        inner: &mut dyn CongestionController,
        established: &EstablishedEvent,
    ) {
        inner.on_established(established);
        self.initial_window = established.initial_window;
        self.mss_bytes = established.mss_bytes;
        self.phase = if self.saved.is_some() { Phase::Reconnaissance } else { Phase::Observing };
    }

    #[inline]
    fn on_ack(&mut self, inner: &mut dyn CongestionController, ack: &AckSample) {
        (self.min_rtt, self.delivered) = (ack.min_rtt, ack.delivered);
        inner.on_ack(ack);
        self.count_round(ack);
        match self.phase {
            Phase::Observing => {}
            Phase::Reconnaissance => self.reconnoitre(inner, ack),
            Phase::Unvalidated { .. } => self.on_unvalidated_ack(inner, ack),
            Phase::Validating { .. } if ack.ce_marked > 0 => self.retreat(inner, ack.next_to_send),
            Phase::Validating { end } if ack.first_unacked >= end => self.phase = Phase::Observing,
            Phase::SafeRetreat { end, window } if ack.first_unacked >= end => {
                self.leave_retreat(inner, window);
            }
            // "The CWND MUST NOT be increased in the Safe Retreat Phase."
            Phase::SafeRetreat { window, .. } => inner.set_cwnd(inner.cwnd().min(window)),
            Phase::Resuming { until_round, .. } => {
                if ack.ce_marked > 0 {
                    self.retreat(inner, ack.next_to_send);
                } else if self.round > until_round || inner.mode() != "startup" {
                    self.phase = Phase::Observing;
                }
            }
            Phase::Validating { .. } => {}
        }
    }

    #[inline]
    fn on_send(&mut self, inner: &mut dyn CongestionController, sent: &SendEvent) {
        inner.on_send(sent);
        if let Phase::Unvalidated { since, rtt, jump, .. } = self.phase {
            let flight = sent.prior_in_flight + sent.packets;
            // "When the flight_size equals the CWND"; "if more than one RTT has elapsed".
            if flight >= jump || sent.now.since(since) > rtt {
                self.leave_unvalidated(inner, flight, sent.next_to_send);
            }
        }
    }

    fn on_congestion_event(
        &mut self,
        inner: &mut dyn CongestionController,
        congestion: &CongestionEvent,
    ) {
        inner.on_congestion_event(congestion);
        match self.phase {
            Phase::Observing | Phase::SafeRetreat { .. }
                if congestion.signal != CongestionSignal::Timeout => {}
            // "A sender that experiences persistent congestion (e.g., a Retransmission Time Out …)
            // ceases to use Careful Resume."
            _ if congestion.signal == CongestionSignal::Timeout => self.phase = Phase::Observing,
            Phase::Reconnaissance => self.phase = Phase::Observing,
            _ => self.retreat(inner, congestion.next_to_send),
        }
    }

    /// "PRR is therefore not appropriate": limits the cwnd of the transport's reduction to the
    /// window of the retreat.
    fn set_cwnd(&mut self, inner: &mut dyn CongestionController, cwnd: u32) {
        match self.phase {
            Phase::SafeRetreat { window, .. } => inner.set_cwnd(cwnd.min(window)),
            _ => inner.set_cwnd(cwnd),
        }
    }

    #[inline]
    fn cwnd(&self, inner: &dyn CongestionController) -> u32 {
        match self.phase {
            Phase::SafeRetreat { window, .. } => inner.cwnd().min(window),
            Phase::Resuming { window, .. } => inner.cwnd().max(window),
            _ => inner.cwnd(),
        }
    }

    #[inline]
    fn pacing_rate(&self, inner: &dyn CongestionController) -> Option<Rate> {
        match self.phase {
            // "All packets sent in the Unvalidated Phase MUST use pacing based on the current RTT";
            // RFC 9959 §4.3.2: "ITT = (current RTT x MPS)/jump_cwnd".
            Phase::Unvalidated { rtt, jump, .. } => Some(self.rate(jump, rtt)),
            Phase::Resuming { rate, .. } => inner.pacing_rate().map(|own| own.max(rate)),
            _ => inner.pacing_rate(),
        }
    }

    fn on_mss_change(&mut self, inner: &mut dyn CongestionController, mss_bytes: u32) {
        self.mss_bytes = mss_bytes;
        inner.on_mss_change(mss_bytes);
    }

    fn mode(&self, inner: &dyn CongestionController) -> &'static str {
        match self.phase {
            Phase::Observing => inner.mode(),
            Phase::Reconnaissance => "reconnaissance",
            Phase::Unvalidated { .. } | Phase::Resuming { .. } => "unvalidated",
            Phase::Validating { .. } => "validating",
            Phase::SafeRetreat { .. } => "safe_retreat",
        }
    }

    fn on_connection_close(
        &mut self,
        _inner: &dyn CongestionController,
        occasion: &mut PeerCacheContext<'_>,
    ) {
        let table = &mut occasion.memory.capacities;
        let packets = self.observed.get();
        if packets >= Self::LEAST_WINDOWS * u64::from(self.initial_window) && packets > 0 {
            let bytes = packets * u64::from(self.mss_bytes);
            let seen = SavedCapacity { bytes, min_rtt: self.min_rtt };
            table.save(self.usage, occasion.peer, occasion.now, seen);
        } else if let Some((saved, at)) = self.saved {
            table.save(self.usage, occasion.peer, at, saved);
        }
    }

    fn observe(&self, inner: &dyn CongestionController, observer: &mut dyn StateObserver) {
        inner.observe(observer);
        let saved = self.found.hit().map_or(0, |it| it.bytes / u64::from(self.mss_bytes.max(1)));
        observer.record_value("saved_packets", saved as f64);
        observer.record_value("pipe_packets", f64::from(self.pipe.size(self.delivered)));
        observer.record_value("lookup", self.found.number());
    }
}

#[cfg(test)]
mod tests;
