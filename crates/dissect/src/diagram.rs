//! One flow's packets and answers, one by one: what a time–sequence diagram is drawn from.

use std::path::{Path, PathBuf};

use crate::Options;
use crate::error::Error;
use crate::file::{Packets, Position};
use crate::measure::{Following, Merged};
use crate::packet::Segment;
use crate::plan::{Flow, Plan, plans};
use crate::sequence::{Block, blocks};
use crate::survey::{ASKED_EVERY, Survey};

use jostle_record::Transport;

/// What a packet of data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Bytes that were not sent before.
    New,
    /// Sent again after news of a hole: SACKs, or three duplicate ACKs.
    Fast,
    /// Sent again for nothing was heard.
    Timeout,
    /// The last packet again, before any timeout (TLP).
    Probe,
    /// Not sent again: another packet was seen before it.
    OutOfOrder,
    /// Near the receiver: fills a hole.
    Again,
    /// Near the receiver: was there already.
    Twice,
}

impl Kind {
    /// Names, in the order of the numbers that stand in a column.
    pub const NAMES: [&str; 7] =
        ["new", "fast", "timeout", "probe", "out_of_order", "again", "twice"];
}

/// Flows that an error names.
const NAMED: usize = 20;

/// Which part of which flow is wanted.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Its name; the one with the most payload if none is given.
    pub flow: Option<String>,
    /// A window on the clock of the measurement.
    pub from_ns: u64,
    /// Its end, which is not part of it.
    pub to_ns: u64,
    /// Rows of each table at most: what is beyond them is left out.
    pub rows: usize,
}

/// Packets of data. Bytes count from the first one of data that was seen: of what is older and comes
/// later, down from it.
#[derive(Clone, Debug, Default)]
pub struct PacketColumns {
    /// When it was seen.
    pub time_ns: Vec<u64>,
    /// Its first byte.
    pub start: Vec<i64>,
    /// After its last one.
    pub end: Vec<i64>,
    /// A [`Kind`].
    pub kind: Vec<u8>,
}

/// Segments of the receiver.
#[derive(Clone, Debug, Default)]
pub struct AnswerColumns {
    /// When it was seen.
    pub time_ns: Vec<u64>,
    /// The first byte that it does not acknowledge.
    pub acknowledged: Vec<i64>,
    /// The first byte that the window does not allow; NaN where its scale is not known.
    pub edge: Vec<f64>,
}

/// Selective acknowledgements, one row per block.
#[derive(Clone, Debug, Default)]
pub struct SackColumns {
    /// When it was seen.
    pub time_ns: Vec<u64>,
    /// Its first byte.
    pub start: Vec<i64>,
    /// After its last one.
    pub end: Vec<i64>,
    /// It tells of something that came twice (RFC 2883).
    pub is_duplicate: Vec<bool>,
}

/// A flow, packet by packet.
#[derive(Clone, Debug)]
pub struct Diagram {
    /// The file, as a position of what was given.
    pub file: usize,
    /// Name of the flow.
    pub flow: String,
    /// Its controller, if the file says it.
    pub controller: String,
    /// It was captured near the sender.
    pub is_near_sender: bool,
    /// When the flow began.
    pub start_ns: u64,
    /// Part of the clock that the tables cover; less than what was wanted if there were too many rows.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
    /// More rows were wanted than there may be.
    pub is_cut: bool,
    /// Packets of data.
    pub packets: PacketColumns,
    /// What the receiver said.
    pub answers: AnswerColumns,
    /// And of single blocks.
    pub sacks: SackColumns,
    rows: usize,
}

/// A packet of data as its follower understood it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub start: u64,
    pub end: u64,
    pub kind: Kind,
}

/// An answer as its follower understood it: its number, and the first byte of data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub number: u64,
    pub origin: u64,
    pub scale: Option<u8>,
}

/// Where a byte lies behind another one.
fn offset(number: u64, origin: u64) -> i64 {
    number.wrapping_sub(origin) as i64
}

impl Diagram {
    fn new(file: usize, flow: &Flow, wanted: &Wanted, duration_ns: u64) -> Self {
        Self {
            file,
            flow: flow.name.clone(),
            controller: flow.controller.clone(),
            is_near_sender: flow.sender.is_some(),
            start_ns: flow.start_ns,
            from_ns: wanted.from_ns,
            to_ns: wanted.to_ns.min(duration_ns),
            is_cut: false,
            packets: PacketColumns::default(),
            answers: AnswerColumns::default(),
            sacks: SackColumns::default(),
            rows: wanted.rows,
        }
    }

    /// Whether a row of this time belongs here; once there is no room for one, nothing later does.
    fn takes(&mut self, now_ns: u64, rows: usize) -> bool {
        if self.is_cut || now_ns < self.from_ns || now_ns >= self.to_ns {
            return false;
        }
        if rows >= self.rows {
            self.is_cut = true;
            self.to_ns = now_ns;
            return false;
        }
        true
    }

    pub(crate) fn packet(&mut self, now_ns: u64, seen: Seen, origin: u64) {
        if !self.takes(now_ns, self.packets.time_ns.len()) {
            return;
        }
        self.packets.time_ns.push(now_ns);
        self.packets.start.push(offset(seen.start, origin));
        self.packets.end.push(offset(seen.end, origin));
        self.packets.kind.push(seen.kind as u8);
    }

