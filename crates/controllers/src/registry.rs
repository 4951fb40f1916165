//! The registry of controllers and slow-start methods. To add one, write its file and add its
//! entry.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;

use jostle_registry::{ParameterError, ParameterValue, RegistryEntry};
use jostle_units::RandomStream;
use serde::{Serialize, Serializer};

use crate::algorithms;
use crate::peer_cache;
use crate::slow_start::{self, SlowStart};
use jostle_congestion::{CongestionController, EcnFeedback};

pub use crate::registry_rows::{
    ControllerEntry, ControllerInputs, PeerCacheEntry, SlowStartChoice, SlowStartEntry,
};

/// All controllers in the order of listings.
pub const CONTROLLERS: &[ControllerEntry] = &[
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

/// All slow-start methods in the order of listings.
pub const SLOW_STARTS: &[SlowStartEntry] = &[
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

/// All peer-cache layers in the order of listings.
pub const MEMORIES: &[PeerCacheEntry] = &[
    peer_cache::STATEFUL,
    peer_cache::TCP_CACHE,
    peer_cache::TCP_CACHE_PLUS,
    peer_cache::TCP_WISE,
    peer_cache::CAREFUL_RESUME,
];

/// Returns the controller called `name`.
pub fn controller(name: &str) -> Option<&'static ControllerEntry> {
    CONTROLLERS.iter().find(|row| row.entry.name == name)
}

/// Returns the slow-start method called `name`.
pub fn slow_start(name: &str) -> Option<&'static SlowStartEntry> {
    SLOW_STARTS.iter().find(|row| row.entry.name == name)
}

/// Returns the peer-cache layer called `name`.
pub fn memory(name: &str) -> Option<&'static PeerCacheEntry> {
    MEMORIES.iter().find(|row| row.entry.name == name)
}

/// The entry of listings, with the slow start that it has by default, null for a built-in one.
impl Serialize for ControllerEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Listed<'a> {
            #[serde(flatten)]
            entry: &'a RegistryEntry,
            slow_start: Option<&'a str>,
            needs_ecn: bool,
            needs_accecn: bool,
        }
        let feedback = self.required_ecn_feedback();
        let listed = Listed {
            entry: &self.entry,
            slow_start: match self.start {
                SlowStartChoice::Composed(name) => Some(name),
                SlowStartChoice::BuiltIn => None,
            },
            needs_ecn: feedback != EcnFeedback::None,
            needs_accecn: feedback == EcnFeedback::AccEcn,
        };
        listed.serialize(serializer)
    }
}

impl ControllerEntry {
    /// Returns the ECN feedback that the controller requires
    /// ([`CongestionController::required_ecn_feedback`]).
    pub fn required_ecn_feedback(&self) -> EcnFeedback {
        let random = RandomStream::new(0, self.entry.name);
        self.create(&BTreeMap::new(), Box::new(slow_start::Standard), random)
            .map_or(EcnFeedback::None, |controller| controller.required_ecn_feedback())
    }

    /// Creates the controller with the parameters of a scenario.
    ///
    /// # Errors
    /// If a parameter is unknown or invalid.
    pub fn create(
        &self,
        given: &BTreeMap<String, ParameterValue>,
        slow_start: Box<dyn SlowStart>,
        random: RandomStream,
    ) -> Result<Box<dyn CongestionController>, ParameterError> {
        let values = self.entry.resolve(given)?;
        Ok((self.build)(ControllerInputs { values, slow_start, random }))
    }
}

impl SlowStartEntry {
    /// Creates the method with the parameters of a scenario.
    ///
    /// # Errors
    /// If a parameter is unknown or invalid.
    pub fn create(
        &self,
        given: &BTreeMap<String, ParameterValue>,
    ) -> Result<Box<dyn SlowStart>, ParameterError> {
        Ok((self.build)(&self.entry.resolve(given)?))
    }
}

impl PeerCacheEntry {
    /// Creates the layer over `inner` with the parameters of a scenario.
    ///
    /// # Errors
    /// If a parameter is unknown or invalid.
    pub fn create(
        &self,
        given: &BTreeMap<String, ParameterValue>,
        inner: Box<dyn CongestionController>,
    ) -> Result<Box<dyn CongestionController>, ParameterError> {
        Ok((self.build)(&self.entry.resolve(given)?, inner))
    }
}
