//! A run in which an external agent controls flows and acts at the end of each monitor interval.

use std::collections::BTreeMap;
use std::sync::Arc;

use jostle_controllers::algorithms::cubic_below;
use jostle_controllers::learning::{
    ActionSlot, AgentDesign, IntervalObservation, ObservationBuilder, ObservationHistory, learned,
};
use jostle_metrics::EventSink;
use jostle_run_spec::RunSpec;
use jostle_units::{FlowId, Span, Time};

use crate::Error;
use crate::stepper::Stepper;

/// Polling interval for new connections and monitor intervals. No monitor interval is shorter, so
/// none is missed.
const LOOK: Span = Span::from_ms(1);

/// A flow that an external agent controls.
pub struct LearningFlow {
    /// Index of the flow in the spec.
    pub flow: FlowId,
    /// Observations, actions and monitor interval of the agent.
    pub design: AgentDesign,
}

struct Agent {
    flow: FlowId,
    design: AgentDesign,
    action_slot: Arc<ActionSlot>,
    history: ObservationHistory,
    observed: IntervalObservation,
    /// End of the last observed interval.
    seen: Option<Time>,
}

impl Agent {
    /// Returns the end of the interval that follows the last observed one.
    fn next_end(&self) -> Option<Time> {
        self.seen.map(|seen| seen + self.design.length_after(&self.observed))
    }

    /// Returns the next time to check the agent: the end of its current interval, or after
    /// [`LOOK`].
    fn next_look(&self, now: Time) -> Time {
        match self.action_slot.interval_end() {
            Some(due) if self.seen.is_none_or(|seen| due > seen) => due,
            _ => now + LOOK,
        }
    }
}

/// A run that stops at the end of every monitor interval. The caller may then set an action with
/// [`act`](Self::act); otherwise the last action remains in effect.
pub struct Episode<S> {
    stepper: Stepper<S>,
    agents: Vec<Agent>,
    now: Time,
}

impl<S: EventSink> Episode<S> {
    /// Creates an episode at time 0. The controllers of learning flows in `spec` are replaced.
    /// Their names must not be in a registry
    /// ([`jostle_run_spec::Algorithm::is_user_defined`]).
    ///
    /// # Errors
    /// Returns an error if the spec cannot be built.
    pub fn new(spec: RunSpec, sink: S, learners: Vec<LearningFlow>) -> Result<Self, Error> {
        let agents: Vec<_> = learners
            .into_iter()
            .map(|LearningFlow { flow, design }| Agent {
                flow,
                history: ObservationHistory::new(&design),
                design,
                action_slot: Arc::default(),
                observed: IntervalObservation::default(),
                seen: None,
            })
            .collect();
        let minds: BTreeMap<_, _> = agents
            .iter()
            .filter_map(|agent| {
                let name = spec.flows.get(agent.flow.index())?.name.clone();
                Some((name, (agent.design.clone(), Arc::clone(&agent.action_slot))))
            })
            .collect();
        let stepper = Stepper::new(
            spec,
            sink,
            Box::new(move |flow, random| {
                let (design, action_slot) = minds.get(&flow.name).ok_or_else(|| {
                    format!("`{}` is a user's, and decides nothing here", flow.controller.name)
                })?;
                Ok(learned(design.clone(), Arc::clone(action_slot), || cubic_below(random)))
            }),
        )?;
        Ok(Self { stepper, agents, now: Time::ZERO })
    }

    /// Runs until the monitor interval of an agent ends. Returns false at the end of the run.
    ///
    /// # Errors
    /// Returns an error if the run failed or was cancelled.
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

    /// Records an observation of each agent whose interval ends now. Returns whether there were
    /// any.
    fn observe(&mut self) -> bool {
        let mut any = false;
        for agent in &mut self.agents {
            if agent.action_slot.interval_end() != Some(self.now) || agent.seen == Some(self.now) {
                continue;
            }
            let mut collector = ObservationBuilder::default();
            self.stepper.observe(agent.flow, &mut collector);
            agent.observed = collector.0;
            agent.history.push(&agent.design, &agent.observed);
            agent.seen = Some(self.now);
            any = true;
        }
        any
    }

    /// Returns the time at which the run stopped.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Returns whether no further interval of any agent ends before the end of the run.
    pub fn is_over(&self) -> bool {
        let end = Time::from_ns(self.stepper.spec().duration_ns);
        self.stepper.is_over() || self.agents.iter().all(|agent| agent.next_end() >= Some(end))
    }

    /// Returns whether an interval of an agent ends at the current time.
    pub fn is_due(&self, learner: usize) -> bool {
        let agent = self.agents.get(learner);
        !self.stepper.is_over() && agent.is_some_and(|it| it.seen == Some(self.now))
    }

    /// Returns the observation vector of an agent.
    pub fn observation(&self, learner: usize) -> &[f64] {
        self.agents.get(learner).map_or(&[], |agent| agent.history.values())
    }

    /// Returns the last interval of an agent.
    pub fn observed(&self, learner: usize) -> IntervalObservation {
        self.agents.get(learner).map_or_else(IntervalObservation::default, |agent| agent.observed)
    }

    /// Sets the action of an agent for its next interval.
    pub fn act(&self, learner: usize, action: &[f64]) {
        if let Some(agent) = self.agents.get(learner) {
            agent.action_slot.set_action(action);
        }
    }

    /// Runs to the end without further actions. Returns the sink.
    ///
    /// # Errors
    /// See [`advance`](Self::advance). Also returns an error if a connection failed.
    pub fn finish(mut self, cancelled: &dyn Fn() -> bool) -> Result<S, Error> {
        self.stepper.run_until(Time::NEVER, cancelled)?;
        Ok(self.stepper.finish()?.1)
    }
}
