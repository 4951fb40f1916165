//! The retransmission timeout and its back-off (RFC 6298).

use jostle_congestion::RTO_MAX;
use jostle_units::Span;

/// The current timeout (`icsk_rto`).
#[derive(Clone, Copy, Debug)]
pub(super) struct RetransmissionTimeout {
    span: Span,
    /// `icsk_retransmits`: number of timeouts since snd_una last advanced.
    expiries: u32,
}

impl RetransmissionTimeout {
    /// Creates the initial timeout. RFC 6298 §2 (2.1): "the sender SHOULD set RTO <- 1 second"
    /// before the first RTT sample.
    pub const fn new() -> Self {
        Self { span: Span::from_secs(1), expiries: 0 }
    }

    #[inline]
    pub const fn span(&self) -> Span {
        self.span
    }

    #[inline]
    pub const fn expiries(&self) -> u32 {
        self.expiries
    }

    /// Sets the timeout to `span` after an RTT sample, which ends the back-off.
    #[inline]
    pub const fn on_sample(&mut self, span: Span) {
        self.span = span;
    }

    /// Resets the number of timeouts, because snd_una advanced or the timeout was spurious.
    #[inline]
    pub const fn on_progress(&mut self) {
        self.expiries = 0;
    }

    /// Doubles the timeout. RFC 6298 §5 (5.5): "The host MUST set RTO <- RTO * 2 ("back off the
    /// timer")."
    pub fn back_off(&mut self) {
        self.expiries += 1;
        self.span = (self.span + self.span).min(RTO_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_up_to_two_minutes_and_ends_with_a_sample() {
        let mut rto = RetransmissionTimeout::new();
        let spans = [1, 2, 4, 8, 16, 32, 64, 120, 120];
        for (expiries, span_s) in (0..).zip(spans) {
            assert_eq!((rto.expiries(), rto.span()), (expiries, Span::from_secs(span_s)));
            rto.back_off();
        }
        rto.on_progress();
        assert_eq!((rto.expiries(), rto.span()), (0, RTO_MAX), "progress is no sample");
        rto.on_sample(Span::from_ms(240));
        assert_eq!(rto.span(), Span::from_ms(240));
    }
}
