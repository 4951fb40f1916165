//! Measures of completed runs, for Python: measures of a time series over time windows, and records
//! computed from samples.

use jostle_link::DropReason;
use jostle_metrics::measures::{self, Measure, MeasureArguments};
use jostle_metrics::{
    FlowFacts, FlowTable, KernelSamples, LinkTable, Pings, SampledFlow, SampledLink,
};
use jostle_units::{SendLimit, Span, Time};
use numpy::{Element, IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::controller::permanent;
use crate::run::parse_of_results;
use crate::run_record::RunRecord;

/// Returns the registry of measures, in its order.
pub fn rows() -> Vec<Value> {
    measures::all().map(|measure| json!(measure)).collect()
}

/// Time series of a run, from which measures are computed.
///
/// Parameters
/// ----------
/// spec_json : str
///     The RunSpec.
/// facts : list of dict
///     Per flow, values of the summary that are not per phase: `start_s`, `completion_time_s`, `pings`.
/// flows, links : dict of arrays
///     Columns of the series. Rows are sorted by time, then in the order of the spec.
///
/// Raises
/// ------
/// ValueError
///     If the arguments do not belong to one run.
#[pyclass(frozen, module = "jostle._core")]
pub struct Series(jostle_metrics::TimeSeries);

#[pymethods]
impl Series {
    #[new]
    fn new(
        spec_json: &str,
        facts: Vec<Bound<'_, PyDict>>,
        flows: &Bound<'_, PyDict>,
        links: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let spec = parse_of_results(spec_json)?;
        let facts = facts.iter().map(facts_of).collect::<PyResult<_>>()?;
        let series =
            jostle_metrics::TimeSeries::new(&spec, facts, flow_table(flows)?, link_table(links)?);
        series.map(Self).map_err(PyValueError::new_err)
    }

    /// Returns a measure over a time window, for the flow or link with an index.
    ///
    /// Raises
    /// ------
    /// KeyError
    ///     If there is no such measure.
    /// ValueError
    ///     If there is no such flow or link, or the window is not valid.
    fn window_measure(
        &self,
        measure: &str,
        position: usize,
        from_s: f64,
        to_s: f64,
    ) -> PyResult<Option<f64>> {
        let measure = row(measure)?;
        self.0.check(measure, position, (from_s, to_s)).map_err(PyValueError::new_err)?;
        Ok(measure.over(&self.0.interval_stats(from_s, to_s), position))
    }

    /// Returns a measure in each bin of a time window. The default is the sampling interval.
    ///
    /// Raises
    /// ------
    /// KeyError, ValueError
    ///     Like `window_measure`; also if bins have no length, or exceed ten million.
    #[pyo3(signature = (measure, position, from_s, to_s, bin_s=None))]
    fn bins<'py>(
        &self,
        py: Python<'py>,
        measure: &str,
        position: usize,
        from_s: f64,
        to_s: f64,
        bin_s: Option<f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let found = self.0.bins(row(measure)?, position, (from_s, to_s), bin_s);
        Ok(found.map_err(PyValueError::new_err)?.into_pyarray(py))
    }

    /// Returns the times at which a flow had delivered two shares of its bytes.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If there is no such flow.
    fn span_of_shares(
        &self,
        position: usize,
        from_share: f64,
        to_share: f64,
    ) -> PyResult<(f64, f64)> {
        self.0.span_of_shares(position, from_share, to_share).map_err(PyValueError::new_err)
    }

    /// Returns a measure of the complete run, for the flow with a name.
    #[pyo3(signature = (measure, flow, *, size_bytes=None, percentile=None, above_ms=None,
        below_ms=None))]
    fn run_measure(
        &self,
        measure: &str,
        flow: &str,
        size_bytes: Option<u64>,
        percentile: Option<f64>,
        above_ms: Option<f64>,
        below_ms: Option<f64>,
    ) -> PyResult<Option<f64>> {
        let arguments = MeasureArguments { size_bytes, percentile, above_ms, below_ms };
        Ok(self.0.run_measure(row(measure)?, flow, &arguments))
    }
}

