//! Controllers that are learnt: what they observe of every monitor interval, how an action changes
//! what they send, and who decides on it.
//!
//! A [`Design`] says what is observed and what an action means. Who decides is a [`Decide`]: a
//! [`Network`] whose weights a file has, or somebody outside, who reads what was observed and leaves
//! an action on a [`Desk`]. Both govern the same controller, so that what was trained outside does
//! the same where it runs on its own.

mod controller;
mod design;
mod desk;
mod features;
mod held;
mod history;
mod interval;
mod network;
mod text;

pub use controller::{Decide, learned};
pub use design::{Action, Cadence, Design};
pub use desk::Desk;
pub use features::{FEATURES, Feature};
pub use history::History;
pub use interval::{Collector, Observed};
pub use network::Network;
pub use text::{parse_design, parse_policy};
