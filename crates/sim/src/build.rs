//! From a RunSpec to links and endpoints.

use jostle_control::registry::{self, Start};
use jostle_control::slow_start::Standard;
use jostle_control::{Controller, EcnFeedback, SlowStart};
use jostle_path::Link;
use jostle_record::{Algorithm, FlowSpec, LinkSpec, Linux, RunSpec, SourceSpec};
use jostle_tcp::{Deadlines, Options, Receiver, Sender};
use jostle_units::{Span, Stream, Time};

use crate::Error;
use crate::engine::{Agenda, Alarm, Event};
use crate::packet::Body;
use crate::pinger::Pinger;
use crate::source::Source;

/// Makes the controllers that no registry has ([`jostle_record::Algorithm::is_python_controller`]): given
/// the flow and the controller's own random numbers, a controller or what is wrong.
pub type PythonControllers<'a> =
    &'a dyn Fn(&FlowSpec, Stream) -> Result<Box<dyn Controller>, String>;

/// Both ends of a flow. Nearly all have a connection: behind a pointer each packet would pay for it.
#[allow(clippy::large_enum_variant, reason = "see above")]
pub(crate) enum Ends {
    Connection(Connection),
    Pings(Pings),
}

impl Ends {
    /// When the flow opens, and when it stops.
    pub fn times(&mut self) -> &mut Times {
        match self {
            Self::Connection(connection) => &mut connection.times,
            Self::Pings(pings) => &mut pings.times,
        }
    }
}

/// When a flow does something.
pub(crate) struct Times {
    /// Opened at, once that is known.
    pub start: Time,
    /// From the completion of the flow before it to the opening of this one, or from time 0.
    pub wait: Span,
    pub stop: Time,
}

/// Both ends of a TCP connection.
pub(crate) struct Connection {
    pub sender: Sender,
    pub receiver: Receiver,
    pub alarms: Alarms,
    pub source: Source,
    pub times: Times,
    /// The flow was stopped before everything it had to send was sent.
    pub cut: bool,
    /// Flows that open when this one is complete.
    pub followers: Vec<u32>,
}

/// The events of a connection's deadlines.
#[derive(Default)]
pub(crate) struct Alarms {
    pub retransmission: Alarm,
    pub pacing: Alarm,
    pub wakeup: Alarm,
    pub acknowledgement: Alarm,
}

impl Connection {
    /// Schedules whatever deadline of the sender moved forward.
    #[inline]
    pub fn arrange_sender(&mut self, flow: u32, agenda: &mut Agenda) {
        let &Deadlines { retransmission, pacing, wakeup } = self.sender.deadlines();
        self.alarms.retransmission.arrange(retransmission, agenda, Event::Retransmission(flow));
        self.alarms.pacing.arrange(pacing, agenda, Event::Pacing(flow));
        self.alarms.wakeup.arrange(wakeup, agenda, Event::Wakeup(flow));
    }

    /// Schedules the receiver's deadline if it moved forward.
    #[inline]
    pub fn arrange_receiver(&mut self, flow: u32, agenda: &mut Agenda) {
        let deadline = self.receiver.deadline();
        self.alarms.acknowledgement.arrange(deadline, agenda, Event::Acknowledgement(flow));
    }
}

/// A sender of pings; whoever receives them needs no state.
pub(crate) struct Pings {
    pub pinger: Pinger,
    pub times: Times,
}

fn invalid(what: &str, error: impl std::fmt::Display) -> Error {
    Error::Unbuildable { what: what.to_owned(), why: error.to_string() }
}

pub(crate) fn link(spec: &LinkSpec, seed: u64) -> Result<Link<Body>, Error> {
    spec.build(seed).map_err(|error| invalid(&spec.name, error))
}

fn slow_start(spec: Option<&Algorithm>, flow: &str) -> Result<Box<dyn SlowStart>, Error> {
    let Some(spec) = spec else { return Ok(Box::new(Standard)) };
    let row = registry::slow_start(&spec.name).ok_or_else(|| {
        invalid(flow, format_args!("there is no slow-start method `{}`", spec.name))
    })?;
    row.create(&spec.parameters).map_err(|e| invalid(flow, e))
}

