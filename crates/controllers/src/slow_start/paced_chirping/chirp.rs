//! A chirp: the gaps between its packets, and the analysis of their queueing delays.

use jostle_units::Span;

/// Packets in the longest chirp (`CHIRP_SIZE`).
pub(super) const LONGEST: usize = 16;

/// Ratios are in 1/1024, as in the module (`G_G_SHIFT`).
pub(super) const RATIO_ONE: u64 = 1024;

/// A train of packets at an increasing rate. Gap i precedes packet i and is shorter than gap i − 1
/// by a constant step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chirp {
    pub size: usize,
    first_gap: Span,
    step: Span,
}

impl Chirp {
    /// Creates a chirp around `mean`. Its first gap is `geometry` / 1024 times the mean. After N
    /// gaps the gap would be below the mean by the same distance.
    pub(super) fn around(mean: Span, geometry: u64, size: usize) -> Self {
        let step = mean.mul_div(2 * (geometry - RATIO_ONE), size as u64 * RATIO_ONE);
        Self { size, first_gap: mean.mul_div(geometry, RATIO_ONE), step }
    }

    /// Returns the time from packet i − 1 to packet i, for i from 1 on.
    pub(super) fn gap(&self, i: usize) -> Span {
        let steps = Span::from_ns(self.step.as_ns().saturating_mul(i as u64 - 1));
        if steps < self.first_gap { self.first_gap - steps } else { Span::ZERO }
    }

    /// Returns the time from the first packet to the last.
    pub(super) fn length(&self) -> Span {
        (1..self.size).map(|i| self.gap(i)).fold(Span::ZERO, Span::saturating_add)
    }

    /// Returns the gap between packets at the capacity of the path, computed from the queueing
    /// delays of all packets up to a constant (`analyze_chirp` of the module, pathChirp's rule). A
    /// sequence of at least `excursion` packets with queueing delay is caused by other traffic if
    /// the delay recedes. The queue at the end of the chirp is caused by the chirp itself.
    pub(super) fn capacity_gap(&self, delays_us: &[u64], excursion: usize) -> Span {
        let delays = &delays_us[..self.size];
        let last = self.size - 1;
        let mut own = [None; LONGEST];
        // Gap that represents the packets outside of all excursions.
        let mut unhindered = self.gap(last);
        let mut i = 1;
        while i < last {
            if delays[i] >= delays[i + 1] {
                i += 1;
                continue;
            }
            let end = i + excursion_length(&delays[i..]);
            if end == self.size {
                unhindered = self.gap(i);
                break;
            }
            if end - i >= excursion {
                // The path was slower than the packets after which the queue continued to grow.
                for j in (i..end).filter(|&j| delays[j] < delays[j + 1]) {
                    own[j] = Some(self.gap(j));
                }
            }
            i = end;
        }
        let sum_ns: u64 = own[1..self.size].iter().map(|it| it.unwrap_or(unhindered).as_ns()).sum();
        Span::from_ns(sum_ns / last as u64)
    }
}

/// Returns the number of packets from the first of `delays` on whose delay exceeds the first delay
/// by more than 5/8 of the maximum excess so far: pathChirp's rule with F = 1.6.
fn excursion_length(delays: &[u64]) -> usize {
    let (base, mut highest) = (delays[0], 0);
    for (i, delay) in delays.iter().enumerate().skip(1) {
        match delay.checked_sub(base) {
            Some(rise) if rise > highest / 2 + highest / 8 => highest = highest.max(rise),
            _ => return i,
        }
    }
    delays.len()
}

/// A chirp from its planning until it is completely acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    pub chirp: Chirp,
    /// Number of chirps planned before it.
    pub number: u32,
    /// Number of its first packet, after it was sent.
    pub first: u64,
    pub sent: usize,
    /// Time between its last packet and the next chirp.
    pub guard: Span,
    /// Whether it was sent as planned.
    pub valid: bool,
}

impl InFlight {
    pub(super) fn remaining(&self) -> usize {
        self.chirp.size - self.sent
    }
}
