//! Measures of many summaries as columns.

use std::borrow::Cow;
use std::collections::BTreeMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyDict;

use crate::canonical_json::{Reader, unescaped};
use crate::run_record::Columns;

/// Scope, keys of measures per phase, and keys of measures of the complete run.
type ScopeKeys = (String, Vec<String>, Vec<String>);
/// Columns that identify a row, the words of their numbers, and columns of values by key.
type ScopeColumns = (Py<PyDict>, Vec<Option<String>>, Py<PyDict>);

/// Takes the measures out of summaries.
///
/// Parameters
/// ----------
/// summaries : list of str
///     The summaries, one per run.
/// scopes : list of tuple
///     `flow`, `group`, `link` or `run`; keys of measures per phase, and of measures of the complete
///     run.
///
/// Returns
/// -------
/// list of tuple
///     For each scope, a row per run, flow (or group, link, run) and phase: its run, name, controller
///     and phase as numbers; the words to which the last three refer, of which the first is None; and
///     the values of the keys by key, NaN if there is none.
///
/// Raises
/// ------
/// ValueError
///     If a text is no summary.
#[pyfunction]
pub fn measure_columns(
    py: Python<'_>,
    summaries: Vec<PyBackedStr>,
    scopes: Vec<ScopeKeys>,
) -> PyResult<Vec<ScopeColumns>> {
    let of_scope = |(scope, within, beside)| Table::new(scope, within, beside);
    let mut tables: Vec<_> = scopes.into_iter().map(of_scope).collect();
    py.detach(|| {
        for (run, summary) in (0..).zip(&summaries) {
            let read = Node::read(&mut Reader::new(summary))?;
            tables.iter_mut().for_each(|table| table.add(run, &read));
        }
        Some(())
    })
    .ok_or_else(|| PyValueError::new_err("a text is no summary"))?;
    tables.into_iter().map(|table| table.finish(py)).collect()
}

/// Columns of a scope.
struct Table {
    /// Its name, and the key of its list in a summary.
    scope: String,
    list: String,
    within: Keys,
    beside: Keys,
    heads: [Vec<u32>; 4],
    words: BTreeMap<String, u32>,
    values: Vec<Vec<f64>>,
}

impl Table {
    fn new(scope: String, within: Vec<String>, beside: Vec<String>) -> Self {
        Self {
            list: format!("{scope}s"),
            scope,
            heads: Default::default(),
            words: BTreeMap::new(),
            values: vec![Vec::new(); within.len() + beside.len()],
            within: Keys::new(within),
            beside: Keys::new(beside),
        }
    }

    fn finish(self, py: Python<'_>) -> PyResult<ScopeColumns> {
        let mut heads = Columns::new(py);
        for (name, column) in ["run", "name", "controller", "phase"].into_iter().zip(self.heads) {
            heads = heads.with(name, column)?;
        }
        let mut values = Columns::new(py);
        let keys = self.within.keys.iter().chain(&self.beside.keys);
        for (key, column) in keys.zip(self.values) {
            values = values.with(key, column)?;
        }
        let mut words = vec![None; self.words.len() + 1];
        for (word, number) in self.words {
            words[number as usize] = Some(word);
        }
        Ok((heads.finish(), words, values.finish()))
    }

    fn add(&mut self, run: u32, summary: &Node<'_>) {
        if self.scope == "run" {
            let totals = summary.get("totals");
            for (phase, fairness) in sorted(summary.get("fairness")) {
                let others = totals.and_then(|totals| totals.get(phase));
                self.row(run, None, None, phase, &[Some(fairness), others], None);
            }
            return;
        }
        let Some(Node::List(entries)) = summary.get(&self.list) else {
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
        let (of_phase, of_run) = self.values.split_at_mut(self.within.keys.len());
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

/// Keys of columns.
struct Keys {
    keys: Vec<String>,
    /// Numbers of the keys in alphabetical order.
    sorted: Vec<usize>,
}

impl Keys {
    fn new(keys: Vec<String>) -> Self {
        let mut sorted: Vec<_> = (0..keys.len()).collect();
        sorted.sort_by_key(|number| &keys[*number]);
        Self { keys, sorted }
    }

    /// Writes the values of an object into the last row of columns.
    fn fill(&self, values: &Node<'_>, columns: &mut [Vec<f64>]) {
        let Node::Object(members) = values else {
            return;
        };
        // Keys of an object are usually in alphabetical order, too.
        let known = |number: &usize| self.keys[*number].as_str();
        let mut from = 0;
        for (key, value) in members {
            let Node::Number(value) = value else {
                continue;
            };
            if self.sorted[..from].last().is_some_and(|last| known(last) >= key.as_ref()) {
                from = 0;
            }
            let rest = &self.sorted[from..];
            from += rest.iter().take_while(|number| known(number) < key.as_ref()).count();
            let Some(column) = self.sorted.get(from).filter(|number| known(number) == key) else {
                continue;
            };
            if let Some(place) = columns[*column].last_mut() {
                *place = *value;
            }
            from += 1;
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