fn row(name: &str) -> PyResult<&'static Measure> {
    measures::named(name).ok_or_else(|| PyKeyError::new_err(format!("no measure `{name}`")))
}

fn facts_of(flow: &Bound<'_, PyDict>) -> PyResult<FlowFacts> {
    let pings = flow.get_item("pings")?.filter(|pings| !pings.is_none());
    let pings = pings.map(|pings| {
        let pings = pings.cast_into::<PyDict>()?;
        Ok::<_, PyErr>(Pings {
            sent: value(&pings, "sent")?,
            echoed: value(&pings, "echoed")?,
            lost: value(&pings, "lost")?,
            waiting: value(&pings, "waiting")?,
            rtt_min_s: value(&pings, "rtt_min_s")?,
            rtt_max_s: value(&pings, "rtt_max_s")?,
            echoes_by_ms: pairs(&pings, "echoes_by_ms")?,
            losses_by_length: pairs(&pings, "losses_by_length")?,
        })
    });
    Ok(FlowFacts {
        start_s: value(flow, "start_s")?,
        completion_time_s: value(flow, "completion_time_s")?,
        pings: pings.transpose()?,
    })
}

fn pairs(of: &Bound<'_, PyDict>, name: &str) -> PyResult<Vec<(u64, u64)>> {
    let found: Vec<[u64; 2]> = value(of, name)?;
    Ok(found.into_iter().map(|[one, other]| (one, other)).collect())
}

fn flow_table(columns: &Bound<'_, PyDict>) -> PyResult<FlowTable> {
    Ok(FlowTable {
        time_s: column(columns, "time_s")?,
        sending_rate_bps: column(columns, "sending_rate_bps")?,
        throughput_bps: column(columns, "throughput_bps")?,
        goodput_bps: column(columns, "goodput_bps")?,
        rtt_mean_s: column(columns, "rtt_mean_s")?,
        rtt_samples: column(columns, "rtt_samples")?,
        segment_rtt_mean_s: column(columns, "segment_rtt_mean_s")?,
        segment_rtt_samples: column(columns, "segment_rtt_samples")?,
        cwnd_mean_bytes: column(columns, "cwnd_mean_bytes")?,
        lived_s: column(columns, "lived_s")?,
        sent_packets: column(columns, "sent_packets")?,
        retransmitted_packets: column(columns, "retransmitted_packets")?,
        received_packets: column(columns, "received_packets")?,
        one_way_delay_mean_s: column(columns, "one_way_delay_mean_s")?,
        queueing_delay_mean_s: column(columns, "queueing_delay_mean_s")?,
        responses: column(columns, "responses")?,
        response_time_mean_s: column(columns, "response_time_mean_s")?,
        ..FlowTable::default()
    })
}

fn link_table(columns: &Bound<'_, PyDict>) -> PyResult<LinkTable> {
    let mut table = LinkTable {
        time_s: column(columns, "time_s")?,
        throughput_bps: column(columns, "throughput_bps")?,
        capacity_bps: column(columns, "capacity_bps")?,
        queue_length_mean_bytes: column(columns, "queue_length_mean_bytes")?,
        queue_delay_estimate_mean_s: column(columns, "queue_delay_estimate_mean_s")?,
        sent_packets: column(columns, "sent_packets")?,
        queueing_delay_mean_s: column(columns, "queueing_delay_mean_s")?,
        ..LinkTable::default()
    };
    for (reason, (dropped, marked)) in
        DropReason::ALL.iter().zip(table.dropped.iter_mut().zip(&mut table.marked))
    {
        *dropped = counts(columns, &format!("dropped_{}", reason.name()), table.time_s.len())?;
        *marked = counts(columns, &format!("marked_{}", reason.name()), table.time_s.len())?;
    }
    Ok(table)
}

