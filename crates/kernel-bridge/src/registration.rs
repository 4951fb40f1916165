//! Reads the line that describes a controller.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use jostle_congestion::CongestionController;
use jostle_controllers::registry::ControllerEntry;
use jostle_controllers::{ControllerRecipe, NamedAlgorithm, PeerCacheRecipe};
use jostle_registry::ParameterValue;
use jostle_units::{RandomStream, RandomStreamName};

/// A controller with its slow start, its peer cache, their parameters and a random stream.
///
/// The line consists of words `KEY=VALUE`, separated by spaces:
///
/// | Key | Value |
/// | --- | --- |
/// | `controller`, `slow_start`, `memory` | name of the registry; only `controller` is required |
/// | `controller.PARAMETER`, … | `b0`, `b1`; `i` and a whole number; `n` and a real number; `t` and a text |
/// | `seed` | seed of the run |
/// | `stream` | name of the flow's random streams, `flow/NAME` |
///
/// A byte of a value may be written as `%` and two hexadecimal digits.
pub struct Registration {
    recipe: ControllerRecipe,
    memory: Option<PeerCacheRecipe>,
    seed: u64,
    stream: RandomStreamName,
}

/// Name and parameters of an algorithm.
#[derive(Default)]
struct Named {
    name: Option<String>,
    parameters: BTreeMap<String, ParameterValue>,
}

impl Named {
    fn named(&self) -> Option<NamedAlgorithm<'_>> {
        Some((self.name.as_deref()?, &self.parameters))
    }

    fn set(&mut self, parameter: Option<&str>, value: String) -> Result<(), String> {
        match parameter {
            None => self.name = Some(value),
            Some(parameter) => {
                let value = parameter_value(&value)
                    .ok_or_else(|| format!("`{value}` is no value for `{parameter}`"))?;
                self.parameters.insert(parameter.to_string(), value);
            }
        }
        Ok(())
    }
}

impl Registration {
    /// Reads a line that names one of `controllers`.
    ///
    /// # Errors
    /// If the line is malformed, or there is no such controller, registry entry or parameter.
    pub fn read(line: &str, controllers: &'static [ControllerEntry]) -> Result<Self, String> {
        let (mut controller, mut slow_start, mut memory) =
            (Named::default(), Named::default(), Named::default());
        let mut seed = 0;
        let mut stream = RandomStreamName::of("");
        for word in line.split_ascii_whitespace() {
            let (key, value) =
                word.split_once('=').ok_or_else(|| format!("`{word}` is not KEY=VALUE"))?;
            let value = unescape(value).ok_or_else(|| format!("`{word}` is malformed"))?;
            let (what, parameter) = match key.split_once('.') {
                None => (key, None),
                Some((what, parameter)) => (what, Some(parameter)),
            };
            match what {
                "controller" => controller.set(parameter, value)?,
                "slow_start" => slow_start.set(parameter, value)?,
                "memory" => memory.set(parameter, value)?,
                "seed" => seed = value.parse().map_err(|_| format!("`{value}` is no seed"))?,
                "stream" => stream = RandomStreamName::of(&value),
                _ => return Err(format!("there is no key `{key}`")),
            }
        }
        let controller = controller.named().ok_or("`controller` is missing")?;
        Ok(Self {
            recipe: ControllerRecipe::among(controllers, controller, slow_start.named())?,
            memory: memory.named().map(PeerCacheRecipe::of).transpose()?,
            seed,
            stream,
        })
    }

    /// Creates the controller of a connection: the only one of the flow, or that with a number.
    pub fn create(&self, number: Option<u32>) -> Box<dyn CongestionController> {
        let stream = match number {
            None => self.stream,
            Some(number) => self.stream.and("/").and_number(number),
        };
        let random = RandomStream::named(self.seed, stream.and("/").and("controller"));
        let controller = self.recipe.create(random);
        match &self.memory {
            None => controller,
            Some(memory) => memory.around(controller),
        }
    }
}

fn parameter_value(text: &str) -> Option<ParameterValue> {
    let value = text.get(1..)?;
    Some(match text.as_bytes()[0] {
        b'b' => ParameterValue::Bool(match value {
            "0" => false,
            "1" => true,
            _ => return None,
        }),
        b'i' => ParameterValue::Integer(value.parse().ok()?),
        b'n' => ParameterValue::Number(value.parse().ok()?),
        b't' => ParameterValue::Text(value.to_string()),
        _ => return None,
    })
}

/// Replaces `%` and two hexadecimal digits by the byte of that value.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            (digit(rest.next())? * 16 + digit(rest.next())?) as u8
        } else {
            byte
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use jostle_controllers::registry::CONTROLLERS;

    use super::*;

    fn message(line: &str) -> String {
        Registration::read(line, CONTROLLERS).err().unwrap()
    }

    #[test]
    fn a_line_names_an_algorithm_with_its_parameters() {
        let line = "controller=cubic controller.beta=i700 controller.hystart=b0 \
                    controller.linux=t4%2e15 seed=7 stream=flow/a%20b";
        let registration = Registration::read(line, CONTROLLERS).unwrap();
        let (row, values) = registration.recipe.controller();
        assert_eq!(row.entry.name, "cubic");
        let given = BTreeMap::from([
            ("beta".to_string(), ParameterValue::Integer(700)),
            ("hystart".to_string(), ParameterValue::Bool(false)),
            ("linux".to_string(), ParameterValue::Text("4.15".to_string())),
        ]);
        assert_eq!(*values, row.entry.resolve(&given).unwrap());
        assert_eq!(registration.seed, 7);
        assert_eq!(registration.stream, RandomStreamName::of("flow/a b"));
    }

    #[test]
    fn a_line_names_one_of_the_given_controllers() {
        let reason = Registration::read("controller=cubic", &CONTROLLERS[..1]).err().unwrap();
        assert_eq!(reason, "there is no controller `cubic`");
        assert!(
            Registration::read("controller=reno slow_start=hystart", &CONTROLLERS[..1]).is_ok()
        );
    }

    #[test]
    fn a_malformed_line_is_refused_with_the_reason() {
        assert_eq!(message("seed=1"), "`controller` is missing");
        assert_eq!(message("controller=none"), "there is no controller `none`");
        assert_eq!(message("controller=reno slow_start=none"), "there is no slow start `none`");
        assert_eq!(message("controller=reno memory=none"), "there is no memory `none`");
        assert_eq!(message("controller=bbr slow_start=standard"), "`bbr` contains its slow start");
        assert_eq!(message("controller=reno size=1"), "there is no key `size`");
        assert_eq!(message("controller=reno seed=x"), "`x` is no seed");
        assert_eq!(message("controller"), "`controller` is not KEY=VALUE");
        assert_eq!(message("controller=%4"), "`controller=%4` is malformed");
        assert_eq!(message("controller=cubic controller.beta=7"), "`7` is no value for `beta`");
        assert!(message("controller=cubic controller.size=i7").contains("size"));
    }
}
