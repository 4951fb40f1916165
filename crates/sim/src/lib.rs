//! Packet simulator for congestion-control experiments.
//!
//! [`run`] simulates a [`RunSpec`](jostle_run_spec::RunSpec) in virtual time and reports the events
//! to an [`EventSink`](jostle_metrics::EventSink). The same specification yields the same events on
//! every machine.

mod build;
mod cbr_sender;
mod dynamic_connections;
mod endpoints;
mod episode;
mod event_queue;
mod network;
mod packet;
mod payload_pool;
mod ping;
mod proxy;
mod quic_connection;
mod quick_start_router;
mod received_numbers;
mod routes;
mod sender_port;
mod simulation;
mod slow_reader;
mod stepper;
mod tcp_connection;
mod transport;
mod tunnel;

pub use build::{UserControllers, quic_ends};
pub use episode::{Episode, LearningFlow};
pub use quic_connection::QuicEndpoints;
pub use simulation::{RunCounts, run, run_with};
pub use stepper::{Controllers, Stepper};

use thiserror::Error;

/// Reason why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// A link or a flow cannot be built from its spec.
    #[error("{what}: {why}")]
    Unbuildable {
        /// Name of the link or flow.
        what: String,
        /// Description of the problem.
        why: String,
    },
    /// The specification has more flows or links than the simulator supports.
    #[error("more than {most} flows or links")]
    TooMany {
        /// The limit.
        most: u32,
    },
    /// A connection failed.
    #[error("{flow}: {why}")]
    Broken {
        /// Name of its flow.
        flow: String,
        /// Error message of the connection.
        why: String,
    },
    /// The caller cancelled the run.
    #[error("the run was cancelled")]
    Cancelled,
}

impl Error {
    /// Returns the error for a link or flow `what` that cannot be built.
    fn unbuildable(what: &str, why: impl std::fmt::Display) -> Self {
        Self::Unbuildable { what: what.to_owned(), why: why.to_string() }
    }
}
