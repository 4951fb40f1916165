//! Registry of link components. To add a queue discipline, write its file with its registry entry,
//! and add the entry here. The scenario format, the run specification, its checks and the
//! documentation are derived from the entries.
//!
//! Lists (steps, traces, quantile tables) are not parameters. An entry whose content is such a list
//! has no parameters; its summary describes the list.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use jostle_registry::{ParameterError, ParameterValue, ParameterValues, RegistryEntry};
use jostle_units::RandomStream;

pub use crate::parameters::{FASTEST, LONGEST, SHORTEST_PERIOD};
use crate::{Error, Loss, QueueDiscipline, TransportHeader, capacity, delay, loss, queue};

/// A queue discipline for packets with headers of type `B`.
pub struct QueueEntry<B> {
    /// Name, source, parameters.
    pub entry: RegistryEntry,
    /// Checks the combination of values, each of which is in its range.
    pub check: fn(&ParameterValues) -> Result<(), ParameterError>,
    /// Builds the queue with its random stream.
    pub build: fn(&ParameterValues, RandomStream) -> Box<dyn QueueDiscipline<B>>,
}

/// A kind of loss per packet.
pub struct LossEntry {
    /// Name, source, parameters.
    pub entry: RegistryEntry,
    /// Builds the loss process with its random stream.
    pub build: fn(&ParameterValues, RandomStream) -> Box<dyn Loss>,
}

struct Queues<B>(PhantomData<B>);

impl<B: TransportHeader + Copy + Send + 'static> Queues<B> {
    const ALL: &'static [QueueEntry<B>] = &[
        queue::DropTail::ROW,
        queue::Tbf::ROW,
        queue::Policer::ROW,
        queue::PfifoGro::ROW,
        queue::OccupancyDrop::ROW,
        queue::Red::ROW,
        queue::Codel::ROW,
        queue::FqCodel::ROW,
        queue::Cake::ROW,
        queue::Sfq::ROW,
        queue::Drr::ROW,
        queue::Prio::ROW,
        queue::Pie::ROW,
        queue::FqPie::ROW,
        queue::StepMark::ROW,
        queue::DualPi2::ROW,
    ];
}

/// Returns all queue disciplines, in the order of the documentation.
pub fn queues<B: TransportHeader + Copy + Send + 'static>() -> &'static [QueueEntry<B>] {
    Queues::ALL
}

/// Returns the queue discipline named `kind`.
///
/// # Errors
/// If there is none.
pub fn queue<B: TransportHeader + Copy + Send + 'static>(
    kind: &str,
) -> Result<&'static QueueEntry<B>, Error> {
    let rows = queues();
    rows.iter().find(|row| row.entry.name == kind).ok_or_else(|| Error::Unknown {
        part: "queue",
        given: kind.to_owned(),
        known: rows.iter().map(|row| row.entry.name).collect(),
    })
}

/// All kinds of capacity.
pub const CAPACITIES: &[RegistryEntry] =
    &[capacity::CONSTANT, capacity::STEPS, capacity::TRACE, capacity::AUTOREGRESSIVE];

/// All kinds of delay.
pub const DELAYS: &[RegistryEntry] = &[delay::CONSTANT, delay::STEPS, delay::JITTER];

/// All kinds of loss per packet.
pub const LOSSES: &[LossEntry] = &[loss::INDEPENDENT, loss::GILBERT_ELLIOTT];

/// Outages, which a link can have in addition to losses per packet.
pub const OUTAGES: RegistryEntry = loss::OUTAGES;

/// Returns the kind of loss named `kind`.
///
/// # Errors
/// If there is none.
pub fn loss(kind: &str) -> Result<&'static LossEntry, Error> {
    LOSSES.iter().find(|row| row.entry.name == kind).ok_or_else(|| Error::Unknown {
        part: "loss",
        given: kind.to_owned(),
        known: LOSSES.iter().map(|row| row.entry.name).collect(),
    })
}

/// [`QueueEntry::check`] of entries whose values are independent.
pub(crate) fn unrelated(_: &ParameterValues) -> Result<(), ParameterError> {
    Ok(())
}

impl<B> QueueEntry<B> {
    /// Checks the parameters of a scenario and adds defaults.
    ///
    /// # Errors
    /// If a parameter is unknown, missing or invalid.
    pub fn resolve(
        &self,
        given: &BTreeMap<String, ParameterValue>,
    ) -> Result<ParameterValues, ParameterError> {
        let values = self.entry.resolve(given)?;
        (self.check)(&values)?;
        Ok(values)
    }

    /// Builds the queue from the parameters of a scenario.
    ///
    /// # Errors
    /// As for [`resolve`](Self::resolve).
    pub fn create(
        &self,
        given: &BTreeMap<String, ParameterValue>,
        random: RandomStream,
    ) -> Result<Box<dyn QueueDiscipline<B>>, Error> {
        Ok((self.build)(&self.resolve(given)?, random))
    }
}

impl LossEntry {
    /// Builds the loss process from the parameters of a scenario.
    ///
    /// # Errors
    /// If a parameter is unknown, missing or invalid.
    pub fn create(
        &self,
        given: &BTreeMap<String, ParameterValue>,
        random: RandomStream,
    ) -> Result<Box<dyn Loss>, Error> {
        Ok((self.build)(&self.entry.resolve(given)?, random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> [Vec<RegistryEntry>; 4] {
        [
            queues::<()>().iter().map(|row| row.entry).collect(),
            CAPACITIES.to_vec(),
            DELAYS.to_vec(),
            LOSSES.iter().map(|row| row.entry).chain([OUTAGES]).collect(),
        ]
    }

    #[test]
    fn names_are_unique_and_families_known() {
        for rows in entries() {
            for (index, row) in rows.iter().enumerate() {
                assert!(rows[..index].iter().all(|other| other.name != row.name));
                for ancestor in row.based_on {
                    assert!(rows.iter().any(|other| other.name == *ancestor), "{ancestor}");
                }
                for (index, parameter) in row.parameters.iter().enumerate() {
                    assert!(row.parameters[..index].iter().all(|p| p.name != parameter.name));
                }
            }
        }
    }

    #[test]
    fn every_default_lies_in_its_own_range() {
        for row in entries().iter().flatten() {
            for parameter in row.parameters {
                let Some(default) = parameter.kind.default_value() else { continue };
                let given = BTreeMap::from([(parameter.name.to_owned(), default)]);
                let refused = row.resolve(&given).err();
                let missing = matches!(refused, None | Some(ParameterError::Missing { .. }));
                assert!(missing, "{}.{}: {refused:?}", row.name, parameter.name);
            }
        }
    }
}
