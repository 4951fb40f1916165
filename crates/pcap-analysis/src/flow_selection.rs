//! Selects the flows that are measured together, and aligns the clocks of their files.

use std::net::IpAddr;
use std::path::Path;

use jostle_run_spec::{
    Algorithm, FlowSpec, LinuxRelease, MeasuredFile, PhaseSpec, Quantity, RunSpec, SourceSpec,
    TraceLevel, Transport,
};
use jostle_units::FlowId;

use crate::AnalysisOptions;
use crate::connection_scan::{Connection, ConnectionScan};
use crate::sender::KnownFlowFacts;
use crate::transit::CaptureWindow;

/// A direction is measured as a flow if it carries at least 1/10 of the connection's payload.
/// Smaller directions carry requests.
const MIN_PAYLOAD_FRACTION: u64 = 10;
/// Maximum number of rows of the time series: 220 MB with 28 columns.
const ROWS_MAX: u64 = 1_000_000;
/// Number of connections, the largest ones, that are compared to find files of the same
/// connections.
const COMPARED: usize = 64;

/// Files that are measured together, and their selected flows.
#[derive(Clone, Debug)]
pub(crate) struct FlowSelection {
    /// Indices of its scans.
    pub files: Vec<usize>,
    /// Offset added to the times of each file to align it with the clock of the measurement.
    pub shifts_ns: Vec<i64>,
    pub flows: Vec<Flow>,
    pub duration_ns: u64,
    pub interval_ns: u64,
    /// Notes for the user.
    pub notes: Vec<String>,
    pub left_out: usize,
}

/// A direction of a connection that is measured.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub name: String,
    pub controller: String,
    pub transport: Transport,
    pub given: KnownFlowFacts,
    pub payload_bytes: u64,
    pub start_ns: u64,
    pub stop_ns: u64,
    pub understands_marks: bool,
    /// Bytes of its data, each counted once, if the capture includes its SYN and FIN.
    pub data_bytes: Option<u64>,
    /// Names of its ends, as far as they show which flows have the same direction.
    pub hosts: [Option<String>; 2],
    /// Location in the capture near its sender, if there is one.
    pub sender: Option<FlowLocation>,
    /// Location in the capture near its receiver, if there is one.
    pub receiver: Option<FlowLocation>,
}

/// File (index in the selection), connection and direction of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowLocation {
    pub file: usize,
    pub connection: usize,
    pub direction: usize,
}

/// Groups files that were captured at both ends of a connection, and selects their flows.
pub(crate) fn plans(surveys: &[ConnectionScan], options: &AnalysisOptions) -> Vec<FlowSelection> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, survey) in surveys.iter().enumerate() {
        let known = groups
            .iter_mut()
            .map(|group| (group.iter().map(|other| &surveys[*other]).collect::<Vec<_>>(), group))
            .find(|(those, _)| {
                those.iter().any(|other| belong_together(other, survey))
                    && !those.iter().any(|other| have_same_end(other, survey))
            });
        match known {
            Some((_, group)) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    let mut plans: Vec<FlowSelection> =
        groups.into_iter().map(|files| FlowSelection::of(files, surveys, options)).collect();
    for later in 1..plans.len() {
        let (before, plan) = plans.split_at_mut(later);
        let files = before.iter().flat_map(|plan| &plan.files);
        plan[0].notes.extend(duplicate_capture_note(surveys, files, &plan[0].files));
    }
    plans
}

/// Returns a note if a file contains connections of an earlier file, captured at the same end.
fn duplicate_capture_note<'a>(
    surveys: &[ConnectionScan],
    before: impl Iterator<Item = &'a usize>,
    files: &[usize],
) -> Option<String> {
    let pairs = before.flat_map(|one| files.iter().map(|other| (&surveys[*one], &surveys[*other])));
    let mut twice = pairs.filter(|(one, other)| {
        let are_foreign = !one.about.has_own_clock && !other.about.has_own_clock;
        have_same_end(one, other) || are_foreign && shared(one, other).any(|_| true)
    });
    let (one, other) = twice.next()?;
    Some(format!(
        "{} and {} have the same connections, at the same end: each is measured by itself \
         (mergecap puts parts of one capture together)",
        file_name(&one.path),
        file_name(&other.path),
    ))
}

