//! A direct-mapped table of peers.

use std::collections::BTreeMap;

use jostle_units::{Span, Time};

/// Address of a peer, as an IPv4 one.
pub type Peer = u32;

/// One entry per slot, and the slot of a peer is its address modulo their number: what maps to the
/// same slot collides.
#[derive(Clone, Debug)]
pub(super) struct Table<T> {
    /// Slots that are not empty, in order of their numbers.
    slots: BTreeMap<u32, Entry<T>>,
}

#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    peer: Peer,
    saved_at: Time,
    value: T,
}

/// What a look into the table found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found<T> {
    /// The peer's entry.
    Hit(T),
    /// An empty slot.
    Miss,
    /// Another peer's entry, which has been taken out.
    Collision,
    /// The peer's entry, but too old.
    Stale,
}

/// How a layer uses its table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub slots: u32,
    /// Entries that are older do not count; zero for no limit.
    pub max_age: Span,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { slots: BTreeMap::new() }
    }
}

impl<T: Copy> Table<T> {
    pub fn look_up(&mut self, usage: Use, peer: Peer, now: Time) -> Found<T> {
        let slot = peer % usage.slots.max(1);
        match self.slots.get(&slot) {
            None => Found::Miss,
            Some(entry) if entry.peer != peer => {
                self.slots.remove(&slot);
                Found::Collision
            }
            Some(entry) => {
                let age = now.since(entry.saved_at);
                if !usage.max_age.is_zero() && age > usage.max_age {
                    return Found::Stale;
                }
                Found::Hit(entry.value)
            }
        }
    }

    /// What [`look_up`](Self::look_up) finds, and a hit with the time at which it was saved; nothing of
    /// the peer remains.
    pub fn take(&mut self, usage: Use, peer: Peer, now: Time) -> (Found<T>, Option<(T, Time)>) {
        let found = self.look_up(usage, peer, now);
        let taken = match found {
            Found::Hit(_) | Found::Stale => self.slots.remove(&(peer % usage.slots.max(1))),
            Found::Miss | Found::Collision => None,
        };
        (found, found.hit().and(taken).map(|entry| (entry.value, entry.saved_at)))
    }

    pub fn save(&mut self, usage: Use, peer: Peer, now: Time, value: T) {
        let slot = peer % usage.slots.max(1);
        self.slots.insert(slot, Entry { peer, saved_at: now, value });
    }
}

impl<T> Found<T> {
    /// The peer's entry, if it counts.
    pub fn hit(self) -> Option<T> {
        match self {
            Self::Hit(value) => Some(value),
            _ => None,
        }
    }

    /// A number for plots: 1 for a hit, 2 for a miss, 3 for a collision, 4 for a stale entry.
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

    const USE: Use = Use { slots: 4, max_age: Span::from_secs(10) };

    fn at(s: u64) -> Time {
        Time::ZERO + Span::from_secs(s)
    }

    #[test]
    fn a_peer_hits_its_own_entry_until_it_is_stale() {
        let mut table = Table::default();
        assert_eq!(table.look_up(USE, 5, at(0)), Found::Miss);
        table.save(USE, 5, at(0), "five");
        assert_eq!(table.look_up(USE, 5, at(10)), Found::Hit("five"));
        assert_eq!(table.look_up(USE, 5, at(11)), Found::Stale);
        let forever = Use { max_age: Span::ZERO, ..USE };
        assert_eq!(table.look_up(forever, 5, at(1_000_000)), Found::Hit("five"));
    }

    #[test]
    fn a_collision_empties_the_slot() {
        let mut table = Table::default();
        table.save(USE, 5, at(0), "five");
        assert_eq!(table.look_up(USE, 9, at(1)), Found::Collision);
        assert_eq!(table.look_up(USE, 9, at(1)), Found::Miss);
        assert_eq!(table.look_up(USE, 5, at(1)), Found::Miss);
        table.save(USE, 9, at(2), "nine");
        table.save(USE, 6, at(2), "six");
        assert_eq!(table.look_up(USE, 9, at(3)), Found::Hit("nine"));
    }
}
