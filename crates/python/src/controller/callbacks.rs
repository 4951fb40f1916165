//! What a controller written in Python has of what it may have.

use jostle_control::{EcnFeedback, RecoveryOwner};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// The callbacks that an object has. Those that it lacks cost nothing.
pub struct Callbacks {
    pub on_ecn_negotiated: Option<Py<PyAny>>,
    pub on_established: Option<Py<PyAny>>,
    pub on_send: Option<Py<PyAny>>,
    pub on_measurement: Option<Py<PyAny>>,
    pub on_packet_size: Option<Py<PyAny>>,
    pub on_ack_event: Option<Py<PyAny>>,
    pub on_marks: Option<Py<PyAny>>,
    pub on_lost: Option<Py<PyAny>>,
    pub on_ack: Option<Py<PyAny>>,
    pub on_congestion: Option<Py<PyAny>>,
    pub on_reduction_end: Option<Py<PyAny>>,
    pub on_idle_restart: Option<Py<PyAny>>,
    pub on_state: Option<Py<PyAny>>,
    pub on_undo: Option<Py<PyAny>>,
    pub on_wakeup: Option<Py<PyAny>>,
    pub set_cwnd: Option<Py<PyAny>>,
    pub set_ssthresh: Option<Py<PyAny>>,
    pub observe: Option<Py<PyAny>>,
}

impl Callbacks {
    /// Those of `object`.
    ///
    /// # Errors
    /// If it lacks one without which it is no controller.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let callback = |name: &str| -> PyResult<Option<Py<PyAny>>> {
            Ok(object.getattr_opt(name)?.map(Bound::unbind))
        };
        let callbacks = Self {
            on_ecn_negotiated: callback("on_ecn_negotiated")?,
            on_established: callback("on_established")?,
            on_send: callback("on_send")?,
            on_measurement: callback("on_measurement")?,
            on_packet_size: callback("on_packet_size")?,
            on_ack_event: callback("on_ack_event")?,
            on_marks: callback("on_marks")?,
            on_lost: callback("on_lost")?,
            on_ack: callback("on_ack")?,
            on_congestion: callback("on_congestion")?,
            on_reduction_end: callback("on_reduction_end")?,
            on_idle_restart: callback("on_idle_restart")?,
            on_state: callback("on_state")?,
            on_undo: callback("on_undo")?,
            on_wakeup: callback("on_wakeup")?,
            set_cwnd: callback("set_cwnd")?,
            set_ssthresh: callback("set_ssthresh")?,
            observe: callback("observe")?,
        };
        for (name, there) in [
            ("on_ack", callbacks.on_ack.is_some()),
            ("on_congestion", callbacks.on_congestion.is_some()),
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

/// Which of the attributes that need not be there an object has: only they are read.
#[derive(Clone, Copy)]
pub struct Attributes {
    pub ssthresh: bool,
    pub pacing_rate: bool,
    pub burst_packets: bool,
    pub burst_limit: bool,
    pub holds_back: bool,
    pub wants_reduction: bool,
    pub next_wakeup: bool,
    pub mode: bool,
}

impl Attributes {
    /// Those of `object`.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            ssthresh: object.hasattr("ssthresh")?,
            pacing_rate: object.hasattr("pacing_rate")?,
            burst_packets: object.hasattr("burst_packets")?,
            burst_limit: object.hasattr("burst_limit")?,
            holds_back: object.hasattr("holds_back")?,
            wants_reduction: object.hasattr("wants_reduction")?,
            next_wakeup: object.hasattr("next_wakeup")?,
            mode: object.hasattr("mode")?,
        })
    }
}

/// The attribute `recovery`, which does not change.
pub fn recovery(object: &Bound<'_, PyAny>) -> PyResult<RecoveryOwner> {
    word(
        object,
        "recovery",
        &[("transport", RecoveryOwner::Transport), ("controller", RecoveryOwner::Controller)],
    )
}

/// Words of the attribute `ecn`.
pub const FEEDBACKS: [(&str, EcnFeedback); 4] = [
    ("none", EcnFeedback::None),
    ("classic", EcnFeedback::Classic),
    ("per-packet", EcnFeedback::PerPacket),
    ("counted", EcnFeedback::Counted),
];

/// The attribute `ecn`, which does not change.
pub fn ecn(object: &Bound<'_, PyAny>) -> PyResult<EcnFeedback> {
    word(object, "ecn", &FEEDBACKS)
}

/// An attribute that is one of some words; the first if it is not there.
fn word<T: Copy>(object: &Bound<'_, PyAny>, name: &str, words: &[(&str, T)]) -> PyResult<T> {
    let Some(given) = object.getattr_opt(name)? else { return Ok(words[0].1) };
    let given: String = given.extract()?;
    words.iter().find(|(word, _)| *word == given).map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<_> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
        PyValueError::new_err(format!("{name} is {given:?}: it is {}", known.join(" or ")))
    })
}