/// Returns whether two files are captures of one jostle run, or of both ends of a connection.
fn belong_together(one: &ConnectionScan, other: &ConnectionScan) -> bool {
    match (one.about.has_own_clock, other.about.has_own_clock) {
        (true, true) => {
            let same = |key| one.about.says(key) == other.about.says(key);
            // Captures of `jostle exec` and older ones name no run: the folder decides.
            let is_one_run = one.about.says("run").is_some()
                || one.path.parent() == other.path.parent()
                    && ["scenario", "network", "seed"].into_iter().all(same);
            same("run") && is_one_run
        }
        (false, false) => {
            shared(one, other).any(|(a, b)| is_near_source(a, 0) != is_near_source(b, 0))
        }
        _ => false,
    }
}

/// Returns whether two files are captures of the same end of the same flow in one jostle run, or of
/// the same host.
fn have_same_end(one: &ConnectionScan, other: &ConnectionScan) -> bool {
    let same = |key| one.about.says(key) == other.about.says(key);
    one.about.has_own_clock
        && belong_together(one, other)
        && same("flow")
        && same("end")
        && same("host")
}

/// Returns the connections that both files contain.
fn shared<'a>(
    one: &'a ConnectionScan,
    other: &'a ConnectionScan,
) -> impl Iterator<Item = (&'a Connection, &'a Connection)> {
    largest(one, COMPARED).into_iter().filter_map(|at| {
        let a = &one.connections[at];
        Some((a, other.connections.iter().find(|b| is_same(a, b))?))
    })
}

fn is_same(a: &Connection, b: &Connection) -> bool {
    a.ends == b.ends && (a.opened == b.opened || a.opened.is_none() || b.opened.is_none())
}

/// Returns whether the capture point is on the source's side of a direction: nearer to the source
/// than to the destination, or before the bottleneck. Data without ACKs show what has passed the
/// capture point, so they count as received there.
fn is_near_source(connection: &Connection, direction: usize) -> bool {
    let [to, from] = [direction, 1 - direction].map(|at| connection.directions[at]);
    if connection.ends.tcp && from.packets == 0 {
        return false;
    }
    match (to.echo_ns, from.echo_ns) {
        (Some(to_ns), Some(from_ns)) => {
            to.queues_ahead() || (to_ns >= from_ns && !from.queues_ahead())
        }
        _ => true,
    }
}

impl FlowSelection {
    fn of(files: Vec<usize>, surveys: &[ConnectionScan], options: &AnalysisOptions) -> Self {
        let all: Vec<&ConnectionScan> = files.iter().map(|at| &surveys[*at]).collect();
        let (shifts_ns, are_aligned) = shifts(&all);
        let mut plan = Self {
            files,
            duration_ns: duration(&all, &shifts_ns),
            shifts_ns,
            flows: Vec::new(),
            interval_ns: 0,
            notes: Vec::new(),
            left_out: 0,
        };
        for (file, survey) in all.iter().enumerate() {
            // Each file may contain flows that are among the largest of another file.
            let looked_at = largest(survey, options.flows.saturating_mul(2));
            plan.left_out += survey.connections.len() - looked_at.len();
            for at in looked_at {
                plan.add(&all, FlowLocation { file, connection: at, direction: 0 });
            }
        }
        plan.set_receiver_windows(&all);
        plan.flows.sort_by_key(|flow| std::cmp::Reverse(flow.payload_bytes));
        plan.left_out += plan.flows.len().saturating_sub(options.flows);
        plan.flows.truncate(options.flows);
        plan.flows.sort_by_key(|flow| flow.start_ns);
        plan.name_apart();
        plan.find_directions(&all);
        for (number, flow) in (0..).zip(&mut plan.flows) {
            flow.given.flow = FlowId(number);
        }
        let rows =
            |interval_ns: u64| plan.duration_ns.div_ceil(interval_ns) * plan.flows.len() as u64;
        let mut interval_ns = options.interval_ns.clamp(1, plan.duration_ns);
        while rows(interval_ns) > ROWS_MAX {
            interval_ns = interval_ns.saturating_mul(10).min(plan.duration_ns);
        }
        plan.interval_ns = interval_ns;
        plan.note(&all, options, interval_ns);
        let are_compared =
            |flow: &Flow| flow.transport == Transport::Tcp && flow.given.other_end.is_some();
        if !are_aligned && plan.flows.iter().any(are_compared) {
            plan.notes.push(
                "no handshake shows how the clocks of the captures differ: one-way delays assume \
                 that they do not"
                    .to_owned(),
            );
        }
        plan
    }

