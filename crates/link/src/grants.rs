//! Capacity on demand: the return channel of a satellite system with a gateway that assigns slots.
//!
//! A terminal reports its demand at regular request opportunities. After a latency of about one
//! round trip by satellite, the gateway's plan gives it slots in a superframe. The classes of
//! capacity and the rule for requests follow DVB-RCS2 (ETSI EN 301 545-2), as in the simulators
//! sns3 and OpenSAND.
//!
//! All arithmetic is in whole bits and nanoseconds below 2⁶⁴, so that the kernel module computes the
//! same grants.

use std::collections::VecDeque;

use jostle_units::{RandomStream, Span, Time};

const NS_PER_S: u64 = 1_000_000_000;
/// Demand above which a request is the same, because no link with grants is faster than this
/// (10 Gbit/s) and no request interval is longer than 1 s.
const MOST_BITS: u64 = 10_000_000_000;
const PER_MILLE: u64 = 1_000;

/// Rate-based dynamic capacity (RBDC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateBased {
    /// Requested rate ÷ measured input rate, per mille.
    pub over_per_mille: u64,
    /// Part of the backlog that a request adds, per mille.
    pub gain_per_mille: u64,
    /// Time after which a grant expires that no request has renewed.
    pub persistence: Span,
}

/// Contention slots (slotted ALOHA) for a terminal without dynamic capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contention {
    /// Bytes that a terminal sends in a superframe's contention slots.
    pub bytes: u64,
    /// Probability that the attempt collides.
    pub collision: f64,
    /// After a collision, the terminal waits for the latency and 1 … `backoff` superframes.
    pub backoff: u64,
}

/// Parameters of [`Grants`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrantParameters {
    /// Length of a superframe.
    pub superframe: Span,
    /// Time from a request to the first slot that it may get.
    pub latency: Span,
    /// Time between two request opportunities.
    pub request_interval: Span,
    /// Constant rate assignment (CRA).
    pub constant_bps: u64,
    /// Rate-based capacity, if the terminal requests it.
    pub rate_based: Option<RateBased>,
    /// Whether the terminal requests capacity for its backlog by volume (VBDC).
    pub volume_based: bool,
    /// Largest free capacity assignment (FCA): each superframe has a random share of it.
    pub free_bps: u64,
    /// Requested rates are rounded up to a multiple of this rate.
    pub quantum_bps: u64,
    /// Largest rate of all classes together.
    pub most_bps: u64,
    /// Contention slots.
    pub contention: Option<Contention>,
    /// Probability that a request is lost.
    pub request_loss: f64,
    /// Whether slots are spread over the superframe. Otherwise they are together at its start.
    pub spread: bool,
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
struct Request {
    due: Time,
    rate_bps: u64,
    volume_bits: u64,
}

/// State of the capacity on demand of a link.
#[derive(Clone, Debug)]
pub struct Grants {
    parameters: GrantParameters,
    next_request: Time,
    next_superframe: Time,
    /// Bits that arrived since the last request opportunity.
    arrived_bits: u64,
    requests: VecDeque<Request>,
    /// Rate-based grant, and the time until which it holds.
    rate_bps: u64,
    rate_until: Time,
    /// Volume granted and not yet in slots.
    volume_bits: u64,
    /// Slots of the current superframe: their end, and the rate within them.
    slots_end: Time,
    slots_bps: u64,
    /// Time from which the terminal may use contention slots again.
    contention_from: Time,
    free: RandomStream,
    collisions: RandomStream,
    losses: RandomStream,
}

impl Grants {
    /// Creates the state at time 0. `random` creates the streams of a name.
    pub fn new(parameters: GrantParameters, random: &dyn Fn(&str) -> RandomStream) -> Self {
        Self {
            parameters,
            next_request: Time::ZERO,
            next_superframe: Time::ZERO,
            arrived_bits: 0,
            requests: VecDeque::new(),
            rate_bps: 0,
            rate_until: Time::ZERO,
            volume_bits: 0,
            slots_end: Time::ZERO,
            slots_bps: 0,
            contention_from: Time::ZERO,
            free: random("grants/free"),
            collisions: random("grants/collisions"),
            losses: random("grants/requests"),
        }
    }

    /// Counts a packet that arrives at the terminal.
    pub(crate) fn on_arrival(&mut self, size_bytes: u32) {
        self.arrived_bits = (self.arrived_bits + u64::from(size_bytes) * 8).min(MOST_BITS);
    }

    /// Returns the time of the next request opportunity or superframe.
    pub(crate) fn next_event(&self) -> Time {
        self.next_request.min(self.next_superframe)
    }

    /// Returns the start of the next superframe.
    pub(crate) fn next_superframe(&self) -> Time {
        self.next_superframe
    }

    /// Handles the next request opportunity or superframe; if both are due, the request first.
    /// `backlog_bits` have not been sent.
    pub(crate) fn step(&mut self, backlog_bits: u64) {
        if self.next_request <= self.next_superframe {
            self.request(backlog_bits);
        } else {
            self.begin_superframe(backlog_bits);
        }
    }

