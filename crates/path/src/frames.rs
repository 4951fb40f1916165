//! Frames: packets that a link sends together once it has the medium.
//!
//! Wi-Fi's A-MPDUs (IEEE 802.11-2016 §9.7) and the grants of cable and satellite networks have in
//! common that a station waits for the medium, then sends much of what waits at once, and that the
//! other side hands it on at once. So packets that came one by one leave in bursts, data and ACKs
//! alike, and a packet that comes alone pays for the wait by itself.

use jostle_units::{Span, Stream};

use crate::Packet;
use crate::delay::Quantiles;

/// What a link sends at once, and how long it waits for the medium before.
pub struct Frames<B> {
    most_packets: usize,
    most_bytes: u64,
    contention: Quantiles,
    random: Stream,
    /// The medium is the link's at the next service.
    has_won: bool,
    /// The frame that is put together: empty between two services.
    pub(crate) packets: Vec<Packet<B>>,
    bytes: u64,
}

impl<B: Copy> Frames<B> {
    /// Frames of up to `most_packets` and `most_bytes`, but of one packet at least. Each waits for a
    /// time drawn anew from `contention`.
    pub fn new(most_packets: u32, most_bytes: u64, contention: Quantiles, random: Stream) -> Self {
        let most_packets = most_packets as usize;
        let packets = Vec::with_capacity(most_packets);
        Self { most_packets, most_bytes, contention, random, has_won: false, packets, bytes: 0 }
    }

    /// Something waits: how long until the medium is the link's; none if it is already.
    pub(crate) fn contend(&mut self) -> Option<Span> {
        self.has_won = !self.has_won;
        self.has_won.then(|| self.contention.value(self.random.uniform()))
    }

    /// The link has nothing to send: the medium is for others.
    pub(crate) fn give_up(&mut self) {
        self.has_won = false;
    }

    /// Whether one more packet goes into the frame, if it is as large as the last one: nobody looks at
    /// the next before a queue gives it away.
    pub(crate) fn has_room(&self) -> bool {
        match self.packets.last() {
            None => true,
            Some(last) => {
                let larger = self.bytes + u64::from(last.size_bytes);
                self.packets.len() < self.most_packets && larger <= self.most_bytes
            }
        }
    }

    /// A packet goes into the frame.
    pub(crate) fn add(&mut self, packet: Packet<B>) {
        self.bytes += u64::from(packet.size_bytes);
        self.packets.push(packet);
    }

    /// The frame is sent: the next one is empty.
    pub(crate) fn begin(&mut self) {
        self.packets.clear();
        self.bytes = 0;
    }
}