    /// Adds the directions of a connection that carry enough data, or merges them with flows of
    /// another file.
    fn add(&mut self, all: &[&ConnectionScan], place: FlowLocation) {
        let connection = &all[place.file].connections[place.connection];
        let sum: u64 = connection.directions.iter().map(|one| one.payload_bytes).sum();
        for direction in [0, 1] {
            let payload_bytes = connection.directions[direction].payload_bytes;
            if payload_bytes == 0 || payload_bytes < sum.div_ceil(MIN_PAYLOAD_FRACTION) {
                continue;
            }
            let place = FlowLocation { direction, ..place };
            let Some(near) = self.is_near(all, place) else { continue };
            let flow = self.flow(all[place.file], place, near);
            let known = self.flows.iter_mut().find(|flow| {
                let other = if near { flow.receiver } else { flow.sender };
                let own = if near { flow.sender } else { flow.receiver };
                own.is_none()
                    && other.is_some_and(|at| {
                        at.direction == direction
                            && at.file != place.file
                            && is_same(&all[at.file].connections[at.connection], connection)
                            && all[at.file].about.says("flow") == all[place.file].about.says("flow")
                    })
            });
            match known {
                Some(known) => {
                    known.start_ns = known.start_ns.min(flow.start_ns);
                    known.stop_ns = known.stop_ns.max(flow.stop_ns);
                    known.data_bytes = known.data_bytes.or(flow.data_bytes);
                    let own = if near { &mut known.sender } else { &mut known.receiver };
                    *own = Some(place);
                }
                None => self.flows.push(flow),
            }
        }
    }

    fn flow(&self, survey: &ConnectionScan, place: FlowLocation, near: bool) -> Flow {
        let connection = &survey.connections[place.connection];
        let direction = &connection.directions[place.direction];
        let other = &connection.directions[1 - place.direction];
        let shift_ns = self.shifts_ns[place.file];
        let at = |ns: u64| ns.saturating_add_signed(shift_ns).min(self.duration_ns);
        let (from, to) =
            (connection.ends.source(place.direction), connection.ends.source(1 - place.direction));
        let own = survey.about.says("flow").filter(|_| largest(survey, 1) == [place.connection]);
        let opened =
            connection.opened.map(|(direction, _)| connection.directions[direction].first_ns);
        let start_ns = at(opened.unwrap_or(direction.first_ns)).min(self.duration_ns - 1);
        Flow {
            name: own.map_or_else(|| format!("{from} > {to}"), str::to_owned),
            controller: match own.and(survey.about.says("controller")) {
                Some(name) => name.to_owned(),
                None if connection.ends.tcp || connection.is_quic => UNKNOWN.to_owned(),
                None => Algorithm::NONE.to_owned(),
            },
            transport: match (connection.ends.tcp, connection.is_quic) {
                (true, _) => Transport::Tcp,
                (false, true) => Transport::Quic,
                (false, false) => Transport::Udp,
            },
            given: KnownFlowFacts {
                flow: FlowId(0),
                mss_bytes: connection.mss_bytes(place.direction),
                // RFC 7323 §2.2: windows are scaled only if both SYNs carry the option.
                scale: match (direction.scale, other.scale) {
                    (Some(_), Some(scale)) => Some(scale),
                    _ if direction.has_cut_syn || other.has_cut_syn => None,
                    _ => connection.opened.and(connection.syn_ack_ns).map(|_| 0),
                },
                other_end: None,
            },
            payload_bytes: direction.payload_bytes,
            start_ns,
            stop_ns: at(connection.last_ns()).max(start_ns + 1),
            understands_marks: direction.understands_marks,
            data_bytes: direction.data_bytes(),
            hosts: [None, None],
            sender: near.then_some(place),
            receiver: (!near).then_some(place),
        }
    }

