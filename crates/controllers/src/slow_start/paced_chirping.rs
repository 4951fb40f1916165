//! Paced chirping: finds the capacity of the path with trains of packets at increasing rates.

mod chirp;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use jostle_registry::{Parameter, ParameterValues, RegistryEntry};
use jostle_units::{Rate, Span, Time};

use self::chirp::{Chirp, InFlight, LONGEST, RATIO_ONE};
use super::algorithm::SlowStart;
use crate::cwnd::CongestionWindow;
use crate::registry_rows::SlowStartEntry;
use jostle_congestion::{AckSample, CongestionEvent, EstablishedEvent, SendEvent};

pub(crate) const ROW: SlowStartEntry = SlowStartEntry {
    entry: RegistryEntry {
        name: "paced-chirping",
        summary: "finds the capacity with trains of packets at increasing rates, before a queue \
            grows",
        class: "delay",
        based_on: &["standard"],
        source: "Misund, Rapid Acceleration in TCP Prague, University of Oslo 2018; Misund & \
                 Briscoe, Paced Chirping, 2019; paced_chirping.c of \
                 github.com/JoakimMisund/PacedChirping",
        parameters: &[
            Parameter::number("gain", 2.0, 1.0..=8.0).summary(
                "growth of the number of chirps per round trip, from the fourth round trip on",
            ),
            Parameter::number("geometry", 2.0, 1.0..=3.0)
                .summary("first gap of a chirp, in mean gaps"),
            Parameter::integer("excursion", 5, 1..=16)
                .summary("successive packets that a transient queue must delay to count"),
            Parameter::span(
                "initial_gap",
                Span::from_us(200),
                Span::from_us(1)..=Span::from_ms(10),
            )
            .summary("mean gap of the first chirps"),
            Parameter::span("min_gap", Span::from_us(30), Span::from_ns(100)..=Span::from_ms(10))
                .summary("smallest gap of the estimate: 30 us are 400 Mbit/s"),
        ],
    },
    build: |values| Box::new(PacedChirping::new(values)),
};

/// Maximum gap that a chirp may give (`update_gap_avg`).
const MAX_GAP: Span = Span::from_ms(10);
/// Maximum gap of the pacing after the chirps (`dctcp_acked`).
const MAX_PACING_GAP: Span = Span::from_ms(5);
/// Number of packets in the first chirps; the others have [`LONGEST`].
const FIRST_SIZES: [usize; 4] = [5, 5, 8, 8];
/// Number of chirps after which their number per round begins to grow.
const CHIRPS_BEFORE_GROWTH: u32 = 6;
/// Number of chirps in the first round trips.
const FIRST_CHIRPS: u64 = 2;
/// Minimum number of packets for a valid gap.
const SHORTEST: usize = 2;
/// Maximum number of packets per measured RTT: the packets of a delayed ACK plus one.
const SPARSEST: usize = 3;

/// Chirps are sent in rounds of a round trip, spread evenly over it. Each chirp gives the gap at
/// which packets would just not queue. The next chirps are centred on the mean of these gaps. The
/// number of chirps per round doubles until they fill the round trip. Then packets are paced at the
/// mean gap until a bandwidth-delay product is acknowledged, and the number of packets then in
/// flight becomes the window.
///
/// cwnd is the number of packets in flight plus the rest of the current chirp.
#[derive(Clone, Debug)]
pub struct PacedChirping {
    gain: u64,
    geometry: u64,
    excursion: usize,
    initial_gap: Span,
    min_gap: Span,
    mss_bytes: u32,
    phase: Phase,
    /// `gap_avg_ns`.
    mean_gap: Span,
    /// Gap between the last packet sent and the next one.
    gap: Span,
    /// Maximum number of chirps in a round, in 1/1024 (`M`).
    round_max: u64,
    /// Number of the first chirp of the round. Its first ACK ends the round.
    round_first: u32,
    /// Whether a packet of the round was sent late.
    round_held: bool,
    round_sent: u64,
    /// Total time of the chirps in the round.
    round_length: Span,
    /// Number of chirps scheduled so far.
    scheduled: u32,
    /// Maximum number of packets in the first two chirps: half an initial window.
    first_size: usize,
    /// Chirps scheduled and not completely acknowledged, oldest first. Only the last one may be
    /// incomplete.
    chirps: VecDeque<InFlight>,
    /// RTTs of the packets in the oldest chirp.
    delays_us: [u64; LONGEST],
    /// Number of measured RTTs among these.
    measured: usize,
    srtt: Span,
    /// Planned departure time of the next packet.
    due: Time,
    next_to_send: u64,
    first_unacked: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Off,
    Chirping,
    /// Paced at the mean gap until this packet is acknowledged.
    Pacing {
        until: u64,
    },
}

