//! A direct-mapped table of peers.

use alloc::collections::BTreeMap;

use jostle_units::{Span, Time};

/// IPv4 address of a peer.
pub type PeerAddress = u32;

/// A table with one entry per slot. The slot of a peer is its address modulo the number of slots.
/// Peers that map to the same slot collide.
#[derive(Clone, Debug)]
pub struct PeerTable<T> {
    /// Occupied slots by number.
    slots: BTreeMap<u32, Entry<T>>,
}

#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    peer: PeerAddress,
    saved_at: Time,
    value: T,
}

/// Result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerLookup<T> {
    /// The peer's entry.
    Hit(T),
    /// An empty slot.
    Miss,
    /// Another peer's entry, which was removed.
    Collision,
    /// The peer's entry, which is too old.
    Stale,
}

/// Size and maximum age of a table.
#[derive(Clone, Copy, Debug)]
pub struct PeerTableConfig {
    /// Number of slots.
    pub slots: u32,
    /// Maximum age of an entry; zero for no limit.
    pub max_age: Span,
}

impl<T> Default for PeerTable<T> {
    fn default() -> Self {
        Self { slots: BTreeMap::new() }
    }
}

impl<T: Copy> PeerTable<T> {
    /// Returns the entry of `peer`; removes the entry of another peer from its slot.
    pub fn look_up(
        &mut self,
        usage: PeerTableConfig,
        peer: PeerAddress,
        now: Time,
    ) -> PeerLookup<T> {
        let slot = peer % usage.slots.max(1);
        match self.slots.get(&slot) {
            None => PeerLookup::Miss,
            Some(entry) if entry.peer != peer => {
                self.slots.remove(&slot);
                PeerLookup::Collision
            }
            Some(entry) => {
                let age = now.since(entry.saved_at);
                if !usage.max_age.is_zero() && age > usage.max_age {
                    return PeerLookup::Stale;
                }
                PeerLookup::Hit(entry.value)
            }
        }
    }

    /// Looks up `peer` like [`look_up`](Self::look_up) and removes its entry. For a hit, also
    /// returns the value and the time at which it was saved.
    pub fn take(
        &mut self,
        usage: PeerTableConfig,
        peer: PeerAddress,
        now: Time,
    ) -> (PeerLookup<T>, Option<(T, Time)>) {
        let found = self.look_up(usage, peer, now);
        let taken = match found {
            PeerLookup::Hit(_) | PeerLookup::Stale => {
                self.slots.remove(&(peer % usage.slots.max(1)))
            }
            PeerLookup::Miss | PeerLookup::Collision => None,
        };
        (found, found.hit().and(taken).map(|entry| (entry.value, entry.saved_at)))
    }

    /// Stores `value` for `peer`, in place of any entry in its slot.
    pub fn save(&mut self, usage: PeerTableConfig, peer: PeerAddress, now: Time, value: T) {
        let slot = peer % usage.slots.max(1);
        self.slots.insert(slot, Entry { peer, saved_at: now, value });
    }
}

impl<T> PeerLookup<T> {
    /// Returns the peer's entry if it is valid.
    pub fn hit(self) -> Option<T> {
        match self {
            Self::Hit(value) => Some(value),
            _ => None,
        }
    }

    /// Returns a number for plots: 1 for a hit, 2 for a miss, 3 for a collision, 4 for a stale
    /// entry.
    pub fn number(&self) -> f64 {
        match self {
            Self::Hit(_) => 1.0,
            Self::Miss => 2.0,
            Self::Collision => 3.0,
            Self::Stale => 4.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USE: PeerTableConfig = PeerTableConfig { slots: 4, max_age: Span::from_secs(10) };

    fn at(s: u64) -> Time {
        Time::ZERO + Span::from_secs(s)
    }

    #[test]
    fn a_peer_hits_its_own_entry_until_it_is_stale() {
        let mut table = PeerTable::default();
        assert_eq!(table.look_up(USE, 5, at(0)), PeerLookup::Miss);
        table.save(USE, 5, at(0), "five");
        assert_eq!(table.look_up(USE, 5, at(10)), PeerLookup::Hit("five"));
        assert_eq!(table.look_up(USE, 5, at(11)), PeerLookup::Stale);
        let forever = PeerTableConfig { max_age: Span::ZERO, ..USE };
        assert_eq!(table.look_up(forever, 5, at(1_000_000)), PeerLookup::Hit("five"));
    }

    #[test]
    fn a_taken_entry_is_gone() {
        let mut table = PeerTable::default();
        assert_eq!(table.take(USE, 5, at(0)), (PeerLookup::Miss, None));
        table.save(USE, 5, at(0), "five");
        assert_eq!(table.take(USE, 5, at(3)), (PeerLookup::Hit("five"), Some(("five", at(0)))));
        assert_eq!(table.take(USE, 5, at(3)), (PeerLookup::Miss, None));
        table.save(USE, 5, at(0), "five");
        assert_eq!(table.take(USE, 5, at(11)), (PeerLookup::Stale, None));
        assert_eq!(table.look_up(USE, 5, at(11)), PeerLookup::Miss);
        table.save(USE, 9, at(0), "nine");
        assert_eq!(table.take(USE, 5, at(1)), (PeerLookup::Collision, None));
    }

    #[test]
    fn plots_number_the_results() {
        let results =
            [PeerLookup::Hit(7), PeerLookup::Miss, PeerLookup::Collision, PeerLookup::Stale];
        assert_eq!(results.map(|result| result.number()), [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn a_collision_empties_the_slot() {
        let mut table = PeerTable::default();
        table.save(USE, 5, at(0), "five");
        assert_eq!(table.look_up(USE, 9, at(1)), PeerLookup::Collision);
        assert_eq!(table.look_up(USE, 9, at(1)), PeerLookup::Miss);
        assert_eq!(table.look_up(USE, 5, at(1)), PeerLookup::Miss);
        table.save(USE, 9, at(2), "nine");
        table.save(USE, 6, at(2), "six");
        assert_eq!(table.look_up(USE, 9, at(3)), PeerLookup::Hit("nine"));
    }
}
