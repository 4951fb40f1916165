//! Controllers written in Python: a [`Controller`] that passes everything on to an object.
//!
//! What the object answers is read after every callback, so that the simulator's many questions
//! cost nothing. An exception ends the run: it is kept in a [`Fault`], the controller falls silent,
//! and whoever watches the run stops it.

mod callbacks;
mod fault;
mod samples;
mod words;

use jostle_control::{
    AckSample, Congestion, Controller, EcnFeedback, Established, LostPacket, Marks, Measurement,
    Observer, RateCode, RecoveryOwner, RecoveryState, Sent, TcpExtension,
};
use jostle_record::FlowSpec;
use jostle_units::{Rate, Stream, Time};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use callbacks::{Attributes, Callbacks};
pub use fault::{ControllerError, Fault};
pub use samples::{
    AckEvent, CongestionEvent, EstablishedEvent, LostEvent, MarksEvent, MeasurementEvent,
    SentEvent, permanent,
};
use words::{seconds, state_name};

/// Modes that one controller may name: with more, the name is likely to hold a number that changes.
const MOST_MODES: usize = 32;

/// A controller whose mind is a Python object.
pub struct PyController {
    object: Py<PyAny>,
    callbacks: Callbacks,
    attributes: Attributes,
    flow: String,
    fault: Fault,
    owner: RecoveryOwner,
    ecn: EcnFeedback,
    now: Time,
    cwnd: u32,
    ssthresh: Option<u32>,
    pacing_rate: Option<Rate>,
    burst_packets: Option<u32>,
    burst_limit: Option<u32>,
    holds_back: bool,
    wants_reduction: bool,
    next_wakeup: Option<Time>,
    mode: &'static str,
    modes: Vec<&'static str>,
}

/// Makes the controller of `flow` by calling `make(name, parameters, seed)`.
///
/// # Errors
/// What was raised, or what the object lacks.
pub fn create(
    make: Option<&Py<PyAny>>,
    flow: &FlowSpec,
    mut random: Stream,
    fault: &Fault,
) -> Result<Box<dyn Controller>, String> {
    let name = &flow.controller.name;
    let make = make.ok_or_else(|| format!("no one here makes the controller `{name}`"))?;
    Python::attach(|py| {
        let parameters = PyDict::new(py);
        for (key, value) in &flow.controller.parameters {
            samples::set_parameter(&parameters, key, value)?;
        }
        let object = make.bind(py).call1((name, parameters, random.bits()))?;
        PyController::new(&object, flow.name.clone(), fault.clone())
    })
    .map(|controller| Box::new(controller) as Box<dyn Controller>)
    .map_err(|error: PyErr| Python::attach(|py| fault::describe(py, &error, None)))
}

impl PyController {
    fn new(object: &Bound<'_, PyAny>, flow: String, fault: Fault) -> PyResult<Self> {
        let mut controller = Self {
            object: object.clone().unbind(),
            callbacks: Callbacks::of(object)?,
            attributes: Attributes::of(object)?,
            flow,
            fault,
            owner: callbacks::recovery(object)?,
            ecn: callbacks::ecn(object)?,
            now: Time::ZERO,
            cwnd: 1,
            ssthresh: None,
            pacing_rate: None,
            burst_packets: None,
            burst_limit: None,
            holds_back: false,
            wants_reduction: false,
            next_wakeup: None,
            mode: "python",
            modes: Vec::new(),
        };
        controller.read(object.py())?;
        Ok(controller)
    }

    /// Reads what the object answers.
    fn read(&mut self, py: Python<'_>) -> PyResult<()> {
        let object = self.object.bind(py);
        self.cwnd = samples::packets("cwnd", 1.0, &object.getattr(intern!(py, "cwnd"))?)?;
        if self.attributes.ssthresh {
            let value = object.getattr(intern!(py, "ssthresh"))?;
            self.ssthresh = match value.is_none() {
                true => None,
                false => Some(samples::packets("ssthresh", 2.0, &value)?),
            };
        }
        if self.attributes.pacing_rate {
            let value = object.getattr(intern!(py, "pacing_rate"))?;
            self.pacing_rate = match value.is_none() {
                true => None,
                false => Some(samples::rate(&value)?),
            };
        }
        if self.attributes.burst_packets {
            let value = object.getattr(intern!(py, "burst_packets"))?;
            self.burst_packets = match value.is_none() {
                true => None,
                false => Some(samples::packets("burst_packets", 1.0, &value)?),
            };
        }
        if self.attributes.burst_limit {
            let value = object.getattr(intern!(py, "burst_limit"))?;
            self.burst_limit = match value.is_none() {
                true => None,
                false => Some(samples::packets("burst_limit", 1.0, &value)?),
            };
        }
        if self.attributes.holds_back {
            self.holds_back = object.getattr(intern!(py, "holds_back"))?.is_truthy()?;
        }
        if self.attributes.wants_reduction {
            self.wants_reduction = object.getattr(intern!(py, "wants_reduction"))?.is_truthy()?;
        }
        if self.attributes.next_wakeup {
            let value = object.getattr(intern!(py, "next_wakeup"))?;
            self.next_wakeup = match value.is_none() {
                true => None,
                false => Some(samples::time("next_wakeup", &value)?),
            };
        }
        if self.attributes.mode {
            let value = object.getattr(intern!(py, "mode"))?;
            let mode: &str = value.extract()?;
            if mode != self.mode {
                self.mode = permanent(mode)?;
                if !self.modes.contains(&self.mode) {
                    self.modes.push(self.mode);
                }
                if self.modes.len() > MOST_MODES {
                    let text = format!("mode is {mode:?}: that is one more than {MOST_MODES}");
                    return Err(PyValueError::new_err(text));
                }
            }
        }
        Ok(())
    }

