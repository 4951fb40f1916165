//! The second pass for a single flow, which records every packet for a time–sequence diagram.

use std::path::{Path, PathBuf};

use jostle_run_spec::Transport;
use jostle_units::FlowId;

use crate::AnalysisOptions;
use crate::capture_file::{Packets, Position};
use crate::connection_scan::{CANCEL_CHECK_PACKETS, ConnectionScan};
use crate::error::Error;
use crate::flow_selection::{Flow, FlowLocation, FlowSelection, plans};
use crate::measurement::{FlowFollower, MergedPackets};
use crate::packet_stream::PacketStream;
use crate::time_sequence::{
    AckColumns, PacketColumns, SackColumns, TimeSequence, TimeSequenceOptions,
};

/// Maximum number of flow names in an error message.
const NAMED: usize = 20;

/// Reads flows packet by packet: the requested flow, or the largest TCP flow of each file. `told`
/// works as in [`analyze`](crate::analyze).
///
/// # Errors
/// Returns an error if a file cannot be read or is not a capture, or if there is no such flow.
pub fn diagrams(
    files: &[PathBuf],
    options: &AnalysisOptions,
    wanted: &TimeSequenceOptions,
    told: &dyn Fn(u64) -> bool,
) -> Result<Vec<TimeSequence>, Error> {
    let position = Position::default();
    let go_on = || told(position.load(std::sync::atomic::Ordering::Relaxed));
    let surveys: Vec<_> = files
        .iter()
        .map(|path| ConnectionScan::of(path, position.clone(), &go_on))
        .collect::<Result<_, _>>()?;
    let mut found = Vec::new();
    let mut known = Vec::new();
    for plan in plans(&surveys, options) {
        known.extend(tcp(&plan).map(|flow| flow.name.clone()));
        for plan in chosen(&plan, wanted) {
            let path = &files[plan.files[0]];
            let packets = Packets::open(path, position.clone())?;
            let stream = PacketStream::new(packets, surveys[plan.files[0]].options);
            found.push(diagram(&plan, stream, wanted, &go_on)?);
        }
    }
    if found.is_empty() {
        return Err(no_flow(files, wanted, &known));
    }
    Ok(found)
}

/// Reads a flow of a capture in memory, for fuzzing.
///
/// # Errors
/// See [`diagrams`].
pub fn extract_flow_packets(
    bytes: &[u8],
    options: &AnalysisOptions,
    wanted: &TimeSequenceOptions,
) -> Result<TimeSequence, Error> {
    let path = Path::new("bytes");
    let packets = || Packets::of(path, std::io::Cursor::new(bytes.to_vec()));
    let survey = ConnectionScan::of_packets(path, &packets, &|| true)?;
    let stream_options = survey.options;
    let plan = plans(&[survey], options).iter().flat_map(|plan| chosen(plan, wanted)).next();
    let Some(plan) = plan else { return Err(no_flow(&[path.to_owned()], wanted, &[])) };
    let stream = PacketStream::new(packets()?, stream_options);
    diagram(&plan, stream, wanted, &|| true)
}

fn no_flow(files: &[PathBuf], wanted: &TimeSequenceOptions, known: &[String]) -> Error {
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

fn tcp(plan: &FlowSelection) -> impl Iterator<Item = &Flow> {
    plan.flows.iter().filter(|flow| flow.transport == Transport::Tcp)
}

/// Returns selections of one flow and one file each: the requested flow, or the largest flow of
/// each file. A file is skipped if it is the other end of a flow that was already selected.
fn chosen(plan: &FlowSelection, wanted: &TimeSequenceOptions) -> Vec<FlowSelection> {
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

/// Restricts a selection to one flow, at its sender if that end was captured.
fn alone(plan: &FlowSelection, flow: &Flow) -> FlowSelection {
    let mut flow = flow.clone();
    let at_sender = flow.sender.is_some();
    let mut file = 0;
    let mut first = |place: Option<FlowLocation>| {
        place.map(|place| {
            file = place.file;
            FlowLocation { file: 0, ..place }
        })
    };
    (flow.sender, flow.receiver) =
        if at_sender { (first(flow.sender), None) } else { (None, first(flow.receiver)) };
    flow.given.flow = FlowId(0);
    flow.given.other_end = None;
    FlowSelection {
        files: vec![plan.files[file]],
        shifts_ns: vec![plan.shifts_ns[file]],
        flows: vec![flow],
        duration_ns: plan.duration_ns,
        // One interval for the complete duration, because the time series is not used.
        interval_ns: plan.duration_ns,
        notes: Vec::new(),
        left_out: 0,
    }
}

fn diagram(
    plan: &FlowSelection,
    packets: PacketStream,
    wanted: &TimeSequenceOptions,
    go_on: &dyn Fn() -> bool,
) -> Result<TimeSequence, Error> {
    let spec = plan.spec(Vec::new());
    let mut following = FlowFollower::new(plan, &spec).with_diagram(empty(plan, wanted));
    let mut merged = MergedPackets::new(vec![packets], &plan.shifts_ns)?;
    let mut read = 0_u64;
    while let Some((file, now_ns, packet)) = merged.next()? {
        following.see(file, now_ns, packet);
        if following.diagram.as_ref().is_some_and(|diagram| diagram.is_over(now_ns)) {
            break;
        }
        read += 1;
        if read.is_multiple_of(CANCEL_CHECK_PACKETS) && !go_on() {
            return Err(Error::Cancelled);
        }
    }
    following.diagram.ok_or(Error::Cancelled)
}

fn empty(plan: &FlowSelection, wanted: &TimeSequenceOptions) -> TimeSequence {
    let flow = &plan.flows[0];
    TimeSequence {
        file: plan.files[0],
        flow: flow.name.clone(),
        controller: flow.controller.clone(),
        is_near_sender: flow.sender.is_some(),
        start_ns: flow.start_ns,
        from_ns: wanted.from_ns,
        to_ns: wanted.to_ns.min(plan.duration_ns),
        is_cut: false,
        packets: PacketColumns::default(),
        answers: AckColumns::default(),
        sacks: SackColumns::default(),
        rows: wanted.rows,
    }
}