/// Returns a count per interval. Older stored tables lack the columns of newer reasons.
fn counts(columns: &Bound<'_, PyDict>, name: &str, intervals: usize) -> PyResult<Vec<u32>> {
    if columns.contains(name)? { column(columns, name) } else { Ok(vec![0; intervals]) }
}

/// Computes the measures of a run from samples.
///
/// Parameters
/// ----------
/// spec_json : str
///     The RunSpec.
/// time_ns : array of int
///     Times of the samples.
/// flows, links : list of dict
///     Per flow and link, arrays with a value per sample: see `jostle_metrics::SampledFlow` and
///     `SampledLink`. Flows also have `mode` (list of str), `internals` (arrays by name),
///     `start_ns`, `completed_ns`, `initial_cwnd_bytes`, optionally `limited_ns` (arrays by name of
///     the limit), and optionally logs of their applications: `messages` (a JSON list of
///     `MessageRecord` per connection), `pages` (a JSON list of `PageRecord`), `datagrams_ns` (tuples
///     of arrival time, number, one-way delay of each CBR datagram), and `pings_ns` (tuples of the time
///     of the echo or timeout, number, RTT or None of each ping).
///
/// Returns
/// -------
/// Record
///     Summary and time series.
///
/// Raises
/// ------
/// ValueError
///     If the spec is not valid, or the samples do not match it.
#[pyfunction]
pub fn record_of_samples(
    py: Python<'_>,
    spec_json: &str,
    time_ns: PyReadonlyArray1<'_, i64>,
    flows: Vec<Bound<'_, PyDict>>,
    links: Vec<Bound<'_, PyDict>>,
) -> PyResult<RunRecord> {
    let spec = parse_of_results(spec_json)?;
    let times: Vec<Time> =
        time_ns.as_array().iter().map(|ns| Time::from_ns((*ns).max(0).cast_unsigned())).collect();
    let samples = KernelSamples {
        flows: flows.iter().map(|flow| sampled_flow(flow, times.len())).collect::<PyResult<_>>()?,
        links: links.iter().map(|link| sampled_link(link, times.len())).collect::<PyResult<_>>()?,
        times,
    };
    if samples.times.is_empty()
        || samples.flows.len() != spec.flows.len()
        || samples.links.len() != spec.links.len()
    {
        return Err(PyValueError::new_err("samples of another run, or none"));
    }
    let record = py.detach(|| samples.record(&spec));
    RunRecord::new(py, record.map_err(|error| PyValueError::new_err(error.to_string()))?)
}

fn sampled_flow(flow: &Bound<'_, PyDict>, samples: usize) -> PyResult<SampledFlow> {
    let seen = |name: &str| values(flow, name, samples);
    let modes: Vec<String> = value(flow, "mode")?;
    let internals = item(flow, "internals")?.cast_into::<PyDict>()?;
    let quantities = internals.iter().map(|(name, _)| {
        let name = name.extract::<String>()?;
        Ok((permanent(&name)?, values(&internals, &name, samples)?))
    });
    let time = |name| Ok::<_, PyErr>(value::<Option<u64>>(flow, name)?.map(Time::from_ns));
    Ok(SampledFlow {
        start: time("start_ns")?,
        completed: time("completed_ns")?,
        connections: optional(flow, "messages", Vec::<String>::new())?
            .iter()
            .map(|messages| records(messages))
            .collect::<PyResult<_>>()?,
        pages: records(&optional(flow, "pages", "[]".to_owned())?)?,
        datagrams: optional(flow, "datagrams_ns", Vec::<(u64, u32, u64)>::new())?
            .into_iter()
            .map(|(came, number, delay)| (Time::from_ns(came), number, Span::from_ns(delay)))
            .collect(),
        pings: optional(flow, "pings_ns", Vec::<(u64, u32, Option<u64>)>::new())?
            .into_iter()
            .map(|(known, number, rtt)| (Time::from_ns(known), number, rtt.map(Span::from_ns)))
            .collect(),
        sent_bytes: seen("sent_bytes")?,
        received_bytes: seen("received_bytes")?,
        delivered_bytes: seen("delivered_bytes")?,
        sent_packets: seen("sent_packets")?,
        retransmitted_packets: seen("retransmitted_packets")?,
        limited_ns: limited_ns(flow, samples)?,
        rtt_s: seen("rtt_s")?,
        srtt_s: seen("srtt_s")?,
        rtt_min_s: seen("rtt_min_s")?,
        cwnd_bytes: seen("cwnd_bytes")?,
        ssthresh_bytes: seen("ssthresh_bytes")?,
        in_flight_bytes: seen("in_flight_bytes")?,
        pacing_rate_bps: seen("pacing_rate_bps")?,
        internals: quantities.collect::<PyResult<_>>()?,
        mode: length("mode", modes, samples)?
            .iter()
            .map(|mode| permanent(mode))
            .collect::<PyResult<_>>()?,
        initial_cwnd_bytes: value(flow, "initial_cwnd_bytes")?,
    })
}