    /// Calls the object and reads its answers. After a fault nothing is called any more.
    fn tell(
        &mut self,
        now: Time,
        callback: impl for<'a> Fn(&'a Callbacks) -> Option<&'a Py<PyAny>>,
        call: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<()>,
    ) {
        self.now = self.now.max(now);
        if callback(&self.callbacks).is_none() || self.fault.is_set() {
            return;
        }
        Python::attach(|py| {
            let Some(method) = callback(&self.callbacks) else { return };
            let method = method.bind(py).clone();
            let outcome = call(py, &method).and_then(|()| self.read(py));
            if let Err(error) = outcome {
                self.fault.set(py, &error, Some(&method), &self.flow);
            }
        });
    }

    /// Sets an attribute of the object, which a callback would have been told of.
    fn set<'py>(&self, name: &str, value: impl IntoPyObjectExt<'py>, py: Python<'py>) {
        let outcome =
            value.into_py_any(py).and_then(|value| self.object.bind(py).setattr(name, value));
        if let Err(error) = outcome {
            self.fault.set(py, &error, None, &self.flow);
        }
    }

    /// Fails if what a callback left behind is not sound.
    fn expect(&self, sound: bool, text: &str, blame: Option<&Py<PyAny>>) {
        if !sound && !self.fault.is_set() {
            Python::attach(|py| {
                let method = blame.map(|it| it.bind(py).clone());
                let error = PyValueError::new_err(text.to_owned());
                self.fault.set(py, &error, method.as_ref(), &self.flow);
            });
        }
    }
}

impl Controller for PyController {
    fn needs_ecn(&self) -> EcnFeedback {
        self.ecn
    }

    fn on_ecn_negotiated(&mut self, feedback: EcnFeedback) {
        let known = callbacks::FEEDBACKS.iter().find(|(_, it)| *it == feedback);
        let word = known.map_or("none", |(word, _)| word);
        self.tell(
            self.now,
            |it| it.on_ecn_negotiated.as_ref(),
            |_, method| method.call1((word,)).map(drop),
        );
    }

    fn on_established(&mut self, established: &Established) {
        let event = EstablishedEvent::of(established);
        self.tell(
            established.now,
            |it| it.on_established.as_ref(),
            |_, method| method.call1((event,)).map(drop),
        );
    }

    fn on_send(&mut self, sent: &Sent) {
        let event = SentEvent::of(sent);
        self.tell(sent.now, |it| it.on_send.as_ref(), |_, method| method.call1((event,)).map(drop));
    }

    fn on_measurement(&mut self, measurement: &Measurement) {
        let event = MeasurementEvent::of(measurement);
        self.tell(
            measurement.now,
            |it| it.on_measurement.as_ref(),
            |_, method| method.call1((event,)).map(drop),
        );
    }

    fn on_packet_size(&mut self, mss_bytes: u32) {
        self.tell(
            self.now,
            |it| it.on_packet_size.as_ref(),
            |_, method| method.call1((mss_bytes,)).map(drop),
        );
    }

    fn on_marks(&mut self, marks: &Marks) {
        self.tell(
            marks.now,
            |it| it.on_marks.as_ref(),
            |_, method| method.call1((MarksEvent::of(marks),)).map(drop),
        );
    }

    fn on_lost(&mut self, lost: &LostPacket) {
        self.tell(
            lost.now,
            |it| it.on_lost.as_ref(),
            |_, method| method.call1((LostEvent::of(lost),)).map(drop),
        );
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let event = AckEvent::of(ack);
        self.tell(ack.now, |it| it.on_ack.as_ref(), |_, method| method.call1((event,)).map(drop));
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        let event = CongestionEvent::of(congestion);
        self.tell(
            congestion.now,
            |it| it.on_congestion.as_ref(),
            |_, method| method.call1((event,)).map(drop),
        );
        // The transport brings the window down to it.
        self.expect(
            self.owner == RecoveryOwner::Controller || self.ssthresh.is_some(),
            "ssthresh is None after a congestion signal: set it, or recovery = \"controller\"",
            self.callbacks.on_congestion.as_ref(),
        );
    }

