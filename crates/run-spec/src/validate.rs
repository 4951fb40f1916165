//! Validation of a RunSpec. The simulator can run every RunSpec that passes.

mod algorithms;
mod arrivals;
mod connections;
mod datagrams;
mod error;
mod faults;
mod flow;
mod link;
mod media;
mod quantity;
mod quic;
mod reader;
mod receivers;
mod resource_limits;
mod routes;
mod tunnels;
mod video;
mod web;

use std::fmt::{Arguments, Display};
use std::ops::RangeInclusive;

use jostle_link::registry;
use jostle_units::{FlowId, LinkId};

pub use error::SpecError;

use crate::CAPTURED_FLOWS_MAX;
use crate::{CapacitySpec, LinkSpec, Quantity, RunSpec, Transport};

/// Path of a value in the RunSpec. It is formatted only for an error message, because most
/// specifications are valid and some have ten thousand flows.
type SpecPath<'a> = Arguments<'a>;

/// Maximum duration, and maximum rate.
const MAX_NS: u64 = registry::LONGEST.as_ns();
const MAX_BPS: u64 = registry::FASTEST.as_bps();
/// Maximum codepoint.
const MAX_DSCP: u8 = 63;
/// Maximum amount of data: 2⁵³ bytes.
const MAX_BYTES: u64 = 1 << 53;
/// Minimum interval between two datagrams: the smallest ones at 500 Mbit/s.
const MIN_EVERY_NS: u64 = 1_000;
/// Maximum length of a flow name that is used as a file name.
const FILE_NAME_MAX_BYTES: usize = 200;

impl RunSpec {
    /// Reads and validates a RunSpec.
    ///
    /// # Errors
    /// If `json` is not a RunSpec, or is invalid.
    pub fn from_json(json: &str) -> Result<Self, SpecError> {
        let spec: Self = serde_json::from_str(json)?;
        spec.validate()?;
        Ok(spec)
    }

    /// Reads a RunSpec, or the description of a measurement that was not a run.
    ///
    /// # Errors
    /// If `json` is neither, or is invalid.
    pub fn of_results(json: &str) -> Result<Self, SpecError> {
        let spec: Self = serde_json::from_str(json)?;
        if spec.measured.is_none() {
            spec.validate()?;
            return Ok(spec);
        }
        resource_limits::check_counts(&spec)?;
        within("duration_ns", spec.duration_ns, 1..=MAX_NS)?;
        within("interval_ns", spec.interval_ns, 1..=MAX_NS)?;
        spec.check_phases()?;
        if !spec.links.is_empty() {
            return Err(SpecError::unfit("links", "there", "none: none are known"));
        }
        let crosses =
            |flow: &crate::FlowSpec| !(flow.path.is_empty() && flow.reverse_path.is_empty());
        if let Some(i) = spec.flows.iter().position(crosses) {
            return Err(SpecError::unfit(
                format_args!("flows[{i}].path"),
                "there",
                "none: no links",
            ));
        }
        distinct("phases", spec.phases.iter().map(|phase| phase.name.as_str()))?;
        distinct("flows", spec.flows.iter().map(|flow| flow.name.as_str()))?;
        Ok(spec)
    }

    /// Validates all rules that the types do not express.
    ///
    /// # Errors
    /// The first invalid value, with its path and the accepted values.
    pub fn validate(&self) -> Result<(), SpecError> {
        if self.measured.is_some() {
            return Err(SpecError::unfit("measured", "there", "a run: this was measured, not run"));
        }
        resource_limits::check_counts(self)?;
        within("duration_ns", self.duration_ns, 1..=MAX_NS)?;
        within("interval_ns", self.interval_ns, 1..=MAX_NS)?;
        self.check_phases()?;
        self.check_names()?;
        for (i, link) in self.links.iter().enumerate() {
            link::check(format_args!("links[{i}]"), link)?;
        }
        tunnels::check_links(self)?;
        let continuations = self.continuations();
        for (i, flow) in self.flows.iter().enumerate() {
            flow::check(i, flow, continuations[i].is_some(), self)?;
            connections::check(format_args!("flows[{i}]"), i, self)?;
        }
        self.check_relays(&continuations)?;
        for i in 0..self.links.len() {
            link::check_members(format_args!("links[{i}]"), LinkId::at(i), self)?;
            faults::check_flows(format_args!("links[{i}]"), LinkId::at(i), self)?;
        }
        self.check_capture()?;
        resource_limits::check(self)
    }

    /// Checks that at most one relay forwards the data of a connection.
    fn check_relays(&self, continuations: &[Option<FlowId>]) -> Result<(), SpecError> {
        for (i, flow) in self.flows.iter().enumerate() {
            let Some(from) = flow.source.relays() else { continue };
            if continuations[from.index()] != Some(FlowId::at(i)) {
                let at = format_args!("flows[{i}].source.from");
                return Err(SpecError::unfit(at, from, "a flow that no other passes on"));
            }
        }
        Ok(())
    }

