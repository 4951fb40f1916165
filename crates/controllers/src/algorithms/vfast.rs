//! VFAST TCP.

use alloc::boxed::Box;

use jostle_registry::{Parameter, RegistryEntry};

use super::fast::{ALPHA, Fast, GAMMA, RttFilter};
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use crate::window_based::WindowBasedController;

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "vfast",
        summary: "FAST with a nonlinear RTT filter that follows jumps and ignores noise",
        class: "delay",
        based_on: &["fast"],
        source: "Belhaj & Tagina, VFAST TCP: An Improvement of FAST TCP, UKSIM 2008",
        parameters: &[
            ALPHA,
            GAMMA,
            Parameter::number("jump_weight", 0.5, 0.0..=1.0)
                .summary("weight of RTT samples that differ from the average by more than usual"),
        ],
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| {
        let jump_weight = parts.values.number("jump_weight");
        let filter = RttFilter::Deviation { jump_weight };
        Box::new(WindowBasedController::new(Fast::new(&parts.values, filter), parts.slow_start))
    },
};