    /// Returns whether a file was captured near the source of a direction; `None` if it was
    /// captured between two other files.
    fn is_near(&self, all: &[&ConnectionScan], place: FlowLocation) -> Option<bool> {
        let survey = all[place.file];
        let connection = &survey.connections[place.connection];
        if let Some(end) = survey.about.says("end") {
            return Some(end == "sender");
        }
        // Without ACKs, a capture does not show which end is near: the first to see it is.
        let is_datagrams = !connection.ends.tcp;
        let seen = |file: usize, connection: &Connection| {
            let first_ns = connection.directions[place.direction].first_ns;
            (first_ns.saturating_add_signed(self.shifts_ns[file]), file)
        };
        let own = seen(place.file, connection);
        let others: Vec<_> = (0..all.len())
            .filter(|file| is_datagrams && *file != place.file)
            .filter_map(|file| {
                let mut those = all[file].connections.iter();
                Some(seen(file, those.find(|other| is_same(other, connection))?))
            })
            .collect();
        if others.is_empty() {
            return Some(is_near_source(connection, place.direction));
        }
        if others.iter().all(|other| own < *other) {
            return Some(true);
        }
        others.iter().all(|other| own > *other).then_some(false)
    }

    /// Notes for each flow with captures of both ends when that near the receiver was running.
    fn set_receiver_windows(&mut self, all: &[&ConnectionScan]) {
        for flow in &mut self.flows {
            let (Some(_), Some(receiver)) = (flow.sender, flow.receiver) else { continue };
            let (survey, shift_ns) = (all[receiver.file], self.shifts_ns[receiver.file]);
            flow.given.other_end = Some(CaptureWindow {
                begins_ns: survey.began_ns().saturating_add_signed(shift_ns),
                ends_ns: survey.ended_ns().saturating_add_signed(shift_ns),
            });
        }
    }

    /// Makes flow names unique: appends a number if several flows have the same endpoints.
    fn name_apart(&mut self) {
        for at in 0..self.flows.len() {
            let name = self.flows[at].name.clone();
            let before = self.flows[..at].iter();
            let same = before.filter(|flow| {
                flow.name == name
                    || flow.name.strip_prefix(&name).is_some_and(|rest| rest.starts_with(" #"))
            });
            let count = same.count();
            if count > 0 {
                self.flows[at].name = format!("{name} #{}", count + 1);
            }
        }
    }

    /// Finds out which flows have the same direction: from the comments of captures by jostle, or by
    /// the address of the host that all flows have in common.
    fn find_directions(&mut self, all: &[&ConnectionScan]) {
        let places: Vec<FlowLocation> =
            self.flows.iter().filter_map(|flow| flow.sender.or(flow.receiver)).collect();
        let contest = |place: &FlowLocation| all[place.file].about.says("competes on");
        if let Some(links) = places.iter().map(contest).collect::<Option<Vec<_>>>() {
            for (flow, link) in self.flows.iter_mut().zip(links) {
                flow.hosts = [Some(format!("before {link}")), None];
            }
            return;
        }
        let ends = |place: &FlowLocation| {
            let ends = all[place.file].connections[place.connection].ends;
            [place.direction, 1 - place.direction].map(|direction| ends.source(direction).address)
        };
        let ends: Vec<_> = places.iter().map(ends).collect();
        let is_common = |address: &IpAddr| {
            ends.iter().all(|[from, to]| from != to && (from == address || to == address))
        };
        if let Some(host) = ends.first().and_then(|ends| ends.iter().copied().find(is_common)) {
            for (flow, ends) in self.flows.iter_mut().zip(&ends) {
                flow.hosts = ends.map(|address| (address == host).then(|| host.to_string()));
            }
        } else if self.flows.iter().filter(|flow| flow.transport != Transport::Udp).count() > 1 {
            self.notes.push(
                "shares are of all flows: the capture does not show which have the same direction"
                    .to_owned(),
            );
        }
    }

