//! The loop between two devices.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jostle_record::Histogram;
use jostle_units::Time;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::{Errno, ioctl_fionbio, read, retry_on_intr, write};

use crate::clock::{Clock, Timer};
use crate::direction::{Direction, Shared, size_bytes};
use crate::slots::{Slot, Slots};
use crate::{EmulationSpec, Error, Journal, Summary};

/// Carries packets between two devices, in both directions, over emulated links.
///
/// Anything will do as a device that hands over one packet per read and takes one per write.
pub struct Emulator<D> {
    /// Packets read from `devices[i]` go over `directions[i]` to `devices[1 - i]`.
    devices: [D; 2],
    directions: [Direction; 2],
    shared: Shared,
    /// Whether a device may have something to read.
    readable: [bool; 2],
    /// Takes a packet for which there is no room.
    unheld: Box<[u8]>,
    lateness_ns: Histogram,
    lateness_bound_ns: u64,
    stop: Stop,
}

/// What an emulation leaves behind.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Counts, utilisation, lateness.
    pub summary: Summary,
    /// Every drop and mark, if the specification asks for them.
    pub journal: Option<Journal>,
}

/// Ends an emulation, from any thread.
#[derive(Clone, Debug)]
pub struct Stop(Arc<Request>);

#[derive(Debug)]
struct Request {
    /// For a loop that is too busy to wait.
    made: AtomicBool,
    /// Wakes a loop that waits.
    descriptor: OwnedFd,
}

impl Stop {
    fn new() -> Result<Self, Errno> {
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(Request { made: AtomicBool::new(false), descriptor })))
    }

    /// Ends the emulation now, or at once when it has not begun yet.
    pub fn stop(&self) {
        self.0.made.store(true, Ordering::Relaxed);
        // Fails only when the counter of the eventfd is full: then it wakes the loop anyway.
        let _ = write(&self.0.descriptor, &1u64.to_ne_bytes());
    }

    fn requested(&self) -> bool {
        self.0.made.load(Ordering::Relaxed)
    }
}

impl<D: AsFd> Emulator<D> {
    /// Links between `devices`, forward from the first to the second.
    ///
    /// # Errors
    /// When a link cannot be built, or the operating system refuses a descriptor.
    pub fn new(spec: &EmulationSpec, devices: [D; 2]) -> Result<Self, Error> {
        for device in &devices {
            ioctl_fionbio(device, true).map_err(Error::system("cannot read without waiting"))?;
        }
        Ok(Self {
            devices,
            directions: [
                Direction::new(0, &spec.forward, spec.seed)?,
                Direction::new(1, &spec.reverse, spec.seed)?,
            ],
            shared: Shared {
                slots: Slots::new(usize::from(spec.mtu_bytes), spec.memory_bytes),
                journal: spec.journal.then(Journal::default),
            },
            readable: [true; 2],
            unheld: vec![0; usize::from(spec.mtu_bytes)].into_boxed_slice(),
            lateness_ns: Histogram::default(),
            lateness_bound_ns: spec.lateness_bound_ns,
            stop: Stop::new().map_err(Error::system("cannot make an eventfd"))?,
        })
    }

    /// What ends it.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Carries packets until it is stopped. The links' time begins now.
    ///
    /// # Errors
    /// When a device is gone or the operating system refuses to wait.
    pub fn run(mut self) -> Result<Outcome, Error> {
        let clock = Clock::start();
        let mut timer = Timer::new(clock).map_err(Error::system("cannot make a timer"))?;
        while !self.stop.requested() {
            self.turn(clock)?;
            if self.readable != [false; 2] {
                continue;
            }
            let next = self.next_time();
            if next > clock.now() {
                self.wait(next, &mut timer)?;
            }
        }
        self.finish(clock)
    }

