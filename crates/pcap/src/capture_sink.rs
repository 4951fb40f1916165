//! Event sink that captures simulated packets.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jostle_units::{ConnectionId, FlowId, Time};

use super::frame_builder::{DatagramFramer, FrameBuilder};
use super::pcapng_writer::Pcapng;
use super::{CapturedRun, begin, file_name, log_name};
use jostle_metrics::{Datagram, EndpointRole, EventSink, SegmentHeader};
use jostle_run_spec::{RunSpec, Transport};

const SYSTEM: &str = "jostle's simulator";
const BUFFER_BYTES: usize = 1 << 16;

/// Files of one endpoint.
struct EndpointFiles {
    file: Pcapng<BufWriter<File>>,
    packets: u64,
    /// qlog file, if requested.
    log: Option<BufWriter<File>>,
}

struct Flow {
    segments: FrameBuilder,
    datagrams: DatagramFramer,
    sender: EndpointFiles,
    receiver: EndpointFiles,
}

/// Writes the headers of every segment, and datagrams up to the snap length, to a folder.
///
/// After an I/O error, nothing more is written. [`finish`](Self::finish) returns the error.
pub struct CaptureSink {
    flows: Vec<Flow>,
    end: Time,
    error: Option<io::Error>,
    broken: Arc<AtomicBool>,
}

impl CaptureSink {
    /// Creates the files of a valid `spec` in `folder`. They must not exist yet.
    ///
    /// # Errors
    /// Returns an error if a file cannot be created.
    pub fn create(spec: &RunSpec, folder: &Path) -> io::Result<Self> {
        let create = |name: String| {
            Ok::<_, io::Error>(BufWriter::with_capacity(
                BUFFER_BYTES,
                File::create_new(folder.join(name))?,
            ))
        };
        let logs = spec.capture.as_ref().is_some_and(|capture| capture.qlog);
        let run = CapturedRun::new(spec, SYSTEM)?;
        let tape = |position: FlowId, end| {
            let flow = &spec.flows[position.index()];
            let file = begin(create(file_name(&flow.name, end))?, &run, position, end)?;
            let logs = logs && flow.transport == Transport::Quic;
            let log = logs.then(|| create(log_name(&flow.name, end))).transpose()?;
            Ok::<_, io::Error>(EndpointFiles { file, packets: 0, log })
        };
        let flow = |(position, flow)| {
            Ok::<_, io::Error>(Flow {
                segments: FrameBuilder::new(position, flow),
                datagrams: DatagramFramer::new(position, flow),
                sender: tape(position, EndpointRole::Sender)?,
                receiver: tape(position, EndpointRole::Receiver)?,
            })
        };
        Ok(Self {
            flows: (0..).map(FlowId).zip(&spec.flows).map(flow).collect::<Result<_, _>>()?,
            end: Time::from_ns(spec.duration_ns),
            error: None,
            broken: Arc::default(),
        })
    }

    /// Returns a flag that is set after an I/O error, so that the run can be stopped.
    pub fn broken(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.broken)
    }

    /// Writes the end of all files.
    ///
    /// # Errors
    /// Returns the first I/O error of any file.
    pub fn finish(self) -> io::Result<()> {
        if let Some(error) = self.error {
            return Err(error);
        }
        for flow in self.flows {
            for EndpointFiles { file, packets, log } in [flow.sender, flow.receiver] {
                file.finish(self.end.as_ns(), packets, 0)?;
                if let Some(mut log) = log {
                    log.flush()?;
                }
            }
        }
        Ok(())
    }
}

impl EndpointFiles {
    fn packet(&mut self, now: Time, kept: &[u8], size_bytes: u32) -> io::Result<()> {
        self.packets += 1;
        self.file.packet(now.as_ns(), kept, size_bytes)
    }
}

impl CaptureSink {
    /// Calls `write` for the flow of a connection, unless an error occurred before.
    fn write(&mut self, connection: ConnectionId, write: impl FnOnce(&mut Flow) -> io::Result<()>) {
        if self.error.is_some() {
            return;
        }
        if let Err(error) = write(&mut self.flows[connection.index()]) {
            self.error = Some(error);
            self.broken.store(true, Ordering::Relaxed);
        }
    }
}

impl EventSink for CaptureSink {
    #[inline]
    fn wants_segments(&self) -> bool {
        true
    }

    fn segment(
        &mut self,
        now: Time,
        connection: ConnectionId,
        end: EndpointRole,
        header: &SegmentHeader,
    ) {
        self.write(connection, |flow| {
            let Flow { segments, sender, receiver, .. } = flow;
            let tape = if end == EndpointRole::Sender { sender } else { receiver };
            let (kept, size_bytes) = segments.frame(end, header).map_err(io::Error::other)?;
            tape.packet(now, kept, size_bytes)
        });
    }

    fn datagram(
        &mut self,
        now: Time,
        connection: ConnectionId,
        end: EndpointRole,
        datagram: &Datagram<'_>,
    ) {
        self.write(connection, |flow| {
            let Flow { datagrams, sender, receiver, .. } = flow;
            let tape = if end == EndpointRole::Sender { sender } else { receiver };
            let (kept, size_bytes) = datagrams.frame(datagram);
            tape.packet(now, kept, size_bytes)
        });
    }

    fn qlog_records(&mut self, connection: ConnectionId, end: EndpointRole, records: &str) {
        self.write(connection, |Flow { sender, receiver, .. }| {
            let tape = if end == EndpointRole::Sender { sender } else { receiver };
            match &mut tape.log {
                None => Ok(()),
                Some(log) => log.write_all(records.as_bytes()),
            }
        });
    }

    fn secrets(&mut self, connection: ConnectionId, lines: &str) {
        self.write(connection, |flow| {
            flow.sender.file.secrets(lines)?;
            flow.receiver.file.secrets(lines)
        });
    }
}
