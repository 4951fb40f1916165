//! The test kit, for endpoints that are Python objects.

use std::cell::RefCell;
use std::fs::File;
use std::io::BufWriter;
use std::net::SocketAddr;
use std::rc::Rc;

use jostle_run_spec::LinkSpec;
use jostle_testkit::{
    Datagram, Endpoint, HostId, Link, Network, NetworkError, PacketLimit, Rate, SenderState, Side,
    Simulation, Span, Time, Transmit, UdpHost, Unfinished,
};
use pyo3::exceptions::{PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

/// Exception of an endpoint, which ends the run.
type Raised = Rc<RefCell<Option<PyErr>>>;

/// A simulation whose endpoints are Python objects with the methods of aioquic's `QuicConnection`.
#[pyclass(unsendable, module = "jostle._core")]
pub struct TestKit {
    simulation: Simulation<UdpHost<PythonEndpoint>>,
    hosts: Vec<(HostId, SocketAddr)>,
    raised: Raised,
}

struct PythonEndpoint {
    object: Py<PyAny>,
    /// Datagrams that it has returned, in reverse order.
    to_send: Vec<(Py<PyBytes>, SocketAddr)>,
    address: SocketAddr,
    raised: Raised,
}

/// Times of Python are seconds.
fn seconds(time: Time) -> f64 {
    time.as_ns() as f64 / 1e9
}

/// Returns the first time that is not before `seconds` when it is converted back. Otherwise an
/// endpoint would wait for its timer without end.
fn time(at_s: f64) -> Time {
    let ns = (at_s * 1e9).ceil();
    if ns >= u64::MAX as f64 {
        return Time::NEVER;
    }
    let time = Time::from_ns(ns.max(0.0) as u64);
    if seconds(time) < at_s { Time::from_ns(time.as_ns() + 1) } else { time }
}

fn invalid(error: NetworkError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

impl PythonEndpoint {
    /// Calls a method, unless one has already raised an exception.
    fn call<T>(&self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        if self.raised.borrow().is_some() {
            return None;
        }
        Python::attach(|py| match call(self.object.bind(py)) {
            Ok(value) => Some(value),
            Err(error) => {
                self.raised.replace(Some(error));
                None
            }
        })
    }

    /// Reads `[(data, (address, port)), …]`, with the last datagram first.
    fn datagrams(&self, list: &Bound<'_, PyAny>) -> PyResult<Vec<(Py<PyBytes>, SocketAddr)>> {
        let mut datagrams = Vec::new();
        for item in list.try_iter()? {
            let (data, address): (Bound<'_, PyBytes>, Bound<'_, PyTuple>) = item?.extract()?;
            // An address of IPv6 also has a flow label and a scope.
            let ip: String = address.get_item(0)?.extract()?;
            let port: u16 = address.get_item(1)?.extract()?;
            let ip = ip.parse().map_err(|_| {
                PyValueError::new_err(format!("a datagram to \"{ip}\": expected an IP address"))
            })?;
            let address = SocketAddr::new(ip, port);
            if address.is_ipv4() != self.address.is_ipv4() {
                let from = self.address;
                let message = format!("a datagram from {from} to {address}: different families");
                return Err(PyValueError::new_err(message));
            }
            if data.as_bytes().len() > 65_507 {
                let bytes = data.as_bytes().len();
                let message = format!("a datagram of {bytes} bytes: at most 65507");
                return Err(PyValueError::new_err(message));
            }
            datagrams.push((data.unbind(), address));
        }
        datagrams.reverse();
        Ok(datagrams)
    }
}

impl Endpoint for PythonEndpoint {
    fn handle(&mut self, now: Time, datagram: &Datagram<'_>) {
        self.call(|object| {
            let data = PyBytes::new(object.py(), datagram.payload);
            let address = (datagram.source.ip().to_string(), datagram.source.port());
            object.call_method1("receive_datagram", (data, address, seconds(now))).map(drop)
        });
    }

    fn poll_transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<Transmit> {
        if self.to_send.is_empty() {
            self.to_send = self.call(|object| {
                self.datagrams(&object.call_method1("datagrams_to_send", (seconds(now),))?)
            })?;
        }
        let (data, address) = self.to_send.pop()?;
        Python::attach(|py| payload.extend_from_slice(data.as_bytes(py)));
        Some(Transmit::to(address))
    }

    fn deadline(&mut self) -> Option<Time> {
        let timer: Option<Option<f64>> =
            self.call(|object| object.call_method0("get_timer")?.extract());
        timer.flatten().map(time)
    }

    fn on_deadline(&mut self, now: Time) {
        self.call(|object| object.call_method1("handle_timer", (seconds(now),)).map(drop));
    }

    fn sender_state(&mut self) -> Option<SenderState> {
        let state = self.call(|object| {
            let Ok(method) = object.getattr("sender_state") else { return Ok(None) };
            let values: Bound<'_, PyDict> = method.call0()?.extract()?;
            read_state(&values).map(Some)
        });
        state.flatten()
    }
}

/// Reads what an endpoint says of its congestion control.
fn read_state(values: &Bound<'_, PyDict>) -> PyResult<SenderState> {
    let mut state = SenderState::default();
    for (key, value) in values.iter() {
        if value.is_none() {
            continue;
        }
        let (key, value): (String, f64) = (key.extract()?, value.extract()?);
        match key.as_str() {
            "srtt_s" => state.srtt = Span::from_secs_f64(value),
            "rtt_min_s" => state.min_rtt = Span::from_secs_f64(value),
            "cwnd_bytes" => state.cwnd_bytes = value as u64,
            "ssthresh_bytes" => state.ssthresh_bytes = Some(value as u64),
            "in_flight_bytes" => state.in_flight_bytes = value as u64,
            "pacing_rate_bps" => state.pacing_rate = Some(Rate::from_bps(value as u64)),
            _ => {
                return Err(PyValueError::new_err(format!(
                    "sender_state returned `{key}`: expected srtt_s, rtt_min_s, cwnd_bytes, \
                     ssthresh_bytes, in_flight_bytes or pacing_rate_bps"
                )));
            }
        }
    }
    Ok(state)
}

impl TestKit {
    fn start(network: Result<Network, NetworkError>, seed: u64) -> PyResult<Self> {
        let simulation = Simulation::new(&network.map_err(invalid)?, seed).map_err(invalid)?;
        Ok(Self { simulation, hosts: Vec::new(), raised: Raised::default() })
    }

    fn host(&self, host: usize) -> PyResult<(HostId, SocketAddr)> {
        self.hosts.get(host).copied().ok_or_else(|| {
            let count = self.hosts.len();
            PyValueError::new_err(format!("no host {host}: the simulation has {count} hosts"))
        })
    }
}

#[pymethods]
impl TestKit {
    /// Creates a simulation with a network: `forward`, `reverse` and `mtu_bytes`, as JSON.
    #[new]
    fn new(network_json: &str, seed: u64) -> PyResult<Self> {
        Self::start(Network::from_json(network_json), seed)
    }

    /// Creates a simulation with the network of a flow of a run specification.
    #[staticmethod]
    fn of_flow(run_json: &str, flow: &str, seed: u64) -> PyResult<Self> {
        Self::start(Network::of_flow(run_json, flow), seed)
    }

    /// Adds an endpoint and returns the number of its host.
    fn add(&mut self, is_left: bool, address: &str, endpoint: Py<PyAny>) -> PyResult<usize> {
        let Ok(address) = address.parse() else {
            let message = format!(
                "address \"{address}\": expected an IP address and a port, such as 10.0.0.1:443"
            );
            return Err(PyValueError::new_err(message));
        };
        let raised = self.raised.clone();
        let endpoint = PythonEndpoint { object: endpoint, to_send: Vec::new(), address, raised };
        let side = if is_left { Side::Left } else { Side::Right };
        let id = self.simulation.add(side, UdpHost::new(address, endpoint));
        self.hosts.push((id, address));
        Ok(self.hosts.len() - 1)
    }

    /// Says that an endpoint may have something to send, or another timer.
    fn wake(&mut self, host: usize) -> PyResult<()> {
        let (id, _) = self.host(host)?;
        let _ = &mut self.simulation[id];
        Ok(())
    }

    /// Time in seconds.
    #[getter]
    fn now(&self) -> f64 {
        seconds(self.simulation.now())
    }

    /// Runs until `is_met()` is true, or without it to `limit_s`. Returns the time in seconds.
    #[pyo3(signature = (limit_s, is_met=None))]
    fn run_until(
        &mut self,
        py: Python<'_>,
        limit_s: f64,
        is_met: Option<Py<PyAny>>,
    ) -> PyResult<f64> {
        let raised = self.raised.clone();
        let limit = time(limit_s);
        let ends = |raised: &Raised| {
            let Some(is_met) = &is_met else { return false };
            match is_met.call0(py).and_then(|value| value.is_truthy(py)) {
                Ok(ends) => ends,
                Err(error) => {
                    raised.replace(Some(error));
                    true
                }
            }
        };
        let end = self.simulation.run_until(limit, |_| raised.borrow().is_some() || ends(&raised));
        if let Some(error) = self.raised.take() {
            return Err(error);
        }
        match end {
            Err(Unfinished::TimeLimit(_)) if is_met.is_none() => Ok(self.now()),
            Err(Unfinished::Idle(_)) if is_met.is_none() => {
                let end = self.simulation.run_to(limit);
                end.map(|()| self.now()).map_err(|error| PyTimeoutError::new_err(error.to_string()))
            }
            Err(error) => Err(PyTimeoutError::new_err(error.to_string())),
            Ok(end) => Ok(seconds(end)),
        }
    }

    /// Returns the measures from 0 to now, as JSON.
    fn measures(&mut self) -> PyResult<String> {
        serde_json::to_string(&self.simulation.measures())
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Packets sent and received by a host, and dropped by it because they were corrupted.
    fn counts(&self, host: usize) -> PyResult<(u64, u64, u64)> {
        let counts = self.simulation.counts(self.host(host)?.0);
        Ok((counts.sent.packets, counts.received.packets, counts.corrupted.packets))
    }

    /// Writes the packets of a host to a pcapng file from now on.
    fn capture(&mut self, host: usize, path: &str) -> PyResult<()> {
        let (id, address) = self.host(host)?;
        let out = BufWriter::new(File::create(path)?);
        Ok(self.simulation.capture(id, &address.to_string(), address.ip(), out)?)
    }

    /// Adds TLS secrets to the capture of a host, lines in the format of `SSLKEYLOGFILE`.
    fn add_secrets(&mut self, host: usize, lines: &str) -> PyResult<()> {
        let (id, _) = self.host(host)?;
        Ok(self.simulation.add_secrets(id, lines)?)
    }

    /// Writes a qlog of a host from now on.
    fn qlog(&mut self, host: usize, path: &str, title: &str) -> PyResult<()> {
        let (id, _) = self.host(host)?;
        Ok(self.simulation.qlog(id, title, BufWriter::new(File::create(path)?))?)
    }

    /// Ends all captures and logs, and writes their files.
    fn finish_files(&mut self) -> PyResult<()> {
        Ok(self.simulation.finish_files()?)
    }
}

/// Returns the specification of a link, as JSON.
#[pyfunction]
#[pyo3(signature = (rate_bps, delay_ns, queue_packets, loss, jitter_ns, lost_packets))]
pub fn testkit_link(
    rate_bps: u64,
    delay_ns: u64,
    queue_packets: Option<u64>,
    loss: f64,
    jitter_ns: u64,
    lost_packets: &Bound<'_, PyList>,
) -> PyResult<String> {
    let mut link = Link::new(Rate::from_bps(rate_bps), Span::from_ns(delay_ns));
    if let Some(packets) = queue_packets {
        link = link.queue(PacketLimit::Packets(packets));
    }
    if loss != 0.0 {
        link = link.loss(loss);
    }
    if jitter_ns > 0 {
        link = link.jitter(Span::from_ns(jitter_ns), false);
    }
    if !lost_packets.is_empty() {
        link = link.lose(lost_packets.extract::<Vec<u64>>()?);
    }
    let spec: &LinkSpec = link.spec();
    serde_json::to_string(spec).map_err(|error| PyValueError::new_err(error.to_string()))
}
