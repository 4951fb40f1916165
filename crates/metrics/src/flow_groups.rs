//! Groups of flows that are measured together.

use std::collections::BTreeMap;

/// Flows that one scenario entry created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub name: String,
    /// Positions of the flows, in increasing order.
    pub members: Vec<usize>,
}

impl Group {
    /// Returns all groups of a run in the order of their first flows. `names` are the group names
    /// of the flows.
    pub(crate) fn all<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        let mut positions = BTreeMap::new();
        for (at, name) in names.enumerate() {
            let position = *positions.entry(name).or_insert_with(|| {
                groups.push(Self { name: name.to_owned(), members: Vec::new() });
                groups.len() - 1
            });
            groups[position].members.push(at);
        }
        groups
    }
}
