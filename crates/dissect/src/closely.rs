//! The second pass for one flow, of which every packet is told.

use std::path::{Path, PathBuf};

use jostle_record::Transport;

use crate::Options;
use crate::diagram::{AnswerColumns, Diagram, PacketColumns, SackColumns, Wanted};
use crate::error::Error;
use crate::file::{Packets, Position};
use crate::measure::{Following, Merged};
use crate::plan::{Flow, Place, Plan, plans};
use crate::survey::{ASKED_EVERY, Survey};

/// Flows that an error names.
const NAMED: usize = 20;

/// Reads flows packet by packet: of each measurement the one that is wanted, or else the largest one
/// of each file; `told` as in [`analyze`](crate::analyze).
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
        for plan in chosen(&plan, wanted) {
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
    let plan = plans(&[survey], options).iter().flat_map(|plan| chosen(plan, wanted)).next();
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

/// Plans of one flow and one file each: the flow that is wanted, or else the largest one of every
/// file that is not the other end of one before.
fn chosen(plan: &Plan, wanted: &Wanted) -> Vec<Plan> {
    if let Some(name) = &wanted.flow {
        return tcp(plan)
            .find(|flow| flow.name == *name)
            .map(|flow| alone(plan, flow))
            .into_iter()
            .collect();
    }
    let mut flows: Vec<&Flow> = tcp(plan).collect();
    flows.sort_by_key(|flow| std::cmp::Reverse(flow.payload_bytes));
    let mut shown = vec![false; plan.files.len()];
    let mut found = Vec::new();
    for flow in flows {
        let ends = [flow.sender, flow.receiver];
        if ends.iter().flatten().any(|place| shown[place.file]) {
            continue;
        }
        ends.iter().flatten().for_each(|place| shown[place.file] = true);
        found.push(alone(plan, flow));
    }
    found
}

/// The plan of a flow where its sender was captured, if it was.
fn alone(plan: &Plan, flow: &Flow) -> Plan {
    let mut flow = flow.clone();
    let at_sender = flow.sender.is_some();
    let mut file = 0;
    let mut first = |place: Option<Place>| {
        place.map(|place| {
            file = place.file;
            Place { file: 0, ..place }
        })
    };
    (flow.sender, flow.receiver) =
        if at_sender { (first(flow.sender), None) } else { (None, first(flow.receiver)) };
    flow.given.flow = 0;
    flow.given.has_other_end = false;
    Plan {
        files: vec![plan.files[file]],
        shifts_ns: vec![plan.shifts_ns[file]],
        flows: vec![flow],
        duration_ns: plan.duration_ns,
        // The series is of no use here.
        interval_ns: plan.duration_ns,
        notes: Vec::new(),
        left_out: 0,
    }
}

fn diagram(
    plan: &Plan,
    packets: Packets,
    wanted: &Wanted,
    go_on: &dyn Fn() -> bool,
) -> Result<Diagram, Error> {
    let spec = plan.spec(Vec::new());
    let mut following = Following::new(plan, &spec).with_diagram(empty(plan, wanted));
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

fn empty(plan: &Plan, wanted: &Wanted) -> Diagram {
    let flow = &plan.flows[0];
    Diagram {
        file: plan.files[0],
        flow: flow.name.clone(),
        controller: flow.controller.clone(),
        is_near_sender: flow.sender.is_some(),
        start_ns: flow.start_ns,
        from_ns: wanted.from_ns,
        to_ns: wanted.to_ns.min(plan.duration_ns),
        is_cut: false,
        packets: PacketColumns::default(),
        answers: AnswerColumns::default(),
        sacks: SackColumns::default(),
        rows: wanted.rows,
    }
}
