//! Controllers written in Python: a [`CongestionController`] that forwards all calls to an object.
//!
//! The attributes of the object are read after every callback, so that the simulator's queries do
//! not call Python. An exception ends the run: it is stored in a [`ControllerFailure`], no further
//! callbacks are made, and the owner of the run stops it.

mod callbacks;
mod conversion;
mod error;
mod events;

use jostle_congestion::{
    AckSample, CongestionController, CwndReductionBy, EcnFeedback, EcnMarks, LostPacket,
    QuickStartRate, RawAckSample, RecoveryState, SendEvent, StateObserver, TcpExtension,
};
use jostle_run_spec::FlowSpec;
use jostle_units::{RandomStream, Rate, Time};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use callbacks::{Attributes, Callbacks};
use conversion::{seconds, state_name};
pub use error::{ControllerError, ControllerFailure};
pub use events::{AckEvent, LostEvent, MarksEvent, MeasurementEvent, SentEvent, permanent};

/// Maximum number of mode names per controller. More names indicate that the name contains a
/// changing number.
const MOST_MODES: usize = 32;

/// A controller implemented by a Python object.
pub struct PyController {
    object: Py<PyAny>,
    callbacks: Callbacks,
    attributes: Attributes,
    flow: String,
    fault: ControllerFailure,
    owner: CwndReductionBy,
    ecn: EcnFeedback,
    now: Time,
    cwnd: u32,
    ssthresh: Option<u32>,
    pacing_rate: Option<Rate>,
    min_burst_packets: Option<u32>,
    max_burst_packets: Option<u32>,
    limits_flight_on_purpose: bool,
    wants_reduction: bool,
    next_wakeup: Option<Time>,
    mode: &'static str,
    modes: Vec<&'static str>,
}

/// Creates the controller of `flow` by calling `make(name, parameters, seed)`.
///
/// # Errors
/// Returns the exception as text, or the attribute that the object lacks.
pub fn create(
    make: Option<&Py<PyAny>>,
    flow: &FlowSpec,
    mut random: RandomStream,
    fault: &ControllerFailure,
) -> Result<Box<dyn CongestionController>, String> {
    let name = &flow.controller.name;
    let make = make.ok_or_else(|| format!("no one here makes the controller `{name}`"))?;
    Python::attach(|py| {
        let parameters = PyDict::new(py);
        for (key, value) in &flow.controller.parameters {
            events::set_parameter(&parameters, key, value)?;
        }
        let object = make.bind(py).call1((name, parameters, random.bits()))?;
        PyController::new(&object, flow.name.clone(), fault.clone())
    })
    .map(|controller| Box::new(controller) as Box<dyn CongestionController>)
    .map_err(|error: PyErr| Python::attach(|py| error::describe(py, &error, None)))
}