    fn note(&mut self, all: &[&ConnectionScan], options: &AnalysisOptions, interval_ns: u64) {
        for survey in all {
            let name = file_name(&survey.path);
            if survey.about.is_cut_off {
                self.notes.push(format!("{name} ends in the middle of a packet"));
            }
            if let Some(damage) = &survey.about.damage {
                let count = survey.counts.packets;
                self.notes
                    .push(format!("{name}: {damage} (measured up to there, {count} packets)"));
            }
            if survey.about.timeless > 0 {
                let count = survey.about.timeless;
                self.notes.push(format!(
                    "{name}: {count} packets without times (Simple Packet Blocks) are left out"
                ));
            }
            self.notes.extend(survey.counts.notes(&name));
            if survey.about.dropped > 0 {
                let lost = survey.about.dropped;
                self.notes.push(format!("{name} lacks {lost} packets that came too fast for it"));
            }
            if survey.cut_segments > 0 {
                let (cut, all) = (survey.cut_segments, survey.counts.packets);
                self.notes.push(format!(
                    "{name}: the snap length cut the TCP options of {cut} of {all} packets; SACK \
                     blocks and time stamps in them are unknown"
                ));
            }
            let of_data = |one: &&Connection| {
                let [there, back] = one.directions;
                let carries_data = there.payload_bytes + back.payload_bytes > 0;
                one.ends.tcp && carries_data && there.packets.min(back.packets) == 0
            };
            let silent = survey.connections.iter().filter(of_data).count();
            if silent > 0 {
                let all = survey.connections.len();
                self.notes.push(format!(
                    "{name} has only one direction of {silent} of {all} connections: without ACKs, \
                     throughput and goodput count what passed the capture point"
                ));
            }
            if survey.too_many {
                self.notes.push(format!("{name} has more connections than jostle distinguishes"));
            }
        }
        if self.left_out > 0 {
            let (count, most) = (self.left_out, options.flows);
            self.notes
                .push(format!("{count} smaller flows are left out: the {most} largest are shown"));
        }
        if interval_ns > options.interval_ns {
            let s = interval_ns as f64 / 1e9;
            self.notes.push(format!("intervals of {s} s, for there are many"));
        }
    }

    /// Returns a run specification that describes the flows.
    pub fn spec(&self, files: Vec<MeasuredFile>) -> RunSpec {
        RunSpec {
            seed: 0,
            duration_ns: self.duration_ns,
            interval_ns: self.interval_ns,
            record: TraceLevel::None,
            capture: None,
            measured: Some(files),
            phases: vec![PhaseSpec {
                name: "overall".to_owned(),
                from_ns: 0,
                to_ns: self.duration_ns,
            }],
            links: Vec::new(),
            flows: self.flows.iter().map(flow_spec).collect(),
        }
    }
}

/// Name of an unknown controller.
const UNKNOWN: &str = "unknown";

fn payload(connection: &Connection) -> u64 {
    connection.directions.iter().map(|one| one.payload_bytes).sum()
}

/// Returns the indices of the `count` connections with the most payload, in file order.
fn largest(survey: &ConnectionScan, count: usize) -> Vec<usize> {
    let mut all: Vec<_> = (0..survey.connections.len()).collect();
    all.sort_by_key(|at| std::cmp::Reverse(payload(&survey.connections[*at])));
    all.truncate(count);
    all.sort_unstable();
    all
}