fn controller(
    spec: &FlowSpec,
    seed: u64,
    python_controllers: PythonControllers<'_>,
) -> Result<Box<dyn Controller>, Error> {
    let controller = if spec.controller.is_python_controller() {
        let random = Stream::new(seed, &format!("flow/{}/controller", spec.name));
        python_controllers(spec, random).map_err(|e| invalid(&spec.name, e))?
    } else {
        from_registry(spec, seed)?
    };
    let Some(memory) = &spec.memory else { return Ok(controller) };
    let row = registry::memory(&memory.name)
        .ok_or_else(|| invalid(&spec.name, format_args!("there is no memory `{}`", memory.name)))?;
    row.create(&memory.parameters, controller).map_err(|e| invalid(&spec.name, e))
}

fn from_registry(spec: &FlowSpec, seed: u64) -> Result<Box<dyn Controller>, Error> {
    let name = &spec.controller.name;
    let row = registry::controller(name)
        .ok_or_else(|| invalid(&spec.name, format_args!("there is no controller `{name}`")))?;
    if row.start == Start::Own && spec.slow_start.is_some() {
        return Err(invalid(&spec.name, format_args!("`{name}` has a slow start of its own")));
    }
    let start = slow_start(spec.slow_start.as_ref(), &spec.name)?;
    let random = Stream::new(seed, &format!("flow/{}/controller", spec.name));
    row.create(&spec.controller.parameters, start, random).map_err(|e| invalid(&spec.name, e))
}

/// Both ends of every flow of `run`.
pub(crate) fn all_ends(
    run: &RunSpec,
    python_controllers: PythonControllers<'_>,
) -> Result<Vec<Ends>, Error> {
    // A vector that grows would move what was made, a kilobyte each, again and again.
    let mut all = Vec::with_capacity(run.flows.len());
    for flow in &run.flows {
        all.push(ends(flow, run, python_controllers)?);
    }
    // Here, and not where a flow is made: each would have to look at all of them.
    for (follower, flow) in (0..).zip(&run.flows) {
        let leader = flow.after.and_then(|leader| all.get_mut(leader as usize));
        if let Some(Ends::Connection(connection)) = leader {
            connection.followers.push(follower);
        }
    }
    Ok(all)
}

fn ends(
    spec: &FlowSpec,
    run: &RunSpec,
    python_controllers: PythonControllers<'_>,
) -> Result<Ends, Error> {
    let times = Times {
        start: if spec.after.is_some() { Time::NEVER } else { Time::from_ns(spec.start_ns) },
        wait: Span::from_ns(spec.start_ns),
        stop: spec.stop_ns.map_or(Time::NEVER, Time::from_ns),
    };
    if let SourceSpec::Ping { bytes, every_ns, timeout_ns } = spec.source {
        let (every, timeout) = (Span::from_ns(every_ns), Span::from_ns(timeout_ns));
        return Ok(Ends::Pings(Pings { pinger: Pinger::new(bytes as u16, every, timeout), times }));
    }
    connection(spec, run, python_controllers, times).map(Ends::Connection)
}

fn connection(
    spec: &FlowSpec,
    run: &RunSpec,
    python_controllers: PythonControllers<'_>,
    times: Times,
) -> Result<Connection, Error> {
    let options = Options {
        pacing: spec.pacing,
        ecn: spec.ecn,
        initial_window: spec.initial_window_packets,
        timestamp_offset: Stream::new(run.seed, &format!("flow/{}/timestamps", spec.name)).bits()
            as u32,
        initial_pacing: spec.initial_pacing,
        short_path_bursts: spec.linux == Linux::V6_1,
        peer: spec.peer,
    };
    let base_ns: u64 = spec
        .path
        .iter()
        .chain(&spec.reverse_path)
        .map(|&link| run.links[link as usize].delay.steps[0].delay_ns)
        .sum();
    let rtt = Span::from_ns(spec.access_delay_ns + base_ns);
    let controller = controller(spec, run.seed, python_controllers)?;
    // In Linux a receiver echoes marks as its own controller needs it: both ends have the same.
    let feedback = match (spec.ecn, controller.needs_ecn()) {
        (false, _) => EcnFeedback::None,
        (true, EcnFeedback::None) => EcnFeedback::Classic,
        (true, needed) => needed,
    };
    let mut receiver = Receiver::new(spec.receive_window_bytes, rtt, feedback)
        .offering(spec.initial_receive_window_bytes);
    if spec.receive_window_autotuning {
        receiver = receiver.autotuned();
    }
    if spec.linux == Linux::V4_15 {
        receiver = receiver.uncompressed();
    }
    Ok(Connection {
        sender: Sender::new(options, controller),
        receiver,
        alarms: Alarms::default(),
        source: Source::new(
            spec.source,
            Stream::new(run.seed, &format!("flow/{}/source", spec.name)),
        ),
        times,
        cut: false,
        followers: Vec::new(),
    })
}