    /// Requests capacity (sns3: `SatRequestManager::DoRbdc`; OpenSAND: `DamaAgentRcs2`).
    fn request(&mut self, backlog_bits: u64) {
        let GrantParameters { constant_bps, most_bps, quantum_bps, .. } = self.parameters;
        let interval_ns = self.parameters.request_interval.as_ns();
        let due = self.next_request + self.parameters.latency;
        self.next_request += self.parameters.request_interval;
        let arrived_bits = std::mem::take(&mut self.arrived_bits);
        let backlog_bits = backlog_bits.min(MOST_BITS);
        let in_interval = |bps: u64| bps * interval_ns / NS_PER_S;
        let pending = |request: &Request| in_interval(request.rate_bps) + request.volume_bits;
        let pending_bits = self.requests.iter().map(pending).sum::<u64>();
        let (mut rate_bps, mut volume_bits) = (0, 0);
        if let Some(RateBased { over_per_mille, gain_per_mille, .. }) = self.parameters.rate_based {
            let input_bits = (arrived_bits * over_per_mille / PER_MILLE).min(MOST_BITS);
            let excess_bits = backlog_bits.saturating_sub(input_bits + pending_bits);
            let mut wanted_bits = input_bits;
            if self.parameters.volume_based {
                volume_bits = excess_bits;
            } else {
                wanted_bits += excess_bits * gain_per_mille / PER_MILLE;
            }
            rate_bps = wanted_bits.min(MOST_BITS) * NS_PER_S / interval_ns;
            rate_bps = rate_bps.saturating_sub(constant_bps);
            rate_bps = rate_bps.next_multiple_of(quantum_bps).min(most_bps - constant_bps);
        } else if self.parameters.volume_based {
            volume_bits = backlog_bits.saturating_sub(pending_bits);
        }
        // A request of nothing withdraws the rate of earlier ones.
        let last_bps = self.requests.back().map_or(self.rate_bps, |request| request.rate_bps);
        let asks = rate_bps > 0 || volume_bits > 0 || last_bps > 0;
        if asks && !self.losses.chance(self.parameters.request_loss) {
            self.requests.push_back(Request { due, rate_bps, volume_bits });
        }
    }

    /// Begins a superframe with the capacity that is due.
    fn begin_superframe(&mut self, backlog_bits: u64) {
        let now = self.next_superframe;
        let superframe_ns = self.parameters.superframe.as_ns();
        self.next_superframe += self.parameters.superframe;
        while let Some(request) = self.requests.front().copied().filter(|it| it.due <= now) {
            self.requests.pop_front();
            if let Some(rate_based) = self.parameters.rate_based {
                self.rate_bps = request.rate_bps;
                self.rate_until = now + rate_based.persistence;
            }
            self.volume_bits += request.volume_bits;
        }
        if now >= self.rate_until {
            self.rate_bps = 0;
        }
        let in_superframe = |bps: u64| bps * superframe_ns / NS_PER_S;
        let most_bits = in_superframe(self.parameters.most_bps);
        let mut bits = in_superframe(self.parameters.constant_bps + self.rate_bps).min(most_bits);
        let volume_bits = self.volume_bits.min(most_bits - bits);
        self.volume_bits -= volume_bits;
        bits += volume_bits;
        if self.parameters.free_bps > 0 {
            let share = self.free.below(in_superframe(self.parameters.free_bps) + 1);
            bits = (bits + share).min(most_bits);
        }
        let is_dynamic = self.rate_bps > 0 || volume_bits > 0;
        if let Some(contention) = self.parameters.contention
            && backlog_bits > 0
            && !is_dynamic
            && now >= self.contention_from
        {
            bits = (bits + self.contend(now, contention)).min(most_bits);
        }
        if self.parameters.spread {
            self.slots_bps = bits * NS_PER_S / superframe_ns;
            self.slots_end = now + self.parameters.superframe;
        } else {
            let length_ns = bits * NS_PER_S / self.parameters.most_bps;
            self.slots_bps = self.parameters.most_bps;
            self.slots_end = now + Span::from_ns(length_ns);
        }
    }

    /// Returns the bits that fit into the contention slots, or 0 after a collision.
    fn contend(&mut self, now: Time, contention: Contention) -> u64 {
        if !self.collisions.chance(contention.collision) {
            return contention.bytes * 8;
        }
        let superframes = 1 + self.collisions.below(contention.backoff);
        let backoff = self.parameters.superframe.mul_div(superframes, 1);
        self.contention_from = now + self.parameters.latency + backoff;
        0
    }

    /// Returns the bits that the slots of the current superframe carry from `now` on.
    pub(crate) fn available_bits(&self, now: Time) -> u64 {
        self.slots_end.since(now).as_ns() * self.slots_bps / NS_PER_S
    }

    /// Returns the time that the current slots take for `bits`, at most those available.
    pub(crate) fn time_for(&self, bits: u64) -> Span {
        Span::from_ns((bits * NS_PER_S).div_ceil(self.slots_bps.max(1)))
    }
}
