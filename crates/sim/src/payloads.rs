//! What is in the datagrams that are on their way: a packet of the network is small and copied often,
//! so that it carries the place of its payload here.

/// Payloads by place. Buffers of what has arrived or was dropped are used again.
#[derive(Debug, Default)]
pub(crate) struct Payloads {
    places: Vec<Vec<u8>>,
    free: Vec<u32>,
}

impl Payloads {
    /// Keeps a copy of `payload`: its place, until that is given back.
    pub fn keep(&mut self, payload: &[u8]) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Vec::new());
            self.places.len() as u32 - 1
        });
        if let Some(kept) = self.places.get_mut(place as usize) {
            kept.clear();
            kept.extend_from_slice(payload);
        }
        place
    }

    /// The payload at a place.
    pub fn get(&self, place: u32) -> &[u8] {
        self.places.get(place as usize).map_or(&[], Vec::as_slice)
    }

    /// The payload at a place is needed no more.
    pub fn give_back(&mut self, place: u32) {
        debug_assert!(!self.free.contains(&place) || self.free.len() > 64, "given back twice");
        self.free.push(place);
    }

    /// Payloads that are on their way.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again() {
        let mut payloads = Payloads::default();
        let one = payloads.keep(b"one");
        let two = payloads.keep(b"second");
        assert_eq!((payloads.get(one), payloads.get(two)), (&b"one"[..], &b"second"[..]));
        payloads.give_back(one);
        assert_eq!(payloads.kept(), 1);
        assert_eq!(payloads.keep(b"3"), one);
        assert_eq!(payloads.get(one), b"3");
        assert_eq!(payloads.kept(), 2);
    }
}
