//! On which lines of a TOML text its keys stand, for messages that name them.

use std::ops::Range;

use toml_edit::{Document, Item, TableLike, Value};

/// Numbers beyond 64 bits that a text may hold.
const MOST_LARGE_NUMBERS: usize = 8;

/// Why a text has no places.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is not TOML.
    #[error("{0}")]
    NoToml(String),
    /// It nests deeper than a reader can follow: 80 levels.
    #[error("{0}")]
    TooDeep(String),
    /// More than a few of its numbers have more than 64 bits: each costs another pass.
    #[error("too many numbers of more than 64 bits")]
    TooManyLargeNumbers,
}

/// Where something stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line, counted from 1; a table's is that of its first header or key. `usize::MAX` for an empty
    /// table without a place of its own.
    pub line: usize,
    /// What lies below.
    pub below: Below,
}

/// What lies below something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Below {
    /// Nothing: it is a single value.
    Nothing,
    /// Keys of a table.
    Table(Vec<(String, Place)>),
    /// Elements of a list.
    List(Vec<Place>),
}

/// Returns where all tables, keys and elements of a TOML text stand; its lines end with a line feed.
///
/// # Errors
/// When it is not TOML, or more than can be read.
pub fn places(text: &str) -> Result<Vec<(String, Place)>, Error> {
    let document = parse(text)?;
    let ends = text.match_indices('\n').map(|(at, _)| at).collect();
    Ok(Lines { ends }.table(document.as_table()).1)
}

/// Parses a text, whatever the size of its numbers: Python's have no bounds.
fn parse(text: &str) -> Result<Document<String>, Error> {
    let mut text = text.to_owned();
    for _ in 0..MOST_LARGE_NUMBERS {
        let error = match Document::parse(text.clone()) {
            Ok(document) => return Ok(document),
            Err(error) => error,
        };
        let said = error.message();
        // What the parser calls it: "recursion limit", "cannot recurse further".
        if said.contains("recurs") {
            return Err(Error::TooDeep(said.to_owned()));
        }
        let number = error.span().filter(|_| said.contains("overflow"));
        match number {
            Some(span) if !span.is_empty() => {
                // A width of `format!` has 16 bits: a number may have more digits.
                let zero = format!("0{}", " ".repeat(span.len() - 1));
                text.replace_range(span, &zero);
            }
            _ => return Err(Error::NoToml(said.to_owned())),
        }
    }
    Err(Error::TooManyLargeNumbers)
}

struct Lines {
    /// Where lines end, in bytes.
    ends: Vec<usize>,
}

impl Lines {
    /// The line of a byte; the last of all for what has no place of its own.
    fn at(&self, place: Option<Range<usize>>) -> usize {
        place.map_or(usize::MAX, |span| self.ends.partition_point(|end| *end < span.start) + 1)
    }

    /// The first line of what lies in a table, and all of it.
    fn table(&self, table: &dyn TableLike) -> (usize, Vec<(String, Place)>) {
        let mut found = Vec::with_capacity(table.len());
        let mut first = usize::MAX;
        for (name, _) in table.iter() {
            let Some((key, item)) = table.get_key_value(name) else { continue };
            let mut place = self.item(item);
            place.line = place.line.min(self.at(key.span()));
            first = first.min(place.line);
            found.push((name.to_owned(), place));
        }
        (first, found)
    }

    fn table_place(&self, table: &dyn TableLike, span: Option<Range<usize>>) -> Place {
        let (first, found) = self.table(table);
        Place { line: first.min(self.at(span)), below: Below::Table(found) }
    }

    fn item(&self, item: &Item) -> Place {
        match item {
            Item::None => Place { line: usize::MAX, below: Below::Nothing },
            Item::Value(value) => self.value(value),
            Item::Table(table) => self.table_place(table, table.span()),
            Item::ArrayOfTables(tables) => {
                list(tables.iter().map(|table| self.table_place(table, table.span())).collect())
            }
        }
    }

    fn value(&self, value: &Value) -> Place {
        let mut place = match value {
            Value::Array(array) => list(array.iter().map(|element| self.value(element)).collect()),
            Value::InlineTable(table) => self.table_place(table, None),
            _ => Place { line: usize::MAX, below: Below::Nothing },
        };
        place.line = place.line.min(self.at(value.span()));
        place
    }
}

fn list(elements: Vec<Place>) -> Place {
    let line = elements.iter().map(|place| place.line).min().unwrap_or(usize::MAX);
    Place { line, below: Below::List(elements) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests {
    use super::*;

    /// Lines of all that has one, by path.
    fn lines(text: &str) -> Vec<(String, usize)> {
        fn go(at: &str, place: &Place, found: &mut Vec<(String, usize)>) {
            found.push((at.to_owned(), place.line));
            match &place.below {
                Below::Nothing => {}
                Below::Table(keys) => {
                    keys.iter().for_each(|(key, place)| go(&format!("{at}.{key}"), place, found));
                }
                Below::List(all) => {
                    (0..).zip(all).for_each(|(n, place)| go(&format!("{at}.{n}"), place, found));
                }
            }
        }
        let mut found = Vec::new();
        for (key, place) in places(text).unwrap() {
            go(&key, &place, &mut found);
        }
        found
    }

    #[test]
    fn keys_tables_and_elements_have_lines() {
        let text = "a = 1\n[[flows]]\nb = [\n  1,\n  { c = 2 },\n]\n[[flows]]\n[d.e]\nf = 3\n";
        let expected = [
            ("a", 1),
            ("flows", 2),
            ("flows.0", 2),
            ("flows.0.b", 3),
            ("flows.0.b.0", 4),
            ("flows.0.b.1", 5),
            ("flows.0.b.1.c", 5),
            ("flows.1", 7),
            ("d", 8),
            ("d.e", 8),
            ("d.e.f", 9),
        ];
        assert_eq!(lines(text), expected.map(|(path, line)| (path.to_owned(), line)));
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let large = "9".repeat(100_000);
        assert_eq!(lines(&format!("a = {large}\nb = 1")), [("a".into(), 1), ("b".into(), 2)]);
        let many: String = (0..9).map(|n| format!("a{n} = {large}\n")).collect();
        assert_eq!(places(&many), Err(Error::TooManyLargeNumbers));
        let deep = format!("a = {}{}", "[".repeat(400), "]".repeat(400));
        assert!(matches!(places(&deep), Err(Error::TooDeep(_))));
        assert!(matches!(places("a = "), Err(Error::NoToml(_))));
    }
}
