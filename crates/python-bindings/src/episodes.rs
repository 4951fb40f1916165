//! Simulations in which Python controls flows and acts at the end of each monitor interval. Many
//! simulations are stepped in parallel by threads that do not hold the GIL.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};

use jostle_controllers::learning::{AgentDesign, IntervalObservation, parse_design};
use jostle_metrics::Recorder;
use jostle_pcap::CaptureSink;
use jostle_run_spec::RunSpec;
use jostle_sim::{Episode, LearningFlow};
use jostle_units::FlowId;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::run::{CancellationCheck, parse};
use crate::run_record::RunRecord;

/// Sink type of ordinary runs. Another type would compile the simulator once more.
type EventSink = (Recorder, Option<CaptureSink>);

/// Per simulation and agent: observations, values of the last interval, and whether an interval has
/// just ended. Per simulation: whether the episode is over, and the time in seconds.
type StepResult<'py> = (
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<f64>>,
);

/// A batch of simulations with the same number and designs of agents.
///
/// Parameters
/// ----------
/// count : int
///     Number of simulations.
/// designs : list of str
///     One design per agent.
/// threads : int
///     Number of threads.
///
/// Raises
/// ------
/// ValueError
///     If a design is not valid.
#[pyclass(frozen, module = "jostle._core")]
pub struct Episodes {
    /// `None` during a call. A second caller fails, because waiting would hold the GIL.
    places: Mutex<Option<Vec<EpisodeSlot>>>,
    designs: Vec<AgentDesign>,
    threads: usize,
}

/// A slot for successive simulations.
#[derive(Default)]
struct EpisodeSlot {
    episode: Option<Episode<EventSink>>,
    error: Option<PyErr>,
}

impl EpisodeSlot {
    /// Starts a simulation and runs it to the first decision.
    fn begin(&mut self, spec: RunSpec, learners: Vec<LearningFlow>) -> PyResult<()> {
        self.episode = None;
        let recorder =
            Recorder::try_new(&spec).map_err(|error| PyMemoryError::new_err(error.to_string()))?;
        let episode = Episode::new(spec, (recorder, None), learners)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        self.episode = Some(episode);
        self.go_on();
        self.error.take().map_or(Ok(()), Err)
    }

    /// Runs the simulation to the next decision or to its end.
    fn go_on(&mut self) {
        let Some(episode) = &mut self.episode else { return };
        if episode.is_over() {
            return;
        }
        let watch = CancellationCheck::from_now();
        if let Err(error) = episode.advance(&|| watch.is_cancelled()) {
            self.error = Some(watch.explain(&error));
            self.episode = None;
        }
    }
}

