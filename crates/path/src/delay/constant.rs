//! One delay for the whole run.

use jostle_units::{Span, Time};

use super::Delay;

/// A constant delay.
#[derive(Clone, Copy, Debug)]
pub struct Constant(Span);

impl Constant {
    /// A link whose packets take `delay` after they have been sent.
    pub fn new(delay: Span) -> Self {
        Self(delay)
    }
}

impl Delay for Constant {
    #[inline]
    fn delay(&mut self, _: Time) -> Span {
        self.0
    }
}
