//! The packets of a file as both passes see them: out of their encapsulations, reassembled, in time
//! order and each once.

use std::collections::BTreeMap;

use crate::capture_file::Packets;
use crate::copies::CopyFilter;
use crate::encapsulation::{Encapsulation, UnreadKind};
use crate::error::Error;
use crate::fragments::Reassembly;
use crate::packet::{self, Decoded, Packet};

/// Number of packets among which the order is corrected.
pub(crate) const SORTED_PACKETS: usize = 1 << 16;
/// Maximum number of kinds of unread packets that are distinguished.
const KINDS_MAX: usize = 64;
/// Kinds that a note names.
const KINDS_NAMED: usize = 4;

/// Properties of a file that the first pass finds out and the second pass applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamOptions {
    /// Whether packets are sorted by time.
    pub sorts: bool,
    /// Whether equal packets are copies; see [`CopyFilter`].
    pub has_copies: bool,
    /// Whether the file was found to be without copies.
    pub is_without_copies: bool,
}

impl StreamOptions {
    /// Returns whether a stream with these options gives other packets.
    pub fn differs(self, other: Self) -> bool {
        (self.sorts, self.has_copies) != (other.sorts, other.has_copies)
    }
}

/// Counters of a stream, for notes.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamCounts {
    pub packets: u64,
    /// Packets that are not measured, by kind.
    unread: BTreeMap<UnreadKind, u64>,
    unread_others: u64,
    /// Measured packets in encapsulations that add an IP header.
    tunnelled: BTreeMap<Encapsulation, u64>,
    /// Packets whose IP header states more bytes than the frame has.
    beyond_frame: u64,
    /// Packets that are earlier than packets before them.
    pub disordered: u64,
    /// Packets that are too late to be sorted, and by how much at most.
    late: u64,
    late_max_ns: u64,
    pub copies: u64,
    incomplete: u64,
}

/// Iterator over the TCP and UDP packets of a file.
pub(crate) struct PacketStream {
    pub frames: Packets,
    fragments: Reassembly,
    copies: CopyFilter,
    options: StreamOptions,
    sorted: BTreeMap<(u64, u64), Packet>,
    /// The packet that was read last.
    current: Packet,
    newest_ns: u64,
    returned_ns: u64,
    is_over: bool,
    pub counts: StreamCounts,
}

impl PacketStream {
    pub fn new(frames: Packets, options: StreamOptions) -> Self {
        Self {
            frames,
            fragments: Reassembly::default(),
            copies: CopyFilter::new(options.has_copies),
            options,
            sorted: BTreeMap::new(),
            current: Packet::NONE,
            newest_ns: 0,
            returned_ns: 0,
            is_over: false,
            counts: StreamCounts::default(),
        }
    }

    /// Returns the next packet and its time. `None` at the end of the file.
    pub fn next(&mut self) -> Result<Option<(u64, &Packet)>, Error> {
        let has_no_copies = self.options.is_without_copies;
        loop {
            let next = if self.options.sorts { self.in_order()? } else { self.as_captured()? };
            let Some(time_ns) = next else {
                self.counts.incomplete = self.fragments.incomplete();
                self.counts.copies = self.copies.count() + self.fragments.copies;
                return Ok(None);
            };
            // A capture by jostle has each packet once.
            if has_no_copies
                || self.frames.about.has_own_clock
                || !self.copies.is_copy(time_ns, &self.current)
            {
                return Ok(Some((time_ns, &self.current)));
            }
        }
    }

    /// Returns whether packets turned out not to be in time order, and are not sorted.
    pub fn has_to_sort(&self) -> bool {
        self.counts.disordered > 0 && !self.options.sorts
    }

    /// Returns the options with which the file has to be read.
    pub fn needed_options(&self) -> StreamOptions {
        if self.has_to_sort() {
            return StreamOptions { sorts: true, ..self.options };
        }
        StreamOptions {
            has_copies: self.copies.removes_likely(),
            is_without_copies: self.copies.count() == 0,
            ..self.options
        }
    }