impl PacedChirping {
    /// Creates Paced chirping with the parameters of its registry entry.
    pub fn new(values: &ParameterValues) -> Self {
        let ratio = |name| (values.number(name) * RATIO_ONE as f64) as u64;
        let initial_gap = values.span("initial_gap");
        Self {
            gain: ratio("gain"),
            geometry: ratio("geometry"),
            excursion: values.u32("excursion") as usize,
            initial_gap,
            min_gap: values.span("min_gap"),
            mss_bytes: 0,
            phase: Phase::Off,
            mean_gap: initial_gap,
            gap: Span::ZERO,
            round_max: 0,
            round_first: 0,
            round_held: false,
            round_sent: 0,
            round_length: Span::ZERO,
            scheduled: 0,
            first_size: 0,
            chirps: VecDeque::new(),
            delays_us: [0; LONGEST],
            measured: 0,
            srtt: Span::ZERO,
            due: Time::ZERO,
            next_to_send: 0,
            first_unacked: 0,
        }
    }

    fn stop(&mut self) {
        self.phase = Phase::Off;
        self.chirps.clear();
    }

    /// Returns the number of packets of the current chirp that were not yet sent.
    fn remaining(&self) -> usize {
        self.chirps.back().map_or(0, InFlight::remaining)
    }

    /// Opens the window for the rest of the current chirp only.
    fn open(&self, window: &mut CongestionWindow, in_flight: u32) {
        window.cwnd = in_flight.saturating_add(self.remaining() as u32).clamp(1, window.clamp);
    }

    /// Schedules the next chirp if the round may have another one (`dctcp_new_chirp`).
    fn schedule(&mut self) {
        let round_max = self.round_max / RATIO_ONE;
        if self.round_sent >= round_max {
            return;
        }
        let number = self.scheduled;
        let size = match FIRST_SIZES.get(number as usize) {
            Some(&size) if number < 2 => size.min(self.first_size),
            Some(&size) => size,
            None => LONGEST,
        };
        let chirp = Chirp::around(self.mean_gap, self.geometry, size);
        let length = chirp.length();
        let share = self.srtt.mul_div(1, round_max);
        let guard =
            if share > length { (share - length).max(self.mean_gap) } else { self.mean_gap };
        self.chirps.push_back(InFlight { chirp, number, first: 0, sent: 0, guard, valid: true });
        self.scheduled += 1;
        self.round_sent += 1;
        // As in the code of the thesis. Without the gap after each chirp, as in the module, a long
        // round could never fill the complete round trip.
        self.round_length = self.round_length.saturating_add(length + self.mean_gap);
    }

    /// `start_new_round`: starts the next round. It has more chirps, unless the chirps of this
    /// round were delayed by something other than the path.
    fn start_round(&mut self, now: Time) {
        let held = self.round_held || (self.remaining() > 0 && self.is_late(now));
        if self.scheduled >= CHIRPS_BEFORE_GROWTH && !held {
            self.round_max = self.round_max.saturating_mul(self.gain) / RATIO_ONE;
        }
        self.round_first = self.scheduled;
        self.round_sent = 0;
        self.round_length = Span::ZERO;
        self.round_held = false;
    }

    /// Returns whether the next packet is late, because the application or the receive window
    /// delays it. The code of the thesis discards chirps with a gap that is longer by a quarter.
    fn is_late(&self, now: Time) -> bool {
        now > self.due + self.gap.mul_div(1, 4)
    }

    /// Records that packet `number` was sent for the first time.
    fn note_sent(&mut self, now: Time, number: u64) {
        let late = self.is_late(now);
        let Some(it) = self.chirps.back_mut().filter(|it| it.remaining() > 0) else { return };
        if it.sent == 0 {
            it.first = number;
        } else {
            it.valid &= !late;
        }
        it.sent += 1;
        self.gap = if it.remaining() > 0 { it.chirp.gap(it.sent) } else { it.guard };
        self.due = now + self.gap;
        self.round_held |= late;
    }

    /// Processes the acknowledgement of packets up to `first_unacked`. Returns whether the chirps
    /// of the round fill the round trip (`should_terminate`).
    fn note_acked(&mut self, ack: &AckSample) -> bool {
        let mut number = self.first_unacked;
        while number < ack.first_unacked {
            let Some(oldest) = self.chirps.front_mut().filter(|it| it.sent > 0) else { break };
            number = number.max(oldest.first);
            let index = (number - oldest.first) as usize;
            if number >= ack.first_unacked || index >= oldest.sent {
                break;
            }
            number += 1;
            if index == 0 {
                self.measured = 0;
            }
            // The RTT belongs to the last packet. The delays of the packets acknowledged with it
            // are unknown and assumed to equal the previous packet's delay.
            let last = number == ack.first_unacked;
            self.delays_us[index] = match ack.rtt {
                Some(rtt) if last || index == 0 => rtt.as_us(),
                _ => self.delays_us[index.saturating_sub(1)],
            };
            self.measured += usize::from(last && ack.rtt.is_some());
            let oldest = *oldest;
            // The second round starts when the first chirp is analysed, the others with the first
            // ACK of the previous round.
            if index == 0 && oldest.number >= 2 && oldest.number == self.round_first {
                self.start_round(ack.now);
            }
            if index + 1 < oldest.chirp.size {
                continue;
            }
            self.chirps.pop_front();
            if oldest.valid && SPARSEST * self.measured >= oldest.chirp.size {
                let gap = oldest.chirp.capacity_gap(&self.delays_us, self.excursion);
                let bounded = gap.min(MAX_GAP).max(self.min_gap);
                // EWMA of 1/2 (`GAP_AVG_SHIFT`).
                self.mean_gap = self.mean_gap.mul_div(1, 2) + bounded.mul_div(1, 2);
            }
            if oldest.number == 0 {
                self.start_round(ack.now);
            }
            if ack.srtt <= self.round_length {
                return true;
            }
        }
        false
    }

