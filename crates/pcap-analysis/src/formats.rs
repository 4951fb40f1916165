//! Formats of captures, for the documentation.

use crate::containers;
use crate::encapsulation::{Encapsulation, LINK_TYPES, TAGS};

/// Returns kinds of formats with the formats of each kind that are read.
pub fn formats() -> Vec<(&'static str, Vec<String>)> {
    let owned = |name: &str| name.to_owned();
    let encapsulations = |has_addresses| {
        let of_kind =
            Encapsulation::ALL.iter().filter(move |one| one.has_addresses() == has_addresses);
        of_kind.map(ToString::to_string).collect()
    };
    vec![
        ("Containers", containers::READ.iter().map(|name| owned(name)).collect()),
        (
            "Link types",
            LINK_TYPES.iter().map(|(number, name, ..)| format!("{name} ({number})")).collect(),
        ),
        ("Tags", TAGS.iter().map(|(_, name, ..)| owned(name)).collect()),
        ("Around IP", encapsulations(false)),
        ("Tunnels", encapsulations(true)),
        ("Convert first", containers::convertible().map(owned).collect()),
    ]
}
