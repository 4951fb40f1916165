//! The registry of what links are made of. To add a queue: write its file with its row, add the row
//! here. The scenario format, a run's specification, its checks and the documentation derive from
//! rows.
//!
//! Lists (steps, traces, quantile tables) are no parameters of rows; a row whose content is such a
//! list has none, and its summary says what the list is.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use jostle_catalogue::{Entry, ParameterError, Value, Values};
use jostle_units::Stream;

pub use crate::parameters::{FASTEST_BPS, LONGEST_NS, SHORTEST_PERIOD_NS};
use crate::{Error, Headers, Loss, QueueDiscipline, capacity, delay, loss, queue};

/// A queue discipline of the registry, for packets with bodies of type `B`.
pub struct QueueRow<B> {
    /// Name, source, parameters.
    pub entry: Entry,
    /// Checks how values fit together, each of which is in its own range.
    pub check: fn(&Values) -> Result<(), ParameterError>,
    /// Builds it, with its own random numbers.
    pub build: fn(&Values, Stream) -> Box<dyn QueueDiscipline<B>>,
}

/// A kind of loss per packet.
pub struct LossRow {
    /// Name, source, parameters.
    pub entry: Entry,
    /// Builds it, with its own random numbers.
    pub build: fn(&Values, Stream) -> Box<dyn Loss>,
}

struct Queues<B>(PhantomData<B>);

impl<B: Headers + Copy + Send + 'static> Queues<B> {
    const ALL: &'static [QueueRow<B>] = &[
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
        queue::Pie::ROW,
        queue::FqPie::ROW,
        queue::StepMark::ROW,
        queue::DualPi2::ROW,
    ];
}

/// All queue disciplines, in the order they are listed.
pub fn queues<B: Headers + Copy + Send + 'static>() -> &'static [QueueRow<B>] {
    Queues::ALL
}

/// The queue discipline called `kind`.
///
/// # Errors
/// When there is none.
pub fn queue<B: Headers + Copy + Send + 'static>(
    kind: &str,
) -> Result<&'static QueueRow<B>, Error> {
    let rows = queues();
    rows.iter().find(|row| row.entry.name == kind).ok_or_else(|| Error::Unknown {
        part: "queue",
        given: kind.to_owned(),
        known: rows.iter().map(|row| row.entry.name).collect(),
    })
}

/// All kinds of capacity.
pub const CAPACITIES: &[Entry] =
    &[capacity::CONSTANT, capacity::STEPS, capacity::TRACE, capacity::AUTOREGRESSIVE];

/// All kinds of delay.
pub const DELAYS: &[Entry] = &[delay::CONSTANT, delay::STEPS, delay::JITTER];

/// All kinds of loss per packet.
pub const LOSSES: &[LossRow] = &[loss::INDEPENDENT, loss::GILBERT_ELLIOTT];

/// Losses in time, which a link may have beside those per packet.
pub const OUTAGES: Entry = loss::OUTAGES;

/// The kind of loss called `kind`.
///
/// # Errors
/// When there is none.
pub fn loss(kind: &str) -> Result<&'static LossRow, Error> {
    LOSSES.iter().find(|row| row.entry.name == kind).ok_or_else(|| Error::Unknown {
        part: "loss",
        given: kind.to_owned(),
        known: LOSSES.iter().map(|row| row.entry.name).collect(),
    })
}

/// What [`QueueRow::check`] is where no value depends on another one.
pub(crate) fn unrelated(_: &Values) -> Result<(), ParameterError> {
    Ok(())
}

impl<B> QueueRow<B> {
    /// Checks parameters as a scenario gives them, and fills in defaults.
    ///
    /// # Errors
    /// When a parameter is unknown, missing or does not fit.
    pub fn resolve(&self, given: &BTreeMap<String, Value>) -> Result<Values, ParameterError> {
        let values = self.entry.resolve(given)?;
        (self.check)(&values)?;
        Ok(values)
    }

    /// Builds the queue from parameters as a scenario gives them.
    ///
    /// # Errors
    /// As for [`resolve`](Self::resolve).
    pub fn create(
        &self,
        given: &BTreeMap<String, Value>,
        random: Stream,
    ) -> Result<Box<dyn QueueDiscipline<B>>, Error> {
        Ok((self.build)(&self.resolve(given)?, random))
    }
}

impl LossRow {
    /// Builds the losses from parameters as a scenario gives them.
    ///
    /// # Errors
    /// When a parameter is unknown, missing or does not fit.
    pub fn create(
        &self,
        given: &BTreeMap<String, Value>,
        random: Stream,
    ) -> Result<Box<dyn Loss>, Error> {
        Ok((self.build)(&self.entry.resolve(given)?, random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> [Vec<Entry>; 4] {
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