    /// Returns the packets sent in `min_rtt` at the mean gap.
    fn bdp(&self, min_rtt: Span) -> u64 {
        min_rtt.as_ns() / self.mean_gap.as_ns().max(1)
    }

    fn start_pacing(&mut self, window: &mut CongestionWindow, ack: &AckSample) {
        let target = self.bdp(ack.min_rtt);
        self.chirps.clear();
        self.phase = Phase::Pacing { until: ack.first_unacked + target };
        self.gap = self.mean_gap.min(MAX_PACING_GAP);
        let ample = u32::try_from(2 * target).unwrap_or(u32::MAX).max(10);
        window.cwnd = ample.min(window.clamp);
    }
}

impl SlowStart for PacedChirping {
    fn on_established(&mut self, window: &mut CongestionWindow, established: &EstablishedEvent) {
        self.stop();
        self.mss_bytes = established.mss_bytes;
        self.mean_gap = self.initial_gap;
        self.round_max = FIRST_CHIRPS * RATIO_ONE;
        (self.round_first, self.round_sent, self.round_length) = (0, 0, Span::ZERO);
        (self.scheduled, self.next_to_send, self.first_unacked) = (0, 0, 0);
        (self.round_held, self.due, self.gap) = (false, established.now, Span::ZERO);
        // "TCP_INIT_CWND>>1" in the thesis's code.
        self.first_size = established.initial_window as usize / 2;
        if self.first_size >= SHORTEST && window.in_slow_start() {
            self.phase = Phase::Chirping;
            self.srtt = established.rtt.unwrap_or(Span::ZERO);
            self.schedule();
            self.open(window, 0);
        }
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.mss_bytes = mss_bytes;
    }

    fn on_send(&mut self, window: &mut CongestionWindow, sent: &SendEvent) {
        let first = core::mem::replace(&mut self.next_to_send, sent.next_to_send);
        let chirps = self.phase == Phase::Chirping && window.in_slow_start();
        if !chirps || sent.next_to_send <= first {
            return;
        }
        let new = sent.next_to_send - first;
        for i in 0..new.min(self.remaining() as u64) {
            self.note_sent(sent.now, first + i);
        }
        if self.remaining() == 0 {
            self.schedule();
        }
        self.open(window, sent.prior_in_flight.saturating_add(sent.packets));
    }

    fn on_ack(&mut self, window: &mut CongestionWindow, ack: &AckSample) {
        // Congestion avoidance has ended slow start.
        if self.phase != Phase::Off && !window.in_slow_start() {
            self.stop();
        }
        match self.phase {
            Phase::Off => {}
            Phase::Chirping => {
                let filled = self.note_acked(ack);
                self.first_unacked = ack.first_unacked;
                if filled {
                    self.start_pacing(window, ack);
                    return;
                }
                self.srtt = ack.srtt;
                if self.remaining() == 0 {
                    self.due = self.due.max(ack.now);
                    self.schedule();
                }
                self.open(window, ack.in_flight);
            }
            Phase::Pacing { until } => {
                if ack.first_unacked >= until {
                    self.stop();
                    // `exit_paced_chirping`.
                    window.cwnd = ack.in_flight.max(2).min(window.clamp);
                    window.ssthresh = window.cwnd;
                }
            }
        }
    }

    fn grow(&mut self, window: &mut CongestionWindow, ack: &AckSample) -> u32 {
        if self.phase == Phase::Off { window.slow_start(ack.acked) } else { 0 }
    }

    fn on_congestion_event(
        &mut self,
        _window: &mut CongestionWindow,
        _congestion: &CongestionEvent,
    ) {
        self.stop();
    }

    fn on_timeout(&mut self, _now: Time, _next_to_send: u64) {
        self.stop();
    }

    fn pacing_rate(&self) -> Option<Rate> {
        (self.phase != Phase::Off).then(|| Rate::of(u64::from(self.mss_bytes), self.mean_gap))
    }

    fn next_packet_gap(&self) -> Option<Span> {
        (self.phase != Phase::Off).then_some(self.gap)
    }

    fn mode(&self) -> &'static str {
        match self.phase {
            Phase::Off => "slow_start",
            Phase::Chirping => "chirping",
            Phase::Pacing { .. } => "pacing",
        }
    }
}
