//! The packet simulator: one run in virtual time.
//!
//! [`run`] takes a [`RunSpec`](jostle_record::RunSpec) and tells a [`Sink`](jostle_record::Sink)
//! what happens. Same spec, same events, on any machine.

mod browser;
mod build;
mod connection;
mod connections;
mod datagrams;
mod endpoints;
mod engine;
mod episode;
mod host;
mod messages;
mod network;
mod packet;
mod payloads;
mod pings;
mod port;
mod quic;
mod quick_start;
mod relay;
mod routes;
mod simulation;
mod source;
mod stepper;
mod viewer;

pub use build::{PythonControllers, quic_ends};
pub use episode::{Episode, Learner};
pub use quic::QuicEnds;
pub use simulation::{Counts, run, run_with};
pub use source::{Action, Source};
pub use stepper::{Controllers, Stepper};

use thiserror::Error;

/// Why a run did not end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// A link or a flow cannot be built from its spec.
    #[error("{what}: {why}")]
    Unbuildable {
        /// Name of the link or flow.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// More flows or links than the simulator can tell apart.
    #[error("more than {most} flows or links")]
    TooMany {
        /// The limit.
        most: u32,
    },
    /// A connection broke.
    #[error("{flow}: {why}")]
    Broken {
        /// Name of its flow.
        flow: String,
        /// What its ends said.
        why: String,
    },
    /// Whoever started the run wants it no more.
    #[error("the run was cancelled")]
    Cancelled,
}

impl Error {
    /// The link or flow `what` cannot be built.
    fn unbuildable(what: &str, why: impl std::fmt::Display) -> Self {
        Self::Unbuildable { what: what.to_owned(), why: why.to_string() }
    }
}
