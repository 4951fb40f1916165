//! A run in which somebody outside decides for some flows at the end of every monitor interval.

use std::collections::BTreeMap;
use std::sync::Arc;

use jostle_control::algorithms::cubic_below;
use jostle_control::learning::{Collector, Design, Desk, History, Observed, learned};
use jostle_record::{RunSpec, Sink};
use jostle_units::{Span, Time};

use crate::Error;
use crate::stepper::Stepper;

/// How soon it is seen that a connection has opened, or that an interval has begun. No interval is
/// shorter, so that none is missed.
const LOOK: Span = Span::from_ms(1);

/// A flow for which somebody outside decides.
pub struct Learner {
    /// Its position in the spec.
    pub flow: u32,
    /// How it does.
    pub design: Design,
}

struct Agent {
    flow: u32,
    design: Design,
    desk: Arc<Desk>,
    history: History,
    observed: Observed,
    /// End of the interval that was observed last.
    seen: Option<Time>,
}

impl Agent {
    /// When the interval ends that begins at the end of the one that was observed last.
    fn next_end(&self) -> Option<Time> {
        self.seen.map(|seen| seen + self.design.length_after(&self.observed))
    }

    /// When to look next at what becomes of it: the end of its interval, if that is not over.
    fn next_look(&self, now: Time) -> Time {
        match self.desk.due() {
            Some(due) if self.seen.is_none_or(|seen| due > seen) => due,
            _ => now + LOOK,
        }
    }
}

/// The run. It stops whenever an interval of a learner ends; what the learner is to do is then left
/// with [`act`](Self::act), or it does what it did last.
pub struct Episode<S> {
    stepper: Stepper<S>,
    agents: Vec<Agent>,
    now: Time,
}

impl<S: Sink> Episode<S> {
    /// A run before its begin. The controllers that `spec` gives to learners do not matter, but for
    /// their names, which have to be of no registry ([`jostle_record::Algorithm::is_python_controller`]).
    ///
    /// # Errors
    /// When a part cannot be built from the spec.
    pub fn new(spec: RunSpec, sink: S, learners: Vec<Learner>) -> Result<Self, Error> {
        let agents: Vec<_> = learners
            .into_iter()
            .map(|Learner { flow, design }| Agent {
                flow,
                history: History::new(&design),
                design,
                desk: Arc::default(),
                observed: Observed::default(),
                seen: None,
            })
            .collect();
        let minds: BTreeMap<_, _> = agents
            .iter()
            .filter_map(|agent| {
                let name = spec.flows.get(agent.flow as usize)?.name.clone();
                Some((name, (agent.design.clone(), Arc::clone(&agent.desk))))
            })
            .collect();
        let stepper = Stepper::new(
            spec,
            sink,
            Box::new(move |flow, random| {
                let (design, desk) = minds.get(&flow.name).ok_or_else(|| {
                    format!(
                        "`{}` is written in Python, and decides nothing here",
                        flow.controller.name
                    )
                })?;
                Ok(learned(design.clone(), Arc::clone(desk), || cubic_below(random)))
            }),
        )?;
        Ok(Self { stepper, agents, now: Time::ZERO })
    }

    /// Goes on until an interval of a learner ends. Returns false at the end of the run.
    ///
    /// # Errors
    /// When the run cannot go on, or was cancelled.
    pub fn advance(&mut self, cancelled: &dyn Fn() -> bool) -> Result<bool, Error> {
        loop {
            let next = self.agents.iter().map(|agent| agent.next_look(self.now)).min();
            self.stepper.run_until(next.unwrap_or(Time::NEVER), cancelled)?;
            if self.stepper.is_over() {
                return Ok(false);
            }
            self.now = next.unwrap_or(Time::NEVER);
            if self.observe() {
                return Ok(true);
            }
        }
    }

    /// Looks at the learners whose intervals end now. Returns whether there are any.
    fn observe(&mut self) -> bool {
        let mut any = false;
        for agent in &mut self.agents {
            if agent.desk.due() != Some(self.now) || agent.seen == Some(self.now) {
                continue;
            }
            let mut collector = Collector::default();
            self.stepper.observe(agent.flow, &mut collector);
            agent.observed = collector.0;
            agent.history.push(&agent.design, &agent.observed);
            agent.seen = Some(self.now);
            any = true;
        }
        any
    }

    /// The time at which the run stopped.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Whether there is nothing to decide any more: no further interval of any learner would end
    /// before the run does.
    pub fn is_over(&self) -> bool {
        let end = Time::from_ns(self.stepper.spec().duration_ns);
        self.stepper.is_over() || self.agents.iter().all(|agent| agent.next_end() >= Some(end))
    }

    /// Whether an interval of a learner ended where the run stopped.
    pub fn is_due(&self, learner: usize) -> bool {
        let agent = self.agents.get(learner);
        !self.stepper.is_over() && agent.is_some_and(|it| it.seen == Some(self.now))
    }

    /// The latest observation of a learner.
    pub fn observation(&self, learner: usize) -> &[f64] {
        self.agents.get(learner).map_or(&[], |agent| agent.history.values())
    }

    /// The latest interval of a learner.
    pub fn observed(&self, learner: usize) -> Observed {
        self.agents.get(learner).map_or_else(Observed::default, |agent| agent.observed)
    }

    /// What a learner does at the end of its interval.
    pub fn act(&self, learner: usize, action: &[f64]) {
        if let Some(agent) = self.agents.get(learner) {
            agent.desk.leave(action);
        }
    }

    /// Runs to the end without another decision, and gives the sink back.
    ///
    /// # Errors
    /// As [`advance`](Self::advance), or when a connection broke.
    pub fn finish(mut self, cancelled: &dyn Fn() -> bool) -> Result<S, Error> {
        self.stepper.run_until(Time::NEVER, cancelled)?;
        Ok(self.stepper.finish()?.1)
    }
}
