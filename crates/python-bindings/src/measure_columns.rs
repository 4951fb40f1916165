//! Measures of many summaries as columns.

use std::borrow::Cow;
use std::collections::BTreeMap;

use numpy::IntoPyArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::canonical_json::{Reader, unescaped};
use crate::run_record::Columns;

/// Takes the measures of a scope out of summaries.
///
/// Parameters
/// ----------
/// summaries : list of str
///     The summaries, one per run.
/// scope : str
///     `flow`, `group`, `link` or `run`.
/// within, beside : list of str
///     Keys of measures per phase, and of measures of the complete run.
///
/// Returns
/// -------
/// tuple
///     A row per run, flow (or group, link, run) and phase: its run, name, controller and phase as
///     numbers; the words to which the last three refer, of which the first is None; and the values
///     of the keys by key, NaN if there is none.
///
/// Raises
/// ------
/// ValueError
///     If a text is no summary.
#[pyfunction]
pub fn measure_columns(
    py: Python<'_>,
    summaries: Vec<String>,
    scope: &str,
    within: Vec<String>,
    beside: Vec<String>,
) -> PyResult<(Py<PyDict>, Vec<Option<String>>, Py<PyDict>)> {
    let mut table = Table::new(&within, &beside);
    for (run, summary) in (0..).zip(&summaries) {
        let read = Node::read(&mut Reader::new(summary));
        let read = read.ok_or_else(|| PyValueError::new_err(format!("no summary: {summary}")))?;
        table.add(run, &read, scope);
    }
    let mut heads = Columns::new(py);
    for (name, column) in ["run", "name", "controller", "phase"].into_iter().zip(table.heads) {
        heads = heads.with(name, column)?;
    }
    let values = PyDict::new(py);
    for (key, column) in within.iter().chain(&beside).zip(table.values) {
        values.set_item(key, column.into_pyarray(py))?;
    }
    let mut words = vec![None; table.words.len() + 1];
    for (word, number) in table.words {
        words[number as usize] = Some(word);
    }
    Ok((heads.finish(), words, values.unbind()))
}

/// Columns of a scope.
struct Table<'k> {
    within: Keys<'k>,
    beside: Keys<'k>,
    heads: [Vec<u32>; 4],
    words: BTreeMap<String, u32>,
    values: Vec<Vec<f64>>,
}

impl<'k> Table<'k> {
    fn new(within: &'k [String], beside: &'k [String]) -> Self {
        Self {
            within: Keys::new(within),
            beside: Keys::new(beside),
            heads: Default::default(),
            words: BTreeMap::new(),
            values: vec![Vec::new(); within.len() + beside.len()],
        }
    }

    fn add(&mut self, run: u32, summary: &Node<'_>, scope: &str) {
        if scope == "run" {
            let totals = summary.get("totals");
            for (phase, fairness) in sorted(summary.get("fairness")) {
                let others = totals.and_then(|totals| totals.get(phase));
                self.row(run, None, None, phase, &[Some(fairness), others], None);
            }
            return;
        }
        let Some(Node::List(entries)) = summary.get(&format!("{scope}s")) else {
            return;
        };
        for entry in entries {
            let (name, controller) = (entry.text("name"), entry.text("controller"));
            for (phase, measured) in sorted(entry.get("phases")) {
                self.row(run, name, controller, phase, &[Some(measured)], Some(entry));
            }
        }
    }

    fn row(
        &mut self,
        run: u32,
        name: Option<&str>,
        controller: Option<&str>,
        phase: &str,
        measured: &[Option<&Node<'_>>],
        entry: Option<&Node<'_>>,
    ) {
        let words = [name, controller, Some(phase)].map(|word| self.number_of(word));
        for (head, number) in self.heads.iter_mut().zip([run, words[0], words[1], words[2]]) {
            head.push(number);
        }
        let (of_phase, of_run) = self.values.split_at_mut(self.within.sorted.len());
        for column in of_phase.iter_mut().chain(of_run.iter_mut()) {
            column.push(f64::NAN);
        }
        for values in measured.iter().flatten() {
            self.within.fill(values, of_phase);
        }
        if let Some(entry) = entry {
            self.beside.fill(entry, of_run);
        }
    }

    fn number_of(&mut self, word: Option<&str>) -> u32 {
        let Some(word) = word else {
            return 0;
        };
        if let Some(number) = self.words.get(word) {
            return *number;
        }
        let number = self.words.len() as u32 + 1;
        self.words.insert(word.to_owned(), number);
        number
    }
}

/// Keys in alphabetical order, with the numbers of their columns.
struct Keys<'k> {
    sorted: Vec<(&'k str, usize)>,
}

impl<'k> Keys<'k> {
    fn new(keys: &'k [String]) -> Self {
        let mut sorted: Vec<_> = keys.iter().map(String::as_str).zip(0..).collect();
        sorted.sort_unstable();
        Self { sorted }
    }

    /// Writes the values of an object into the last row of columns.
    fn fill(&self, values: &Node<'_>, columns: &mut [Vec<f64>]) {
        let Node::Object(members) = values else {
            return;
        };
        // Keys of an object are usually in alphabetical order, too.
        let mut from = 0;
        for (key, value) in members {
            let Node::Number(value) = value else {
                continue;
            };
            if self.sorted[..from].last().is_some_and(|(last, _)| *last >= key.as_ref()) {
                from = 0;
            }
            from += self.sorted[from..].partition_point(|(known, _)| *known < key.as_ref());
            let Some((known, column)) = self.sorted.get(from) else {
                continue;
            };
            if let Some(place) = columns[*column].last_mut().filter(|_| known == key) {
                *place = *value;
                from += 1;
            }
        }
    }
}

/// Members of an object of phases, in the order of their names.
fn sorted<'n>(phases: Option<&'n Node<'_>>) -> Vec<(&'n str, &'n Node<'n>)> {
    let Some(Node::Object(members)) = phases else {
        return Vec::new();
    };
    let mut found: Vec<_> = members.iter().map(|(name, value)| (name.as_ref(), value)).collect();
    found.sort_by_key(|(name, _)| *name);
    found
}

/// JSON that borrows its texts.
enum Node<'a> {
    Number(f64),
    Text(Cow<'a, str>),
    List(Vec<Self>),
    Object(Vec<(Cow<'a, str>, Self)>),
    /// `null`, `true` and `false`: no measure.
    Nothing,
}

impl<'a> Node<'a> {
    fn read(reader: &mut Reader<'a>) -> Option<Self> {
        Some(match reader.peek()? {
            b'{' => {
                let mut members = Vec::new();
                reader.object(|reader, key| {
                    members.push((unescaped(key), Self::read(reader)?));
                    Some(())
                })?;
                Self::Object(members)
            }
            b'[' => {
                let mut values = Vec::new();
                reader.list(|reader| {
                    values.push(Self::read(reader)?);
                    Some(())
                })?;
                Self::List(values)
            }
            b'"' => Self::Text(unescaped(reader.string()?)),
            // Unlike `serde_json`, this returns the nearest number.
            _ => match reader.token() {
                "null" | "true" | "false" => Self::Nothing,
                number => Self::Number(number.parse().ok()?),
            },
        })
    }

    fn get(&self, key: &str) -> Option<&Self> {
        let Self::Object(members) = self else {
            return None;
        };
        members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    fn text(&self, key: &str) -> Option<&str> {
        match self.get(key) {
            Some(Self::Text(text)) => Some(text),
            _ => None,
        }
    }
}