/// Returns the time during which each limit held, by the names that the kernel backend uses.
fn limited_ns(flow: &Bound<'_, PyDict>, samples: usize) -> PyResult<Vec<(SendLimit, Vec<f64>)>> {
    let Some(counters) = flow.get_item("limited_ns")? else { return Ok(Vec::new()) };
    let counters = counters.cast_into::<PyDict>()?;
    let limits = [
        ("application", SendLimit::Application),
        ("receive_window", SendLimit::ReceiveWindow),
        ("send_buffer", SendLimit::SendBuffer),
        ("cwnd_or_pacing", SendLimit::CwndOrPacing),
    ];
    limits.iter().map(|&(name, limit)| Ok((limit, values(&counters, name, samples)?))).collect()
}

fn sampled_link(link: &Bound<'_, PyDict>, samples: usize) -> PyResult<SampledLink> {
    let mut seen = SampledLink {
        sent_bytes: values(link, "sent_bytes", samples)?,
        sent_packets: values(link, "sent_packets", samples)?,
        queue_bytes: values(link, "queue_bytes", samples)?,
        duplicated: values(link, "duplicated", samples)?,
        ..SampledLink::default()
    };
    for (reason, (dropped, marked)) in
        DropReason::ALL.iter().zip(seen.dropped.iter_mut().zip(&mut seen.marked))
    {
        *dropped = values(link, &format!("dropped_{}", reason.name()), samples)?;
        *marked = values(link, &format!("marked_{}", reason.name()), samples)?;
    }
    Ok(seen)
}

fn values(columns: &Bound<'_, PyDict>, name: &str, samples: usize) -> PyResult<Vec<f64>> {
    length(name, column(columns, name)?, samples)
}

fn length<T>(name: &str, found: Vec<T>, samples: usize) -> PyResult<Vec<T>> {
    if found.len() == samples {
        return Ok(found);
    }
    let text = format!("{name}: {} values of {samples} samples", found.len());
    Err(PyValueError::new_err(text))
}

fn column<T: Element + Copy>(columns: &Bound<'_, PyDict>, name: &str) -> PyResult<Vec<T>> {
    let array: PyReadonlyArray1<'_, T> = item(columns, name)?.extract()?;
    Ok(array.as_array().to_vec())
}

fn value<'py, T>(of: &Bound<'py, PyDict>, name: &str) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    item(of, name)?.extract()
}

fn optional<'py, T>(of: &Bound<'py, PyDict>, name: &str, otherwise: T) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    of.get_item(name)?.map_or(Ok(otherwise), |found| found.extract())
}

/// Parses a log of an application.
fn records<T: DeserializeOwned>(log_json: &str) -> PyResult<Vec<T>> {
    serde_json::from_str(log_json).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn item<'py>(of: &Bound<'py, PyDict>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    of.get_item(name)?.ok_or_else(|| PyKeyError::new_err(name.to_owned()))
}
