//! The second pass: reports every packet of the selected flows to a recorder.

use std::path::{Path, PathBuf};

use jostle_metrics::{CaptureCounters, CapturedSummary, EventSink, Recorder, RunRecord};
use jostle_run_spec::{MeasuredFile, RunSpec, Transport};
use jostle_units::{FlowId, Time};

use crate::AnalysisOptions;
use crate::capture_file::{Packets, Position};
use crate::connection_scan::{CANCEL_CHECK_PACKETS, ConnectionScan};
use crate::connection_table::Connections;
use crate::error::Error;
use crate::flow_selection::{Flow, FlowSelection, file_name, plans};
use crate::packet::{Body, Packet, Segment};
use crate::packet_stream::PacketStream;
use crate::receiver::CapturedReceiver;
use crate::sender::CapturedSender;
use crate::time_sequence::TimeSequence;

/// Measures of one file, or of files that were captured together.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The files, as indices into the list given to [`analyze`].
    pub files: Vec<usize>,
    /// Run specification that describes the flows of the capture.
    pub spec: RunSpec,
    /// Summary and time series.
    pub record: RunRecord,
    /// Notes for the user, for example about truncated files.
    pub notes: Vec<String>,
    /// Number of packets in the files.
    pub packets: u64,
}

/// Measures captures. Two files become one measurement if they were captured at both ends of a
/// connection, or if they are captures of the same jostle run. `told` is called with the number of
/// bytes read so far (each file is read twice). It returns whether to continue.
///
/// # Errors
/// Returns an error if a file cannot be read, is not a capture, or contains no flow with data.
pub fn analyze(
    files: &[(PathBuf, MeasuredFile)],
    options: &AnalysisOptions,
    told: &dyn Fn(u64) -> bool,
) -> Result<Vec<Measurement>, Error> {
    let position = Position::default();
    let go_on = || told(position.load(std::sync::atomic::Ordering::Relaxed));
    let surveys: Vec<_> = files
        .iter()
        .map(|(path, _)| ConnectionScan::of(path, position.clone(), &go_on))
        .collect::<Result<_, _>>()?;
    let mut measured = Vec::new();
    for plan in plans(&surveys, options) {
        let paths: Vec<&Path> = plan.files.iter().map(|at| files[*at].0.as_path()).collect();
        let opened = plan.files.iter().map(|at| {
            let packets = Packets::open(&files[*at].0, position.clone())?;
            Ok(PacketStream::new(packets, surveys[*at].options))
        });
        let opened = opened.collect::<Result<_, _>>()?;
        let names = plan.files.iter().map(|at| files[*at].1.clone()).collect();
        let packets = plan.files.iter().map(|at| surveys[*at].counts.packets).sum();
        measured.push(measure(plan, &paths, opened, names, packets, &go_on)?);
    }
    Ok(measured)
}

/// Measures a capture in memory, for fuzzing.
///
/// # Errors
/// See [`analyze`].
pub fn look(bytes: &[u8], options: &AnalysisOptions) -> Result<Measurement, Error> {
    let path = Path::new("bytes");
    let packets = || Packets::of(path, std::io::Cursor::new(bytes.to_vec()));
    let survey = ConnectionScan::of_packets(path, &packets, &|| true)?;
    let (count, options_of_stream) = (survey.counts.packets, survey.options);
    let Some(plan) = plans(&[survey], options).into_iter().next() else {
        return Err(Error::Empty { path: path.to_owned(), what: "nothing".to_owned() });
    };
    let file = MeasuredFile { name: file_name(path), sha256: String::new() };
    let stream = PacketStream::new(packets()?, options_of_stream);
    measure(plan, &[path], vec![stream], vec![file], count, &|| true)
}

