//! Remy: a sender that looks up its actions in a table.
//!
//! Winstein & Balakrishnan, "TCP ex Machina: Computer-Generated Congestion Control", SIGCOMM 2013,
//! and the sender of the repository tcpexmachina/remy (`src/rat.cc`, `src/memory.cc`,
//! `src/whiskertree.cc`), with the axes and the format of its later forks. The table is the
//! controller. Remy is the program that generates a table for a range of networks.

mod memory;
mod protobuf;
#[cfg(test)]
mod tests;
mod whisker_tree;

use alloc::boxed::Box;
use alloc::string::String;

use jostle_registry::{Parameter, RegistryEntry};
use jostle_units::{Rate, Time};

use self::memory::Memory;
use self::whisker_tree::WhiskerTree;
use crate::registry_rows::{ControllerEntry, SlowStartChoice};
use jostle_congestion::{
    AckSample, CongestionController, CongestionEvent, CwndReductionBy, EstablishedEvent, SendEvent,
    StateObserver,
};

pub(crate) const ROW: ControllerEntry = ControllerEntry {
    entry: RegistryEntry {
        name: "remy",
        summary: "looks up cwnd and spacing in a table that the optimizer Remy produced",
        class: "delay",
        based_on: &[],
        source: "Winstein & Balakrishnan, \"TCP ex Machina: Computer-Generated Congestion Control\", \
                 SIGCOMM 2013",
        parameters: &[Parameter::file(
            "table",
            BY_HAND,
            "a whisker tree of Remy (RemyBuffers.WhiskerTree)",
            |file| WhiskerTree::parse(file).map(drop),
        )
        .summary("file with the table; default: a small one written by hand")],
    },
    start: SlowStartChoice::BuiltIn,
    build: |parts| Box::new(Remy::new(WhiskerTree::parse(&parts.values.file("table")))),
};

/// Table written by `examples/remy_table.py`, not by Remy.
const BY_HAND: &[u8] = include_bytes!("remy/by-hand.dna");

/// The controller (`Rat`).
pub struct Remy {
    /// `None` for an invalid file, which the registry rejects.
    table: Option<WhiskerTree>,
    memory: Memory,
    window: u32,
    intersend_ms: f64,
    /// Pacing rate of one packet of this size per `intersend_ms`.
    pacing_rate: Option<Rate>,
    packet_bits: f64,
    /// Whether the last look-up of the memory found a box.
    found: bool,
}

impl Remy {
    fn new(table: Result<WhiskerTree, String>) -> Self {
        Self {
            table: table.ok(),
            memory: Memory::default(),
            window: 0,
            intersend_ms: 0.0,
            pacing_rate: None,
            packet_bits: 8.0,
            found: false,
        }
    }

    /// Resets the memory at the start of a flow, and looks up its action (`Rat::reset`).
    fn reset(&mut self) {
        self.memory = Memory::default();
        self.window = 0;
        self.space(0.0);
        self.act();
    }

    /// Applies the action of the table. If the memory is outside of the table, nothing changes
    /// (Remy would terminate).
    fn act(&mut self) {
        let action = self.table.as_ref().and_then(|table| table.action(&self.memory));
        self.found = action.is_some();
        if let Some(action) = action {
            self.window = action.window(self.window);
            if action.intersend_ms != self.intersend_ms {
                self.space(action.intersend_ms);
            }
        }
    }

    /// Sets the time between packets.
    fn space(&mut self, intersend_ms: f64) {
        self.intersend_ms = intersend_ms;
        let bps = self.packet_bits / (intersend_ms / 1e3);
        // A float-to-integer cast saturates.
        self.pacing_rate = (intersend_ms > 0.0).then(|| Rate::from_bps((bps as u64).max(1)));
    }
}

impl CongestionController for Remy {
    fn on_established(&mut self, established: &EstablishedEvent) {
        self.packet_bits = 8.0 * f64::from(established.mss_bytes.max(1));
        self.reset();
    }

    fn on_mss_change(&mut self, mss_bytes: u32) {
        self.packet_bits = 8.0 * f64::from(mss_bytes.max(1));
        self.space(self.intersend_ms);
    }

    /// Remy's senders are switched on and off, and reset each time.
    fn on_send(&mut self, sent: &SendEvent) {
        if sent.after_idle {
            self.reset();
        }
    }

    /// Tables are generated for receivers that acknowledge each packet. An ACK of several packets
    /// is treated like several ACKs with equal spacing: each packet is looked up once, even with
    /// delayed ACKs.
    fn on_ack(&mut self, ack: &AckSample) {
        let Some(rtt) = ack.transmission_rtt().filter(|_| ack.acked > 0) else { return };
        match self.memory.gaps(ack.sent_at, ack.now, ack.acked) {
            None => {
                self.memory.begin(rtt);
                self.act();
            }
            Some(gaps) => {
                // Remy's sender detects a hole as soon as a later packet is acknowledged, this one
                // after loss detection.
                let mut lost = ack.lost;
                for _ in 0..ack.acked {
                    self.memory.update(gaps, rtt, core::mem::take(&mut lost));
                    self.act();
                }
            }
        }
    }

    /// Losses are not a signal of Remy.
    fn on_congestion_event(&mut self, _congestion: &CongestionEvent) {}

    fn on_undo(&mut self, _now: Time) {}

    /// Sets cwnd after a timeout. The next action starts from this value.
    fn set_cwnd(&mut self, cwnd: u32) {
        self.window = cwnd.max(1);
    }

    /// A window of 0 would stop the flow forever.
    fn cwnd(&self) -> u32 {
        self.window.max(1)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_rate
    }

    /// The spacing applies to single packets.
    fn max_burst_packets(&self) -> Option<u32> {
        Some(1)
    }

    fn recovery_owner(&self) -> CwndReductionBy {
        CwndReductionBy::Controller
    }

    fn mode(&self) -> &'static str {
        if self.found { "in_table" } else { "beyond_table" }
    }

    fn observe(&self, observer: &mut dyn StateObserver) {
        for (name, &value) in memory::NAMES.into_iter().zip(self.memory.values()) {
            observer.record_value(name, value);
        }
        observer.record_value("intersend_ms", self.intersend_ms);
    }
}
