//! Captures of Microsoft Network Monitor, versions 1 and 2.
//!
//! Records follow the file header, a table of their offsets follows the records. A record of version
//! 2 ends with its network type. It is moved in front of the frame, where the first header is looked
//! for.

use std::io::{self, Read};

use crate::read_most::{PACKET_MAX_BYTES, read_most};

/// Link type of the converted packets, which no other program uses.
pub(crate) const LINK_TYPE: u32 = 0x7f00;
/// First bytes of the two versions.
pub(crate) const MAGIC: [&[u8]; 2] = [b"RTSS", b"GMBU"];
/// Bytes of the network type in front of each frame.
pub(crate) const TYPE_BYTES: usize = 2;
const HEADER_BYTES: usize = 128;
/// Network type of Ethernet.
const ETHERNET: u8 = 1;

/// State of a conversion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NetMon {
    has_version_2: bool,
    /// Bytes behind the frame of a record.
    trailer_bytes: usize,
    network: u16,
    start_us: u64,
    /// Offset of the next record, and end of the records.
    at: u64,
    end: u64,
    records_left: u64,
}

/// A record, or why there is none.
pub(crate) enum Record {
    /// Seconds, microseconds and length on the wire. The buffer contains the frame.
    Frame([u32; 3]),
    /// The records end where the table begins.
    End,
    CutOff,
    Damaged,
}

impl NetMon {
    /// Reads the file header. `None` if it is not complete.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut bytes = [0; HEADER_BYTES];
        if read_most(from, &mut bytes)? < HEADER_BYTES {
            return Ok(None);
        }
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u64::from(half(at)) | u64::from(half(at + 2)) << 16;
        let has_version_2 = bytes.starts_with(MAGIC[1]);
        // Minor and major version, network type, time of the start without its weekday.
        let trailer_bytes = match (has_version_2, bytes[4]) {
            (false, _) | (true, 0) => 0,
            (true, 1) => 2,
            (true, 2) => 6,
            (true, _) => 15,
        };
        let [year, month, day] = [8, 10, 14].map(|at| i64::from(half(at)));
        let [hour, minute, second, ms] = [16, 18, 20, 22].map(|at| i64::from(half(at)));
        let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
        Ok(Some(Self {
            has_version_2,
            trailer_bytes,
            network: half(6),
            start_us: u64::try_from(seconds * 1_000_000 + ms * 1_000).unwrap_or(0),
            at: HEADER_BYTES as u64,
            end: word(24),
            records_left: word(28) / 4,
        }))
    }

    /// Reads a record. Writes its network type, in big-endian order, and its frame into an empty
    /// buffer.
    pub fn record(&mut self, from: &mut impl Read, into: &mut Vec<u8>) -> io::Result<Record> {
        if self.at >= self.end || self.records_left == 0 {
            // Records that are not in the order of the file would be missing.
            let is_complete = self.at == self.end && self.records_left == 0;
            return Ok(if is_complete { Record::End } else { Record::Damaged });
        }
        let mut header = [0; 16];
        let header = if self.has_version_2 { &mut header[..] } else { &mut header[..8] };
        if read_most(from, header)? < header.len() {
            return Ok(Record::CutOff);
        }
        let number = |bytes: &[u8]| bytes.iter().rfold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let (after_us, size, kept) = if self.has_version_2 {
            (number(&header[..8]), number(&header[8..12]), number(&header[12..]))
        } else {
            (number(&header[..4]) * 1_000, number(&header[4..6]), number(&header[6..]))
        };
        self.at += header.len() as u64 + kept + self.trailer_bytes as u64;
        self.records_left -= 1;
        if kept > u64::from(PACKET_MAX_BYTES) || self.at > self.end {
            return Ok(Record::Damaged);
        }
        into.extend(self.network.to_be_bytes());
        into.resize(TYPE_BYTES + kept as usize, 0);
        let mut trailer = [0; 15];
        let trailer = &mut trailer[..self.trailer_bytes];
        if read_most(from, &mut into[TYPE_BYTES..])? < kept as usize
            || read_most(from, trailer)? < trailer.len()
        {
            return Ok(Record::CutOff);
        }
        if let Some([low, high]) = trailer.first_chunk() {
            (into[0], into[1]) = (*high, *low);
        }
        // Some captures of VPNs have Ethernet with the network type 0.
        if into[..TYPE_BYTES] == [0, 0] {
            into[1] = ETHERNET;
        }
        let at_us = self.start_us.saturating_add(after_us);
        let seconds = u32::try_from(at_us / 1_000_000).unwrap_or(u32::MAX);
        Ok(Record::Frame([seconds, (at_us % 1_000_000) as u32, size.min(1 << 31) as u32]))
    }
}

/// Returns the days from 1970 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is their last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469
}

#[cfg(test)]
mod tests {
    use super::days;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let dates = [(1970, 1, 1), (1970, 3, 1), (2000, 2, 29), (2020, 2, 7), (2026, 11, 27)];
        let found = dates.map(|(year, month, day)| days(year, month, day));
        // `date -d DATE +%s` ÷ 86,400.
        assert_eq!(found, [0, 59, 11_016, 18_299, 20_784]);
    }
}
