//! A small feed-forward neural network.

use alloc::vec::Vec;

use super::controller::Policy;
use super::design::MOST_ACTIONS;

/// Activation function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activation {
    Linear,
    Tanh,
    Relu,
}

impl Activation {
    pub const NAMES: &'static [&'static str] = &["linear", "tanh", "relu"];

    pub fn of(name: &str) -> Option<Self> {
        match name {
            "linear" => Some(Self::Linear),
            "tanh" => Some(Self::Tanh),
            "relu" => Some(Self::Relu),
            _ => None,
        }
    }

    fn apply(self, sum: f64) -> f64 {
        match self {
            Self::Linear => sum,
            Self::Tanh => libm::tanh(sum),
            Self::Relu => sum.max(0.0),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub activation: Activation,
    pub inputs: usize,
    /// For each output its bias, then the weights of the inputs.
    pub rows: Vec<f64>,
}

impl Layer {
    pub const fn outputs(&self) -> usize {
        self.rows.len() / (self.inputs + 1)
    }

    fn apply(&self, inputs: &[f64], outputs: &mut Vec<f64>) {
        outputs.clear();
        outputs.extend(self.rows.chunks_exact(self.inputs + 1).map(|row| {
            let sum = row[1..].iter().zip(inputs).fold(row[0], |sum, (w, x)| sum + w * x);
            self.activation.apply(sum)
        }));
    }
}

/// A neural network that selects actions.
#[derive(Clone, Debug)]
pub struct NeuralNetwork {
    layers: Vec<Layer>,
    /// Buffers for the inputs and outputs of a layer.
    values: Vec<f64>,
    before: Vec<f64>,
}

impl NeuralNetwork {
    pub(super) const fn new(layers: Vec<Layer>) -> Self {
        Self { layers, values: Vec::new(), before: Vec::new() }
    }

    /// Returns the outputs for an observation, which must have the network's input length.
    pub fn outputs(&mut self, observation: &[f64]) -> &[f64] {
        self.values.clear();
        self.values.extend_from_slice(observation);
        for layer in &self.layers {
            core::mem::swap(&mut self.values, &mut self.before);
            layer.apply(&self.before, &mut self.values);
        }
        &self.values
    }
}

impl Policy for NeuralNetwork {
    fn act(&mut self, observation: &[f64]) -> [f64; MOST_ACTIONS] {
        let outputs = self.outputs(observation);
        core::array::from_fn(|i| outputs.get(i).copied().unwrap_or(0.0))
    }
}
