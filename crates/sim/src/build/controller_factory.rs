//! Factories for congestion controllers. The registry lookup and the parameter checks are done once
//! per flow, because a flow can have 100,000 connections with a controller each.

use std::collections::BTreeMap;
use std::sync::Arc;

use jostle_congestion::CongestionController;
use jostle_controllers::{ControllerRecipe, PeerCacheRecipe};
use jostle_run_spec::{Algorithm, FlowRandomStreams, FlowSpec};
use jostle_units::RandomStream;

use crate::Error;

/// Cache of factories. Most flows of a large run use the same controller and parameters.
#[derive(Default)]
pub(super) struct ControllerFactories<'a> {
    /// Last flow per controller name, and its factory.
    latest: BTreeMap<&'a str, (&'a FlowSpec, Arc<ControllerFactory>)>,
}

impl<'a> ControllerFactories<'a> {
    /// Returns the factory for a flow.
    pub(super) fn of(&mut self, spec: &'a FlowSpec) -> Result<Arc<ControllerFactory>, Error> {
        let ingredients = |it: &'a FlowSpec| (&it.controller, &it.slow_start, &it.memory);
        let name = spec.controller.name.as_str();
        if let Some((latest, recipe)) = self.latest.get(name)
            && ingredients(latest) == ingredients(spec)
        {
            return Ok(Arc::clone(recipe));
        }
        let recipe = Arc::new(ControllerFactory::of(spec)?);
        self.latest.insert(name, (spec, Arc::clone(&recipe)));
        Ok(recipe)
    }
}

/// Factory for a flow's controllers: registry entries with values for all parameters.
pub(super) struct ControllerFactory {
    /// `None` if the controller is a user's.
    recipe: Option<ControllerRecipe>,
    memory: Option<PeerCacheRecipe>,
}

impl ControllerFactory {
    /// Creates the factory for a flow.
    pub(super) fn of(spec: &FlowSpec) -> Result<Self, Error> {
        let unbuildable = |why| Error::unbuildable(&spec.name, why);
        let slow_start = spec.slow_start.as_ref().map(Algorithm::named);
        let recipe = match spec.controller.is_user_defined() {
            true => None,
            false => Some(ControllerRecipe::of(spec.controller.named(), slow_start)),
        };
        let memory = spec.memory.as_ref().map(|memory| PeerCacheRecipe::of(memory.named()));
        Ok(Self {
            recipe: recipe.transpose().map_err(unbuildable)?,
            memory: memory.transpose().map_err(unbuildable)?,
        })
    }

    /// Creates a controller with random numbers from `streams`. `own` creates a controller that is
    /// not in the registry.
    pub(super) fn make(
        &self,
        streams: FlowRandomStreams,
        own: impl FnOnce(RandomStream) -> Result<Box<dyn CongestionController>, Error>,
    ) -> Result<Box<dyn CongestionController>, Error> {
        let random = streams.stream("controller");
        let controller = match &self.recipe {
            None => own(random)?,
            Some(recipe) => recipe.create(random),
        };
        Ok(match &self.memory {
            None => controller,
            Some(memory) => memory.around(controller),
        })
    }
}