    pub(crate) fn answer(&mut self, now_ns: u64, answer: Answer, segment: &Segment) {
        let Answer { number, origin, scale } = answer;
        if !self.takes(now_ns, self.answers.time_ns.len()) {
            return;
        }
        let acknowledged = offset(number, origin);
        let room = scale.map(|scale| i64::from(segment.window) << scale.min(14));
        self.answers.time_ns.push(now_ns);
        self.answers.acknowledged.push(acknowledged);
        self.answers.edge.push(room.map_or(f64::NAN, |room| (acknowledged + room) as f64));
        for Block { start, end, is_duplicate } in blocks(number, segment) {
            if start < end && self.takes(now_ns, self.sacks.time_ns.len()) {
                self.sacks.time_ns.push(now_ns);
                self.sacks.start.push(offset(start, origin));
                self.sacks.end.push(offset(end, origin));
                self.sacks.is_duplicate.push(is_duplicate);
            }
        }
    }

    /// Nothing that comes later will be taken.
    fn is_over(&self, now_ns: u64) -> bool {
        self.is_cut || now_ns >= self.to_ns
    }
}

/// Reads a flow of each measurement that has it, packet by packet; `told` as in
/// [`analyze`](crate::analyze).
///
/// # Errors
/// When a file cannot be read or is no capture, or none has such a flow.
pub fn diagrams(
    files: &[PathBuf],
    options: &Options,
    wanted: &Wanted,
    told: &dyn Fn(u64) -> bool,
) -> Result<Vec<Diagram>, Error> {
    let position = Position::default();
    let go_on = || told(position.load(std::sync::atomic::Ordering::Relaxed));
    let surveys: Vec<_> = files
        .iter()
        .map(|path| Survey::of(path, position.clone(), &go_on))
        .collect::<Result<_, _>>()?;
    let mut found = Vec::new();
    let mut known = Vec::new();
    for plan in plans(&surveys, options) {
        known.extend(tcp(&plan).map(|flow| flow.name.clone()));
        if let Some(plan) = chosen(plan, wanted) {
            let path = &files[plan.files[0]];
            let packets = Packets::open(path, position.clone())?;
            found.push(diagram(&plan, packets, wanted, &go_on)?);
        }
    }
    if found.is_empty() {
        return Err(no_flow(files, wanted, &known));
    }
    Ok(found)
}

/// Reads a flow of the bytes of one file, as a fuzzer has them.
///
/// # Errors
/// As [`diagrams`].
pub fn look_closely(bytes: &[u8], options: &Options, wanted: &Wanted) -> Result<Diagram, Error> {
    let path = Path::new("bytes");
    let packets = || Packets::of(path, std::io::Cursor::new(bytes.to_vec()));
    let survey = Survey::of_packets(path, packets()?, &|| true)?;
    let plan = plans(&[survey], options).into_iter().find_map(|plan| chosen(plan, wanted));
    let Some(plan) = plan else { return Err(no_flow(&[path.to_owned()], wanted, &[])) };
    diagram(&plan, packets()?, wanted, &|| true)
}

fn no_flow(files: &[PathBuf], wanted: &Wanted, known: &[String]) -> Error {
    let what = match &wanted.flow {
        Some(name) if !known.is_empty() => {
            let more = if known.len() > NAMED { ", …" } else { "" };
            let names = known[..known.len().min(NAMED)].join(", ");
            format!("no TCP flow `{name}`; there are {names}{more}")
        }
        _ => "no TCP flow, whose packets alone are numbered in the clear".to_owned(),
    };
    Error::Empty { path: files.first().cloned().unwrap_or_default(), what }
}

fn tcp(plan: &Plan) -> impl Iterator<Item = &Flow> {
    plan.flows.iter().filter(|flow| flow.transport == Transport::Tcp)
}

/// The plan of one flow and one file: where its sender was captured, if it was.
fn chosen(plan: Plan, wanted: &Wanted) -> Option<Plan> {
    let flow = match &wanted.flow {
        Some(name) => tcp(&plan).find(|flow| flow.name == *name),
        None => tcp(&plan).max_by_key(|flow| flow.payload_bytes),
    };
    let mut flow = flow?.clone();
    let mut place = flow.sender.or(flow.receiver)?;
    let file = std::mem::take(&mut place.file);
    (flow.sender, flow.receiver) =
        if flow.sender.is_some() { (Some(place), None) } else { (None, Some(place)) };
    flow.given.flow = 0;
    flow.given.has_other_end = false;
    Some(Plan {
        files: vec![plan.files[file]],
        shifts_ns: vec![plan.shifts_ns[file]],
        flows: vec![flow],
        // The series is of no use here.
        interval_ns: plan.duration_ns,
        ..plan
    })
}

fn diagram(
    plan: &Plan,
    packets: Packets,
    wanted: &Wanted,
    go_on: &dyn Fn() -> bool,
) -> Result<Diagram, Error> {
    let spec = plan.spec(Vec::new());
    let empty = Diagram::new(plan.files[0], &plan.flows[0], wanted, plan.duration_ns);
    let mut following = Following::new(plan, &spec).with_diagram(empty);
    let mut merged = Merged::new(vec![packets], &plan.shifts_ns)?;
    let mut read = 0_u64;
    while let Some((file, now_ns, packet)) = merged.next()? {
        following.see(file, now_ns, &packet);
        if following.diagram.as_ref().is_some_and(|diagram| diagram.is_over(now_ns)) {
            break;
        }
        read += 1;
        if read.is_multiple_of(ASKED_EVERY) && !go_on() {
            return Err(Error::Cancelled);
        }
    }
    following.diagram.ok_or(Error::Cancelled)
}
