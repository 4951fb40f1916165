//! Text format of designs and policies: one line per item, in a fixed order.
//!
//! ```text
//! jostle-policy 1
//! features rtt_gradient rtt_ratio send_ratio
//! history 10
//! interval 0.5 rtt
//! action rate 0.025
//! layer tanh 30 32
//! -0.013 0.25 …
//! ```
//!
//! A layer line contains the activation and the numbers of inputs and outputs. A line with bias and
//! weights follows for each output. `#` starts a comment.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use jostle_units::Span;

use super::design::{Action, AgentDesign, IntervalLength, LEAST_INTERVAL, LONGEST_INTERVAL};
use super::features::{FEATURES, feature};
use super::neural_network::{Activation, Layer, NeuralNetwork};

const FIRST_LINE: &str = "jostle-policy 1";
/// Maximum number of values in an observation and between layers.
const WIDEST: usize = 4096;

type Result<T> = core::result::Result<T, String>;

/// Lines with content, with their numbers.
struct Lines<'a> {
    lines: Box<dyn Iterator<Item = (usize, &'a str)> + 'a>,
    /// Number of the last line that was read.
    number: usize,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let lines = (1..)
            .zip(text.lines())
            .map(|(number, line)| (number, line.split('#').next().unwrap_or("").trim()))
            .filter(|(_, line)| !line.is_empty());
        Self { lines: Box::new(lines), number: 0 }
    }

    fn next(&mut self) -> Option<&'a str> {
        let (number, line) = self.lines.next()?;
        self.number = number;
        Some(line)
    }

    fn wrong<T>(&self, what: impl core::fmt::Display) -> Result<T> {
        Err(format!("line {}: {what}", self.number))
    }

    /// Returns the words after `key`, with which the next line must begin.
    fn words(&mut self, key: &str) -> Result<Vec<&'a str>> {
        let Some(line) = self.next() else {
            return Err(format!("it ends where `{key} …` is expected"));
        };
        let mut words = line.split_whitespace();
        if words.next() != Some(key) {
            return self.wrong(format_args!("expected `{key} …`"));
        }
        Ok(words.collect())
    }

    fn number(&self, word: &str) -> Result<f64> {
        match word.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(value),
            _ => self.wrong(format_args!("`{word}` is no number")),
        }
    }

    fn count(&self, word: &str) -> Result<usize> {
        match word.parse() {
            Ok(count) if (1..=WIDEST).contains(&count) => Ok(count),
            _ => self.wrong(format_args!("`{word}` is no whole number from 1 to {WIDEST}")),
        }
    }
}

/// Reads a design.
///
/// # Errors
/// If the text is invalid. The error describes the problem and its line.
pub fn parse_design(text: &str) -> Result<AgentDesign> {
    let mut lines = Lines::new(text);
    let design = design(&mut lines)?;
    match lines.next() {
        None => Ok(design),
        Some(_) => lines.wrong("a design ends before this"),
    }
}

/// Reads a design and the network that acts.
///
/// # Errors
/// If the file is invalid. The error describes the problem and its line.
pub fn parse_policy(file: &[u8]) -> Result<(AgentDesign, NeuralNetwork)> {
    let text = core::str::from_utf8(file).map_err(|error| format!("it is no text: {error}"))?;
    let mut lines = Lines::new(text);
    let design = design(&mut lines)?;
    let mut layers: Vec<Layer> = Vec::new();
    let mut width = design.observation_len();
    while let Some(line) = lines.next() {
        layers.push(layer(&mut lines, line, width)?);
        width = layers.last().map_or(width, Layer::outputs);
    }
    let actions = design.action.bounds().len();
    if layers.is_empty() || width != actions {
        return Err(format!("its last layer has to have {actions} outputs, one per action"));
    }
    Ok((design, NeuralNetwork::new(layers)))
}

fn design(lines: &mut Lines<'_>) -> Result<AgentDesign> {
    if lines.next() != Some(FIRST_LINE) {
        return Err(format!("its first line is not `{FIRST_LINE}`"));
    }
    let names = lines.words("features")?;
    let mut features = Vec::with_capacity(names.len());
    for name in names {
        let Some(feature) = feature(name) else {
            let known: Vec<_> = FEATURES.iter().map(|it| it.name).collect();
            return lines.wrong(format_args!("no feature `{name}`: {}", known.join(", ")));
        };
        features.push(feature);
    }
    let history = match lines.words("history")?[..] {
        [count] => lines.count(count)?,
        _ => return lines.wrong("expected `history INTERVALS`"),
    };
    if !(1..=WIDEST).contains(&(features.len() * history)) {
        return lines.wrong(format_args!("an observation has 1 to {WIDEST} numbers"));
    }
    let cadence = cadence(lines)?;
    let action = action(lines)?;
    Ok(AgentDesign { features, history, cadence, action })
}

fn cadence(lines: &mut Lines<'_>) -> Result<IntervalLength> {
    match lines.words("interval")?[..] {
        [value, "rtt"] => match lines.number(value)? {
            rtts if (0.01..=100.0).contains(&rtts) => Ok(IntervalLength::Rtts(rtts)),
            _ => lines.wrong("an interval has 0.01 to 100 rtt"),
        },
        [value, "ms"] => match Span::from_secs_f64(lines.number(value)?.max(0.0) / 1e3) {
            span if (LEAST_INTERVAL..=LONGEST_INTERVAL).contains(&span) => {
                Ok(IntervalLength::Fixed(span))
            }
            _ => lines.wrong("an interval has 1 to 10000 ms"),
        },
        _ => lines.wrong("expected `interval NUMBER rtt` or `interval NUMBER ms`"),
    }
}

fn action(lines: &mut Lines<'_>) -> Result<Action> {
    let words = lines.words("action")?;
    let scale = |word: &str| match lines.number(word)? {
        scale if scale > 0.0 && scale <= 10.0 => Ok(scale),
        _ => lines.wrong("a scale is above 0 and at most 10"),
    };
    match words[..] {
        ["rate", word] => Ok(Action::Rate { scale: scale(word)? }),
        ["window", word] => Ok(Action::Window { scale: scale(word)? }),
        ["absolute"] => Ok(Action::Absolute),
        ["cubic"] => Ok(Action::Cubic),
        _ => lines.wrong("expected `action rate SCALE`, `window SCALE`, `absolute` or `cubic`"),
    }
}

/// Reads the layer that begins with `line` and has `width` inputs.
fn layer(lines: &mut Lines<'_>, line: &str, width: usize) -> Result<Layer> {
    let words: Vec<_> = line.split_whitespace().collect();
    let ["layer", name, inputs, outputs] = words[..] else {
        return lines.wrong("expected `layer ACTIVATION INPUTS OUTPUTS`");
    };
    let Some(activation) = Activation::of(name) else {
        let known = Activation::NAMES.join(", ");
        return lines.wrong(format_args!("no activation `{name}`: {known}"));
    };
    let (inputs, outputs) = (lines.count(inputs)?, lines.count(outputs)?);
    if inputs != width {
        return lines.wrong(format_args!("{width} numbers come in, not {inputs}"));
    }
    let mut rows = Vec::new();
    for _ in 0..outputs {
        let Some(line) = lines.next() else {
            return Err(format!("it ends where one of {outputs} lines of weights is expected"));
        };
        let before = rows.len();
        for word in line.split_whitespace() {
            rows.push(lines.number(word)?);
        }
        if rows.len() - before != inputs + 1 {
            let found = rows.len() - before;
            return lines.wrong(format_args!("{found} numbers, not a bias and {inputs} weights"));
        }
    }
    Ok(Layer { activation, inputs, rows })
}
