//! Callbacks and attributes of a controller written in Python.

use jostle_congestion::{CwndReductionBy, EcnFeedback};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// Callbacks that an object defines. Missing callbacks are not called.
pub struct Callbacks {
    pub on_ecn_negotiated: Option<Py<PyAny>>,
    pub on_established: Option<Py<PyAny>>,
    pub on_send: Option<Py<PyAny>>,
    pub on_ack_before_loss_detection: Option<Py<PyAny>>,
    pub on_mss_change: Option<Py<PyAny>>,
    pub on_ack_event: Option<Py<PyAny>>,
    pub on_ecn_feedback: Option<Py<PyAny>>,
    pub on_packet_lost: Option<Py<PyAny>>,
    pub on_ack: Option<Py<PyAny>>,
    pub on_congestion_event: Option<Py<PyAny>>,
    pub on_cwr_complete: Option<Py<PyAny>>,
    pub on_idle_restart: Option<Py<PyAny>>,
    pub on_recovery_state: Option<Py<PyAny>>,
    pub on_undo: Option<Py<PyAny>>,
    pub on_wakeup: Option<Py<PyAny>>,
    pub set_cwnd: Option<Py<PyAny>>,
    pub set_ssthresh: Option<Py<PyAny>>,
    pub observe: Option<Py<PyAny>>,
}

impl Callbacks {
    /// Looks up the callbacks of `object`.
    ///
    /// # Errors
    /// Returns an error if a required callback or attribute is missing.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let callback = |name: &str| -> PyResult<Option<Py<PyAny>>> {
            Ok(object.getattr_opt(name)?.map(Bound::unbind))
        };
        let callbacks = Self {
            on_ecn_negotiated: callback("on_ecn_negotiated")?,
            on_established: callback("on_established")?,
            on_send: callback("on_send")?,
            on_ack_before_loss_detection: callback("on_ack_before_loss_detection")?,
            on_mss_change: callback("on_mss_change")?,
            on_ack_event: callback("on_ack_event")?,
            on_ecn_feedback: callback("on_ecn_feedback")?,
            on_packet_lost: callback("on_packet_lost")?,
            on_ack: callback("on_ack")?,
            on_congestion_event: callback("on_congestion_event")?,
            on_cwr_complete: callback("on_cwr_complete")?,
            on_idle_restart: callback("on_idle_restart")?,
            on_recovery_state: callback("on_recovery_state")?,
            on_undo: callback("on_undo")?,
            on_wakeup: callback("on_wakeup")?,
            set_cwnd: callback("set_cwnd")?,
            set_ssthresh: callback("set_ssthresh")?,
            observe: callback("observe")?,
        };
        for (name, there) in [
            ("on_ack", callbacks.on_ack.is_some()),
            ("on_congestion_event", callbacks.on_congestion_event.is_some()),
            ("cwnd", object.hasattr("cwnd")?),
        ] {
            if !there {
                let class = object.get_type().name()?;
                return Err(PyTypeError::new_err(format!("{class} has no `{name}`")));
            }
        }
        Ok(callbacks)
    }
}

/// Optional attributes that an object defines. Only these are read.
#[derive(Clone, Copy)]
pub struct Attributes {
    pub ssthresh: bool,
    pub pacing_rate: bool,
    pub min_burst_packets: bool,
    pub max_burst_packets: bool,
    pub limits_flight_on_purpose: bool,
    pub wants_reduction: bool,
    pub next_wakeup: bool,
    pub mode: bool,
}

impl Attributes {
    /// Looks up the attributes of `object`.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            ssthresh: object.hasattr("ssthresh")?,
            pacing_rate: object.hasattr("pacing_rate")?,
            min_burst_packets: object.hasattr("min_burst_packets")?,
            max_burst_packets: object.hasattr("max_burst_packets")?,
            limits_flight_on_purpose: object.hasattr("limits_flight_on_purpose")?,
            wants_reduction: object.hasattr("wants_reduction")?,
            next_wakeup: object.hasattr("next_wakeup")?,
            mode: object.hasattr("mode")?,
        })
    }
}

/// Returns the attribute `recovery`, which is constant.
pub fn recovery(object: &Bound<'_, PyAny>) -> PyResult<CwndReductionBy> {
    word(
        object,
        "recovery",
        &[("transport", CwndReductionBy::Transport), ("controller", CwndReductionBy::Controller)],
    )
}

/// Values of the attribute `ecn`.
pub const FEEDBACKS: [(&str, EcnFeedback); 4] = [
    ("none", EcnFeedback::None),
    ("classic", EcnFeedback::Classic),
    ("per-packet", EcnFeedback::DctcpEcho),
    ("counted", EcnFeedback::AccEcn),
];

/// Returns the attribute `ecn`, which is constant.
pub fn ecn(object: &Bound<'_, PyAny>) -> PyResult<EcnFeedback> {
    word(object, "ecn", &FEEDBACKS)
}

/// Returns an attribute with an enumerated value. The default is the first value.
fn word<T: Copy>(object: &Bound<'_, PyAny>, name: &str, words: &[(&str, T)]) -> PyResult<T> {
    let Some(given) = object.getattr_opt(name)? else { return Ok(words[0].1) };
    let given: String = given.extract()?;
    words.iter().find(|(word, _)| *word == given).map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<_> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
        PyValueError::new_err(format!("{name} is {given:?}: it is {}", known.join(" or ")))
    })
}
