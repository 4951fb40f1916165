//! How the controllers of a flow are made, looked up and checked once: a flow may be a hundred thousand
//! connections, each with a controller of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use jostle_catalogue::Values;
use jostle_control::Controller;
use jostle_control::registry::{self, ControllerRow, MemoryRow, Parts, SlowStartRow, Start};
use jostle_control::slow_start::Standard;
use jostle_record::{Algorithm, FlowSpec, FlowStreams};
use jostle_units::Stream;

use crate::Error;

/// Recipes of the flows of a run. Of ten thousand flows most have the same.
#[derive(Default)]
pub(super) struct Recipes<'a> {
    /// The latest flow with a controller of that name, and its recipe.
    latest: BTreeMap<&'a str, (&'a FlowSpec, Arc<Recipe>)>,
}

impl<'a> Recipes<'a> {
    /// That of a flow.
    pub(super) fn of(&mut self, spec: &'a FlowSpec) -> Result<Arc<Recipe>, Error> {
        let ingredients = |it: &'a FlowSpec| (&it.controller, &it.slow_start, &it.memory);
        let name = spec.controller.name.as_str();
        if let Some((latest, recipe)) = self.latest.get(name)
            && ingredients(latest) == ingredients(spec)
        {
            return Ok(Arc::clone(recipe));
        }
        let recipe = Arc::new(Recipe::of(spec)?);
        self.latest.insert(name, (spec, Arc::clone(&recipe)));
        Ok(recipe)
    }
}

/// What a flow's controllers are made of: rows of the registry, each with a value for every parameter.
pub(super) struct Recipe {
    /// None: it is written in Python.
    controller: Option<(&'static ControllerRow, Values)>,
    /// None: [`Standard`], which those with a start of their own ignore.
    slow_start: Option<(&'static SlowStartRow, Values)>,
    memory: Option<(&'static MemoryRow, Values)>,
}

impl Recipe {
    /// That of a flow.
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

    /// A controller for the flow or connection with these `streams`; `python` makes one that no
    /// registry has.
    pub(super) fn make(
        &self,
        streams: FlowStreams,
        python: impl FnOnce(Stream) -> Result<Box<dyn Controller>, Error>,
    ) -> Result<Box<dyn Controller>, Error> {
        let random = streams.stream("controller");
        let controller = match &self.controller {
            None => python(random)?,
            Some((row, values)) => {
                let slow_start = match &self.slow_start {
                    None => Box::new(Standard),
                    Some((row, values)) => (row.build)(values),
                };
                (row.build)(Parts { values: values.clone(), slow_start, random })
            }
        };
        Ok(match &self.memory {
            None => controller,
            Some((row, values)) => (row.build)(values, controller),
        })
    }
}

fn controller(spec: &FlowSpec) -> Result<(&'static ControllerRow, Values), Error> {
    let name = &spec.controller.name;
    let row = registry::controller(name).ok_or_else(|| {
        Error::unbuildable(&spec.name, format_args!("there is no controller `{name}`"))
    })?;
    if row.start == Start::Own && spec.slow_start.is_some() {
        return Err(Error::unbuildable(
            &spec.name,
            format_args!("`{name}` has a slow start of its own"),
        ));
    }
    let values = row.entry.resolve(&spec.controller.parameters);
    Ok((row, values.map_err(|e| Error::unbuildable(&spec.name, e))?))
}

fn slow_start(
    named: &Algorithm,
    spec: &FlowSpec,
) -> Result<(&'static SlowStartRow, Values), Error> {
    let name = &named.name;
    let row = registry::slow_start(name).ok_or_else(|| {
        Error::unbuildable(&spec.name, format_args!("there is no slow-start method `{name}`"))
    })?;
    let values = row.entry.resolve(&named.parameters);
    Ok((row, values.map_err(|e| Error::unbuildable(&spec.name, e))?))
}

fn memory(named: &Algorithm, spec: &FlowSpec) -> Result<(&'static MemoryRow, Values), Error> {
    let name = &named.name;
    let row = registry::memory(name).ok_or_else(|| {
        Error::unbuildable(&spec.name, format_args!("there is no memory `{name}`"))
    })?;
    let values = row.entry.resolve(&named.parameters);
    Ok((row, values.map_err(|e| Error::unbuildable(&spec.name, e))?))
}
