//! Simulations in which Python decides for some flows, at the ends of monitor intervals: many of them
//! at once, stepped by threads without the interpreter's lock.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};

use jostle_control::learning::{Design, Observed, parse_design};
use jostle_record::capture::Capture;
use jostle_record::{Recorder, RunSpec};
use jostle_sim::{Episode, Learner};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::record::Record;
use crate::run::{Watch, parse};

/// The sink of ordinary runs: one of another type would be another instance of the whole simulator.
type Sink = (Recorder, Option<Capture>);

/// Per simulation and learner: observations, values of intervals, whether an interval has just
/// ended. Per simulation: whether its episode is over, and its time in seconds.
type Stepped<'py> = (
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<f64>>,
);

/// Simulations of one shape: so many learners in each, of the same designs.
///
/// Parameters
/// ----------
/// count : int
///     How many simulations.
/// designs : list of str
///     One per learner.
/// threads : int
///     How many threads carry steps out.
///
/// Raises
/// ------
/// ValueError
///     If a design is none.
#[pyclass(frozen, module = "jostle._core")]
pub struct Episodes {
    /// None while a call works on them: one that waited would hold the interpreter's lock.
    places: Mutex<Option<Vec<Place>>>,
    designs: Vec<Design>,
    threads: usize,
}

/// A place for one simulation after the other.
#[derive(Default)]
struct Place {
    episode: Option<Episode<Sink>>,
    error: Option<PyErr>,
}

impl Place {
    /// Begins a simulation, and lets it go on to its first decision.
    fn begin(&mut self, spec: RunSpec, learners: Vec<Learner>) -> PyResult<()> {
        self.episode = None;
        let recorder = Recorder::with_room(&spec)
            .map_err(|error| PyMemoryError::new_err(error.to_string()))?;
        let episode = Episode::new(spec, (recorder, None), learners)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        self.episode = Some(episode);
        self.go_on();
        self.error.take().map_or(Ok(()), Err)
    }

    /// Lets the simulation go on to its next decision, or its end.
    fn go_on(&mut self) {
        let Some(episode) = &mut self.episode else { return };
        if episode.is_over() {
            return;
        }
        let watch = Watch::from_now();
        if let Err(error) = episode.advance(&|| watch.is_cancelled()) {
            self.error = Some(watch.explain(&error));
            self.episode = None;
        }
    }
}

