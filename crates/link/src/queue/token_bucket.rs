//! A token bucket, measured in time as in Linux (`net/sched/sch_tbf.c`, `act_police.c`): tokens are
//! the time for which the bucket's rate could have sent, up to its burst.

use jostle_registry::{Parameter, ParameterValues};
use jostle_units::{FULL_PACKET_BYTES, Rate, Span, Time};

use crate::Framing;
use crate::parameters::FASTEST;
use crate::service_rate::Shaper;

pub(super) const RATE: Parameter =
    Parameter::rate("rate", Rate::from_mbps(10), Rate::from_bps(64)..=FASTEST)
        .summary("rate at which the bucket fills");

pub(super) const BURST: Parameter = Parameter::size(
    "burst",
    Some(10 * FULL_PACKET_BYTES as i64),
    FULL_PACKET_BYTES as i64..=1 << 32,
)
.summary("size of the bucket: data that may pass at once after a pause");

/// A token bucket, initially full.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenBucket {
    rate: Rate,
    burst: Span,
    tokens: Span,
    /// Time at which the bucket had `tokens`.
    as_of: Time,
}

impl TokenBucket {
    pub fn new(values: &ParameterValues) -> Self {
        let rate = values.rate("rate");
        let burst = rate.time_for(values.amount("burst"));
        Self { rate, burst, tokens: burst, as_of: Time::ZERO }
    }

    /// Returns the limit that the bucket sets. `delays`: packets wait for tokens.
    pub fn shaper(&self, delays: bool) -> Shaper {
        let burst_bytes = Some(self.rate.bytes_in(self.burst));
        Shaper { rate: self.rate, burst_bytes, framing: Framing::NONE, delays }
    }

    /// Returns whether a packet fits into a full bucket.
    #[inline]
    pub fn may_ever_pass(&self, size_bytes: u32) -> bool {
        self.rate.time_for(u64::from(size_bytes)) <= self.burst
    }

    /// Takes the tokens of a packet, or returns the time until there are enough.
    #[inline]
    pub fn take(&mut self, now: Time, size_bytes: u32) -> Result<(), Span> {
        let needed = self.rate.time_for(u64::from(size_bytes));
        let tokens = self.tokens.saturating_add(now.since(self.as_of)).min(self.burst);
        if tokens < needed {
            return Err(needed - tokens);
        }
        (self.tokens, self.as_of) = (tokens - needed, now);
        Ok(())
    }
}
