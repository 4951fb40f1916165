//! The line that registers a controller (`kernel-bridge/src/registration.rs`).

use std::fmt::Write as _;

use jostle_registry::ParameterValue;
use jostle_run_spec::{Algorithm, FlowSpec};

/// Returns the line of a flow's controller, with its peer cache if the registered code has that too.
pub fn registration_line(flow: &FlowSpec, seed: u64, with_memory: bool) -> String {
    let controller = &flow.controller;
    let mut line = String::from("controller=");
    line += &escaped(controller.crate_controller().unwrap_or(&controller.name));
    write_parameters(&mut line, "controller", controller);
    let memory = flow.memory.as_ref().filter(|_| with_memory);
    for (what, algorithm) in [("slow_start", flow.slow_start.as_ref()), ("memory", memory)] {
        if let Some(algorithm) = algorithm {
            let _ = write!(line, " {what}={}", escaped(&algorithm.name));
            write_parameters(&mut line, what, algorithm);
        }
    }
    let _ = write!(line, " seed={seed} stream={}", escaped(&format!("flow/{}", flow.name)));
    line
}

fn write_parameters(line: &mut String, what: &str, algorithm: &Algorithm) {
    for (parameter, value) in &algorithm.parameters {
        if parameter != Algorithm::SOURCE_DIGEST {
            let _ = write!(line, " {what}.{parameter}={}", word(value));
        }
    }
}

fn word(value: &ParameterValue) -> String {
    match value {
        ParameterValue::Bool(value) => format!("b{}", u8::from(*value)),
        ParameterValue::Integer(value) => format!("i{value}"),
        ParameterValue::Number(value) => format!("n{value:?}"),
        ParameterValue::Text(text) => format!("t{}", escaped(text)),
        // A queue alone has limits. The registration refuses it.
        ParameterValue::Limit(_) => "limit".to_owned(),
    }
}

/// Writes all bytes except letters, digits and some signs as `%` and two hexadecimal digits.
fn escaped(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'-'
            | b'_'
            | b'.'
            | b'~'
            | b'/'
            | b'+'
            | b'='
            | b':'
            | b',' => {
                line.push(char::from(byte));
            }
            _ => {
                let _ = write!(line, "%{byte:02x}");
            }
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_space_does_not_end_a_word() {
        assert_eq!(escaped("a b%ü/c"), "a%20b%25%c3%bc/c");
        assert_eq!(word(&ParameterValue::Text("x y".into())), "tx%20y");
        assert_eq!(word(&ParameterValue::Number(0.5)), "n0.5");
        assert_eq!(word(&ParameterValue::Bool(true)), "b1");
        assert_eq!(word(&ParameterValue::Integer(-3)), "i-3");
    }
}