fn measure(
    plan: FlowSelection,
    paths: &[&Path],
    packets: Vec<PacketStream>,
    names: Vec<MeasuredFile>,
    count: u64,
    go_on: &dyn Fn() -> bool,
) -> Result<Measurement, Error> {
    if plan.flows.is_empty() {
        let what = "no flow that carries data".to_owned();
        return Err(Error::Empty { path: paths[0].to_owned(), what });
    }
    let spec = plan.spec(names);
    let mut following = FlowFollower::new(&plan, &spec);
    let mut merged = MergedPackets::new(packets, &plan.shifts_ns)?;
    let mut read = 0_u64;
    while let Some((file, now_ns, packet)) = merged.next()? {
        following.see(file, now_ns, packet);
        read += 1;
        if read.is_multiple_of(CANCEL_CHECK_PACKETS) && !go_on() {
            return Err(Error::Cancelled);
        }
    }
    let record = following.finish();
    let FlowSelection { files, notes, .. } = plan;
    Ok(Measurement { files, spec, record, notes, packets: count })
}

/// Packets of several files, merged in time order.
pub(crate) struct MergedPackets {
    files: Vec<(PacketStream, i64)>,
    /// The next packet of each file, if there are several files.
    next: Vec<Option<(u64, Packet)>>,
    current: Packet,
}

impl MergedPackets {
    pub fn new(packets: Vec<PacketStream>, shifts_ns: &[i64]) -> Result<Self, Error> {
        let files: Vec<_> = packets.into_iter().zip(shifts_ns.iter().copied()).collect();
        let mut merged = Self { next: vec![None; files.len()], files, current: Packet::NONE };
        if merged.files.len() > 1 {
            for file in 0..merged.files.len() {
                merged.step(file)?;
            }
        }
        Ok(merged)
    }

    fn step(&mut self, file: usize) -> Result<(), Error> {
        let (packets, shift_ns) = &mut self.files[file];
        self.next[file] = packets
            .next()?
            .map(|(time_ns, packet)| (time_ns.saturating_add_signed(*shift_ns), *packet));
        Ok(())
    }

    /// Returns the number of a file, and its next packet with its time.
    pub fn next(&mut self) -> Result<Option<(usize, u64, &Packet)>, Error> {
        if self.files.len() == 1 {
            let (packets, shift_ns) = &mut self.files[0];
            let next = packets.next()?;
            return Ok(
                next.map(|(time_ns, packet)| (0, time_ns.saturating_add_signed(*shift_ns), packet))
            );
        }
        let there = self.next.iter().enumerate();
        let first = there.filter_map(|(file, next)| Some((next.as_ref()?.0, file))).min();
        let Some((now_ns, file)) = first else { return Ok(None) };
        let Some((_, packet)) = self.next[file] else { return Ok(None) };
        self.current = packet;
        self.step(file)?;
        Ok(Some((file, now_ns, &self.current)))
    }
}

/// State of one flow during the second pass.
struct FollowedFlow {
    sending: Option<CapturedSender>,
    receiving: Option<CapturedReceiver>,
    is_complete: bool,
    start_ns: u64,
    /// Whether the flow is TCP. UDP and QUIC datagrams are counted where they were captured.
    is_tcp: bool,
}

/// Processes the packets of the selected flows.
pub(crate) struct FlowFollower<'a> {
    plan: &'a FlowSelection,
    recorder: Recorder,
    flows: Vec<FollowedFlow>,
    connections: Vec<Connections>,
    /// Flow sent in each direction, by file and connection.
    routes: Vec<Vec<[Option<FlowId>; 2]>>,
    now_ns: u64,
    bin_end_ns: u64,
    /// Time–sequence data of the only flow, if requested.
    pub diagram: Option<TimeSequence>,
}

impl<'a> FlowFollower<'a> {
    pub fn new(plan: &'a FlowSelection, spec: &RunSpec) -> Self {
        let seen: Vec<_> = plan.flows.iter().map(|flow| flow.sender.is_some()).collect();
        let mut routes: Vec<Vec<[Option<FlowId>; 2]>> =
            plan.files.iter().map(|_| Vec::new()).collect();
        for flow in &plan.flows {
            for place in [flow.sender, flow.receiver].into_iter().flatten() {
                let of_file = &mut routes[place.file];
                let least = of_file.len().max(place.connection + 1);
                of_file.resize(least, [None; 2]);
                of_file[place.connection][place.direction] = Some(flow.given.flow);
            }
        }
        Self {
            plan,
            recorder: Recorder::of_capture(spec, &seen),
            flows: plan.flows.iter().map(FollowedFlow::new).collect(),
            connections: plan.files.iter().map(|_| Connections::default()).collect(),
            routes,
            now_ns: 0,
            bin_end_ns: plan.interval_ns.min(plan.duration_ns),
            diagram: None,
        }
    }

