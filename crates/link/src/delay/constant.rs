//! Constant delay.

use jostle_registry::{Parameter, RegistryEntry};
use jostle_units::{Span, Time};

use super::Delay;
use crate::parameters::LONGEST_DELAY;

/// Registry entry.
pub const ENTRY: RegistryEntry = RegistryEntry {
    name: "constant",
    summary: "one delay for the complete run",
    class: "synthetic",
    based_on: &[],
    source: "",
    parameters: &[Parameter::span("delay", Span::ZERO, Span::ZERO..=LONGEST_DELAY)
        .summary("time from the end of sending to arrival")],
};

/// A constant delay.
#[derive(Clone, Copy, Debug)]
pub struct Constant(Span);

impl Constant {
    /// Creates a delay of `delay` after the transmission.
    pub fn new(delay: Span) -> Self {
        Self(delay)
    }
}

impl Delay for Constant {
    #[inline]
    fn delay(&mut self, _: Time) -> Span {
        self.0
    }

    fn constant(&self) -> Option<Span> {
        Some(self.0)
    }
}
