//! Emulated links, for Python.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use jostle_emulator::{Device, EmulationSpec, Error, Stop, open};
use jostle_forwarding::{Event, EventLog, PacketEventKind};
use jostle_link::DropReason;
use numpy::IntoPyArray;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Flow number of packets that are not IP.
const NO_FLOW: u32 = u32::MAX;

type FlowRow = (u8, String, u16, String, u16);

/// Real-time links between two TUN devices.
#[pyclass(frozen, module = "jostle._core")]
pub struct Emulator {
    emulator: Mutex<Option<jostle_emulator::Emulator<Device>>>,
    stop: Stop,
}

/// Result of an emulation.
#[pyclass(frozen, module = "jostle._core")]
pub struct Emulation {
    /// Counters, utilisation and lateness, as a JSON document.
    #[pyo3(get)]
    summary: String,
    /// One row per drop or mark, if the spec requests them.
    #[pyo3(get)]
    events: Option<Py<PyDict>>,
    /// Flows of the events: protocol, source address, source port, destination address, destination
    /// port.
    #[pyo3(get)]
    flows: Vec<FlowRow>,
    /// Names of the codes in `events["reason"]`.
    #[pyo3(get)]
    reasons: Vec<&'static str>,
}

#[pymethods]
impl Emulator {
    /// Creates two TUN devices in the current network namespace, and links between them.
    #[new]
    fn new(spec_json: &str, first: &str, second: &str) -> PyResult<Self> {
        let spec = EmulationSpec::from_json(spec_json)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let device = |name| open(name, spec.mtu_bytes).map_err(raised);
        let devices = [device(first)?, device(second)?];
        let emulator = jostle_emulator::Emulator::new(&spec, devices).map_err(raised)?;
        let stop = emulator.stop();
        Ok(Self { emulator: Mutex::new(Some(emulator)), stop })
    }

    /// Forwards packets until it is stopped, without holding the GIL.
    fn run(&self, py: Python<'_>) -> PyResult<Emulation> {
        let taken = self.emulator.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(emulator) = taken else {
            return Err(PyRuntimeError::new_err("an emulation runs once"));
        };
        let outcome = py.detach(|| emulator.run()).map_err(raised)?;
        let summary = serde_json::to_string(&outcome.summary)
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        let flows = outcome.journal.iter().flat_map(|journal| &journal.flows);
        let text = |address: IpAddr| address.to_string();
        Ok(Emulation {
            summary,
            flows: flows
                .map(|flow| {
                    let (from, to) = (text(flow.source), text(flow.destination));
                    (flow.protocol, from, flow.source_port, to, flow.destination_port)
                })
                .collect(),
            reasons: DropReason::ALL.iter().map(|reason| reason.name()).collect(),
            events: outcome.journal.map(|journal| events(py, &journal)).transpose()?,
        })
    }

    /// Stops the emulation, from any thread.
    fn stop(&self) {
        self.stop.stop();
    }
}

fn raised(error: Error) -> PyErr {
    match error {
        Error::System { .. } => PyOSError::new_err(error.to_string()),
        Error::Spec(_) | Error::Link { .. } => PyValueError::new_err(error.to_string()),
    }
}

fn events(py: Python<'_>, journal: &EventLog) -> PyResult<Py<PyDict>> {
    let events = &journal.events;
    let column = |number: fn(&Event) -> u32| -> Vec<u32> { events.iter().map(number).collect() };
    let time_s: Vec<f64> = events.iter().map(|event| event.at.as_secs_f64()).collect();
    let columns = PyDict::new(py);
    columns.set_item("time_s", time_s.into_pyarray(py))?;
    for (name, values) in [
        ("direction", column(|event| event.direction.into())),
        ("link", column(|event| event.hop.into())),
        ("marked", column(|event| u32::from(event.what == PacketEventKind::Marked))),
        ("reason", column(|event| event.reason as u32)),
        ("size_bytes", column(|event| event.size_bytes)),
        ("flow", column(|event| event.flow.unwrap_or(NO_FLOW))),
    ] {
        columns.set_item(name, values.into_pyarray(py))?;
    }
    Ok(columns.unbind())
}
