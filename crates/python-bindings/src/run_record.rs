//! Summary and time series of a run, for Python.

use jostle_link::DropReason;
use jostle_metrics::{
    AckTable, ControllerStateTable, FlowTable, LinkTable, Summary, TransferTable,
};
use numpy::{Element, IntoPyArray};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::canonical_json::canonical;

/// Summary and time series of a run.
#[pyclass(frozen, module = "jostle._core")]
pub struct RunRecord {
    /// The measures per phase, as canonical JSON.
    #[pyo3(get)]
    summary: String,
    /// One row per interval and flow.
    #[pyo3(get)]
    flows: Py<PyDict>,
    /// One row per interval and link.
    #[pyo3(get)]
    links: Py<PyDict>,
    /// One row per interval, flow and internal quantity of its controller.
    #[pyo3(get)]
    internals: Py<PyDict>,
    /// One row per ACK, if the spec asks for it.
    #[pyo3(get)]
    acks: Option<Py<PyDict>>,
    /// One row per transfer of multi-connection flows; None without such flows.
    #[pyo3(get)]
    transfers: Option<Py<PyDict>>,
    /// Names of the codes in `flows["mode"]`.
    #[pyo3(get)]
    modes: Vec<&'static str>,
    /// Names of the codes in `internals["quantity"]`.
    #[pyo3(get)]
    quantities: Vec<&'static str>,
}

impl RunRecord {
    /// Moves the columns of a record into NumPy arrays.
    pub fn new(py: Python<'_>, record: jostle_metrics::RunRecord) -> PyResult<Self> {
        Ok(Self {
            summary: summary_text(&record.summary)?,
            modes: record.flows.modes.as_slice().to_vec(),
            quantities: record.internals.quantities.as_slice().to_vec(),
            flows: flows(py, record.flows)?,
            links: links(py, record.links)?,
            internals: internals(py, record.internals)?,
            acks: record.acks.map(|table| acks(py, table)).transpose()?,
            transfers: record.transfers.map(|table| transfers(py, table)).transpose()?,
        })
    }
}

/// Returns a summary as canonical JSON.
pub fn summary_text(summary: &Summary) -> PyResult<String> {
    let text = serde_json::to_string(summary)
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    canonical(&text).ok_or_else(|| PyRuntimeError::new_err("a summary is not compact JSON"))
}

/// A dictionary of columns, in the order of insertion.
pub(crate) struct Columns<'py>(Bound<'py, PyDict>);

impl<'py> Columns<'py> {
    pub fn new(py: Python<'py>) -> Self {
        Self(PyDict::new(py))
    }

    /// Adds a column. NumPy takes ownership of its memory.
    pub fn with<T: Element>(self, name: &str, column: Vec<T>) -> PyResult<Self> {
        self.0.set_item(name, column.into_pyarray(self.0.py()))?;
        Ok(self)
    }

    pub fn finish(self) -> Py<PyDict> {
        self.0.unbind()
    }
}

fn flows(py: Python<'_>, table: FlowTable) -> PyResult<Py<PyDict>> {
    let columns = Columns::new(py)
        .with("time_s", table.time_s)?
        .with("flow", table.flow)?
        .with("sending_rate_bps", table.sending_rate_bps)?
        .with("throughput_bps", table.throughput_bps)?
        .with("goodput_bps", table.goodput_bps)?
        .with("rtt_mean_s", table.rtt_mean_s)?
        .with("rtt_samples", table.rtt_samples)?
        .with("segment_rtt_mean_s", table.segment_rtt_mean_s)?
        .with("segment_rtt_samples", table.segment_rtt_samples)?
        .with("rtt_last_s", table.rtt_last_s)?
        .with("srtt_s", table.srtt_s)?
        .with("cwnd_bytes", table.cwnd_bytes)?
        .with("cwnd_mean_bytes", table.cwnd_mean_bytes)?
        .with("lived_s", table.lived_s)?
        .with("ssthresh_bytes", table.ssthresh_bytes)?
        .with("in_flight_bytes", table.in_flight_bytes)?
        .with("sent_packets", table.sent_packets)?
        .with("retransmitted_packets", table.retransmitted_packets)?
        .with("received_packets", table.received_packets)?
        .with("one_way_delay_mean_s", table.one_way_delay_mean_s)?
        .with("queueing_delay_mean_s", table.queueing_delay_mean_s)?
        .with("responses", table.responses)?
        .with("response_time_mean_s", table.response_time_mean_s)?
        .with("retransmission_ratio", table.retransmission_ratio)?
        .with("pacing_rate_bps", table.pacing_rate_bps)?
        .with("mode", table.mode)?;
    Ok(columns.finish())
}

fn links(py: Python<'_>, table: LinkTable) -> PyResult<Py<PyDict>> {
    let mut columns = Columns::new(py)
        .with("time_s", table.time_s)?
        .with("link", table.link)?
        .with("throughput_bps", table.throughput_bps)?
        .with("capacity_bps", table.capacity_bps)?
        .with("utilisation", table.utilisation)?
        .with("queue_bytes", table.queue_bytes)?
        .with("queue_length_mean_bytes", table.queue_length_mean_bytes)?
        .with("queue_length_min_bytes", table.queue_length_min_bytes)?
        .with("queue_length_max_bytes", table.queue_length_max_bytes)?
        .with("queue_delay_estimate_mean_s", table.queue_delay_estimate_mean_s)?
        .with("sent_packets", table.sent_packets)?
        .with("queueing_delay_mean_s", table.queueing_delay_mean_s)?;
    for (reason, column) in DropReason::ALL.iter().zip(table.dropped) {
        columns = columns.with(&format!("dropped_{}", reason.name()), column)?;
    }
    for (reason, column) in DropReason::ALL.iter().zip(table.marked) {
        columns = columns.with(&format!("marked_{}", reason.name()), column)?;
    }
    Ok(columns.finish())
}

fn internals(py: Python<'_>, table: ControllerStateTable) -> PyResult<Py<PyDict>> {
    let columns = Columns::new(py)
        .with("time_s", table.time_s)?
        .with("flow", table.flow)?
        .with("quantity", table.quantity)?
        .with("value", table.value)?;
    Ok(columns.finish())
}

fn acks(py: Python<'_>, table: AckTable) -> PyResult<Py<PyDict>> {
    let columns = Columns::new(py)
        .with("time_s", table.time_s)?
        .with("flow", table.flow)?
        .with("rtt_s", table.rtt_s)?
        .with("segment_rtt_s", table.segment_rtt_s)?
        .with("cwnd_bytes", table.cwnd_bytes)?
        .with("in_flight_bytes", table.in_flight_bytes)?
        .with("acked_bytes", table.acked_bytes)?
        .with("lost_packets", table.lost_packets)?;
    Ok(columns.finish())
}

fn transfers(py: Python<'_>, table: TransferTable) -> PyResult<Py<PyDict>> {
    let columns = Columns::new(py)
        .with("time_s", table.start_s)?
        .with("flow", table.flow)?
        .with("connection", table.connection)?
        .with("bytes", table.bytes)?
        .with("completion_time_s", table.completion_time_s)?
        .with("slowdown", table.slowdown)?
        .with("retransmitted_packets", table.retransmitted_packets)?;
    Ok(columns.finish())
}
