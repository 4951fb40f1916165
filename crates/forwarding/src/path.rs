//! Constraints on the links of both directions.

use jostle_run_spec::{LinkSpec, SpecError};

/// Minimum MTU of IPv6 (RFC 8200, 5).
const MIN_MTU_BYTES: u16 = 1280;
/// Maximum number of links in a row. Their index must fit into a byte.
const MAX_HOPS: usize = 64;

/// Checks the links of both directions, and the size of the largest IP packet.
///
/// # Errors
/// Returns the first violation, with its location and the accepted values.
pub fn validate_paths(
    forward: &[LinkSpec],
    reverse: &[LinkSpec],
    mtu_bytes: u16,
) -> Result<(), SpecError> {
    for (at, links) in [("forward", forward), ("reverse", reverse)] {
        if links.is_empty() || links.len() > MAX_HOPS {
            return Err(unfit(at, format!("{} links", links.len()), format!("1 to {MAX_HOPS}")));
        }
        for (i, link) in links.iter().enumerate() {
            link.validate(&format!("{at}[{i}]"))?;
        }
    }
    // Random streams are named after links, so equal names would yield equal numbers.
    let mut names: Vec<_> = forward.iter().chain(reverse).map(|l| &l.name).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        let given = format!("two links named \"{}\"", pair[0]);
        return Err(unfit("forward and reverse", given, "a unique name for each".into()));
    }
    if mtu_bytes < MIN_MTU_BYTES {
        let expected = format!("at least {MIN_MTU_BYTES}");
        return Err(unfit("mtu_bytes", mtu_bytes.to_string(), expected));
    }
    Ok(())
}

fn unfit(at: &str, given: String, expected: String) -> SpecError {
    SpecError::Unfit { at: at.to_owned(), given, expected }
}
