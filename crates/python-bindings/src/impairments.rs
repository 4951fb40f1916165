//! Draws the random impairments of a link, for Python.

use jostle_units::{Span, Time};
use numpy::IntoPyArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::run::{CancellationCheck, parse};

/// Draws the impairments of a link of a RunSpec given as JSON; see
/// `jostle_run_spec::ImpairmentSchedule`.
///
/// Parameters
/// ----------
/// spec_json : str
///     The RunSpec.
/// link : int
///     Index of the link.
/// points : int
///     Maximum number of jitter values.
/// cancelled : callable, optional
///     Polled regularly; return true to stop. Ctrl-C also stops.
///
/// Raises
/// ------
/// CancelledError
///     If `cancelled` returned true. Exceptions raised by `cancelled` are propagated.
/// ValueError
///     If the spec is not valid, or has no such link.
#[pyfunction]
#[pyo3(signature = (spec_json, link, points, cancelled=None))]
pub fn draw_impairments(
    py: Python<'_>,
    spec_json: &str,
    link: usize,
    points: u64,
    cancelled: Option<Py<PyAny>>,
) -> PyResult<Py<PyDict>> {
    let spec = parse(spec_json)?;
    let missing = || PyValueError::new_err(format!("there is no link {link}"));
    let end = Time::from_ns(spec.duration_ns);
    let link = spec.links.get(link).ok_or_else(missing)?;
    let drawn = py.detach(|| {
        let watch = CancellationCheck::new(cancelled);
        let go_on = || !watch.is_cancelled();
        let drawn = link.draw_impairments_while(spec.seed, end, points, &go_on);
        let drawn = drawn.map_err(|error| PyValueError::new_err(error.to_string()))?;
        drawn.ok_or_else(|| watch.explain(&jostle_sim::Error::Cancelled))
    })?;
    let bounds = drawn.outages.iter().flat_map(|(start, end)| [start.as_ns(), end.as_ns()]);
    let jitter: Vec<u64> = drawn.jitter.into_iter().map(Span::as_ns).collect();
    let found = PyDict::new(py);
    found.set_item("outages_ns", bounds.collect::<Vec<u64>>().into_pyarray(py))?;
    let steps = drawn.rates.iter().flat_map(|(at, rate)| [at.as_ns(), rate.as_bps()]);
    found.set_item("rate_steps", steps.collect::<Vec<u64>>().into_pyarray(py))?;
    found.set_item("jitter_ns", jitter.into_pyarray(py))?;
    found.set_item("jitter_step_ns", drawn.jitter_step.as_ns())?;
    found.set_item("jitter_seed", drawn.jitter_seed)?;
    found.set_item("queue_seed", drawn.queue_seed)?;
    found.set_item("loss_seed", drawn.loss_seed)?;
    found.set_item("loss_bad", drawn.loss.bad)?;
    found.set_item("loss_drawn", drawn.loss.drawn)?;
    found.set_item("loss_steps_seed", drawn.loss_steps_seed)?;
    found.set_item("contention_seed", drawn.contention_seed)?;
    let seeds = PyDict::new(py);
    for (name, seed) in drawn.seeds {
        seeds.set_item(name, seed)?;
    }
    found.set_item("seeds", seeds)?;
    Ok(found.unbind())
}