/// Calls `work` for every item, on at most `threads` threads.
fn on_threads<T: Send>(items: &mut [T], threads: usize, work: impl Fn(&mut T) + Sync) {
    let share = items.len().div_ceil(threads.max(1)).max(1);
    let mut shares = items.chunks_mut(share);
    let own = shares.next();
    std::thread::scope(|scope| {
        let handles: Vec<_> =
            shares.map(|items| scope.spawn(|| items.iter_mut().for_each(&work))).collect();
        if let Some(items) = own {
            items.iter_mut().for_each(&work);
        }
        for handle in handles {
            handle.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
}

impl Episodes {
    /// Calls `work` with exclusive access to the slots.
    fn with_slots<T>(&self, work: impl FnOnce(&mut [EpisodeSlot]) -> PyResult<T>) -> PyResult<T> {
        let held = || self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = held().take();
        let mut places =
            taken.ok_or_else(|| PyRuntimeError::new_err("another thread is stepping these"))?;
        let outcome = work(&mut places);
        *held() = Some(places);
        outcome
    }

    fn outcome<'py>(&self, py: Python<'py>, places: &[EpisodeSlot]) -> StepResult<'py> {
        let width: usize = self.designs.iter().map(AgentDesign::observation_len).sum();
        let learners = self.designs.len();
        let mut observations = Vec::with_capacity(places.len() * width);
        let mut intervals =
            Vec::with_capacity(places.len() * learners * IntervalObservation::NAMES.len());
        let (mut due, mut over, mut time_s) = (Vec::new(), Vec::new(), Vec::new());
        for place in places {
            let Some(episode) = &place.episode else {
                observations.resize(observations.len() + width, 0.0);
                intervals
                    .resize(intervals.len() + learners * IntervalObservation::NAMES.len(), 0.0);
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
        places.resize_with(count, EpisodeSlot::default);
        Ok(Self {
            places: Mutex::new(Some(places)),
            designs: designs.map_err(PyValueError::new_err)?,
            threads,
        })
    }

    /// Restarts simulations and runs each to its first decision.
    ///
    /// Parameters
    /// ----------
    /// which : list of int
    ///     Indices of the simulations.
    /// specs : list of str
    ///     A RunSpec per simulation, as JSON.
    /// flows : list of list of int
    ///     Indices of the agents' flows in each spec, in the order of the designs. The names of
    ///     their controllers must not be in the registry.
    ///
    /// Returns
    /// -------
    /// tuple
    ///     Like `step`, for all simulations.
    fn reset<'py>(
        &self,
        py: Python<'py>,
        which: Vec<usize>,
        specs: Vec<String>,
        flows: Vec<Vec<u32>>,
    ) -> PyResult<StepResult<'py>> {
        let mut begins = BTreeMap::new();
        for ((place, spec), flows) in which.iter().zip(&specs).zip(&flows) {
            if flows.len() != self.designs.len() {
                return Err(PyValueError::new_err("as many flows as designs are needed"));
            }
            let learners = flows
                .iter()
                .zip(&self.designs)
                .map(|(&flow, design)| LearningFlow { flow: FlowId(flow), design: design.clone() });
            begins.insert(*place, (parse(spec)?, learners.collect()));
        }
        self.with_slots(|places| {
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

    /// Sets the actions of all agents, and runs every simulation that is not over until a monitor
    /// interval of one of its agents ends.
    ///
    /// Parameters
    /// ----------
    /// actions : array of float
    ///     Flat array: for each simulation, the action of each agent.
    ///
    /// Returns
    /// -------
    /// tuple
    ///     Flat arrays: observations, values of the last intervals, which agents' intervals end
    ///     now, which episodes are over, and the time of each simulation in seconds.
    fn step<'py>(
        &self,
        py: Python<'py>,
        actions: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<StepResult<'py>> {
        let numbers: Vec<_> = self.designs.iter().map(|it| it.action.bounds().len()).collect();
        let actions = actions.as_slice()?;
        self.with_slots(|places| {
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
            py.detach(|| on_threads(places, self.threads, EpisodeSlot::go_on));
            raise(places)?;
            Ok(self.outcome(py, places))
        })
    }

    /// Runs a simulation to the end without further actions, and removes it.
    ///
    /// Returns
    /// -------
    /// Record
    ///     Like `run`.
    fn finish(&self, py: Python<'_>, which: usize) -> PyResult<RunRecord> {
        let record = self.with_slots(|places| {
            let place = places.get_mut(which);
            let place = place.ok_or_else(|| PyIndexError::new_err("no such place"))?;
            let episode = place.episode.take();
            let episode =
                episode.ok_or_else(|| PyValueError::new_err("no run is under way there"))?;
            py.detach(|| {
                let watch = CancellationCheck::from_now();
                let sink = episode.finish(&|| watch.is_cancelled());
                sink.map(|(recorder, _)| recorder.finish()).map_err(|error| watch.explain(&error))
            })
        })?;
        RunRecord::new(py, record)
    }
}

/// Raises the first error of any slot.
fn raise(places: &mut [EpisodeSlot]) -> PyResult<()> {
    places.iter_mut().find_map(|place| place.error.take()).map_or(Ok(()), Err)
}