/// Returns the clock offset of each file, and whether handshakes show all of them. In captures by
/// jostle, time 0 is the start of the run; in others, it is the first packet.
fn shifts(all: &[&ConnectionScan]) -> (Vec<i64>, bool) {
    if all.iter().all(|survey| survey.about.has_own_clock) {
        return (vec![0; all.len()], true);
    }
    let mut shifts: Vec<i64> = all.iter().map(|_| 0).collect();
    let mut are_aligned = true;
    for at in 1..all.len() {
        let shift = shared(all[0], all[at]).find_map(|(a, b)| clocks_differ(a, b));
        are_aligned &= shift.is_some();
        shifts[at] = shift.unwrap_or(0);
    }
    let first = all
        .iter()
        .zip(&shifts)
        .map(|(survey, shift)| survey.first_ns.saturating_add_signed(*shift));
    let first = i64::try_from(first.min().unwrap_or(0)).unwrap_or(i64::MAX);
    (shifts.iter().map(|shift| shift.saturating_sub(first)).collect(), are_aligned)
}

/// Returns the clock offset of `b` relative to `a`. It is 0 if then no packet arrives before it was
/// sent; otherwise it makes the one-way delays of SYN and SYN-ACK equal.
fn clocks_differ(a: &Connection, b: &Connection) -> Option<i64> {
    let signed = |ns: u64| i64::try_from(ns).ok();
    let syn = signed(b.syn_ns?)?.checked_sub(signed(a.syn_ns?)?)?;
    let back = signed(a.syn_ack_ns?)?.checked_sub(signed(b.syn_ack_ns?)?)?;
    // `a` was captured at the client, or at the server.
    let consistent = (syn >= 0 && back >= 0) || (syn <= 0 && back <= 0);
    Some(if consistent { 0 } else { (back - syn) / 2 })
}

fn duration(all: &[&ConnectionScan], shifts_ns: &[i64]) -> u64 {
    let last = all
        .iter()
        .zip(shifts_ns)
        .map(|(survey, shift_ns)| survey.ended_ns().saturating_add_signed(*shift_ns));
    // Later than every time that a file can have, which `u64::MAX` would not be.
    last.max().unwrap_or(1).clamp(1, u64::MAX - 1)
}

pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn flow_spec(flow: &Flow) -> FlowSpec {
    const HEADERS_BYTES: u32 = jostle_units::MTU_BYTES - jostle_units::FULL_PAYLOAD_BYTES;
    let whole_bytes = flow.data_bytes.filter(|_| flow.transport == Transport::Tcp);
    FlowSpec {
        name: flow.name.clone(),
        group: None,
        transport: flow.transport,
        tcp: None,
        quic: None,
        controller: Algorithm { name: flow.controller.clone(), parameters: Default::default() },
        slow_start: None,
        memory: None,
        dscp: None,
        peer: 0,
        sender_host: flow.hosts[0].clone(),
        receiver_host: flow.hosts[1].clone(),
        path: Vec::new(),
        reverse_path: Vec::new(),
        routes: Vec::new(),
        base_delay_ns: 0,
        connection_of: None,
        after: None,
        start_ns: flow.start_ns,
        stop_ns: Some(flow.stop_ns),
        source: whole_bytes.map_or(SourceSpec::Bulk, |bytes| SourceSpec::Fixed {
            bytes: Quantity::Constant(bytes),
        }),
        arrivals: None,
        mtu_bytes: flow.given.mss_bytes.saturating_add(HEADERS_BYTES),
        pacing: false,
        ecn: flow.understands_marks,
        initial_window_packets: 1,
        initial_pacing: false,
        receive_window_bytes: 0,
        initial_receive_window_bytes: 0,
        receive_window_autotuning: false,
        receiver: None,
        reader: None,
        timers: None,
        gro: false,
        linux: LinuxRelease::default(),
        nic_rate_bps: None,
    }
}
