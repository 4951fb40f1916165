//! Line numbers of the keys of a TOML text, for error messages.

use std::ops::Range;

use toml_edit::{Document, Item, TableLike, Value};

/// Largest number of integers beyond 64 bits in a text.
const MAX_LARGE_NUMBERS: usize = 8;

/// Reason why a text cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not TOML.
    #[error("{0}")]
    NoToml(String),
    /// The text is nested more than 80 levels deep.
    #[error("{0}")]
    TooDeep(String),
    /// Too many integers exceed 64 bits. Each of them needs another pass.
    #[error("too many numbers of more than 64 bits")]
    TooManyLargeNumbers,
}

/// Line of a value, and of the values in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePosition {
    /// Line, counted from 1. For a table: the line of its first header or key, or `usize::MAX` for
    /// an empty table without a position.
    pub line: usize,
    /// Values that this value contains.
    pub below: Children,
}

/// Values that a value contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Children {
    /// None: a single value.
    Nothing,
    /// Keys of a table.
    Table(Vec<(String, LinePosition)>),
    /// Elements of a list.
    List(Vec<LinePosition>),
}

/// Returns the lines of all tables, keys and elements of a TOML text with line feeds as line ends.
///
/// # Errors
/// If the text is not TOML, or exceeds the limits of nesting and large integers.
pub fn key_lines(text: &str) -> Result<Vec<(String, LinePosition)>, Error> {
    let document = parse(text)?;
    let ends = text.match_indices('\n').map(|(at, _)| at).collect();
    Ok(Lines { ends }.table(document.as_table()).1)
}

/// Parses a text. Integers may have any size, as in Python.
fn parse(text: &str) -> Result<Document<String>, Error> {
    let mut text = text.to_owned();
    for _ in 0..MAX_LARGE_NUMBERS {
        let error = match Document::parse(text.clone()) {
            Ok(document) => return Ok(document),
            Err(error) => error,
        };
        let message = error.message();
        // The messages of the parser are "recursion limit" and "cannot recurse further".
        if message.contains("recurs") {
            return Err(Error::TooDeep(message.to_owned()));
        }
        let number = error.span().filter(|_| message.contains("overflow"));
        match number {
            Some(span) if !span.is_empty() => {
                // Not `{:width$}`: a width has 16 bits, and a number may have more digits.
                let zero = format!("0{}", " ".repeat(span.len() - 1));
                text.replace_range(span, &zero);
            }
            _ => return Err(Error::NoToml(message.to_owned())),
        }
    }
    Err(Error::TooManyLargeNumbers)
}

struct Lines {
    /// Byte offsets of the line ends.
    ends: Vec<usize>,
}

impl Lines {
    /// Returns the line of a byte offset, or `usize::MAX` without an offset.
    fn at(&self, position: Option<Range<usize>>) -> usize {
        position.map_or(usize::MAX, |span| self.ends.partition_point(|end| *end < span.start) + 1)
    }

    /// Returns the first line of a table's content, and the content.
    fn table(&self, table: &dyn TableLike) -> (usize, Vec<(String, LinePosition)>) {
        let mut children = Vec::with_capacity(table.len());
        let mut first = usize::MAX;
        for (name, _) in table.iter() {
            let Some((key, item)) = table.get_key_value(name) else { continue };
            let mut position = self.item(item);
            position.line = position.line.min(self.at(key.span()));
            first = first.min(position.line);
            children.push((name.to_owned(), position));
        }
        (first, children)
    }

    fn table_position(&self, table: &dyn TableLike, span: Option<Range<usize>>) -> LinePosition {
        let (first, children) = self.table(table);
        LinePosition { line: first.min(self.at(span)), below: Children::Table(children) }
    }

    fn item(&self, item: &Item) -> LinePosition {
        match item {
            Item::None => LinePosition { line: usize::MAX, below: Children::Nothing },
            Item::Value(value) => self.value(value),
            Item::Table(table) => self.table_position(table, table.span()),
            Item::ArrayOfTables(tables) => {
                list(tables.iter().map(|table| self.table_position(table, table.span())).collect())
            }
        }
    }

    fn value(&self, value: &Value) -> LinePosition {
        let mut position = match value {
            Value::Array(array) => list(array.iter().map(|element| self.value(element)).collect()),
            Value::InlineTable(table) => self.table_position(table, None),
            _ => LinePosition { line: usize::MAX, below: Children::Nothing },
        };
        position.line = position.line.min(self.at(value.span()));
        position
    }
}

fn list(elements: Vec<LinePosition>) -> LinePosition {
    let line = elements.iter().map(|position| position.line).min().unwrap_or(usize::MAX);
    LinePosition { line, below: Children::List(elements) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests {
    use super::*;

    /// Lines of all that has one, by path.
    fn lines(text: &str) -> Vec<(String, usize)> {
        fn go(at: &str, place: &LinePosition, found: &mut Vec<(String, usize)>) {
            found.push((at.to_owned(), place.line));
            match &place.below {
                Children::Nothing => {}
                Children::Table(keys) => {
                    keys.iter().for_each(|(key, place)| go(&format!("{at}.{key}"), place, found));
                }
                Children::List(all) => {
                    (0..).zip(all).for_each(|(n, place)| go(&format!("{at}.{n}"), place, found));
                }
            }
        }
        let mut found = Vec::new();
        for (key, place) in key_lines(text).unwrap() {
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
        assert_eq!(key_lines(&many), Err(Error::TooManyLargeNumbers));
        let deep = format!("a = {}{}", "[".repeat(400), "]".repeat(400));
        assert!(matches!(key_lines(&deep), Err(Error::TooDeep(_))));
        assert!(matches!(key_lines("a = "), Err(Error::NoToml(_))));
    }
}
