//! Learned controllers: the observations of a monitor interval, the actions on the window or the
//! rate, and the policy that selects them.
//!
//! An [`AgentDesign`] defines the observations and the meaning of an action. A [`Policy`] selects
//! the action. It is either a [`NeuralNetwork`] with weights from a file, or an external agent that
//! reads the observation and writes an action to an [`ActionSlot`]. Both use the same controller,
//! so that an externally trained policy behaves the same when it runs from a file.

mod action_slot;
mod controller;
mod design;
mod features;
mod fixed_window;
mod monitor_interval;
mod neural_network;
mod observation_history;
mod policy_file;

pub use action_slot::ActionSlot;
pub use controller::{Policy, learned};
pub use design::{Action, AgentDesign, IntervalLength};
pub use features::{FEATURES, Feature};
pub use monitor_interval::{IntervalObservation, ObservationBuilder};
pub use neural_network::NeuralNetwork;
pub use observation_history::ObservationHistory;
pub use policy_file::{parse_design, parse_policy};
