//! State of a run, and the times at which it is reported.

use jostle_congestion::peer_cache::PeerCache;
use jostle_link::Service;
use jostle_run_spec::RunSpec;
use jostle_units::{FlowId, Span, Time};

use crate::Error;
use crate::build::{self, BuiltFlow, UserControllers};
use crate::dynamic_connections::DynamicConnections;
use crate::event_queue::{Event, POSITIONS};
use crate::network::Network;
use crate::packet::SimPacket;
use crate::transport::Endpoints;
use jostle_traffic::WebBrowser;

/// Number of times per run at which all links are advanced. Otherwise an idle link would have to
/// catch up on a long time in one event; cancellation is checked in between.
const SLICES: u64 = 1_000;

/// Number of events and packets of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// Events taken from the queue.
    pub events: u64,
    /// Packets that reached the far end of a link, data and acknowledgements.
    pub link_packets: u64,
}

/// Complete state of a run, except the sink.
pub(crate) struct SimulationState {
    pub(crate) network: Network,
    pub(crate) flows: Vec<BuiltFlow>,
    /// Connections of multi-connection flows.
    pub(crate) connections: DynamicConnections,
    /// Browsers, sorted by flow. They open the connections of their flows.
    pub(crate) browsers: Vec<WebBrowser>,
    /// Packets that GRO holds until the end of the current time, one per flow, with the number of
    /// packets merged so far. Stored here to keep the flows small.
    pub(crate) merging: Vec<(SimPacket, u32)>,
    pub(crate) memory: PeerCache,
    /// Error that ends the run.
    pub(crate) broken: Option<Error>,
    pub(crate) observations: ObservationTimes,
    pub(crate) counts: RunCounts,
    /// Number of events, including observations, to schedule checks for cancellation.
    pub(crate) turns: u64,
    /// Next time at which all links are advanced.
    pub(crate) slice_end: Time,
    /// Whether the run has reached its end.
    pub(crate) over: bool,
}

impl SimulationState {
    /// Builds the state at time 0.
    pub(crate) fn new(
        spec: &RunSpec,
        user_controllers: UserControllers<'_>,
    ) -> Result<Self, Error> {
        if spec.flows.len().max(spec.links.len()) >= POSITIONS as usize {
            return Err(Error::TooMany { most: POSITIONS });
        }
        let hosts = spec.hosts();
        let link = |link| build::link(link, spec.seed, &hosts);
        let links = spec.links.iter().map(link).collect::<Result<_, _>>()?;
        let mut world = Self {
            network: Network::new(links, &spec.links, &spec.flows),
            flows: build::flows(spec, user_controllers)?,
            connections: DynamicConnections::new(spec)?,
            browsers: (0..)
                .zip(&spec.flows)
                .filter_map(|(flow, it)| WebBrowser::of(FlowId(flow), it, spec.seed))
                .collect(),
            merging: Vec::new(),
            memory: PeerCache::default(),
            broken: None,
            observations: ObservationTimes::new(spec),
            counts: RunCounts::default(),
            turns: 0,
            slice_end: Time::ZERO,
            over: false,
        };
        world.slice_end += world.slice();
        world.network.agenda.schedule_observation(world.observations.next());
        world.network.change_routes(Time::ZERO);
        for (flow, &BuiltFlow { times, .. }) in (0..).map(FlowId).zip(&world.flows) {
            if times.start < Time::NEVER {
                world.network.agenda.schedule(times.start, Event::Source(flow.into()));
            }
        }
        Ok(world)
    }

    pub(crate) fn slice(&self) -> Span {
        Span::from_ns((self.observations.duration.as_ns() / SLICES).max(1))
    }

    /// Returns the counts of the run, or the error of a failed connection.
    pub(crate) fn outcome(&self, spec: &RunSpec) -> Result<RunCounts, Error> {
        let mut named = self.flows.iter().zip(&spec.flows);
        if let Some((why, name)) =
            named.find_map(|(flow, it)| Some((flow.endpoints.failure()?, &it.name)))
        {
            return Err(Error::Broken { flow: name.clone(), why });
        }
        Ok(RunCounts { link_packets: self.network.link_packets, ..self.counts })
    }
}

/// Times at which the state is reported to the sink: ends of sampling intervals and phase
/// boundaries.
pub(crate) struct ObservationTimes {
    pub(crate) duration: Time,
    pub(crate) interval: Span,
    pub(crate) next_sample: Time,
    pub(crate) boundaries: Vec<Time>,
    pub(crate) next_boundary: usize,
    pub(crate) services: Vec<Service>,
}

impl ObservationTimes {
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
            services: Vec::new(),
        }
    }

    pub(crate) fn boundary(&self) -> Time {
        self.boundaries.get(self.next_boundary).copied().unwrap_or(Time::NEVER)
    }

    pub(crate) fn next(&self) -> Time {
        self.next_sample.min(self.boundary())
    }
}
