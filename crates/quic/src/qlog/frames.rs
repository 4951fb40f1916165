//! Frames of a packet in qlog format.

use std::fmt::Write;

use crate::frames::Reader;

/// Writes the frames of a packet, separated by commas. An unknown frame is written as `unknown` and
/// ends the list.
pub(super) fn write(text: &mut String, payload: &[u8]) {
    let mut reader = Reader::new(payload);
    let begin = text.len();
    while !reader.rest().is_empty() {
        if text.len() > begin {
            text.push(',');
        }
        let before = (text.len(), reader.rest().first().copied());
        if frame(text, &mut reader).is_none() {
            text.truncate(before.0);
            let kind = before.1.unwrap_or_default();
            let _ = write!(text, r#"{{"frame_type":"unknown","frame_type_bytes":{kind}}}"#);
            return;
        }
    }
}

/// Writes a frame that consists of integers.
fn numbers(text: &mut String, reader: &mut Reader<'_>, kind: &str, fields: &[&str]) -> Option<()> {
    let _ = write!(text, r#"{{"frame_type":"{kind}""#);
    for field in fields {
        let value = reader.varint()?;
        let _ = write!(text, r#","{field}":{value}"#);
    }
    text.push('}');
    Some(())
}

fn frame(text: &mut String, reader: &mut Reader<'_>) -> Option<()> {
    match reader.varint()? {
        0x00 => {
            let bytes = 1 + reader.skip_zeros();
            let _ = write!(text, r#"{{"frame_type":"padding","payload_length":{bytes}}}"#);
        }
        0x01 => numbers(text, reader, "ping", &[])?,
        kind @ (0x02 | 0x03) => ack(text, reader, kind == 0x03)?,
        0x04 => numbers(text, reader, "reset_stream", &["stream_id", "error_code", "final_size"])?,
        0x05 => numbers(text, reader, "stop_sending", &["stream_id", "error_code"])?,
        0x06 => {
            let (offset, length) = (reader.varint()?, reader.varint()?);
            reader.skip(length)?;
            let _ =
                write!(text, r#"{{"frame_type":"crypto","offset":{offset},"length":{length}}}"#);
        }
        0x07 => {
            let length = reader.varint()?;
            reader.skip(length)?;
            let _ = write!(
                text,
                r#"{{"frame_type":"new_token","token":{{"raw":{{"length":{length}}}}}}}"#
            );
        }
        kind @ 0x08..=0x0f => stream(text, reader, kind)?,
        0x10 => numbers(text, reader, "max_data", &["maximum"])?,
        0x11 => numbers(text, reader, "max_stream_data", &["stream_id", "maximum"])?,
        kind @ (0x12 | 0x13) => {
            let maximum = reader.varint()?;
            streams(text, "max_streams", "maximum", kind == 0x12, maximum);
        }
        0x14 => numbers(text, reader, "data_blocked", &["limit"])?,
        0x15 => numbers(text, reader, "stream_data_blocked", &["stream_id", "limit"])?,
        kind @ (0x16 | 0x17) => {
            let limit = reader.varint()?;
            streams(text, "streams_blocked", "limit", kind == 0x16, limit);
        }
        0x18 => new_connection_id(text, reader)?,
        0x19 => numbers(text, reader, "retire_connection_id", &["sequence_number"])?,
        kind @ (0x30 | 0x31) => {
            let length = if kind == 0x31 { reader.varint()? } else { reader.rest().len() as u64 };
            reader.skip(length)?;
            let _ = write!(text, r#"{{"frame_type":"datagram","length":{length}}}"#);
        }
        kind @ (0x1a | 0x1b) => {
            reader.skip(8)?;
            let name = if kind == 0x1a { "path_challenge" } else { "path_response" };
            let _ = write!(text, r#"{{"frame_type":"{name}"}}"#);
        }
        kind @ (0x1c | 0x1d) => connection_close(text, reader, kind == 0x1c)?,
        0x1e => numbers(text, reader, "handshake_done", &[])?,
        // draft-ietf-quic-ack-frequency.
        0x1f => numbers(text, reader, "immediate_ack", &[])?,
        0xaf => {
            let fields = [
                "sequence_number",
                "ack_eliciting_threshold",
                "requested_max_ack_delay",
                "reordering_threshold",
            ];
            numbers(text, reader, "ack_frequency", &fields)?;
        }
        _ => return None,
    }
    Some(())
}

/// Writes an ACK frame (RFC 9000 §19.3.1).
fn ack(text: &mut String, reader: &mut Reader<'_>, counts: bool) -> Option<()> {
    let (mut largest, delay, more) = (reader.varint()?, reader.varint()?, reader.varint()?);
    let mut length = reader.varint()?;
    // `ack_delay_exponent` is 3: units of 8 µs.
    let delay_ms = delay as f64 * 0.008;
    let _ = write!(text, r#"{{"frame_type":"ack","ack_delay":{delay_ms},"acked_ranges":["#);
    let mut smallest = largest.checked_sub(length)?;
    let _ = write!(text, "[{smallest},{largest}]");
    for _ in 0..more {
        // "smallest = previous_smallest - gap - 2"
        largest = smallest.checked_sub(reader.varint()?.checked_add(2)?)?;
        length = reader.varint()?;
        smallest = largest.checked_sub(length)?;
        let _ = write!(text, ",[{smallest},{largest}]");
    }
    text.push(']');
    if counts {
        for field in ["ect0", "ect1", "ce"] {
            let count = reader.varint()?;
            let _ = write!(text, r#","{field}":{count}"#);
        }
    }
    text.push('}');
    Some(())
}

fn stream(text: &mut String, reader: &mut Reader<'_>, kind: u64) -> Option<()> {
    let id = reader.varint()?;
    let offset = if kind & 0x04 != 0 { reader.varint()? } else { 0 };
    let length = if kind & 0x02 != 0 { reader.varint()? } else { reader.rest().len() as u64 };
    reader.skip(length)?;
    let _ = write!(
        text,
        r#"{{"frame_type":"stream","stream_id":{id},"offset":{offset},"length":{length}"#
    );
    text.push_str(if kind & 0x01 != 0 { r#","fin":true}"# } else { "}" });
    Some(())
}

fn streams(text: &mut String, kind: &str, field: &str, both_ways: bool, value: u64) {
    let ways = if both_ways { "bidirectional" } else { "unidirectional" };
    let _ = write!(text, r#"{{"frame_type":"{kind}","stream_type":"{ways}","{field}":{value}}}"#);
}

fn new_connection_id(text: &mut String, reader: &mut Reader<'_>) -> Option<()> {
    let (sequence, retire) = (reader.varint()?, reader.varint()?);
    let (&length, rest) = reader.rest().split_first()?;
    let id = rest.get(..usize::from(length))?;
    let _ = write!(
        text,
        r#"{{"frame_type":"new_connection_id","sequence_number":{sequence},"retire_prior_to":{retire},"connection_id":""#
    );
    let _ = id.iter().try_for_each(|byte| write!(text, "{byte:02x}"));
    text.push_str(r#""}"#);
    reader.skip(1 + u64::from(length) + 16)
}

fn connection_close(text: &mut String, reader: &mut Reader<'_>, transport: bool) -> Option<()> {
    let code = reader.varint()?;
    if transport {
        reader.varint()?;
    }
    let length = reader.varint()?;
    reader.skip(length)?;
    let space = if transport { "transport" } else { "application" };
    let _ = write!(
        text,
        r#"{{"frame_type":"connection_close","error_space":"{space}","error_code":{code}}}"#
    );
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(payload: &[u8]) -> String {
        let mut text = String::new();
        write(&mut text, payload);
        text
    }

    #[test]
    fn ranges_of_an_ack_are_those_that_its_gaps_leave() {
        // Largest 9, 40 µs; 9 and 8, then a gap of two (7, 6), then 5 to 3; counts.
        let frame = [3, 9, 5, 1, 1, 1, 2, 7, 0, 2];
        assert_eq!(
            written(&frame),
            r#"{"frame_type":"ack","ack_delay":0.04,"acked_ranges":[[8,9],[3,5]],"ect0":7,"ect1":0,"ce":2}"#
        );
    }

    #[test]
    fn padding_is_one_frame_and_what_is_foreign_ends_the_reading() {
        assert_eq!(
            written(&[0, 0, 0, 1, 0x2f, 5]),
            r#"{"frame_type":"padding","payload_length":3},{"frame_type":"ping"},{"frame_type":"unknown","frame_type_bytes":47}"#
        );
        // A stream that claims to be longer than its packet.
        assert_eq!(written(&[0x0a, 1, 9, 0]), r#"{"frame_type":"unknown","frame_type_bytes":10}"#);
    }

    #[test]
    fn a_datagram_has_a_length_or_the_rest_of_the_packet() {
        assert_eq!(
            written(&[0x31, 1, 7, 0x30, 7, 7]),
            r#"{"frame_type":"datagram","length":1},{"frame_type":"datagram","length":2}"#
        );
    }
}
