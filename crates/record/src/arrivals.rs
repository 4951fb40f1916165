//! The connections of a flow that is many: when they come, and what each of them is.

use jostle_units::{HEADER_BYTES, Span, Stream, Time, mss_of};

use crate::{ArrivalsSpec, CapacitySpec, FlowSpec, FlowStreams, Quantity, RunSpec, SourceSpec};

/// Quantiles over which headers are averaged: they are a bounded part of a size, so that steps of a
/// ten-thousandth leave nothing of note out.
const STEPS: u32 = 10_000;

/// When the connections of a flow open.
#[derive(Clone, Debug)]
pub struct Arrivals {
    process: Process,
    random: Stream,
    start: Time,
    /// When the last of them came.
    last: Time,
    /// How many have come.
    count: u32,
}

#[derive(Clone, Debug)]
enum Process {
    Poisson { mean_s: f64 },
    Listed { at_ns: Vec<u64> },
}

impl Arrivals {
    /// Those of a flow of a valid run; none of a flow that is a single connection.
    pub fn of(flow: &FlowSpec, run: &RunSpec) -> Option<Self> {
        let process = match flow.arrivals.as_ref()? {
            ArrivalsSpec::Listed { at_ns, .. } => Process::Listed { at_ns: at_ns.clone() },
            _ => Process::Poisson { mean_s: 1.0 / rate_per_s(flow, run)? },
        };
        let random = FlowStreams::of(run.seed, &flow.name).stream("arrivals");
        let start = Time::from_ns(flow.start_ns);
        Some(Self { process, random, start, last: start, count: 0 })
    }

    /// When the next connection opens; [`Time::NEVER`] after the last.
    pub fn next_at(&mut self) -> Time {
        self.last = match &self.process {
            Process::Poisson { mean_s } => {
                self.last + Span::from_secs_f64(self.random.exponential(*mean_s))
            }
            Process::Listed { at_ns } => match at_ns.get(self.count as usize) {
                Some(ns) => self.start + Span::from_ns(*ns),
                None => Time::NEVER,
            },
        };
        self.count += 1;
        self.last
    }
}

impl FlowSpec {
    /// It is many connections, which come and go.
    pub const fn is_many(&self) -> bool {
        self.arrivals.is_some() || matches!(self.source, SourceSpec::Web(_))
    }
}

/// Size of the `number`-th connection of a flow, if its arrivals list sizes.
pub fn listed_bytes(flow: &FlowSpec, number: u32) -> Option<u64> {
    let Some(ArrivalsSpec::Listed { bytes: Some(bytes), .. }) = &flow.arrivals else { return None };
    Some(bytes.get(number as usize).copied().unwrap_or(1))
}

/// The `number`-th connection of a flow that is many, as a flow by itself. Its name names its random
/// streams ([`FlowStreams::of_connection`]).
pub fn nth_connection(flow: &FlowSpec, number: u32) -> FlowSpec {
    let name = format!("{}/{number}", flow.name);
    let source = match listed_bytes(flow, number) {
        Some(bytes) => SourceSpec::Fixed { bytes: Quantity::Constant(bytes) },
        None => flow.source.clone(),
    };
    FlowSpec { name, source, arrivals: None, ..flow.clone() }
}

/// Connections per second of a flow whose connections come as a Poisson process; none of others, and
/// where a load cannot be computed: a source without a mean, a link without a constant rate.
pub fn rate_per_s(flow: &FlowSpec, run: &RunSpec) -> Option<f64> {
    match *flow.arrivals.as_ref()? {
        ArrivalsSpec::Poisson { rate_per_s } => Some(rate_per_s),
        ArrivalsSpec::Load { share, link } => {
            let bytes = wire_bytes_mean(flow)?;
            Some(share * rate_bps(run, link)? as f64 / (8.0 * bytes))
        }
        ArrivalsSpec::Listed { .. } => None,
    }
}

fn rate_bps(run: &RunSpec, link: u32) -> Option<u64> {
    match run.links.get(link as usize)?.capacity {
        CapacitySpec::Constant { rate_bps } => Some(rate_bps),
        _ => None,
    }
}

/// Mean of what a connection of a flow puts on the wire in data packets, each sent once.
fn wire_bytes_mean(flow: &FlowSpec) -> Option<f64> {
    let (bytes, transfers) = match &flow.source {
        SourceSpec::Fixed { bytes } => (bytes, 1.0),
        SourceSpec::RequestResponse { bytes, count, .. } => (bytes, count.as_ref()?.mean()?),
        _ => return None,
    };
    let mss = f64::from(mss_of(flow.mtu_bytes));
    let mean = bytes.mean()?;
    // What the last packet of a transfer is short of a full one is a share of a packet, whatever the
    // tail of the sizes.
    let short = (0..STEPS).map(|step| {
        let size = bytes.quantile((f64::from(step) + 0.5) / f64::from(STEPS)).round().max(1.0);
        (size / mss).ceil() - size / mss
    });
    let packets = mean / mss + short.sum::<f64>() / f64::from(STEPS);
    Some(transfers * (mean + packets * f64::from(HEADER_BYTES)))
}

/// Bytes on the wire of a transfer whose packets are sent once.
pub(crate) fn wire_bytes(bytes: u64, mtu_bytes: u32) -> u64 {
    bytes + bytes.div_ceil(u64::from(mss_of(mtu_bytes))) * u64::from(HEADER_BYTES)
}