/// Calls `work` for every item, on so many threads at most.
fn on_threads<T: Send>(items: &mut [T], threads: usize, work: impl Fn(&mut T) + Sync) {
    let share = items.len().div_ceil(threads.max(1)).max(1);
    let mut shares = items.chunks_mut(share);
    let own = shares.next();
    std::thread::scope(|scope| {
        let others: Vec<_> =
            shares.map(|items| scope.spawn(|| items.iter_mut().for_each(&work))).collect();
        if let Some(items) = own {
            items.iter_mut().for_each(&work);
        }
        for other in others {
            other.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
}

impl Episodes {
    /// Lets `work` have the places, alone.
    fn with_places<T>(&self, work: impl FnOnce(&mut [Place]) -> PyResult<T>) -> PyResult<T> {
        let held = || self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = held().take();
        let mut places =
            taken.ok_or_else(|| PyRuntimeError::new_err("another thread is stepping these"))?;
        let outcome = work(&mut places);
        *held() = Some(places);
        outcome
    }

    fn outcome<'py>(&self, py: Python<'py>, places: &[Place]) -> Stepped<'py> {
        let width: usize = self.designs.iter().map(Design::observation_len).sum();
        let learners = self.designs.len();
        let mut observations = Vec::with_capacity(places.len() * width);
        let mut intervals = Vec::with_capacity(places.len() * learners * Observed::NAMES.len());
        let (mut due, mut over, mut time_s) = (Vec::new(), Vec::new(), Vec::new());
        for place in places {
            let Some(episode) = &place.episode else {
                observations.resize(observations.len() + width, 0.0);
                intervals.resize(intervals.len() + learners * Observed::NAMES.len(), 0.0);
                due.resize(due.len() + learners, false);
                over.push(true);
                time_s.push(0.0);
                continue;
            };
            for learner in 0..learners {
                observations.extend(episode.observation(learner).iter().map(|&it| it as f32));
                episode.observed(learner).append_to(&mut intervals);
                due.push(episode.is_due(learner));
            }
            over.push(episode.is_over());
            time_s.push(episode.now().as_ns() as f64 / 1e9);
        }
        (
            observations.into_pyarray(py),
            intervals.into_pyarray(py),
            due.into_pyarray(py),
            over.into_pyarray(py),
            time_s.into_pyarray(py),
        )
    }
}

#[pymethods]
impl Episodes {
    #[new]
    fn new(count: usize, designs: Vec<String>, threads: usize) -> PyResult<Self> {
        let designs: Result<Vec<_>, _> = designs.iter().map(|text| parse_design(text)).collect();
        let mut places = Vec::new();
        places.resize_with(count, Place::default);
        Ok(Self {
            places: Mutex::new(Some(places)),
            designs: designs.map_err(PyValueError::new_err)?,
            threads,
        })
    }

    /// Begins simulations anew, and lets each go on to its first decision.
    ///
    /// Parameters
    /// ----------
    /// which : list of int
    ///     Their places.
    /// specs : list of str
    ///     A RunSpec for each, as JSON.
    /// flows : list of list of int
    ///     Positions of the learners' flows in each, in the order of the designs. Their controllers
    ///     have names of no registry.
    ///
    /// Returns
    /// -------
    /// tuple
    ///     As from `step`, of all places.
    fn reset<'py>(
        &self,
        py: Python<'py>,
        which: Vec<usize>,
        specs: Vec<String>,
        flows: Vec<Vec<u32>>,
    ) -> PyResult<Stepped<'py>> {
        let mut begins = BTreeMap::new();
        for ((place, spec), flows) in which.iter().zip(&specs).zip(&flows) {
            if flows.len() != self.designs.len() {
                return Err(PyValueError::new_err("as many flows as designs are needed"));
            }
            let learners = flows
                .iter()
                .zip(&self.designs)
                .map(|(&flow, design)| Learner { flow, design: design.clone() });
            begins.insert(*place, (parse(spec)?, learners.collect()));
        }
        self.with_places(|places| {
            py.detach(|| {
                let mut work: Vec<_> = (0..)
                    .zip(&mut *places)
                    .filter_map(|(number, place)| Some((place, Some(begins.remove(&number)?))))
                    .collect();
                on_threads(&mut work, self.threads, |(place, begin)| {
                    if let Some((spec, learners)) = begin.take() {
                        place.error = place.begin(spec, learners).err();
                    }
                });
            });
            if !begins.is_empty() {
                return Err(PyIndexError::new_err("no such place"));
            }
            raise(places)?;
            Ok(self.outcome(py, places))
        })
    }

    /// Leaves actions for learners, and lets every simulation that is not over go on until an
    /// interval of one of its learners ends.
    ///
    /// Parameters
    /// ----------
    /// actions : array of float
    ///     One after the other: simulations, learners, numbers of their actions.
    ///
    /// Returns
    /// -------
    /// tuple
    ///     Observations, the values of the latest intervals, which learners' intervals end now, which
    ///     episodes are over, and the time in each in seconds: flat arrays.
    fn step<'py>(
        &self,
        py: Python<'py>,
        actions: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Stepped<'py>> {
        let numbers: Vec<_> = self.designs.iter().map(|it| it.action.bounds().len()).collect();
        let actions = actions.as_slice()?;
        self.with_places(|places| {
            if actions.len() != places.len() * numbers.iter().sum::<usize>() {
                return Err(PyValueError::new_err("not as many numbers as the actions have"));
            }
            let mut rest = actions;
            for place in places.iter() {
                for (learner, &count) in numbers.iter().enumerate() {
                    let (action, others) = rest.split_at(count);
                    rest = others;
                    if let Some(episode) = &place.episode {
                        episode.act(learner, action);
                    }
                }
            }
            py.detach(|| on_threads(places, self.threads, Place::go_on));
            raise(places)?;
            Ok(self.outcome(py, places))
        })
    }

    /// Lets a simulation go on to the end of the run without another decision, and ends it.
    ///
    /// Returns
    /// -------
    /// Record
    ///     As from `run`.
    fn finish(&self, py: Python<'_>, which: usize) -> PyResult<Record> {
        let record = self.with_places(|places| {
            let place = places.get_mut(which);
            let place = place.ok_or_else(|| PyIndexError::new_err("no such place"))?;
            let episode = place.episode.take();
            let episode =
                episode.ok_or_else(|| PyValueError::new_err("no run is under way there"))?;
            py.detach(|| {
                let watch = Watch::from_now();
                let sink = episode.finish(&|| watch.is_cancelled());
                sink.map(|(recorder, _)| recorder.finish()).map_err(|error| watch.explain(&error))
            })
        })?;
        Record::new(py, record)
    }
}

/// Raises the first error of a place.
fn raise(places: &mut [Place]) -> PyResult<()> {
    places.iter_mut().find_map(|place| place.error.take()).map_or(Ok(()), Err)
}
