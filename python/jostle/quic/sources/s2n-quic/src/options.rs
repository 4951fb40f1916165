//! `--name value` on the command line.

use std::collections::HashMap;

use crate::Result;

pub struct Options(HashMap<String, String>);

impl Options {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut found = HashMap::new();
        while let Some(word) = words.next() {
            let name = word.strip_prefix("--").ok_or_else(|| format!("no option: {word}"))?;
            let value = words.next().ok_or_else(|| format!("--{name} has no value"))?;
            found.insert(name.to_owned(), value);
        }
        Ok(Self(found))
    }

    pub fn get(&self, name: &str) -> Result<&str> {
        let found = self.0.get(name).ok_or_else(|| format!("--{name} is missing"))?;
        Ok(found)
    }
}