    /// What was asked for is asked for once: the attribute is false again.
    fn take_reduction_request(&mut self) -> bool {
        let wanted = std::mem::take(&mut self.wants_reduction) && !self.fault.is_set();
        if wanted {
            Python::attach(|py| self.set("wants_reduction", false, py));
        }
        wanted
    }

    fn on_reduction_end(&mut self, now: Time) {
        self.tell(
            now,
            |it| it.on_reduction_end.as_ref(),
            |_, method| method.call1((seconds(now),)).map(drop),
        );
    }

    fn on_idle_restart(&mut self, now: Time) {
        self.tell(
            now,
            |it| it.on_idle_restart.as_ref(),
            |_, method| method.call1((seconds(now),)).map(drop),
        );
    }

    fn on_state(&mut self, now: Time, state: RecoveryState) {
        self.tell(
            now,
            |it| it.on_state.as_ref(),
            |_, method| method.call1((seconds(now), state_name(state))).map(drop),
        );
    }

    fn on_undo(&mut self, now: Time) {
        self.tell(
            now,
            |it| it.on_undo.as_ref(),
            |_, method| method.call1((seconds(now),)).map(drop),
        );
    }

    fn set_cwnd(&mut self, cwnd: u32) {
        self.cwnd = cwnd.max(1);
        if self.callbacks.set_cwnd.is_some() {
            let cwnd = self.cwnd;
            self.tell(
                self.now,
                |it| it.set_cwnd.as_ref(),
                |_, method| method.call1((cwnd,)).map(drop),
            );
        } else if !self.fault.is_set() {
            Python::attach(|py| self.set("cwnd", self.cwnd, py));
        }
    }

    fn set_ssthresh(&mut self, ssthresh: u32) {
        self.ssthresh = Some(ssthresh);
        if self.callbacks.set_ssthresh.is_some() {
            self.tell(
                self.now,
                |it| it.set_ssthresh.as_ref(),
                |_, method| method.call1((ssthresh,)).map(drop),
            );
        } else if self.attributes.ssthresh && !self.fault.is_set() {
            Python::attach(|py| self.set("ssthresh", ssthresh, py));
        }
    }

    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> Option<u32> {
        self.ssthresh
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_rate
    }

    fn burst_packets(&self) -> Option<u32> {
        self.burst_packets
    }

    fn burst_limit(&self) -> Option<u32> {
        self.burst_limit
    }

    fn holds_back(&self) -> bool {
        self.holds_back
    }

    fn recovery_owner(&self) -> RecoveryOwner {
        self.owner
    }

    fn next_wakeup(&self) -> Option<Time> {
        // What a broken controller asks for would wake it up for ever.
        if self.fault.is_set() { None } else { self.next_wakeup }
    }

    fn on_wakeup(&mut self, now: Time) {
        let before = self.next_wakeup;
        self.tell(
            now,
            |it| it.on_wakeup.as_ref(),
            |_, method| method.call1((seconds(now),)).map(drop),
        );
        let later = self.next_wakeup.is_none_or(|at| at > now);
        let text = "next_wakeup has not moved to a later time, or None, after on_wakeup";
        self.expect(later || before.is_none(), text, self.callbacks.on_wakeup.as_ref());
    }

    fn mode(&self) -> &'static str {
        self.mode
    }

    fn observe(&self, observer: &mut dyn Observer) {
        let Some(observe) = &self.callbacks.observe else { return };
        if self.fault.is_set() {
            return;
        }
        Python::attach(|py| {
            let method = observe.bind(py);
            let values = method.call0().and_then(|values| {
                let values = values.cast_into::<PyDict>().map_err(PyErr::from)?;
                values
                    .iter()
                    .map(|(name, value)| Ok((permanent(name.extract()?)?, value.extract::<f64>()?)))
                    .collect::<PyResult<Vec<_>>>()
            });
            match values {
                Ok(values) => values.into_iter().for_each(|(name, it)| observer.value(name, it)),
                Err(error) => self.fault.set(py, &error, Some(method), &self.flow),
            }
        });
    }

    fn tcp(&self) -> Option<&dyn TcpExtension> {
        Some(self)
    }

    fn tcp_mut(&mut self) -> Option<&mut dyn TcpExtension> {
        Some(self)
    }
}

impl TcpExtension for PyController {
    fn rate_request(&self) -> RateCode {
        RateCode::NONE
    }

    fn overrides_receive_window(&self) -> bool {
        false
    }

    fn hears_headers(&self) -> bool {
        self.callbacks.on_ack_event.is_some()
    }

    fn on_ack_event(&mut self, now: Time, slow_path: bool) {
        self.tell(
            now,
            |it| it.on_ack_event.as_ref(),
            |_, method| method.call1((seconds(now), slow_path)).map(drop),
        );
    }
}
