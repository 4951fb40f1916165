//! Validation of routes.

use jostle_units::LinkId;

use super::{MAX_NS, SpecError, SpecPath, within};
use crate::{FlowSpec, RunSpec};

/// A packet stores its hop index in eight bits.
const MAX_HOPS: usize = 255;
/// Maximum number of changes of a flow's route: one per 100 ms of a quarter of an hour.
const MAX_CHANGES: u64 = 10_000;

/// Validates the routes of a flow. `at` is the flow's path in error messages; `is_split` means that the flow
/// is one of several proxy legs.
pub(super) fn check(
    at: SpecPath<'_>,
    flow: &FlowSpec,
    is_split: bool,
    spec: &RunSpec,
) -> Result<(), SpecError> {
    path(format_args!("{at}.path"), &flow.path, spec.links.len())?;
    path(format_args!("{at}.reverse_path"), &flow.reverse_path, spec.links.len())?;
    if flow.routes.is_empty() {
        return Ok(());
    }
    let place = format_args!("{at}.routes");
    if is_split {
        let expected = "absent: the flow's proxy is on a fixed path";
        return Err(SpecError::unfit(place, "there", expected));
    }
    within(place, flow.routes.len() as u64, 0..=MAX_CHANGES)?;
    let mut earlier_ns = 0;
    for (i, route) in flow.routes.iter().enumerate() {
        let at = format_args!("{place}[{i}]");
        within(format_args!("{at}.at_ns"), route.at_ns, earlier_ns + 1..=MAX_NS)?;
        earlier_ns = route.at_ns;
        if route.path.is_empty() {
            return Err(SpecError::unfit(format_args!("{at}.path"), "empty", "at least one link"));
        }
        path(format_args!("{at}.path"), &route.path, spec.links.len())?;
        path(format_args!("{at}.reverse_path"), &route.reverse_path, spec.links.len())?;
    }
    directions(at, "path", flow.paths())?;
    directions(at, "reverse_path", flow.reverse_paths())
}

/// Checks the paths of one direction. A router forwards by the flow alone, so that a path crosses no
/// link twice, and a packet stores the number of its link among all links of the flow in eight bits.
fn directions<'a>(
    at: SpecPath<'_>,
    key: &str,
    paths: impl Iterator<Item = &'a [LinkId]>,
) -> Result<(), SpecError> {
    let mut all = Vec::new();
    for (i, path) in paths.enumerate() {
        let mut links = path.to_vec();
        links.sort_unstable();
        if let Some(pair) = links.windows(2).find(|pair| pair[0] == pair[1]) {
            let given = format!("link {} twice", pair[0]);
            let expected = "each link once: the flow has several routes";
            return Err(match i {
                0 => SpecError::unfit(format_args!("{at}.{key}"), given, expected),
                _ => {
                    SpecError::unfit(format_args!("{at}.routes[{}].{key}", i - 1), given, expected)
                }
            });
        }
        all.extend(links);
    }
    all.sort_unstable();
    all.dedup();
    if all.len() <= MAX_HOPS {
        return Ok(());
    }
    let given = format!("routes over {} links", all.len());
    Err(SpecError::unfit(format_args!("{at}.{key}"), given, format!("at most {MAX_HOPS} links")))
}

fn path(at: SpecPath<'_>, path: &[LinkId], links: usize) -> Result<(), SpecError> {
    if path.len() > MAX_HOPS {
        let given = format!("{} links long", path.len());
        return Err(SpecError::unfit(at, given, format!("at most {MAX_HOPS} links")));
    }
    match path.iter().position(|link| link.index() >= links) {
        None => Ok(()),
        Some(i) => Err(SpecError::unfit(
            format_args!("{at}[{i}]"),
            path[i],
            format!("the position of a link, 0 to {}", links - 1),
        )),
    }
}
