//! The sink that captures simulated segments.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::rc::Rc;

use jostle_units::Time;

use super::frames::Framer;
use super::pcapng::Pcapng;
use super::{begin, file_name};
use crate::{End, Header, RunSpec, Sink};

const SYSTEM: &str = "jostle's simulator";
const BUFFER_BYTES: usize = 1 << 16;

/// One end's file.
struct Tape {
    file: Pcapng<BufWriter<File>>,
    packets: u64,
}

struct Flow {
    framer: Framer,
    sender: Tape,
    receiver: Tape,
}

/// Writes the headers of every segment to the files of a folder.
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
        let tape = |position: usize, end| {
            let name = file_name(&spec.flows[position].name, end);
            let file = BufWriter::with_capacity(BUFFER_BYTES, File::create_new(folder.join(name))?);
            Ok::<_, io::Error>(Tape { file: begin(file, spec, position, end, SYSTEM)?, packets: 0 })
        };
        let flow = |(position, flow)| {
            Ok::<_, io::Error>(Flow {
                framer: Framer::new(position, flow),
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
            for Tape { file, packets } in [flow.sender, flow.receiver] {
                file.finish(self.end.as_ns(), packets, 0)?;
            }
        }
        Ok(())
    }
}

impl Capture {
    fn write(&mut self, now: Time, flow: u32, end: End, header: &Header) {
        if self.error.is_some() {
            return;
        }
        let Flow { framer, sender, receiver } = &mut self.flows[flow as usize];
        let tape = if end == End::Sender { sender } else { receiver };
        let written = framer
            .frame(end, header)
            .map_err(io::Error::other)
            .and_then(|(kept, size_bytes)| tape.file.packet(now.as_ns(), kept, size_bytes));
        tape.packets += 1;
        if let Err(error) = written {
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
        if let Some(capture) = self {
            capture.write(now, flow, end, header);
        }
    }
}
