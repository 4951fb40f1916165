//! Connections that come and go: those of flows that are many.
//!
//! Each has a number of its own, which is never used again: what is still on its way when a connection
//! has ended, packets and timers, finds nobody. Its endpoints are gone by then; what stays is a place.

use jostle_record::{Arrivals, FlowSpec, RunSpec};
use jostle_units::Time;

use crate::Error;
use crate::build::{Plan, PythonControllers};
use crate::endpoints::Endpoints;
use crate::host::Transport;

/// No place: the connection has ended.
const GONE: u32 = u32::MAX;

/// A flow that is many connections.
struct Many {
    flow: u32,
    /// When they come; none if a browser opens them.
    arrivals: Option<Arrivals>,
    /// When the next one comes.
    due: Time,
    /// How many have come.
    came: u32,
    /// How they are made.
    plan: Plan,
}

/// A connection that is there.
struct Living {
    flow: u32,
    opened: Time,
    endpoints: Endpoints,
}

/// All connections of flows that are many.
pub(crate) struct Connections {
    flows: Vec<Many>,
    /// Number of the first one: those below are flows.
    first: u32,
    /// Where each that ever was is among the living.
    places: Vec<u32>,
    living: Vec<Option<Living>>,
    free: Vec<u32>,
}

impl Connections {
    /// Those of the flows of `run`, before any of them is there.
    ///
    /// # Errors
    /// When they cannot be built.
    pub fn new(run: &RunSpec) -> Result<Self, Error> {
        let many = |(flow, spec): (u32, &FlowSpec)| {
            let mut arrivals = Arrivals::of(spec, run);
            let due = arrivals.as_mut().map_or(Time::NEVER, Arrivals::next_at);
            Ok(Many { flow, arrivals, due, came: 0, plan: Plan::of(spec, run)? })
        };
        let flows = (0..).zip(&run.flows).filter(|(_, spec)| spec.is_many());
        Ok(Self {
            flows: flows.map(many).collect::<Result<_, _>>()?,
            first: run.flows.len() as u32,
            places: Vec::new(),
            living: Vec::new(),
            free: Vec::new(),
        })
    }

    fn many(&mut self, flow: u32) -> Option<&mut Many> {
        let at = self.flows.binary_search_by_key(&flow, |many| many.flow).ok()?;
        self.flows.get_mut(at)
    }

    /// When the next connection of a flow comes; none of a flow that is a single one.
    pub fn due(&mut self, flow: u32) -> Option<Time> {
        Some(self.many(flow)?.due)
    }

    /// Number of the next connection.
    pub fn next_number(&self) -> u32 {
        self.first + self.places.len() as u32
    }

    /// The next connection of a flow is there, with the next number.
    ///
    /// # Errors
    /// When it cannot be built.
    pub fn open(
        &mut self,
        now: Time,
        flow: u32,
        run: &RunSpec,
        python_controllers: PythonControllers<'_>,
    ) -> Result<(), Error> {
        let Some(many) = self.many(flow) else { return Ok(()) };
        let spec = &run.flows[flow as usize];
        let endpoints = many.plan.endpoints(many.came, spec, run, python_controllers)?;
        let opened = many.due.min(now);
        many.came += 1;
        many.due = many.arrivals.as_mut().map_or(Time::NEVER, Arrivals::next_at);
        let place = self.free.pop().unwrap_or_else(|| {
            self.living.push(None);
            self.living.len() as u32 - 1
        });
        self.living[place as usize] = Some(Living { flow, opened, endpoints });
        self.places.push(place);
        Ok(())
    }

    fn place(&self, connection: u32) -> Option<usize> {
        let place = *self.places.get(connection.checked_sub(self.first)? as usize)?;
        (place != GONE).then_some(place as usize)
    }

    /// The flow of a connection that is there.
    pub fn flow_of(&self, connection: u32) -> Option<u32> {
        Some(self.living[self.place(connection)?].as_ref()?.flow)
    }

    /// The ends of a connection that is there.
    #[cold]
    #[inline(never)]
    pub fn endpoints(&mut self, connection: u32) -> Option<&mut Endpoints> {
        let place = self.place(connection)?;
        Some(&mut self.living[place].as_mut()?.endpoints)
    }

    /// A connection has ended: when it was opened.
    pub fn close(&mut self, connection: u32) -> Option<Time> {
        let place = self.place(connection)?;
        let living = self.living[place].take()?;
        self.places[(connection - self.first) as usize] = GONE;
        self.free.push(place as u32);
        Some(living.opened)
    }

    /// Bytes that the connections of a flow have in flight.
    pub fn in_flight_bytes(&self, flow: u32) -> u64 {
        let theirs = self.living.iter().flatten().filter(|living| living.flow == flow);
        theirs.map(|living| living.endpoints.state().in_flight_bytes).sum()
    }
}
