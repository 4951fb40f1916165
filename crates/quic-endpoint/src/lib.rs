//! Endpoints of a QUIC flow over UDP sockets of a Linux kernel, in the time of that kernel.
//!
//! The endpoints are the same as in the simulator (`jostle-quic`), with the same controllers,
//! settings and applications. A difference between a run on the kernel and one in the simulator is
//! therefore caused by the network or the sockets. Each endpoint is a separate process, which runs
//! a [`Job`] and writes a file of samples.
//!
//! Packets have the same size with and without encryption. In a kernel with virtual time,
//! encryption takes no time.

mod event_loop;
mod monotonic_clock;
mod output_files;
mod receiver;
mod samples;
mod sender;
mod socket;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddrV4;
use std::path::PathBuf;

use jostle_controller_library::Libraries;
use jostle_run_spec::{FlowSpec, RunSpec};
use jostle_sim::QuicEndpoints;
use jostle_units::FlowId;
use serde::Deserialize;

/// Endpoint of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndpointRole {
    /// Client, which sends data.
    Sender,
    /// Server, which receives data.
    Receiver,
}

/// Job of an endpoint process.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Endpoint to run.
    pub role: EndpointRole,
    /// Specification of the run.
    pub spec: RunSpec,
    /// Position of the flow in the specification.
    pub flow: FlowId,
    /// Local address of the socket.
    pub local: SocketAddrV4,
    /// Address of the receiver.
    pub peer: SocketAddrV4,
    /// Start of the run, in CLOCK_MONOTONIC time.
    pub start_ns: u64,
    /// Time in the run at which the connection opens.
    pub due_ns: u64,
    /// Sample times in the run, in increasing order. The last one ends the run.
    pub moments_ns: Vec<u64>,
    /// Output file for samples; it must not exist. The endpoint's secrets (`.keys`) and qlog
    /// (`.sqlog`), if any, are written next to it.
    pub samples: PathBuf,
    /// Libraries of a user's controllers, by the digest of the crate.
    pub libraries: BTreeMap<String, PathBuf>,
}

impl Job {
    /// Builds the endpoints of the flow.
    pub(crate) fn ends(
        &self,
        flow: &FlowSpec,
        libraries: &Libraries,
    ) -> Result<QuicEndpoints, HostError> {
        let own = |flow: &FlowSpec, _| libraries.create(flow, self.spec.seed);
        Ok(jostle_sim::quic_ends(flow, &self.spec, &own)?)
    }
}

/// Error of an endpoint process.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The job refers to something that does not exist.
    #[error("{0}")]
    Job(String),
    /// The endpoint's settings are out of range, or the connection failed.
    #[error("{0}")]
    Quic(#[from] jostle_quic::Error),
    /// The specification cannot be converted to an endpoint.
    #[error("{0}")]
    Spec(#[from] jostle_sim::Error),
    /// A system call failed.
    #[error("{what}: {error}")]
    System {
        /// Failed action.
        what: &'static str,
        /// Error of the kernel.
        error: io::Error,
    },
}

impl HostError {
    pub(crate) fn system(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::System { what, error }
    }
}

/// Runs a job. Calls `completed` with the time in ns of the run when all data are acknowledged, if
/// the sender's application has an end and reaches it.
///
/// # Errors
/// If the job cannot run or the connection fails. The file of samples is then incomplete.
pub fn carry_out(job: &Job, completed: impl Fn(u64)) -> Result<(), HostError> {
    let Some(flow) = job.spec.flows.get(job.flow.index()) else {
        return Err(HostError::Job(format!("there is no flow {}", job.flow)));
    };
    let libraries = Libraries::new(job.libraries.clone());
    let ends = job.ends(flow, &libraries)?;
    match job.role {
        EndpointRole::Sender => sender::run(job, flow, ends, libraries.failure(), completed),
        EndpointRole::Receiver => receiver::run(job, flow, ends),
    }
}