impl PyController {
    fn new(object: &Bound<'_, PyAny>, flow: String, fault: ControllerFailure) -> PyResult<Self> {
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
            min_burst_packets: None,
            max_burst_packets: None,
            limits_flight_on_purpose: false,
            wants_reduction: false,
            next_wakeup: None,
            mode: "python",
            modes: Vec::new(),
        };
        controller.read(object.py())?;
        Ok(controller)
    }

    /// Reads the attributes of the object.
    fn read(&mut self, py: Python<'_>) -> PyResult<()> {
        let object = self.object.bind(py);
        self.cwnd = events::packets("cwnd", 1.0, &object.getattr(intern!(py, "cwnd"))?)?;
        if self.attributes.ssthresh {
            let value = object.getattr(intern!(py, "ssthresh"))?;
            self.ssthresh = match value.is_none() {
                true => None,
                false => Some(events::packets("ssthresh", 2.0, &value)?),
            };
        }
        if self.attributes.pacing_rate {
            let value = object.getattr(intern!(py, "pacing_rate"))?;
            self.pacing_rate = match value.is_none() {
                true => None,
                false => Some(events::rate(&value)?),
            };
        }
        if self.attributes.min_burst_packets {
            let value = object.getattr(intern!(py, "min_burst_packets"))?;
            self.min_burst_packets = match value.is_none() {
                true => None,
                false => Some(events::packets("min_burst_packets", 1.0, &value)?),
            };
        }
        if self.attributes.max_burst_packets {
            let value = object.getattr(intern!(py, "max_burst_packets"))?;
            self.max_burst_packets = match value.is_none() {
                true => None,
                false => Some(events::packets("max_burst_packets", 1.0, &value)?),
            };
        }
        if let (Some(least), Some(most)) = (self.min_burst_packets, self.max_burst_packets)
            && least > most
        {
            return Err(PyValueError::new_err(format!(
                "min_burst_packets is {least}, more than max_burst_packets, {most}"
            )));
        }
        if self.attributes.limits_flight_on_purpose {
            self.limits_flight_on_purpose =
                object.getattr(intern!(py, "limits_flight_on_purpose"))?.is_truthy()?;
        }
        if self.attributes.wants_reduction {
            self.wants_reduction = object.getattr(intern!(py, "wants_reduction"))?.is_truthy()?;
        }
        if self.attributes.next_wakeup {
            let value = object.getattr(intern!(py, "next_wakeup"))?;
            self.next_wakeup = match value.is_none() {
                true => None,
                false => Some(events::time("next_wakeup", &value)?),
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

    /// Calls a method of the object and reads its attributes. After a failure, nothing is called.
    fn call_python(
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

    /// Sets an attribute for which the object has no callback.
    fn set<'py>(&self, name: &str, value: impl IntoPyObjectExt<'py>, py: Python<'py>) {
        let outcome =
            value.into_py_any(py).and_then(|value| self.object.bind(py).setattr(name, value));
        if let Err(error) = outcome {
            self.fault.set(py, &error, None, &self.flow);
        }
    }

    /// Records a failure if the state after a callback is invalid.
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

impl CongestionController for PyController {
    fn required_ecn_feedback(&self) -> EcnFeedback {
        self.ecn
    }

    fn on_ecn_negotiated(&mut self, feedback: EcnFeedback) {
        let known = callbacks::FEEDBACKS.iter().find(|(_, it)| *it == feedback);
        let word = known.map_or("none", |(word, _)| word);
        self.call_python(
            self.now,
            |it| it.on_ecn_negotiated.as_ref(),
            |_, method| method.call1((word,)).map(drop),
        );
    }

    fn on_established(&mut self, established: &jostle_congestion::EstablishedEvent) {
        let event = events::EstablishedEvent::of(established);
        self.call_python(
            established.now,
            |it| it.on_established.as_ref(),
            |_, method| method.call1((event,)).map(drop),
        );
    }

    fn on_send(&mut self, sent: &SendEvent) {
        let event = SentEvent::of(sent);
        self.call_python(
            sent.now,
            |it| it.on_send.as_ref(),
            |_, method| method.call1((event,)).map(drop),
        );
    }

    fn on_ack_before_loss_detection(&mut self, measurement: &RawAckSample) {
        let event = MeasurementEvent::of(measurement);
        self.call_python(
            measurement.now,
            |it| it.on_ack_before_loss_detection.as_ref(),
            |_, method| method.call1((event,)).map(drop),
        );
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.call_python(
            self.now,
            |it| it.on_mss_change.as_ref(),
            |_, method| method.call1((mss_bytes,)).map(drop),
        );
    }

    fn on_ecn_feedback(&mut self, marks: &EcnMarks) {
        self.call_python(
            marks.now,
            |it| it.on_ecn_feedback.as_ref(),
            |_, method| method.call1((MarksEvent::of(marks),)).map(drop),
        );
    }

    fn on_packet_lost(&mut self, lost: &LostPacket) {
        self.call_python(
            lost.now,
            |it| it.on_packet_lost.as_ref(),
            |_, method| method.call1((LostEvent::of(lost),)).map(drop),
        );
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let event = AckEvent::of(ack);
        self.call_python(
            ack.now,
            |it| it.on_ack.as_ref(),
            |_, method| method.call1((event,)).map(drop),
        );
    }

    fn on_congestion_event(&mut self, congestion: &jostle_congestion::CongestionEvent) {
        let event = events::CongestionEvent::of(congestion);
        self.call_python(
            congestion.now,
            |it| it.on_congestion_event.as_ref(),
            |_, method| method.call1((event,)).map(drop),
        );
        // The transport reduces cwnd to ssthresh.
        self.expect(
            self.owner == CwndReductionBy::Controller || self.ssthresh.is_some(),
            "ssthresh is None after a congestion signal: set it, or recovery = \"controller\"",
            self.callbacks.on_congestion_event.as_ref(),
        );
    }

    /// Returns the request once, and resets the attribute.
    fn take_cwr_request(&mut self) -> bool {
        let wanted = std::mem::take(&mut self.wants_reduction) && !self.fault.is_set();
        if wanted {
            Python::attach(|py| self.set("wants_reduction", false, py));
        }
        wanted
    }

    fn on_cwr_complete(&mut self, now: Time) {
        self.call_python(
            now,
            |it| it.on_cwr_complete.as_ref(),
            |_, method| method.call1((seconds(now),)).map(drop),
        );
    }

    fn on_idle_restart(&mut self, now: Time) {
        self.call_python(
            now,
            |it| it.on_idle_restart.as_ref(),
            |_, method| method.call1((seconds(now),)).map(drop),
        );
    }

    fn on_recovery_state(&mut self, now: Time, state: RecoveryState) {
        self.call_python(
            now,
            |it| it.on_recovery_state.as_ref(),
            |_, method| method.call1((seconds(now), state_name(state))).map(drop),
        );
    }

    fn on_undo(&mut self, now: Time) {
        self.call_python(
            now,
            |it| it.on_undo.as_ref(),
            |_, method| method.call1((seconds(now),)).map(drop),
        );
    }

    fn set_cwnd(&mut self, cwnd: u32) {
        self.cwnd = cwnd.max(1);
        if self.callbacks.set_cwnd.is_some() {
            let cwnd = self.cwnd;
            self.call_python(
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
            self.call_python(
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

    fn min_burst_packets(&self) -> Option<u32> {
        self.min_burst_packets
    }

    fn max_burst_packets(&self) -> Option<u32> {
        self.max_burst_packets
    }

    fn limits_flight_on_purpose(&self) -> bool {
        self.limits_flight_on_purpose
    }

    fn recovery_owner(&self) -> CwndReductionBy {
        self.owner
    }

    fn next_wakeup(&self) -> Option<Time> {
        // A failed controller would request wake-ups forever.
        if self.fault.is_set() { None } else { self.next_wakeup }
    }

    fn on_wakeup(&mut self, now: Time) {
        let before = self.next_wakeup;
        self.call_python(
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

    fn observe(&self, observer: &mut dyn StateObserver) {
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
                Ok(values) => {
                    values.into_iter().for_each(|(name, it)| observer.record_value(name, it))
                }
                Err(error) => self.fault.set(py, &error, Some(method), &self.flow),
            }
        });
    }

    fn tcp_extension(&self) -> Option<&dyn TcpExtension> {
        Some(self)
    }

    fn tcp_extension_mut(&mut self) -> Option<&mut dyn TcpExtension> {
        Some(self)
    }
}

impl TcpExtension for PyController {
    fn quick_start_request(&self) -> QuickStartRate {
        QuickStartRate::NONE
    }

    fn ignores_receive_window(&self) -> bool {
        false
    }

    fn wants_ack_events(&self) -> bool {
        self.callbacks.on_ack_event.is_some()
    }

    fn on_ack_event(&mut self, now: Time, slow_path: bool) {
        self.call_python(
            now,
            |it| it.on_ack_event.as_ref(),
            |_, method| method.call1((seconds(now), slow_path)).map(drop),
        );
    }
}
