//! The sink that captures simulated packets.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::rc::Rc;

use jostle_units::Time;

use super::frames::{DatagramFramer, Framer};
use super::pcapng::Pcapng;
use super::{begin, file_name, log_name};
use crate::{Datagram, End, Header, RunSpec, Sink, Transport};

const SYSTEM: &str = "jostle's simulator";
const BUFFER_BYTES: usize = 1 << 16;

/// One end's file.
struct Tape {
    file: Pcapng<BufWriter<File>>,
    packets: u64,
    /// What the end writes down itself.
    log: Option<BufWriter<File>>,
}

struct Flow {
    segments: Framer,
    datagrams: DatagramFramer,
    sender: Tape,
    receiver: Tape,
}

/// Writes every segment's headers and every datagram, or its beginning, to the files of a folder.
///
/// What goes wrong with the files is told at the end; nothing is written from then on.
pub struct Capture {
    flows: Vec<Flow>,
    end: Time,
    error: Option<io::Error>,
    broken: Rc<Cell<bool>>,
}

impl Capture {
    /// Begins the files of a valid `spec` in `folder`, which has none of them.
    ///
    /// # Errors
    /// When one cannot be made.
    pub fn create(spec: &RunSpec, folder: &Path) -> io::Result<Self> {
        let create = |name: String| {
            Ok::<_, io::Error>(BufWriter::with_capacity(
                BUFFER_BYTES,
                File::create_new(folder.join(name))?,
            ))
        };
        let logs = spec.capture.as_ref().is_some_and(|capture| capture.qlog);
        let tape = |position: usize, end| {
            let flow = &spec.flows[position];
            let file = begin(create(file_name(&flow.name, end))?, spec, position, end, SYSTEM)?;
            let logs = logs && flow.transport == Transport::Quic;
            let log = logs.then(|| create(log_name(&flow.name, end))).transpose()?;
            Ok::<_, io::Error>(Tape { file, packets: 0, log })
        };
        let flow = |(position, flow)| {
            Ok::<_, io::Error>(Flow {
                segments: Framer::new(position, flow),
                datagrams: DatagramFramer::new(position, flow),
                sender: tape(position, End::Sender)?,
                receiver: tape(position, End::Receiver)?,
            })
        };
        Ok(Self {
            flows: spec.flows.iter().enumerate().map(flow).collect::<Result<_, _>>()?,
            end: Time::from_ns(spec.duration_ns),
            error: None,
            broken: Rc::default(),
        })
    }

    /// Becomes true when something goes wrong, so that a run need not go on for nothing.
    pub fn broken(&self) -> Rc<Cell<bool>> {
        Rc::clone(&self.broken)
    }

    /// Ends the files.
    ///
    /// # Errors
    /// The first thing that went wrong with any of them.
    pub fn finish(self) -> io::Result<()> {
        if let Some(error) = self.error {
            return Err(error);
        }
        for flow in self.flows {
            for Tape { file, packets, log } in [flow.sender, flow.receiver] {
                file.finish(self.end.as_ns(), packets, 0)?;
                if let Some(mut log) = log {
                    log.flush()?;
                }
            }
        }
        Ok(())
    }
}

impl Tape {
    fn packet(&mut self, now: Time, kept: &[u8], size_bytes: u32) -> io::Result<()> {
        self.packets += 1;
        self.file.packet(now.as_ns(), kept, size_bytes)
    }
}

impl Capture {
    /// Writes something of a flow, unless something went wrong before.
    fn write(&mut self, flow: u32, write: impl FnOnce(&mut Flow) -> io::Result<()>) {
        if self.error.is_some() {
            return;
        }
        if let Err(error) = write(&mut self.flows[flow as usize]) {
            self.error = Some(error);
            self.broken.set(true);
        }
    }
}

/// Many runs are not captured, and one simulator serves all.
impl Sink for Option<Capture> {
    #[inline]
    fn wants_segments(&self) -> bool {
        self.is_some()
    }

    fn segment(&mut self, now: Time, flow: u32, end: End, header: &Header) {
        let Some(capture) = self else { return };
        capture.write(flow, |flow| {
            let Flow { segments, sender, receiver, .. } = flow;
            let tape = if end == End::Sender { sender } else { receiver };
            let (kept, size_bytes) = segments.frame(end, header).map_err(io::Error::other)?;
            tape.packet(now, kept, size_bytes)
        });
    }

    fn datagram(&mut self, now: Time, flow: u32, end: End, datagram: &Datagram<'_>) {
        let Some(capture) = self else { return };
        capture.write(flow, |flow| {
            let Flow { datagrams, sender, receiver, .. } = flow;
            let tape = if end == End::Sender { sender } else { receiver };
            let (kept, size_bytes) = datagrams.frame(datagram);
            tape.packet(now, kept, size_bytes)
        });
    }

    fn logged(&mut self, flow: u32, end: End, records: &str) {
        let Some(capture) = self else { return };
        capture.write(flow, |Flow { sender, receiver, .. }| {
            let tape = if end == End::Sender { sender } else { receiver };
            match &mut tape.log {
                None => Ok(()),
                Some(log) => log.write_all(records.as_bytes()),
            }
        });
    }

    fn secrets(&mut self, flow: u32, lines: &str) {
        let Some(capture) = self else { return };
        capture.write(flow, |flow| {
            flow.sender.file.secrets(lines)?;
            flow.receiver.file.secrets(lines)
        });
    }
}
