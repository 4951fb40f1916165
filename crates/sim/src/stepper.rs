//! A run that stops on its way.

use jostle_control::{Controller, Observer};
use jostle_record::{FlowSpec, RunSpec, Sink};
use jostle_units::{Stream, Time};

use crate::Error;
use crate::host::Transport;
use crate::simulation::{Counts, Simulation, World};

/// Makes controllers that no registry has, as [`crate::PythonControllers`]; owned.
pub type Controllers =
    Box<dyn Fn(&FlowSpec, Stream) -> Result<Box<dyn Controller>, String> + Send + Sync>;

/// A run that owns its specification and its sink, goes on as far as it is told, and can be looked at
/// meanwhile. Where it stops changes nothing of what happens.
pub struct Stepper<S> {
    spec: RunSpec,
    sink: S,
    controllers: Controllers,
    /// None only while it runs, and after an error.
    world: Option<World>,
}

impl<S: Sink> Stepper<S> {
    /// A run before its begin.
    ///
    /// # Errors
    /// When a part cannot be built from the spec.
    pub fn new(spec: RunSpec, sink: S, controllers: Controllers) -> Result<Self, Error> {
        let world = Some(World::new(&spec, &*controllers)?);
        Ok(Self { spec, sink, controllers, world })
    }

    /// Lets everything happen that happens before `time`.
    ///
    /// # Errors
    /// When the run cannot go on, or was cancelled: it is over then.
    pub fn run_until(&mut self, time: Time, cancelled: &dyn Fn() -> bool) -> Result<(), Error> {
        let Some(world) = self.world.take() else { return Err(Error::Cancelled) };
        if world.over {
            self.world = Some(world);
            return Ok(());
        }
        let Self { spec, sink, controllers, .. } = self;
        let mut simulation = Simulation { world, spec, python_controllers: &**controllers, sink };
        simulation.run_until(time, cancelled)?;
        self.world = Some(simulation.world);
        Ok(())
    }

    /// Whether the run is over, or broke off.
    pub fn is_over(&self) -> bool {
        self.world.as_ref().is_none_or(|world| world.over)
    }

    /// What it is a run of.
    pub const fn spec(&self) -> &RunSpec {
        &self.spec
    }

    /// Shows the state of a flow's controller.
    pub fn observe(&self, flow: u32, observer: &mut dyn Observer) {
        let world = self.world.as_ref();
        if let Some(flow) = world.and_then(|world| world.flows.get(flow as usize)) {
            flow.endpoints.observe(observer);
        }
    }

    /// What the run did so far, and its sink.
    ///
    /// # Errors
    /// When a connection broke.
    pub fn finish(self) -> Result<(Counts, S), Error> {
        let counts = self.world.ok_or(Error::Cancelled)?.outcome(&self.spec)?;
        Ok((counts, self.sink))
    }
}
