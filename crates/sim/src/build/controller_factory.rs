//! Factories for congestion controllers. The registry lookup and the parameter checks are done once
//! per flow, because a flow can have 100,000 connections with a controller each.

use std::collections::BTreeMap;
use std::sync::Arc;

use jostle_congestion::CongestionController;
use jostle_controllers::registry::{
    self, ControllerEntry, ControllerInputs, PeerCacheEntry, SlowStartChoice, SlowStartEntry,
};
use jostle_controllers::slow_start::Standard;
use jostle_registry::ParameterValues;
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
    /// `None` if the controller is written in Python.
    controller: Option<(&'static ControllerEntry, ParameterValues)>,
    /// `None` for [`Standard`]. Controllers with a built-in slow start ignore it.
    slow_start: Option<(&'static SlowStartEntry, ParameterValues)>,
    memory: Option<(&'static PeerCacheEntry, ParameterValues)>,
}

impl ControllerFactory {
    /// Creates the factory for a flow.
    pub(super) fn of(spec: &FlowSpec) -> Result<Self, Error> {
        let python = spec.controller.is_python_controller();
        Ok(Self {
            controller: if python { None } else { Some(controller(spec)?) },
            slow_start: match &spec.slow_start {
                Some(named) if !python => Some(slow_start(named, spec)?),
                _ => None,
            },
            memory: spec.memory.as_ref().map(|named| memory(named, spec)).transpose()?,
        })
    }

    /// Creates a controller with random numbers from `streams`. `python` creates a controller that
    /// is not in the registry.
    pub(super) fn make(
        &self,
        streams: FlowRandomStreams,
        python: impl FnOnce(RandomStream) -> Result<Box<dyn CongestionController>, Error>,
    ) -> Result<Box<dyn CongestionController>, Error> {
        let random = streams.stream("controller");
        let controller = match &self.controller {
            None => python(random)?,
            Some((row, values)) => {
                let slow_start = match &self.slow_start {
                    None => Box::new(Standard),
                    Some((row, values)) => (row.build)(values),
                };
                (row.build)(ControllerInputs { values: values.clone(), slow_start, random })
            }
        };
        Ok(match &self.memory {
            None => controller,
            Some((row, values)) => (row.build)(values, controller),
        })
    }
}

fn controller(spec: &FlowSpec) -> Result<(&'static ControllerEntry, ParameterValues), Error> {
    let name = &spec.controller.name;
    let row = registry::controller(name).ok_or_else(|| {
        Error::unbuildable(&spec.name, format_args!("there is no controller `{name}`"))
    })?;
    if row.start == SlowStartChoice::BuiltIn && spec.slow_start.is_some() {
        return Err(Error::unbuildable(
            &spec.name,
            format_args!("`{name}` contains its slow start"),
        ));
    }
    let values = row.entry.resolve(&spec.controller.parameters);
    Ok((row, values.map_err(|e| Error::unbuildable(&spec.name, e))?))
}

fn slow_start(
    named: &Algorithm,
    spec: &FlowSpec,
) -> Result<(&'static SlowStartEntry, ParameterValues), Error> {
    let name = &named.name;
    let row = registry::slow_start(name).ok_or_else(|| {
        Error::unbuildable(&spec.name, format_args!("there is no slow-start method `{name}`"))
    })?;
    let values = row.entry.resolve(&named.parameters);
    Ok((row, values.map_err(|e| Error::unbuildable(&spec.name, e))?))
}

fn memory(
    named: &Algorithm,
    spec: &FlowSpec,
) -> Result<(&'static PeerCacheEntry, ParameterValues), Error> {
    let name = &named.name;
    let row = registry::memory(name).ok_or_else(|| {
        Error::unbuildable(&spec.name, format_args!("there is no memory `{name}`"))
    })?;
    let values = row.entry.resolve(&named.parameters);
    Ok((row, values.map_err(|e| Error::unbuildable(&spec.name, e))?))
}
