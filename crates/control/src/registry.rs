//! The registry of controllers and slow-start methods. To add one: write its file, add its row.

use std::collections::BTreeMap;

use jostle_catalogue::{ParameterError, Value};
use jostle_units::Stream;

use crate::algorithms;
use crate::controller::{Controller, EcnFeedback};
use crate::memory;
use crate::slow_start::{self, SlowStart};

pub use crate::row::{ControllerRow, MemoryRow, Parts, SlowStartRow, Start};

/// All controllers, in the order they are listed.
pub const CONTROLLERS: &[ControllerRow] = &[
    algorithms::RENO,
    algorithms::BIC,
    algorithms::CUBIC,
    algorithms::HIGHSPEED,
    algorithms::SCALABLE,
    algorithms::HTCP,
    algorithms::TCPW,
    algorithms::WESTWOOD,
    algorithms::LOG_WESTWOOD,
    algorithms::TCPW_A,
    algorithms::HYBLA,
    algorithms::DUAL,
    algorithms::VEGAS,
    algorithms::VEGAS_A,
    algorithms::VEGAS_PLUS,
    algorithms::NEW_VEGAS,
    algorithms::FAST,
    algorithms::VFAST,
    algorithms::VENO,
    algorithms::YEAH,
    algorithms::ILLINOIS,
    algorithms::CDG,
    algorithms::LP,
    algorithms::NV,
    algorithms::COMPOUND,
    algorithms::AFRICA,
    algorithms::ARENO,
    algorithms::FUSION,
    algorithms::LIBRA,
    algorithms::LEDBAT,
    algorithms::LEDBAT_PLUS_PLUS,
    algorithms::LOLA,
    algorithms::TIMELY,
    algorithms::DCTCP,
    algorithms::PRAGUE,
    algorithms::BBR,
    algorithms::BBR3,
    algorithms::MODEST_BBR,
    algorithms::ALLEGRO,
    algorithms::VIVACE,
    algorithms::PROTEUS,
    algorithms::COPA,
    algorithms::NIMBUS,
    algorithms::SPROUT,
    algorithms::REMY,
    algorithms::LEARNED,
];

/// All slow-start methods, in the order they are listed.
pub const SLOW_STARTS: &[SlowStartRow] = &[
    slow_start::STANDARD,
    slow_start::LIMITED,
    slow_start::HYSTART,
    slow_start::HYSTART_PAPER,
    slow_start::HYSTART_PLUS_PLUS,
    slow_start::SEARCH,
    slow_start::CAPSTART,
    slow_start::STOPEG,
    slow_start::SUSS,
    slow_start::JUMPSTART,
    slow_start::QUICKSTART,
    slow_start::PACED_CHIRPING,
];

/// All layers of memory, in the order they are listed.
pub const MEMORIES: &[MemoryRow] = &[
    memory::STATEFUL,
    memory::TCP_CACHE,
    memory::TCP_CACHE_PLUS,
    memory::TCP_WISE,
    memory::CAREFUL_RESUME,
];

/// The controller called `name`.
pub fn controller(name: &str) -> Option<&'static ControllerRow> {
    CONTROLLERS.iter().find(|row| row.entry.name == name)
}

/// The slow-start method called `name`.
pub fn slow_start(name: &str) -> Option<&'static SlowStartRow> {
    SLOW_STARTS.iter().find(|row| row.entry.name == name)
}

/// The layer of memory called `name`.
pub fn memory(name: &str) -> Option<&'static MemoryRow> {
    MEMORIES.iter().find(|row| row.entry.name == name)
}

impl ControllerRow {
    /// The feedback on marks that the controller needs ([`Controller::needs_ecn`]).
    pub fn needs_ecn(&self) -> EcnFeedback {
        let random = Stream::new(0, self.entry.name);
        self.create(&BTreeMap::new(), Box::new(slow_start::Standard), random)
            .map_or(EcnFeedback::None, |controller| controller.needs_ecn())
    }

    /// Builds the controller from parameters as a scenario gives them.
    ///
    /// # Errors
    /// When a parameter is unknown or does not fit.
    pub fn create(
        &self,
        given: &BTreeMap<String, Value>,
        slow_start: Box<dyn SlowStart>,
        random: Stream,
    ) -> Result<Box<dyn Controller>, ParameterError> {
        let values = self.entry.resolve(given)?;
        Ok((self.build)(Parts { values, slow_start, random }))
    }
}

impl SlowStartRow {
    /// Builds the method from parameters as a scenario gives them.
    ///
    /// # Errors
    /// When a parameter is unknown or does not fit.
    pub fn create(
        &self,
        given: &BTreeMap<String, Value>,
    ) -> Result<Box<dyn SlowStart>, ParameterError> {
        Ok((self.build)(&self.entry.resolve(given)?))
    }
}

impl MemoryRow {
    /// Builds the layer over `inner` from parameters as a scenario gives them.
    ///
    /// # Errors
    /// When a parameter is unknown or does not fit.
    pub fn create(
        &self,
        given: &BTreeMap<String, Value>,
        inner: Box<dyn Controller>,
    ) -> Result<Box<dyn Controller>, ParameterError> {
        Ok((self.build)(&self.entry.resolve(given)?, inner))
    }
}