    /// Also collects the packets of the only flow in `diagram`.
    pub fn with_diagram(self, diagram: TimeSequence) -> Self {
        Self { diagram: Some(diagram), ..self }
    }

    pub fn see(&mut self, file: usize, now_ns: u64, packet: &Packet) {
        // If the clock of the capture was set back, time stops until the clock passes the last
        // time.
        let now_ns = now_ns.max(self.now_ns).min(self.plan.duration_ns - 1);
        self.now_ns = now_ns;
        while self.bin_end_ns <= now_ns {
            self.end_interval();
        }
        let Some((connection, direction)) = self.connections[file].of(packet) else { return };
        let Some(route) = self.routes[file].get(connection as usize) else { return };
        let [along, against] = [route[direction], route[1 - direction]];
        if let Some(flow) = along {
            self.forward(file, flow, packet);
        }
        if let (Some(flow), Body::Tcp(segment)) = (against, &packet.body) {
            self.backward(file, flow, segment);
        }
    }

    /// Processes a packet in the direction of a flow.
    fn forward(&mut self, file: usize, flow: FlowId, packet: &Packet) {
        let (place, now_ns) = (&self.plan.flows[flow.index()], self.now_ns);
        let followed = &mut self.flows[flow.index()];
        let segment = match &packet.body {
            Body::Tcp(segment) => segment,
            Body::Udp { payload_bytes, .. } => {
                self.datagram(file, flow, packet, *payload_bytes);
                return;
            }
        };
        let at_sender = place.sender.is_some_and(|place| place.file == file);
        let (seen, origin) = match (at_sender, &mut followed.sending, &mut followed.receiving) {
            (true, Some(sending), _) => {
                let seen = sending.sent(now_ns, packet, segment, &mut self.recorder);
                (seen, sending.origin())
            }
            (_, sending, Some(receiving)) => {
                let from = sending.as_mut();
                let seen = receiving.came(now_ns, packet, segment, from, &mut self.recorder);
                (seen, receiving.origin())
            }
            _ => return,
        };
        if let (Some(diagram), Some(seen)) = (&mut self.diagram, seen) {
            diagram.packet(now_ns, seen, origin);
        }
    }

    /// Processes a packet in the opposite direction of a flow, which carries its ACKs.
    fn backward(&mut self, file: usize, flow: FlowId, segment: &Segment) {
        let (place, now_ns) = (&self.plan.flows[flow.index()], self.now_ns);
        let followed = &mut self.flows[flow.index()];
        let at_sender = place.sender.is_some_and(|place| place.file == file);
        let ack = match (at_sender, &mut followed.sending, &mut followed.receiving) {
            (true, Some(sending), receiving) => {
                let ack = sending.came(now_ns, segment, &mut self.recorder);
                if let (Some(ack), Some(receiving)) = (&ack, receiving)
                    && place.given.other_end.is_some_and(|window| !window.includes(now_ns))
                {
                    receiving.take_acknowledged(now_ns, ack, segment, &mut self.recorder);
                }
                ack
            }
            (_, _, Some(receiving)) => receiving.on_ack_sent(now_ns, segment, &mut self.recorder),
            _ => None,
        };
        if let (Some(diagram), Some(ack)) = (&mut self.diagram, ack) {
            diagram.add_ack(now_ns, ack, segment);
        }
        let complete = match (&followed.sending, &followed.receiving) {
            (Some(sending), _) => sending.is_complete(),
            (None, Some(receiving)) => receiving.is_complete(),
            (None, None) => false,
        };
        if complete && !followed.is_complete && place.data_bytes.is_some() {
            followed.is_complete = true;
            let (now, start) = (Time::from_ns(now_ns), Time::from_ns(followed.start_ns));
            self.recorder.flow_completed(now, flow.into(), now.since(start));
        }
    }

