//! Times of the TCP handshake in a capture.

use crate::packet::Segment;

/// Times of the TCP handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HandshakeTimes {
    syn_ns: Option<u64>,
    last_syn_ns: u64,
    syn_ack_ns: Option<u64>,
    pub took_ns: Option<u64>,
    /// RTT between the capture point and the sender.
    pub sender_side_ns: Option<u64>,
}

impl HandshakeTimes {
    /// Returns whether the capture includes a segment of the handshake.
    pub fn has_handshake(&self) -> bool {
        self.syn_ns.is_some() || self.syn_ack_ns.is_some()
    }

    /// Updates the times with a segment of either direction.
    pub fn see(&mut self, segment: &Segment, now_ns: u64, is_from_sender: bool) {
        if segment.syn && segment.ack {
            // The first answer to the last SYN. Of the sender, it is the answer.
            if self.syn_ack_ns.is_none() && is_from_sender && self.syn_ns.is_some() {
                self.sender_side_ns = Some(now_ns.saturating_sub(self.last_syn_ns));
            }
            self.syn_ack_ns = Some(now_ns);
        } else if segment.syn {
            self.syn_ns.get_or_insert(now_ns);
            self.last_syn_ns = now_ns;
        } else if let Some(syn_ack_ns) = self.syn_ack_ns
            && segment.ack
            && self.took_ns.is_none()
            && let Some(syn_ns) = self.syn_ns
        {
            self.took_ns = Some(now_ns.saturating_sub(syn_ns));
            if is_from_sender {
                self.sender_side_ns = Some(now_ns.saturating_sub(syn_ack_ns));
            }
        }
    }
}
