//! qlog of an endpoint, packet by packet.

mod frames;

use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jostle_qlog::{Log, SenderState};
use jostle_units::{Span, Time};

use crate::crypto::{EncryptionLevel, PacketInspector};
use crate::settings::{MIN_WINDOW_PACKETS, Settings};

/// Tag of AEAD_AES_128_GCM and similar algorithms (RFC 9001 §5.3).
const TAG_BYTES: usize = 16;
const LONG_HEADER: u8 = 0x80;

/// Log that an endpoint and its packet keys share.
pub(crate) struct QlogWriter(Mutex<Log>);

impl QlogWriter {
    /// Creates the log of a client (`connects`) or a server.
    pub fn new(title: &str, connects: bool) -> Self {
        let name = if connects { "sender" } else { "receiver" };
        Self(Mutex::new(Log::new(title, name, connects)))
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the time of the following events.
    pub fn at(&self, now: Time) {
        self.lock().at(now);
    }

    /// Moves the complete records since the last call to the end of `text`.
    pub fn take(&self, text: &mut String) {
        let mut log = self.lock();
        text.push_str(log.text());
        log.text().clear();
    }

    /// Logs the parameters of a new connection.
    pub fn parameters(&self, settings: &Settings, connects: bool) {
        let mut log = self.lock();
        transport_parameters(&mut log, settings);
        if connects {
            recovery_parameters(&mut log, settings);
        }
    }

    /// Logs a lost packet.
    pub fn lost(&self, number: u64) {
        let mut log = self.lock();
        log.begin("recovery:packet_lost");
        let header = format_args!(r#"{{"packet_type":"1RTT","packet_number":{number}}}"#);
        log.member("header", header);
        log.end();
    }

    /// Logs the changes of the sender's state.
    pub fn state(&self, state: &SenderState, latest: Option<Span>) {
        self.lock().state(state, latest);
    }
}

impl PacketInspector for QlogWriter {
    fn sealing(&self, level: EncryptionLevel, number: u64, header: &[u8], payload: &[u8]) {
        packet(&mut self.lock(), "transport:packet_sent", level, number, header, payload);
    }

    fn opened(&self, level: EncryptionLevel, number: u64, header: &[u8], payload: &[u8]) {
        packet(&mut self.lock(), "transport:packet_received", level, number, header, payload);
    }
}

fn packet(
    log: &mut Log,
    name: &str,
    level: EncryptionLevel,
    number: u64,
    header: &[u8],
    payload: &[u8],
) {
    let long = header.first().is_some_and(|first| first & LONG_HEADER != 0);
    let kind = match level {
        EncryptionLevel::Initial => "initial",
        EncryptionLevel::Handshake => "handshake",
        EncryptionLevel::Data if long => "0RTT",
        EncryptionLevel::Data => "1RTT",
    };
    let length = header.len() + payload.len() + TAG_BYTES;
    log.begin(name);
    let text = log.text();
    let _ = write!(
        text,
        r#""header":{{"packet_type":"{kind}","packet_number":{number}}},"raw":{{"length":{length},"payload_length":{}}},"frames":["#,
        payload.len()
    );
    frames::write(text, payload);
    text.push(']');
    log.end();
}

fn transport_parameters(log: &mut Log, settings: &Settings) {
    log.begin("transport:parameters_set");
    log.member("owner", r#""local""#);
    log.member(
        "max_ack_delay",
        settings.max_ack_delay().min(Span::from_ms(25)).as_ns() / 1_000_000,
    );
    let idle_ms = settings.idle_timeout.map_or(0, |span| span.as_ns() / 1_000_000);
    log.member("max_idle_timeout", idle_ms);
    log.member("initial_max_data", settings.connection_window_bytes);
    log.member("initial_max_stream_data_uni", settings.stream_window_bytes);
    log.end();
}

fn recovery_parameters(log: &mut Log, settings: &Settings) {
    let size = u32::from(settings.datagram_bytes);
    log.begin("recovery:parameters_set");
    log.member("reordering_threshold", settings.packet_threshold);
    // RFC 9002 §6.1.2: "The RECOMMENDED time threshold (kTimeThreshold), expressed as an RTT
    // multiplier, is 9/8. The RECOMMENDED value of the timer granularity (kGranularity) is 1
    // millisecond."
    log.member("time_threshold", 1.125);
    log.member("timer_granularity", 1);
    log.member("initial_rtt", settings.initial_rtt.as_ns() / 1_000_000);
    log.member("max_datagram_size", size);
    log.member("initial_congestion_window", settings.initial_window_packets * size);
    log.member("minimum_congestion_window", MIN_WINDOW_PACKETS * size);
    log.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_begin_with_their_separator_and_end_with_their_line() {
        let log = QlogWriter::new("one", true);
        log.at(Time::from_ns(1_002_000_003));
        // PING, and a byte of a stream.
        log.sealing(EncryptionLevel::Data, 7, &[0x40; 12], &[1, 0x0a, 2, 1, 9]);
        log.lost(7);
        let mut text = String::new();
        log.take(&mut text);
        let records: Vec<_> = text.split_terminator('\n').collect();
        assert!(records.iter().all(|record| record.starts_with("\u{1e}{")));
        assert_eq!(
            records[1],
            "\u{1e}{\"time\":1002.000003,\"name\":\"transport:packet_sent\",\"data\":{\"header\":\
             {\"packet_type\":\"1RTT\",\"packet_number\":7},\"raw\":{\"length\":33,\
             \"payload_length\":5},\"frames\":[{\"frame_type\":\"ping\"},{\"frame_type\":\"stream\",\
             \"stream_id\":2,\"offset\":0,\"length\":1}]}}"
        );
        assert_eq!(records.len(), 3);
        log.take(&mut text);
        assert_eq!(text.lines().count(), 3);
    }
}
