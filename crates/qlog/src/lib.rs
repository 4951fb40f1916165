//! Writer of qlog, the event log of a QUIC endpoint.
//!
//! The format is the one that qvis reads: version 0.3 as JSON text sequence (JSON-SEQ, RFC 7464),
//! with events of the categories `transport` and `recovery` (draft-ietf-quic-qlog-main-schema-03,
//! draft-ietf-quic-qlog-quic-events-03). Times are times of the run in ms.

mod sender_state;

use std::fmt::{Display, Write};

use jostle_units::{Span, Time};
pub use sender_state::SenderState;

/// Record separator that starts each record.
const SEPARATOR: char = '\x1e';

/// A log, whose text is taken piece by piece.
pub struct Log {
    text: String,
    now: Time,
    /// State that was written last.
    state: SenderState,
}

impl Log {
    /// Creates the log of an endpoint with this name that is a client or a server.
    pub fn new(title: &str, name: &str, is_client: bool) -> Self {
        let mut text = String::new();
        let kind = if is_client { "client" } else { "server" };
        text.push(SEPARATOR);
        text.push_str(r#"{"qlog_version":"0.3","qlog_format":"JSON-SEQ","title":"#);
        put_string(&mut text, title);
        text.push_str(r#","trace":{"vantage_point":{"name":"#);
        put_string(&mut text, name);
        // Writing to a string does not fail. The same holds below.
        let _ = writeln!(
            text,
            r#","type":"{kind}"}},"common_fields":{{"protocol_type":["QUIC"],"time_format":"relative","reference_time":0}}}}}}"#
        );
        Self { text, now: Time::ZERO, state: SenderState::default() }
    }

    /// Sets the time of the following events.
    pub const fn at(&mut self, now: Time) {
        self.now = now;
    }

    /// Returns the records since the text was cleared last. It is also where the value of a member
    /// can be written.
    pub const fn text(&mut self) -> &mut String {
        &mut self.text
    }

    /// Begins an event. The members of its data follow.
    pub fn begin(&mut self, name: &str) {
        let ns = self.now.as_ns();
        let (ms, rest) = (ns / 1_000_000, ns % 1_000_000);
        self.text.push(SEPARATOR);
        let _ = write!(self.text, r#"{{"time":{ms}.{rest:06},"name":"{name}","data":{{"#);
    }

    /// Ends an event.
    pub fn end(&mut self) {
        self.text.push_str("}}\n");
    }

    /// Writes `"key":` and a value that is valid JSON, with a comma before unless it is the first
    /// member.
    pub fn member(&mut self, key: &str, value: impl Display) {
        let comma = if self.text.ends_with('{') { "" } else { "," };
        let _ = write!(self.text, r#"{comma}"{key}":{value}"#);
    }

    /// Logs the changes of the sender's state, and an RTT sample.
    pub fn state(&mut self, state: &SenderState, latest: Option<Span>) {
        if latest.is_some() || !state.has_same_metrics(&self.state) {
            self.metrics(state, latest);
        }
        if state.mode != self.state.mode {
            self.begin("recovery:congestion_state_updated");
            let old = self.state.mode;
            if !old.is_empty() {
                self.member("old", format_args!(r#""{old}""#));
            }
            self.member("new", format_args!(r#""{}""#, state.mode));
            self.end();
        }
        if state.datagram_bytes != self.state.datagram_bytes {
            self.begin("connectivity:mtu_updated");
            if self.state.datagram_bytes > 0 {
                self.member("old", self.state.datagram_bytes);
            }
            self.member("new", state.datagram_bytes);
            self.end();
        }
        self.state = *state;
    }

    /// Logs the metrics that have changed.
    fn metrics(&mut self, now: &SenderState, latest: Option<Span>) {
        let before = self.state;
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
    fn changes_of_the_state_are_logged_once() {
        let mut log = Log::new("one", "sender", true);
        let first = log.text().clone();
        assert!(first.starts_with("\u{1e}{\"qlog_version\":\"0.3\"") && first.ends_with("}}}\n"));
        log.text().clear();
        log.at(Time::from_ns(2_500_000));
        let state = SenderState {
            srtt: Span::from_ms(20),
            cwnd_bytes: 12_000,
            mode: "slow_start",
            datagram_bytes: 1_200,
            ..SenderState::default()
        };
        log.state(&state, Some(Span::from_ms(21)));
        log.state(&state, None);
        log.state(&SenderState { mode: "recovery", ..state }, None);
        let event = |name, data| {
            format!("\u{1e}{{\"time\":2.500000,\"name\":\"{name}\",\"data\":{data}}}\n")
        };
        let metrics = r#"{"smoothed_rtt":20,"latest_rtt":21,"congestion_window":12000}"#;
        assert_eq!(
            *log.text(),
            event("recovery:metrics_updated", metrics)
                + &event("recovery:congestion_state_updated", r#"{"new":"slow_start"}"#)
                + &event("connectivity:mtu_updated", r#"{"new":1200}"#)
                + &event(
                    "recovery:congestion_state_updated",
                    r#"{"old":"slow_start","new":"recovery"}"#
                )
        );
    }
}
