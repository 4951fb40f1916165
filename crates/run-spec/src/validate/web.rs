//! Validation of browsers.

use jostle_units::mss_of;

use super::{MAX_BYTES, MAX_NS, SpecError, SpecPath, quantity, within};
use crate::MOST_OBJECTS;
use crate::{FlowSpec, RunSpec, SourceSpec, Transport, WebSpec};

/// Maximum number of connections per page, more than any browser opens.
const MAX_CONNECTIONS: u32 = 256;

pub(super) fn check(at: SpecPath<'_>, web: &WebSpec) -> Result<(), SpecError> {
    within(format_args!("{at}.pages"), web.pages.unwrap_or(1), 1..=u64::MAX)?;
    quantity::check(format_args!("{at}.main_bytes"), &web.main_bytes, 1..=MAX_BYTES)?;
    quantity::check(format_args!("{at}.objects"), &web.objects, 0..=MOST_OBJECTS)?;
    quantity::check(format_args!("{at}.object_bytes"), &web.object_bytes, 1..=MAX_BYTES)?;
    quantity::check(format_args!("{at}.parse_ns"), &web.parse_ns, 0..=MAX_NS)?;
    quantity::check(format_args!("{at}.think_ns"), &web.think_ns, 0..=MAX_NS)?;
    within(format_args!("{at}.connections"), web.connections, 1..=MAX_CONNECTIONS)?;
    if web.multiplexed && web.connections != 1 {
        let expected = "1: all objects come over one connection";
        return Err(SpecError::unfit(format_args!("{at}.connections"), web.connections, expected));
    }
    Ok(())
}

/// Checks the other properties of a browser's flow.
pub(super) fn fits(at: SpecPath<'_>, flow: &FlowSpec, spec: &RunSpec) -> Result<(), SpecError> {
    let SourceSpec::Web(web) = &flow.source else { return Ok(()) };
    let largest = mss_of(flow.mtu_bytes);
    within(format_args!("{at}.source.request_bytes"), web.request_bytes, 1..=largest)?;
    if flow.transport != Transport::Tcp {
        let expected = "`tcp`: pages are loaded over TCP only";
        return Err(SpecError::unfit(format_args!("{at}.transport"), "another one", expected));
    }
    let place = format_args!("{at}.source");
    let a_browser = |expected: &str| Err(SpecError::unfit(place, "`web`", expected));
    if flow.memory.is_some() {
        return a_browser("another one with a peer cache: each page is of another host");
    }
    if flow.nic_rate_bps.is_some() {
        return a_browser(
            "another one with `nic_rate_bps`: each connection would have a separate network card",
        );
    }
    if spec.capture.is_some() {
        return a_browser("another one where packets are captured");
    }
    Ok(())
}
