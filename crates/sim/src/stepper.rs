//! A run that can be stopped and continued.

use jostle_congestion::{CongestionController, StateObserver};
use jostle_metrics::EventSink;
use jostle_run_spec::{FlowSpec, RunSpec};
use jostle_units::{FlowId, RandomStream, Time};

use crate::Error;
use crate::simulation::{RunCounts, Simulation, SimulationState};
use crate::transport::Endpoints;

/// Creates controllers that are not in the registry, like [`crate::UserControllers`], but owned.
pub type Controllers = Box<
    dyn Fn(&FlowSpec, RandomStream) -> Result<Box<dyn CongestionController>, String> + Send + Sync,
>;

/// A run that owns its specification and its sink. It can be advanced to a time and observed there.
/// Stopping does not change its result.
pub struct Stepper<S> {
    spec: RunSpec,
    sink: S,
    controllers: Controllers,
    /// `None` during `run_until`, and after an error.
    world: Option<SimulationState>,
}

impl<S: EventSink> Stepper<S> {
    /// Prepares a run at time 0.
    ///
    /// # Errors
    /// Returns an error if the spec cannot be built.
    pub fn new(spec: RunSpec, sink: S, controllers: Controllers) -> Result<Self, Error> {
        let world = Some(SimulationState::new(&spec, &*controllers)?);
        Ok(Self { spec, sink, controllers, world })
    }

    /// Processes all events before `time`.
    ///
    /// # Errors
    /// Returns an error if the run failed or was cancelled. The run is over then.
    pub fn run_until(&mut self, time: Time, cancelled: &dyn Fn() -> bool) -> Result<(), Error> {
        let Some(world) = self.world.take() else { return Err(Error::Cancelled) };
        if world.over {
            self.world = Some(world);
            return Ok(());
        }
        let Self { spec, sink, controllers, .. } = self;
        let mut simulation = Simulation { world, spec, user_controllers: &**controllers, sink };
        simulation.run_until(time, cancelled)?;
        self.world = Some(simulation.world);
        Ok(())
    }

    /// Returns whether the run has ended or failed.
    pub fn is_over(&self) -> bool {
        self.world.as_ref().is_none_or(|world| world.over)
    }

    /// Returns the specification of the run.
    pub const fn spec(&self) -> &RunSpec {
        &self.spec
    }

    /// Reports the state of a flow's controller to `observer`.
    pub fn observe(&self, flow: FlowId, observer: &mut dyn StateObserver) {
        let world = self.world.as_ref();
        if let Some(flow) = world.and_then(|world| world.flows.get(flow.index())) {
            flow.endpoints.observe(observer);
        }
    }

    /// Returns the counts of the run so far, and its sink.
    ///
    /// # Errors
    /// Returns an error if a connection failed or the run was cancelled.
    pub fn finish(self) -> Result<(RunCounts, S), Error> {
        let counts = self.world.ok_or(Error::Cancelled)?.outcome(&self.spec)?;
        Ok((counts, self.sink))
    }
}
