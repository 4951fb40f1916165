//! Exact transmission times at a rate.
//!
//! A packet of 1514 bytes takes 121.12 ns at 100 Gbit/s. If each time was rounded down, packets sent
//! back to back would have a rate of 100.1 Gbit/s. The remainder of the division is therefore kept:
//! a packet that starts when its predecessor ends gets the time that rounding had removed. The
//! arithmetic is exact, in units of 1 ns divided by the rate in bit/s.
//!
//! Times are rounded down so that events which coincide keep their order. In slow start the ACK of one
//! packet releases the next ones just as another packet leaves the queue. Both times are sums of
//! transmission times, and the one that was rounded more often, the end of a transmission, must not be
//! the later one: the packets would find the queue full.

use jostle_units::{Rate, Time};

const NS_PER_S: u64 = 1_000_000_000;

/// Returns the time, rounded up, at which a packet that starts at `start` has been sent over several
/// rates: the rate in force until a time, then the rates from `next`. [`Time::NEVER`] if the last rate
/// is 0.
pub fn finish_across(
    start: Time,
    size_bytes: u32,
    in_force: (Rate, Time),
    mut next: impl FnMut() -> (Rate, Time),
) -> Time {
    // The unit bit·ns/s avoids a division.
    let mut rest = u128::from(size_bytes) * u128::from(8 * NS_PER_S);
    let (mut from, (mut rate, mut until)) = (start, in_force);
    loop {
        let bps = u128::from(rate.as_bps());
        let room = bps * u128::from(until.since(from).as_ns());
        if until == Time::NEVER || rest <= room {
            if bps == 0 {
                return Time::NEVER;
            }
            let ns = u64::try_from(rest.div_ceil(bps)).unwrap_or(u64::MAX);
            return Time::from_ns(from.as_ns().saturating_add(ns));
        }
        rest -= room;
        from = until;
        (rate, until) = next();
    }
}

/// Transmission times of packets at one rate.
#[derive(Clone, Debug)]
pub struct Serialiser {
    rate_bps: u64,
    /// Packet size for which `whole_ns` and `part` are computed. The next packet usually has the
    /// same size.
    size_bytes: u32,
    whole_ns: u64,
    /// Remainder of the transmission time, in units of 1 ns ÷ rate.
    part: u64,
    /// Result of the previous call.
    finish: Time,
    /// Time by which `finish` was rounded down, in the same unit.
    rest: u64,
}

impl Serialiser {
    pub fn new(rate: Rate) -> Self {
        Self {
            rate_bps: rate.as_bps(),
            size_bytes: 0,
            whole_ns: 0,
            part: 0,
            finish: Time::ZERO,
            rest: 0,
        }
    }

    pub fn rate_bps(&self) -> u64 {
        self.rate_bps
    }

    /// Returns the time at which a packet that starts at `start` has been sent, rounded down.
    #[inline]
    pub fn finish(&mut self, start: Time, size_bytes: u32) -> Time {
        if size_bytes != self.size_bytes {
            self.measure(size_bytes);
        }
        let before = if start == self.finish { self.rest } else { 0 };
        let rest = self.part + before;
        let (extra_ns, rest) =
            if rest >= self.rate_bps { (1, rest - self.rate_bps) } else { (0, rest) };
        let total_ns = start.as_ns().saturating_add(self.whole_ns).saturating_add(extra_ns);
        self.finish = Time::from_ns(total_ns);
        self.rest = rest;
        self.finish
    }

    #[cold]
    fn measure(&mut self, size_bytes: u32) {
        let bits_ns = u64::from(size_bytes) * (8 * NS_PER_S);
        self.size_bytes = size_bytes;
        self.whole_ns = bits_ns.checked_div(self.rate_bps).unwrap_or(u64::MAX);
        self.part = bits_ns.checked_rem(self.rate_bps).unwrap_or(0);
    }
}
