//! VFAST TCP.

use jostle_catalogue::{Entry, Kind, Parameter};

use super::fast::{ALPHA, Fast, GAMMA, RttFilter};
use crate::row::{ControllerRow, Start};
use crate::windowed::Windowed;

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "vfast",
        summary: "FAST whose average RTT follows jumps at once and ignores noise",
        class: "delay",
        based_on: &["fast"],
        source: "Belhaj & Tagmouti, VFAST TCP: an Improvement of FAST TCP, ICCSA 2009",
        parameters: &[
            ALPHA,
            GAMMA,
            Parameter {
                name: "jump_weight",
                summary: "weight of RTT samples that differ from the average by more than usual",
                kind: Kind::Number { default: 0.5, min: 0.0, max: 1.0 },
            },
        ],
    },
    start: Start::Own,
    build: |parts| {
        let jump_weight = parts.values.number("jump_weight");
        let filter = RttFilter::Deviation { jump_weight };
        Box::new(Windowed::new(Fast::new(&parts.values, filter), parts.slow_start))
    },
};
