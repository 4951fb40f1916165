//! Duplicate detection at the receiver of datagrams.

/// Numbers of the datagrams that a receiver has, to recognise duplicates.
#[derive(Debug, Default)]
pub(crate) struct ReceivedNumbers {
    bits: Vec<u64>,
}

impl ReceivedNumbers {
    /// Adds `number`. Returns whether it is new.
    pub fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        let is_new = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_new_once() {
        let mut received = ReceivedNumbers::default();
        for (number, is_new) in
            [(0, true), (64, true), (0, false), (63, true), (64, false), (1, true)]
        {
            assert_eq!(received.insert(number), is_new, "{number}");
        }
    }
}
