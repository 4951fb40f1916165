//! The slow application at a flow's receiver, with its timer.

use jostle_run_spec::ReaderSpec;
use jostle_traffic::Reader;
use jostle_units::{ConnectionId, Time};

use crate::event_queue::{Event, EventQueue, Timer};

/// A receiving application that reads later than data arrive.
#[derive(Debug)]
pub(crate) struct SlowReader {
    reader: Reader,
    timer: Timer,
}

impl SlowReader {
    pub fn new(spec: &ReaderSpec) -> Self {
        Self { reader: Reader::new(spec), timer: Timer::default() }
    }

    /// Returns how many of `unread_bytes` it reads now. If it reads them later, arms the timer.
    pub fn read(
        &mut self,
        now: Time,
        unread_bytes: u64,
        connection: ConnectionId,
        agenda: &mut EventQueue,
    ) -> Option<u64> {
        if unread_bytes == 0 {
            return None;
        }
        let at = self.reader.next_read(now);
        if at > now {
            self.timer.arm(at, agenda, Event::Reading(connection));
            return None;
        }
        let bytes = unread_bytes.min(self.reader.read_bytes());
        self.reader.on_read(now, bytes);
        Some(bytes)
    }

    /// Handles an event of the timer. Returns whether to read.
    pub fn expires(&mut self, now: Time) -> bool {
        self.timer.expires(now)
    }
}
