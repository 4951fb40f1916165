//! Observation vector of the latest intervals.

use alloc::vec::Vec;

use super::design::AgentDesign;
use super::monitor_interval::IntervalObservation;

/// An observation: the features of the latest intervals, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservationHistory {
    values: Vec<f64>,
}

impl ObservationHistory {
    /// Creates an observation without intervals.
    pub fn new(design: &AgentDesign) -> Self {
        let rest = design.features.iter().map(|feature| feature.rest);
        let values = rest.cycle().take(design.observation_len()).collect();
        Self { values }
    }

    /// Adds an interval and removes the oldest.
    pub fn push(&mut self, design: &AgentDesign, observed: &IntervalObservation) {
        let features = design.features.len();
        self.values.rotate_left(features);
        let latest = self.values.len() - features;
        for (value, feature) in self.values[latest..].iter_mut().zip(&design.features) {
            // Rounded to 32 bits like in learning frameworks, so that a network sees the same
            // values as in training.
            *value = f64::from(feature.of(observed) as f32);
        }
    }

    /// Returns the values of the observation.
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}
