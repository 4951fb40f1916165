//! Remy: a sender that looks up in a table what to do.
//!
//! Winstein & Balakrishnan, "TCP ex Machina: Computer-Generated Congestion Control", SIGCOMM 2013,
//! and the sender of the repository tcpexmachina/remy (`src/rat.cc`, `src/memory.cc`,
//! `src/whiskertree.cc`), with the axes and the format that its later forks still have. The
//! table is the controller; Remy is the program that makes one for a range of networks.

mod memory;
mod table;
#[cfg(test)]
mod tests;
mod wire;

use jostle_catalogue::{Entry, Kind, Parameter};
use jostle_units::{Rate, Time};

use self::memory::Memory;
use self::table::Table;
use crate::controller::{
    AckSample, Congestion, Controller, Established, Observer, RecoveryOwner, Sent,
};
use crate::row::{ControllerRow, Start};

pub(crate) const ROW: ControllerRow = ControllerRow {
    entry: Entry {
        name: "remy",
        summary: "looks up window and spacing in a table that a computer made",
        class: "delay",
        based_on: &[],
        source: "Winstein & Balakrishnan, \"TCP ex Machina: Computer-Generated Congestion Control\", \
                 SIGCOMM 2013",
        parameters: &[Parameter {
            name: "table",
            summary: "file with the table; a small one written by hand if there is none",
            kind: Kind::File {
                default: BY_HAND,
                content: "a whisker tree of Remy (RemyBuffers.WhiskerTree)",
                check: |file| Table::parse(file).map(drop),
            },
        }],
    },
    start: Start::Own,
    build: |parts| Box::new(Remy::new(Table::parse(&parts.values.file("table")))),
};

/// Written by `examples/remy_table.py`. Remy had no part in it.
const BY_HAND: &[u8] = include_bytes!("remy/by-hand.dna");

/// The controller (`Rat`).
pub struct Remy {
    /// None for a file that is no table, which the registry refuses.
    table: Option<Table>,
    memory: Memory,
    window: u32,
    intersend_ms: f64,
    /// The same as a rate: of packets of this size, one per `intersend_ms`.
    pacing_rate: Option<Rate>,
    packet_bits: f64,
    /// The memory lay in a box when it was last looked up.
    found: bool,
}

impl Remy {
    fn new(table: Result<Table, String>) -> Self {
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

    /// A flow begins: nothing is remembered, and the box of that says how (`Rat::reset`).
    fn reset(&mut self) {
        self.memory = Memory::default();
        self.window = 0;
        self.space(0.0);
        self.act();
    }

    /// Does what the table says. Remy ends where it says nothing; here everything stays as it is.
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

    /// Packets leave so far apart from now on.
    fn space(&mut self, intersend_ms: f64) {
        self.intersend_ms = intersend_ms;
        let bps = self.packet_bits / (intersend_ms / 1e3);
        // A float-to-integer cast saturates.
        self.pacing_rate = (intersend_ms > 0.0).then(|| Rate::from_bps((bps as u64).max(1)));
    }
}

impl Controller for Remy {
    fn on_established(&mut self, established: &Established) {
        self.packet_bits = 8.0 * f64::from(established.mss_bytes.max(1));
        self.reset();
    }

    fn on_packet_size(&mut self, mss_bytes: u32) {
        self.packet_bits = 8.0 * f64::from(mss_bytes.max(1));
        self.space(self.intersend_ms);
    }

    /// Remy's senders are switched on and off, and begin anew each time.
    fn on_send(&mut self, sent: &Sent) {
        if sent.after_idle {
            self.reset();
        }
    }

    /// Tables are made for receivers that acknowledge every packet. An ACK of more is taken for as
    /// many, evenly spaced: each packet is looked up once, whatever the receiver delays.
    fn on_ack(&mut self, ack: &AckSample) {
        let Some(rtt) = ack.rtt.filter(|_| ack.acked > 0) else { return };
        match self.memory.gaps(ack.sent_at, ack.now, ack.acked) {
            None => {
                self.memory.begin(rtt);
                self.act();
            }
            Some(gaps) => {
                // Remy's sender sees a hole as soon as a packet beyond it is acknowledged, this one
                // when loss detection has.
                let mut lost = ack.lost;
                for _ in 0..ack.acked {
                    self.memory.update(gaps, rtt, std::mem::take(&mut lost));
                    self.act();
                }
            }
        }
    }

    /// Losses are none of the signals.
    fn on_congestion(&mut self, _congestion: &Congestion) {}

    fn on_undo(&mut self, _now: Time) {}

    /// What a transport sets after a timeout is what the next action starts from.
    fn set_cwnd(&mut self, cwnd: u32) {
        self.window = cwnd.max(1);
    }

    /// A window of 0 would leave nothing to wait for.
    fn cwnd(&self) -> u32 {
        self.window.max(1)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_rate
    }

    /// Spacing is between packets.
    fn burst_limit(&self) -> Option<u32> {
        Some(1)
    }

    fn recovery_owner(&self) -> RecoveryOwner {
        RecoveryOwner::Controller
    }

    fn mode(&self) -> &'static str {
        if self.found { "in_table" } else { "beyond_table" }
    }

    fn observe(&self, observer: &mut dyn Observer) {
        for (name, &value) in memory::NAMES.into_iter().zip(self.memory.values()) {
            observer.value(name, value);
        }
        observer.value("intersend_ms", self.intersend_ms);
    }
}
