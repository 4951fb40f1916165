//! Captures of the kernel, written as those of the simulator are.

use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::PathBuf;

use jostle_record::capture::{Ring, file_name, from_ring};
use jostle_record::{End, RunSpec, SpecError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

const BUFFER_BYTES: usize = 1 << 18;

/// Writes what a packet socket of the kernel captured as a pcapng file.
///
/// Parameters
/// ----------
/// spec_json : str
///     The RunSpec.
/// flow : int
///     Position of the flow.
/// end : str
///     `sender` or `receiver`.
/// system : str
///     What the packets went through.
/// start_ns : int
///     What the clock of the packets showed at the start of the run.
/// received, dropped : int
///     Packets that the socket saw, and those of them that it had no room for.
/// blocks : path
///     The filled blocks of the socket's ring (TPACKET_V3), one after the other.
/// folder : path
///     Where the file goes.
/// secrets : str
///     What opens the packets, in lines of the form of `SSLKEYLOGFILE`.
///
/// Returns
/// -------
/// int
///     Packets in the file.
///
/// Raises
/// ------
/// ValueError
///     If the spec makes no sense or has no such end, or `blocks` is damaged.
/// OSError
///     On reading and writing.
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
        "sender" => End::Sender,
        "receiver" => End::Receiver,
        other => return Err(PyValueError::new_err(format!("a flow has no end `{other}`"))),
    };
    let Some(name) = spec.flows.get(flow).map(|flow| &flow.name) else {
        return Err(PyValueError::new_err(format!("there is no flow {flow}")));
    };
    let ring = Ring { flow, end, system, start_ns, received, dropped, secrets };
    let written: io::Result<u64> = py.detach(|| {
        let from = BufReader::with_capacity(BUFFER_BYTES, File::open(blocks)?);
        let to = File::create_new(folder.join(file_name(name, end)))?;
        from_ring(&spec, &ring, from, BufWriter::with_capacity(BUFFER_BYTES, to))
    });
    written.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => PyValueError::new_err(error.to_string()),
        _ => error.into(),
    })
}