    /// Makes the earliest of the next packets the current one. Returns its time.
    fn in_order(&mut self) -> Result<Option<u64>, Error> {
        while !self.is_over && self.sorted.len() <= SORTED_PACKETS {
            match self.as_captured()? {
                Some(time_ns) => {
                    self.sorted.insert((time_ns, self.counts.packets), self.current);
                }
                None => self.is_over = true,
            }
        }
        let Some(((time_ns, _), packet)) = self.sorted.pop_first() else { return Ok(None) };
        self.current = packet;
        if time_ns < self.returned_ns {
            self.counts.late += 1;
            self.counts.late_max_ns = self.counts.late_max_ns.max(self.returned_ns - time_ns);
        }
        self.returned_ns = self.returned_ns.max(time_ns);
        Ok(Some(time_ns))
    }

    /// Makes the next packet the current one. Returns its time.
    #[inline]
    fn as_captured(&mut self) -> Result<Option<u64>, Error> {
        while let Some(frame) = self.frames.next()? {
            let time_ns = frame.time_ns;
            self.counts.packets += 1;
            match packet::read(&frame, &mut self.current) {
                Ok(Decoded::Packet) => {}
                Ok(Decoded::Fragment(fragment)) => {
                    let Some(packet) = self.fragments.add(time_ns, &fragment) else { continue };
                    self.current = packet;
                }
                Ok(Decoded::Tunnelled(key)) => self.fragments.ignore(time_ns, &key),
                Ok(Decoded::Continuation) => continue,
                Err(kind) => {
                    self.counts.add_unread(kind);
                    continue;
                }
            }
            let packet = &self.current;
            self.counts.disordered += u64::from(time_ns < self.newest_ns);
            self.newest_ns = self.newest_ns.max(time_ns);
            self.counts.beyond_frame += u64::from(packet.is_beyond_frame);
            if let Some(inside) = packet.inside.filter(|inside| inside.has_addresses()) {
                *self.counts.tunnelled.entry(inside).or_default() += 1;
            }
            return Ok(Some(time_ns));
        }
        Ok(None)
    }
}

impl StreamCounts {
    fn add_unread(&mut self, kind: UnreadKind) {
        if self.unread.len() >= KINDS_MAX && !self.unread.contains_key(&kind) {
            self.unread_others += 1;
        } else {
            *self.unread.entry(kind).or_default() += 1;
        }
    }

    /// Returns the number of packets that are not measured, and their kinds. `None` if there are none.
    pub fn unread(&self) -> Option<(u64, String)> {
        let mut kinds: Vec<_> = self.unread.iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let total = self.unread.values().sum::<u64>() + self.unread_others;
        let named = kinds.iter().take(KINDS_NAMED);
        let mut parts: Vec<_> = named.map(|(kind, count)| format!("{count} {kind}")).collect();
        let rest = total - kinds.iter().take(KINDS_NAMED).map(|(_, count)| **count).sum::<u64>();
        if rest > 0 {
            parts.push(format!("{rest} of other kinds"));
        }
        (total > 0).then(|| (total, parts.join(", ")))
    }

    /// Notes for the user about a file.
    pub fn notes(&self, name: &str) -> Vec<String> {
        let mut notes = Vec::new();
        let all = self.packets;
        notes.extend(self.unread().map(|(count, kinds)| {
            format!("{name}: {count} of {all} packets are not TCP or UDP over IP: {kinds}")
        }));
        for (inside, count) in &self.tunnelled {
            notes.push(format!(
                "{name}: {count} of {all} packets are inside {inside}: the inner packets are measured"
            ));
        }
        if self.copies > 0 {
            let copies = self.copies;
            notes.push(format!(
                "{name}: {copies} of {all} packets are copies of others, as with `-i any` or a mirror \
                 port: each packet is counted once"
            ));
        }
        if self.disordered > 0 && self.late == 0 {
            let count = self.disordered;
            notes.push(format!("{name}: {count} packets are not in time order: they are sorted"));
        }
        if self.late > 0 {
            let (count, s) = (self.late, self.late_max_ns as f64 / 1e9);
            notes.push(format!(
                "{name}: {count} packets are up to {s} s out of order, more than the \
                 {SORTED_PACKETS} packets that are sorted: times are wrong; `reordercap` sorts the file"
            ));
        }
        if self.beyond_frame > 0 {
            let count = self.beyond_frame;
            notes.push(format!(
                "{name}: {count} of {all} packets are shorter than their IP header states: the bytes \
                 of the frame count"
            ));
        }
        if self.incomplete > 0 {
            let count = self.incomplete;
            notes.push(format!(
                "{name}: fragments of {count} datagrams are missing: these are not measured"
            ));
        }
        notes
    }
}