    /// A capture needs a file for each end of each flow.
    fn check_capture(&self) -> Result<(), SpecError> {
        if self.capture.is_none() {
            return Ok(());
        }
        if self.flows.len() > CAPTURED_FLOWS_MAX {
            let given = format!("set with {} flows", self.flows.len());
            let expected = format!("at most {CAPTURED_FLOWS_MAX} flows");
            return Err(SpecError::unfit("capture", given, expected));
        }
        if let Some(i) = self.flows.iter().position(|flow| flow.transport == Transport::Udp) {
            let given = format!("set with the UDP flow `{}`", self.flows[i].name);
            return Err(SpecError::unfit(
                "capture",
                given,
                "TCP and QUIC flows alone, and no pings",
            ));
        }
        if let Some(shared) = self.flows.iter().find(|flow| flow.connection_of.is_some()) {
            let given = format!("set with `{}`, which shares a connection", shared.name);
            let expected = "flows that have their own connections";
            return Err(SpecError::unfit("capture", given, expected));
        }
        let names_no_file = |flow: &crate::FlowSpec| {
            let name = &flow.name;
            name.starts_with('.') || name.contains(['/', '\0']) || name.len() > FILE_NAME_MAX_BYTES
        };
        match self.flows.iter().position(names_no_file) {
            None => Ok(()),
            Some(i) => Err(SpecError::unfit(
                format_args!("flows[{i}].name"),
                format!("`{}`", self.flows[i].name),
                format!("one that can name a file, of at most {FILE_NAME_MAX_BYTES} bytes"),
            )),
        }
    }

    fn check_phases(&self) -> Result<(), SpecError> {
        for (i, phase) in self.phases.iter().enumerate() {
            within(format_args!("phases[{i}].to_ns"), phase.to_ns, 1..=self.duration_ns)?;
            within(format_args!("phases[{i}].from_ns"), phase.from_ns, 0..=phase.to_ns - 1)?;
        }
        let overall = self.phases.iter().find(|phase| phase.name == "overall");
        match overall.map(|phase| (phase.from_ns, phase.to_ns)) {
            Some((0, to_ns)) if to_ns == self.duration_ns => Ok(()),
            Some((from_ns, to_ns)) => Err(SpecError::unfit(
                "phases",
                format!("`overall` from {from_ns} to {to_ns} ns"),
                format!("it to go from 0 to the run's end at {} ns", self.duration_ns),
            )),
            None => Err(SpecError::unfit(
                "phases",
                "a list without `overall`",
                format!("that phase, from 0 to {} ns", self.duration_ns),
            )),
        }
    }

    fn check_names(&self) -> Result<(), SpecError> {
        if self.links.is_empty() {
            return Err(SpecError::unfit("links", "empty", "at least one link"));
        }
        if self.flows.is_empty() {
            return Err(SpecError::unfit("flows", "empty", "at least one flow"));
        }
        distinct("phases", self.phases.iter().map(|phase| phase.name.as_str()))?;
        distinct("links", self.links.iter().map(|link| link.name.as_str()))?;
        distinct("flows", self.flows.iter().map(|flow| flow.name.as_str()))
    }
}

impl Quantity {
    /// Validates a quantity without a run.
    ///
    /// # Errors
    /// The first invalid value, with its path and the accepted values.
    pub fn validate(&self) -> Result<(), SpecError> {
        quantity::check(format_args!("quantity"), self, 0..=u64::MAX)
    }
}

impl LinkSpec {
    /// Validates a link without a run. `at` is its path in error messages.
    ///
    /// # Errors
    /// The first invalid value, with its path and the accepted values.
    pub fn validate(&self, at: &str) -> Result<(), SpecError> {
        if let CapacitySpec::Tunnel { .. } = self.capacity {
            let expected = "a rate: only the connection of a run takes packets";
            return Err(SpecError::unfit(format_args!("{at}.capacity"), "a tunnel", expected));
        }
        link::check(format_args!("{at}"), self)
    }
}

/// Checks that names are present and unique, because random streams and results are identified by
/// name.
fn distinct<'a>(list: impl Display, names: impl Iterator<Item = &'a str>) -> Result<(), SpecError> {
    let mut seen = std::collections::BTreeMap::new();
    for (i, name) in names.enumerate() {
        let at = format_args!("{list}[{i}].name");
        if name.is_empty() {
            return Err(SpecError::unfit(at, "empty", "a name"));
        }
        if let Some(first) = seen.insert(name, i) {
            return Err(SpecError::unfit(
                at,
                format!("\"{name}\""),
                format!("a name that differs from {list}[{first}]"),
            ));
        }
    }
    Ok(())
}

/// Checks that a number is in a range.
fn within<T: Copy + PartialOrd + Into<u64>>(
    at: impl Display,
    given: T,
    accepted: RangeInclusive<T>,
) -> Result<(), SpecError> {
    if accepted.contains(&given) {
        return Ok(());
    }
    let (min, max) = ((*accepted.start()).into(), (*accepted.end()).into());
    Err(SpecError::Range { at: at.to_string(), given: given.into(), min, max })
}

/// Checks the times of steps: the first is 0, and times increase.
fn steps(at: SpecPath<'_>, times_ns: impl Iterator<Item = u64>) -> Result<(), SpecError> {
    let mut previous = None;
    for (i, at_ns) in times_ns.enumerate() {
        let place = format_args!("{at}[{i}].at_ns");
        match previous {
            None if at_ns != 0 => {
                return Err(SpecError::unfit(place, at_ns, "0 for the first step"));
            }
            Some(earlier) if at_ns <= earlier => {
                let expected = format!("a time after {earlier}, the time of the step before it");
                return Err(SpecError::unfit(place, at_ns, expected));
            }
            _ => previous = Some(at_ns),
        }
    }
    match previous {
        Some(_) => Ok(()),
        None => Err(SpecError::unfit(at, "empty", "at least one step")),
    }
}