    /// Counts a datagram where it was captured: at the sender as sent, at the receiver as received.
    /// If one end was captured, it counts as both. Datagrams yield no other measures.
    fn datagram(&mut self, file: usize, flow: FlowId, packet: &Packet, payload_bytes: u32) {
        let now = Time::from_ns(self.now_ns);
        let place = &self.plan.flows[flow.index()];
        if place.sender.is_none_or(|sender| sender.file == file) {
            let amount = (1, u64::from(packet.wire_bytes), u64::from(payload_bytes));
            self.recorder.sent_payload(now, flow.into(), amount, false);
        }
        if place.receiver.is_none_or(|receiver| receiver.file == file) {
            self.recorder.received(now, flow.into(), packet.wire_bytes);
        }
    }

    fn end_interval(&mut self) {
        let end_ns = self.bin_end_ns;
        let now = Time::from_ns(end_ns);
        for (flow, followed) in (0..).map(FlowId).zip(&self.flows) {
            let state = match (&followed.sending, &followed.receiving) {
                (Some(sending), _) => sending.state(),
                (None, Some(receiving)) => receiving.state(),
                (None, None) => continue,
            };
            self.recorder.flow_state(now, flow, &state);
            let window_bytes = match (&followed.sending, &followed.receiving) {
                (Some(sending), _) => sending.receive_window_bytes(),
                (None, Some(receiving)) => receiving.receive_window_bytes(),
                (None, None) => None,
            };
            if let Some(bytes) = window_bytes.filter(|_| followed.is_tcp) {
                self.recorder.controller_state(now, flow, "receive_window_bytes", bytes as f64);
            }
        }
        self.bin_end_ns = if end_ns >= self.plan.duration_ns {
            u64::MAX
        } else {
            end_ns.saturating_add(self.plan.interval_ns).min(self.plan.duration_ns)
        };
    }

    fn finish(mut self) -> RunRecord {
        while self.bin_end_ns <= self.plan.duration_ns {
            self.end_interval();
        }
        self.recorder.phase_boundary(Time::from_ns(self.plan.duration_ns), &[]);
        let mut record = self.recorder.finish();
        for (number, followed) in self.flows.into_iter().enumerate() {
            let unseen = followed.sending.is_none() || !followed.is_tcp;
            if unseen {
                forget_sender(&mut record, FlowId::at(number));
            }
            if followed.is_tcp {
                let seen = followed.finish();
                record.summary.flows[number].captured = Some(CapturedSummary::of(&seen));
            }
        }
        record
    }
}

/// Sets the sender's columns to NaN, because the capture does not show cwnd.
fn forget_sender(record: &mut RunRecord, flow: FlowId) {
    let table = &mut record.flows;
    for row in 0..table.flow.len() {
        if table.flow[row] == flow.0 {
            table.cwnd_bytes[row] = f64::NAN;
            table.cwnd_mean_bytes[row] = f64::NAN;
            table.in_flight_bytes[row] = f64::NAN;
        }
    }
    record.summary.flows[flow.index()].forget_window();
}

impl FollowedFlow {
    fn new(flow: &Flow) -> Self {
        // A datagram flow has the state of the end where it was captured, too.
        Self {
            sending: flow.sender.map(|_| CapturedSender::new(flow.given)),
            receiving: flow.receiver.map(|_| CapturedReceiver::new(flow.given)),
            is_complete: false,
            start_ns: flow.start_ns,
            is_tcp: flow.transport == Transport::Tcp,
        }
    }

    /// Combines the counters of the captures at both ends.
    fn finish(self) -> CaptureCounters {
        match (self.sending, self.receiving) {
            (Some(mut sending), Some(receiving)) => {
                let both_ends = sending.path_counts();
                let (sender, receiver) = (sending.finish(), receiving.finish());
                CaptureCounters {
                    out_of_order: receiver.out_of_order,
                    marked: receiver.marked,
                    capable: receiver.capable,
                    both_ends,
                    ..sender
                }
            }
            (Some(sending), None) => sending.finish(),
            (None, Some(receiving)) => receiving.finish(),
            (None, None) => CaptureCounters::default(),
        }
    }
}