    /// In each direction: at most one arrival, after everything that was due before it. One at a
    /// time, so that neither a burst of arrivals nor the other direction makes departures late.
    fn turn(&mut self, clock: Clock) -> Result<(), Error> {
        for i in 0..2 {
            let arrived = self.read(i)?;
            let now = clock.now();
            self.deliver(i, now, clock)?;
            if let Some(slot) = arrived {
                self.directions[i].arrive(now, slot, &mut self.shared);
            }
        }
        Ok(())
    }

    /// The next packet of a device, if it has any.
    fn read(&mut self, i: usize) -> Result<Option<Slot>, Error> {
        if !self.readable[i] {
            return Ok(None);
        }
        let device = &self.devices[i];
        if self.shared.slots.is_full() {
            // Taken all the same: a device that is not read would delay what comes later.
            match retry_on_intr(|| read(device, &mut *self.unheld)) {
                Ok(_) => self.directions[i].unheld += 1,
                Err(Errno::AGAIN) => self.readable[i] = false,
                Err(errno) => return Err(Error::system("cannot read from a device")(errno)),
            }
            return Ok(None);
        }
        match self.shared.slots.fill(|buffer| retry_on_intr(|| read(device, &mut *buffer))) {
            Ok(slot) => Ok(Some(slot)),
            Err(Errno::AGAIN) => {
                self.readable[i] = false;
                Ok(None)
            }
            Err(errno) => Err(Error::system("cannot read from a device")(errno)),
        }
    }

    /// Hands over what has left the last link by `now`.
    fn deliver(&mut self, i: usize, now: Time, clock: Clock) -> Result<(), Error> {
        while let Some((exit, slot)) = self.directions[i].due(now, &mut self.shared) {
            let packet = self.shared.slots.get(slot);
            let direction = &mut self.directions[i];
            let left = clock.now();
            match retry_on_intr(|| write(&self.devices[1 - i], packet)) {
                Ok(_) => {
                    direction.delivered.add(size_bytes(packet));
                    self.lateness_ns.record(left.since(exit).as_ns(), 1);
                }
                // Linux: what a device that is gone answers.
                Err(errno @ Errno::BADFD) => {
                    return Err(Error::system("cannot write to a device")(errno));
                }
                // It is down, or wants nothing of this kind.
                Err(_) => direction.refused += 1,
            }
            self.shared.slots.give_back(slot);
        }
        Ok(())
    }

    fn next_time(&self) -> Time {
        self.directions[0].next_time().min(self.directions[1].next_time())
    }

    /// Waits for packets, for `until`, or for the end.
    fn wait(&mut self, until: Time, timer: &mut Timer) -> Result<(), Error> {
        timer.set(until).map_err(Error::system("cannot set a timer"))?;
        let mut descriptors = [
            PollFd::new(&self.devices[0], PollFlags::IN),
            PollFd::new(&self.devices[1], PollFlags::IN),
            PollFd::new(timer, PollFlags::IN),
            PollFd::new(&self.stop.0.descriptor, PollFlags::IN),
        ];
        retry_on_intr(|| poll(&mut descriptors, None)).map_err(Error::system("cannot wait"))?;
        // Errors count: the read that follows tells what it is.
        let [first, second, ..] = descriptors.map(|one| !one.revents().is_empty());
        self.readable = [first, second];
        Ok(())
    }

    fn finish(mut self, clock: Clock) -> Result<Outcome, Error> {
        let end = clock.now();
        for i in 0..2 {
            self.deliver(i, end, clock)?;
            self.directions[i].advance(end, &mut self.shared);
        }
        debug_assert_eq!(
            self.shared.slots.held() as u64,
            self.directions.iter().map(Direction::on_the_way).sum::<u64>(),
            "every slot that is held belongs to a packet on its way"
        );
        let (late_ns, bound_ns) = (&self.lateness_ns, self.lateness_bound_ns);
        Ok(Outcome {
            summary: Summary::of(end, &mut self.directions, late_ns, bound_ns),
            journal: self.shared.journal.map(Journal::finish),
        })
    }
}
