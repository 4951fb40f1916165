//! All of a run that changes, and when it is looked at.

use jostle_control::memory::HostMemory;
use jostle_record::RunSpec;
use jostle_units::{Span, Time};

use crate::Error;
use crate::browser::Browser;
use crate::build::{self, Flow, PythonControllers};
use crate::connections::Connections;
use crate::engine::{Event, POSITIONS};
use crate::host::Transport;
use crate::network::Network;
use crate::packet::SimPacket;

/// So often in a run every link does what is due, with a look after each: nobody else may call one
/// for long, and what it draws and updates meanwhile takes time.
const SLICES: u64 = 1_000;

/// How much a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events taken from the queue.
    pub events: u64,
    /// Packets that reached the far end of a link, data and acknowledgements.
    pub link_packets: u64,
}

/// All of a run that changes while it goes on, but for its sink.
pub(crate) struct World {
    pub(crate) network: Network,
    pub(crate) flows: Vec<Flow>,
    /// Those of flows that are many.
    pub(crate) connections: Connections,
    /// Those of flows whose connections they open, by flow.
    pub(crate) browsers: Vec<Browser>,
    /// Packets that cards hold until what arrives at this moment has arrived, one per flow, with its
    /// place in what is being put together. Here, and not with the flows, which would all be larger
    /// for it.
    pub(crate) merging: Vec<(SimPacket, u32)>,
    pub(crate) memory: HostMemory,
    /// Why the run cannot go on.
    pub(crate) broken: Option<Error>,
    pub(crate) observations: Observations,
    pub(crate) counts: Counts,
    /// Events so far, for looks at whether the run was cancelled.
    pub(crate) turns: u64,
    /// When every link does next what is due.
    pub(crate) slice_end: Time,
    /// Everything that is to be observed was.
    pub(crate) over: bool,
}

impl World {
    /// Everything as it is before the run begins.
    pub(crate) fn new(
        spec: &RunSpec,
        python_controllers: PythonControllers<'_>,
    ) -> Result<Self, Error> {
        if spec.flows.len().max(spec.links.len()) >= POSITIONS as usize {
            return Err(Error::TooMany { most: POSITIONS });
        }
        let hosts = spec.hosts();
        let link = |link| build::link(link, spec.seed, &hosts);
        let links = spec.links.iter().map(link).collect::<Result<_, _>>()?;
        let mut world = Self {
            network: Network::new(links, &spec.links, &spec.flows),
            flows: build::flows(spec, python_controllers)?,
            connections: Connections::new(spec)?,
            browsers: (0..)
                .zip(&spec.flows)
                .filter_map(|(flow, it)| Browser::of(flow, it, spec.seed))
                .collect(),
            merging: Vec::new(),
            memory: HostMemory::default(),
            broken: None,
            observations: Observations::new(spec),
            counts: Counts::default(),
            turns: 0,
            slice_end: Time::ZERO,
            over: false,
        };
        world.slice_end += world.slice();
        world.network.agenda.schedule(world.observations.next(), Event::Observe);
        for (flow, &Flow { times, .. }) in (0..).zip(&world.flows) {
            if times.start < Time::NEVER {
                world.network.agenda.schedule(times.start, Event::Source(flow));
            }
        }
        Ok(world)
    }

    pub(crate) fn slice(&self) -> Span {
        Span::from_ns((self.observations.duration.as_ns() / SLICES).max(1))
    }

    /// What the run did, or what broke it.
    pub(crate) fn outcome(&self, spec: &RunSpec) -> Result<Counts, Error> {
        let mut named = self.flows.iter().zip(&spec.flows);
        if let Some((why, name)) =
            named.find_map(|(flow, it)| Some((flow.endpoints.failure()?, &it.name)))
        {
            return Err(Error::Broken { flow: name.clone(), why });
        }
        Ok(Counts { link_packets: self.network.link_packets, ..self.counts })
    }
}

/// Instants at which the state of everything is shown to the sink: ends of intervals and
/// boundaries of phases.
pub(crate) struct Observations {
    pub(crate) duration: Time,
    pub(crate) interval: Span,
    pub(crate) next_sample: Time,
    pub(crate) boundaries: Vec<Time>,
    pub(crate) next_boundary: usize,
    pub(crate) offered: Vec<f64>,
}

impl Observations {
    pub(crate) fn new(spec: &RunSpec) -> Self {
        let mut boundaries: Vec<_> = spec
            .phases
            .iter()
            .flat_map(|phase| [phase.from_ns, phase.to_ns])
            .chain([0, spec.duration_ns])
            .map(Time::from_ns)
            .collect();
        boundaries.sort_unstable();
        boundaries.dedup();
        let interval = Span::from_ns(spec.interval_ns);
        Self {
            duration: Time::from_ns(spec.duration_ns),
            interval,
            next_sample: (Time::ZERO + interval).min(Time::from_ns(spec.duration_ns)),
            boundaries,
            next_boundary: 0,
            offered: Vec::new(),
        }
    }

    pub(crate) fn boundary(&self) -> Time {
        self.boundaries.get(self.next_boundary).copied().unwrap_or(Time::NEVER)
    }

    pub(crate) fn next(&self) -> Time {
        self.next_sample.min(self.boundary())
    }
}
