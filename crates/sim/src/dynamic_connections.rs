//! Connections that are opened and closed during a run, for multi-connection flows.
//!
//! Connection numbers are not reused, so that packets and timers of a closed connection have no
//! effect. The endpoints of a closed connection are dropped; only its entry in the index remains.

use jostle_run_spec::{Arrivals, FlowSpec, RunSpec};
use jostle_units::{ConnectionId, FlowId, Time};

use crate::Error;
use crate::build::{ConnectionPlan, UserControllers};
use crate::endpoints::EndpointKind;
use crate::transport::Endpoints;

/// Marks a closed connection in `places`.
const CLOSED: u32 = u32::MAX;

/// A flow with several connections.
struct MultiConnectionFlow {
    flow: FlowId,
    /// Arrival process. `None` if a browser opens the connections.
    arrivals: Option<Arrivals>,
    /// Time of the next arrival.
    due: Time,
    /// Number of connections opened so far.
    came: u32,
    /// Recipe for new connections.
    plan: ConnectionPlan,
}

/// A connection that has not ended.
struct OpenConnection {
    flow: FlowId,
    opened: Time,
    endpoints: EndpointKind,
    /// Whether it is the direction of a browser's requests. The number of the requests follows the
    /// number of the responses.
    has_requests: bool,
}

/// The connections of all multi-connection flows.
pub(crate) struct DynamicConnections {
    flows: Vec<MultiConnectionFlow>,
    /// Number of the first connection. Lower numbers are flows.
    first: ConnectionId,
    /// Index into `living` of every connection opened so far, or [`CLOSED`].
    places: Vec<u32>,
    living: Vec<Option<OpenConnection>>,
    free: Vec<u32>,
}

impl DynamicConnections {
    /// Prepares the multi-connection flows of `run`, without connections.
    ///
    /// # Errors
    /// Returns an error if they cannot be built.
    pub fn new(run: &RunSpec) -> Result<Self, Error> {
        let many = |(flow, spec): (FlowId, &FlowSpec)| {
            let mut arrivals = Arrivals::of(spec, run);
            let due = arrivals.as_mut().map_or(Time::NEVER, Arrivals::next_at);
            Ok(MultiConnectionFlow {
                flow,
                arrivals,
                due,
                came: 0,
                plan: ConnectionPlan::of(spec, run)?,
            })
        };
        let flows = (0..).map(FlowId).zip(&run.flows).filter(|(_, spec)| spec.is_many());
        Ok(Self {
            flows: flows.map(many).collect::<Result<_, _>>()?,
            first: ConnectionId::at(run.flows.len()),
            places: Vec::new(),
            living: Vec::new(),
            free: Vec::new(),
        })
    }

    fn many(&mut self, flow: FlowId) -> Option<&mut MultiConnectionFlow> {
        let at = self.flows.binary_search_by_key(&flow, |many| many.flow).ok()?;
        self.flows.get_mut(at)
    }

    /// Returns the time of the next arrival. `None` for a flow with a single connection.
    pub fn due(&mut self, flow: FlowId) -> Option<Time> {
        Some(self.many(flow)?.due)
    }

    /// Returns the number of the next connection.
    pub fn next_number(&self) -> ConnectionId {
        ConnectionId::at(self.first.index() + self.places.len())
    }

    /// Opens the next connection of a flow, with the next number. The requests of a browser's
    /// connection have the number after it.
    ///
    /// # Errors
    /// Returns an error if it cannot be built.
    pub fn open(
        &mut self,
        now: Time,
        flow: FlowId,
        run: &RunSpec,
        user_controllers: UserControllers<'_>,
    ) -> Result<(), Error> {
        let number = self.next_number();
        let Some(many) = self.many(flow) else { return Ok(()) };
        let spec = &run.flows[flow.index()];
        let (endpoints, requests) =
            many.plan.endpoints((many.came, number), spec, run, user_controllers)?;
        let opened = many.due.min(now);
        debug_assert!(many.arrivals.is_none() || many.due <= now, "opened before its arrival");
        many.came += 1;
        many.due = many.arrivals.as_mut().map_or(Time::NEVER, Arrivals::next_at);
        self.add(OpenConnection { flow, opened, endpoints, has_requests: false });
        if let Some(endpoints) = requests {
            self.add(OpenConnection { flow, opened, endpoints, has_requests: true });
        }
        Ok(())
    }

    /// Adds a connection with the next number.
    fn add(&mut self, connection: OpenConnection) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.living.push(None);
            self.living.len() as u32 - 1
        });
        debug_assert!(self.living[place as usize].is_none(), "the place of an open connection");
        self.living[place as usize] = Some(connection);
        self.places.push(place);
    }

    fn living_index(&self, connection: ConnectionId) -> Option<usize> {
        let place = *self.places.get(connection.index().checked_sub(self.first.index())?)?;
        (place != CLOSED).then_some(place as usize)
    }

    /// Returns the flow of an open connection.
    pub fn flow_of(&self, connection: ConnectionId) -> Option<FlowId> {
        Some(self.living[self.living_index(connection)?].as_ref()?.flow)
    }

    /// Returns the endpoints of an open connection.
    #[cold]
    #[inline(never)]
    pub fn endpoints(&mut self, connection: ConnectionId) -> Option<&mut EndpointKind> {
        let place = self.living_index(connection)?;
        Some(&mut self.living[place].as_mut()?.endpoints)
    }

    /// Closes both directions of a browser's connection.
    pub fn close_browser_connection(&mut self, connection: ConnectionId) {
        self.close(connection);
        self.close(ConnectionId(connection.0 + 1));
    }

    /// Closes a connection. Returns the time at which it was opened.
    pub fn close(&mut self, connection: ConnectionId) -> Option<Time> {
        let place = self.living_index(connection)?;
        let living = self.living[place].take()?;
        self.places[connection.index() - self.first.index()] = CLOSED;
        self.free.push(place as u32);
        Some(living.opened)
    }

    /// Returns the bytes in flight of all connections of a flow, without requests.
    pub fn in_flight_bytes(&self, flow: FlowId) -> u64 {
        let theirs = self
            .living
            .iter()
            .flatten()
            .filter(|living| living.flow == flow && !living.has_requests);
        theirs.map(|living| living.endpoints.state().in_flight_bytes).sum()
    }
}
