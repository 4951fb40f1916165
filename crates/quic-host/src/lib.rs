//! The ends of a QUIC flow over UDP sockets of a kernel, in the time of that kernel.
//!
//! The endpoints are those of the simulator (`jostle-quic`), with the same controllers, settings and
//! applications: what a run on a kernel shows beside one in the simulator is the network, and the
//! sockets. Each end is a process of its own, which carries out a [`Job`] and leaves a file of samples.
//!
//! Packets are as long whether they are encrypted or not, and in a kernel in virtual time encryption takes
//! no time.

mod clock;
mod end;
mod notes;
mod receiver;
mod samples;
mod sender;
mod socket;

use std::io;
use std::net::SocketAddrV4;
use std::path::PathBuf;

use jostle_record::RunSpec;
use serde::Deserialize;

/// Which end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Connects, and sends data.
    Sender,
    /// Waits for the connection.
    Receiver,
}

/// What a process is to do.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Which end it is.
    pub role: Role,
    /// The run.
    pub spec: RunSpec,
    /// The flow's position in it.
    pub flow: usize,
    /// Where its socket is bound.
    pub local: SocketAddrV4,
    /// Where the receiver is.
    pub peer: SocketAddrV4,
    /// The run's time 0, by CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// When the connection opens, in the run's time.
    pub due_ns: u64,
    /// When samples are taken, in the run's time, rising: the last one is the end.
    pub moments_ns: Vec<u64>,
    /// The file for them, which must not be there yet. Beside it lie the end's secrets (`.keys`) and its log
    /// (`.sqlog`), where it has any.
    pub samples: PathBuf,
}

/// What kept an end from doing its job.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The job names something that does not exist.
    #[error("{0}")]
    Job(String),
    /// The endpoint cannot have these settings, or its connection broke.
    #[error("{0}")]
    Quic(#[from] jostle_quic::Error),
    /// The run's specification makes no endpoint.
    #[error("{0}")]
    Spec(#[from] jostle_sim::Error),
    /// The kernel refused something.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the kernel says.
        error: io::Error,
    },
}

impl HostError {
    pub(crate) fn system(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::System { what, error }
    }
}

/// Carries a job out. `completed` is told when everything was acknowledged, in ns of the run, if the
/// sender's application ever ends and that was so.
///
/// # Errors
/// When it cannot be done, or the connection broke. Then there is no whole file of samples.
pub fn carry_out(job: &Job, completed: impl Fn(u64)) -> Result<(), HostError> {
    let Some(flow) = job.spec.flows.get(job.flow) else {
        return Err(HostError::Job(format!("there is no flow {}", job.flow)));
    };
    match job.role {
        Role::Sender => sender::run(job, flow, completed),
        Role::Receiver => receiver::run(job, flow),
    }
}
