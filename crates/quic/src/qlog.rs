//! qlog of an endpoint, packet by packet.
//!
//! The format is the one that qvis reads: version 0.3 as JSON text sequence (JSON-SEQ, RFC 7464),
//! with events of the categories `transport` and `recovery` (draft-ietf-quic-qlog-main-schema-03,
//! draft-ietf-quic-qlog-quic-events-03). Times are times of the run in ms.

mod frames;

use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jostle_units::{Rate, Span, Time};

use crate::crypto::{EncryptionLevel, PacketInspector};
use crate::settings::{MIN_WINDOW_PACKETS, Settings};
use crate::stats::SenderState;

/// Record separator that starts each record.
const SEPARATOR: char = '\x1e';
/// Tag of AEAD_AES_128_GCM and similar algorithms (RFC 9001 §5.3).
const TAG_BYTES: usize = 16;
const LONG_HEADER: u8 = 0x80;

/// Log that an endpoint and its packet keys share.
pub(crate) struct QlogWriter(Mutex<Writer>);

struct Writer {
    text: String,
    now: Time,
    /// Metrics that were written last.
    metrics: Metrics,
    mode: &'static str,
    datagram_bytes: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Metrics {
    srtt: Span,
    min_rtt: Span,
    cwnd_bytes: u64,
    in_flight_bytes: u64,
    ssthresh_bytes: Option<u64>,
    pacing_rate: Option<Rate>,
}

impl QlogWriter {
    /// Creates the log of a client (`connects`) or a server.
    pub fn new(title: &str, connects: bool) -> Self {
        let mut text = String::new();
        let (name, kind) = if connects { ("sender", "client") } else { ("receiver", "server") };
        text.push(SEPARATOR);
        text.push_str(r#"{"qlog_version":"0.3","qlog_format":"JSON-SEQ","title":"#);
        put_string(&mut text, title);
        // Writing to a string does not fail. The same holds below.
        let _ = writeln!(
            text,
            r#","trace":{{"vantage_point":{{"name":"{name}","type":"{kind}"}},"common_fields":{{"protocol_type":["QUIC"],"time_format":"relative","reference_time":0}}}}}}"#
        );
        Self(Mutex::new(Writer {
            text,
            now: Time::ZERO,
            metrics: Metrics::default(),
            mode: "",
            datagram_bytes: 0,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the time of the following events.
    pub fn at(&self, now: Time) {
        self.lock().now = now;
    }

    /// Moves the complete records since the last call to the end of `text`.
    pub fn take(&self, text: &mut String) {
        text.push_str(&self.lock().text);
        self.lock().text.clear();
    }

    /// Logs the parameters of a new connection.
    pub fn parameters(&self, settings: &Settings, connects: bool) {
        let mut writer = self.lock();
        writer.transport_parameters(settings);
        if connects {
            writer.recovery_parameters(settings);
        }
    }

    /// Logs a lost packet.
    pub fn lost(&self, number: u64) {
        let mut writer = self.lock();
        writer.begin("recovery:packet_lost");
        let _ =
            write!(writer.text, r#""header":{{"packet_type":"1RTT","packet_number":{number}}}"#);
        writer.end();
    }

    /// Logs the changes of the sender's state.
    pub fn state(&self, state: &SenderState, latest: Option<Span>) {
        self.lock().state(state, latest);
    }
}

impl PacketInspector for QlogWriter {
    fn sealing(&self, level: EncryptionLevel, number: u64, header: &[u8], payload: &[u8]) {
        self.lock().packet("transport:packet_sent", level, number, header, payload);
    }

    fn opened(&self, level: EncryptionLevel, number: u64, header: &[u8], payload: &[u8]) {
        self.lock().packet("transport:packet_received", level, number, header, payload);
    }
}

impl Writer {
    /// Begins an event. The members of its data follow.
    fn begin(&mut self, name: &str) {
        let ns = self.now.as_ns();
        let (ms, rest) = (ns / 1_000_000, ns % 1_000_000);
        self.text.push(SEPARATOR);
        let _ = write!(self.text, r#"{{"time":{ms}.{rest:06},"name":"{name}","data":{{"#);
    }

    fn end(&mut self) {
        self.text.push_str("}}\n");
    }

    /// Writes `"key":` and a value that is valid JSON, with a comma before unless it is the first
    /// member.
    fn member(&mut self, key: &str, value: impl std::fmt::Display) {
        let comma = if self.text.ends_with('{') { "" } else { "," };
        let _ = write!(self.text, r#"{comma}"{key}":{value}"#);
    }

    fn packet(
        &mut self,
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
        self.begin(name);
        let _ = write!(
            self.text,
            r#""header":{{"packet_type":"{kind}","packet_number":{number}}},"raw":{{"length":{length},"payload_length":{}}},"frames":["#,
            payload.len()
        );
        frames::write(&mut self.text, payload);
        self.text.push(']');
        self.end();
    }

    fn transport_parameters(&mut self, settings: &Settings) {
        self.begin("transport:parameters_set");
        self.member("owner", r#""local""#);
        self.member(
            "max_ack_delay",
            settings.max_ack_delay().min(Span::from_ms(25)).as_ns() / 1_000_000,
        );
        let idle_ms = settings.idle_timeout.map_or(0, |span| span.as_ns() / 1_000_000);
        self.member("max_idle_timeout", idle_ms);
        self.member("initial_max_data", settings.connection_window_bytes);
        self.member("initial_max_stream_data_uni", settings.stream_window_bytes);
        self.end();
    }

    fn recovery_parameters(&mut self, settings: &Settings) {
        let size = u32::from(settings.datagram_bytes);
        self.begin("recovery:parameters_set");
        self.member("reordering_threshold", settings.packet_threshold);
        // RFC 9002 §6.1.2: "The RECOMMENDED time threshold (kTimeThreshold), expressed as an RTT
        // multiplier, is 9/8. The RECOMMENDED value of the timer granularity (kGranularity) is 1
        // millisecond."
        self.member("time_threshold", 1.125);
        self.member("timer_granularity", 1);
        self.member("initial_rtt", settings.initial_rtt.as_ns() / 1_000_000);
        self.member("max_datagram_size", size);
        self.member("initial_congestion_window", settings.initial_window_packets * size);
        self.member("minimum_congestion_window", MIN_WINDOW_PACKETS * size);
        self.end();
    }

    fn state(&mut self, state: &SenderState, latest: Option<Span>) {
        let now = Metrics {
            srtt: state.srtt,
            min_rtt: state.min_rtt,
            cwnd_bytes: state.cwnd_bytes,
            in_flight_bytes: state.in_flight_bytes,
            ssthresh_bytes: state.ssthresh_bytes,
            pacing_rate: state.pacing_rate,
        };
        if now != self.metrics || latest.is_some() {
            self.metrics(&now, latest);
            self.metrics = now;
        }
        if state.mode != self.mode {
            self.begin("recovery:congestion_state_updated");
            let old = std::mem::replace(&mut self.mode, state.mode);
            if !old.is_empty() {
                let _ = write!(self.text, r#""old":"{old}","#);
            }
            let _ = write!(self.text, r#""new":"{}""#, state.mode);
            self.end();
        }
        if state.datagram_bytes != self.datagram_bytes {
            self.begin("connectivity:mtu_updated");
            let old = std::mem::replace(&mut self.datagram_bytes, state.datagram_bytes);
            if old > 0 {
                self.member("old", old);
            }
            self.member("new", state.datagram_bytes);
            self.end();
        }
    }

    /// Logs the metrics that have changed.
    fn metrics(&mut self, now: &Metrics, latest: Option<Span>) {
        let before = self.metrics;
        let ms = |span: Span| span.as_ns() as f64 / 1e6;
        self.begin("recovery:metrics_updated");
        if now.min_rtt != before.min_rtt && now.min_rtt < Span::MAX {
            self.member("min_rtt", ms(now.min_rtt));
        }
        if now.srtt != before.srtt {
            self.member("smoothed_rtt", ms(now.srtt));
        }
        if let Some(latest) = latest {
            self.member("latest_rtt", ms(latest));
        }
        if now.cwnd_bytes != before.cwnd_bytes {
            self.member("congestion_window", now.cwnd_bytes);
        }
        if now.in_flight_bytes != before.in_flight_bytes {
            self.member("bytes_in_flight", now.in_flight_bytes);
        }
        if now.ssthresh_bytes != before.ssthresh_bytes
            && let Some(bytes) = now.ssthresh_bytes
        {
            self.member("ssthresh", bytes);
        }
        if now.pacing_rate != before.pacing_rate
            && let Some(rate) = now.pacing_rate
        {
            self.member("pacing_rate", rate.as_bps());
        }
        self.end();
    }
}

/// Writes a JSON string (RFC 8259 §7).
fn put_string(text: &mut String, value: &str) {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            control if control < ' ' => {
                let _ = write!(text, "\\u{:04x}", u32::from(control));
            }
            other => text.push(other),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_a_string_of_json_whatever_it_says() {
        let mut text = String::new();
        put_string(&mut text, "a \"b\" \\ c\n\u{1e}ü");
        assert_eq!(text, r#""a \"b\" \\ c\u000a\u001eü""#);
    }

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
