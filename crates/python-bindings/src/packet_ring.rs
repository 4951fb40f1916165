//! Converts kernel captures to pcapng, in the format of the simulator's captures.

use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::net::Ipv4Addr;
use std::path::PathBuf;

use jostle_metrics::EndpointRole;
use jostle_pcap::{HostRing, PacketRing, file_name, from_host_ring, from_ring};
use jostle_run_spec::{RunSpec, SpecError};
use jostle_units::FlowId;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

const BUFFER_BYTES: usize = 1 << 18;

/// Writes the packets captured by a packet socket of Linux as a pcapng file.
///
/// Parameters
/// ----------
/// spec_json : str
///     The RunSpec.
/// flow : int
///     Index of the flow.
/// end : str
///     `sender` or `receiver`.
/// system : str
///     System that processed the packets, such as the kernel version.
/// start_ns : int
///     Start of the run on the clock of the packets.
/// received, dropped : int
///     Packets that the socket received, and packets of these that did not fit into the ring.
/// blocks : path
///     Filled blocks of the socket's ring (TPACKET_V3), one after another.
/// folder : path
///     Folder of the new file.
/// secrets : str
///     TLS secrets in `SSLKEYLOGFILE` format.
///
/// Returns
/// -------
/// int
///     Number of packets in the file.
///
/// Raises
/// ------
/// ValueError
///     If the spec is not valid or has no such end, or if `blocks` is damaged.
/// OSError
///     If reading or writing fails.
#[pyfunction]
#[pyo3(signature = (spec_json, flow, end, *, system, start_ns, received, dropped, blocks, folder, secrets=""))]
#[expect(clippy::too_many_arguments, reason = "named in Python")]
pub fn capture_from_ring(
    py: Python<'_>,
    spec_json: &str,
    flow: usize,
    end: &str,
    system: &str,
    start_ns: u64,
    received: u64,
    dropped: u64,
    blocks: PathBuf,
    folder: PathBuf,
    secrets: &str,
) -> PyResult<u64> {
    let spec = RunSpec::from_json(spec_json)
        .map_err(|error: SpecError| PyValueError::new_err(error.to_string()))?;
    let end = match end {
        "sender" => EndpointRole::Sender,
        "receiver" => EndpointRole::Receiver,
        other => return Err(PyValueError::new_err(format!("a flow has no end `{other}`"))),
    };
    let Some(name) = spec.flows.get(flow).map(|flow| &flow.name) else {
        return Err(PyValueError::new_err(format!("there is no flow {flow}")));
    };
    let ring =
        PacketRing { flow: FlowId::at(flow), end, system, start_ns, received, dropped, secrets };
    let written: io::Result<u64> = py.detach(|| {
        let from = BufReader::with_capacity(BUFFER_BYTES, File::open(blocks)?);
        let to = File::create_new(folder.join(file_name(name, end)))?;
        from_ring(&spec, &ring, from, BufWriter::with_capacity(BUFFER_BYTES, to))
    });
    written.map_err(to_python)
}

/// Writes the packets that a packet socket of Linux captured on a host as a pcapng file.
///
/// Parameters
/// ----------
/// name, address : str
///     The host and its IPv4 address.
/// comment : str
///     Comment of the file.
/// system : str
///     System that processed the packets, such as the kernel version.
/// snap_bytes : int
///     Maximum size of the stored part of a packet.
/// start_ns, duration_ns : int
///     Start of the run on the clock of the packets, and its length. Other packets are omitted.
/// received, dropped : int
///     Packets that the socket received, and packets of these that did not fit into the ring.
/// blocks : path
///     Filled blocks of the socket's ring (TPACKET_V3), one after another.
/// file : path
///     The new file.
///
/// Returns
/// -------
/// int
///     Number of packets in the file.
///
/// Raises
/// ------
/// ValueError
///     If the address is not valid, or if `blocks` is damaged.
/// OSError
///     If reading or writing fails.
#[pyfunction]
#[pyo3(signature = (name, address, *, comment, system, snap_bytes, start_ns, duration_ns, received, dropped, blocks, file))]
#[expect(clippy::too_many_arguments, reason = "named in Python")]
pub fn host_capture_from_ring(
    py: Python<'_>,
    name: &str,
    address: &str,
    comment: &str,
    system: &str,
    snap_bytes: u32,
    start_ns: u64,
    duration_ns: u64,
    received: u64,
    dropped: u64,
    blocks: PathBuf,
    file: PathBuf,
) -> PyResult<u64> {
    let address: Ipv4Addr =
        address.parse().map_err(|_| PyValueError::new_err(format!("no address: {address}")))?;
    let ring = HostRing {
        name,
        address: address.into(),
        comment,
        system,
        snap_bytes,
        start_ns,
        duration_ns,
        received,
        dropped,
    };
    let written: io::Result<u64> = py.detach(|| {
        let from = BufReader::with_capacity(BUFFER_BYTES, File::open(blocks)?);
        let to = File::create_new(file)?;
        from_host_ring(&ring, from, BufWriter::with_capacity(BUFFER_BYTES, to))
    });
    written.map_err(to_python)
}

fn to_python(error: io::Error) -> PyErr {
    match error.kind() {
        io::ErrorKind::InvalidData => PyValueError::new_err(error.to_string()),
        _ => error.into(),
    }
}
