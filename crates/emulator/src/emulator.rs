//! The event loop between two devices.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jostle_forwarding::{Departure, Direction, EventLog, PacketId, PacketPool, Shared, size_bytes};
use jostle_metrics::Histogram;
use jostle_units::Time;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::{Errno, ioctl_fionbio, read, retry_on_intr, write};

use crate::monotonic_clock::{Clock, Timer};
use crate::{EmulationSpec, Error, Summary};

/// Forwards packets between two devices, in both directions, over emulated links.
///
/// A device can be any descriptor that returns one packet per read and accepts one per write.
pub struct Emulator<D> {
    /// Packets read from `devices[i]` go over `directions[i]` to `devices[1 - i]`.
    devices: [D; 2],
    directions: [Direction; 2],
    shared: Shared,
    /// Whether a device may have packets to read.
    readable: [bool; 2],
    /// Receives packets that are discarded because of the memory limit.
    unheld: Box<[u8]>,
    lateness_ns: Histogram,
    lateness_bound_ns: u64,
    stop: Stop,
}

/// Result of an emulation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Counters, utilisation and lateness.
    pub summary: Summary,
    /// All drops and marks, if the specification requests them.
    pub journal: Option<EventLog>,
}

/// Handle to stop an emulation from any thread.
#[derive(Clone, Debug)]
pub struct Stop(Arc<Request>);

#[derive(Debug)]
struct Request {
    /// Checked by a loop that does not wait.
    made: AtomicBool,
    /// Wakes a loop that waits.
    descriptor: OwnedFd,
}

impl Stop {
    fn new() -> Result<Self, Errno> {
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(Request { made: AtomicBool::new(false), descriptor })))
    }

    /// Stops the emulation. If it has not started yet, it will stop at once.
    pub fn stop(&self) {
        self.0.made.store(true, Ordering::Relaxed);
        // Fails only if the counter of the eventfd is full. The loop is woken in that case, too.
        let _ = write(&self.0.descriptor, &1u64.to_ne_bytes());
    }

    fn requested(&self) -> bool {
        self.0.made.load(Ordering::Relaxed)
    }
}

impl<D: AsFd> Emulator<D> {
    /// Creates links between `devices`. Forward is from the first to the second.
    ///
    /// # Errors
    /// Returns an error if a link cannot be built, or a system call fails.
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
                slots: PacketPool::new(usize::from(spec.mtu_bytes), spec.memory_bytes),
                journal: spec.journal.then(EventLog::default),
            },
            readable: [true; 2],
            unheld: vec![0; usize::from(spec.mtu_bytes)].into_boxed_slice(),
            lateness_ns: Histogram::default(),
            lateness_bound_ns: spec.lateness_bound_ns,
            stop: Stop::new().map_err(Error::system("cannot make an eventfd"))?,
        })
    }

    /// Returns a handle to stop the emulation.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Forwards packets until it is stopped. The links' logical time starts now.
    ///
    /// # Errors
    /// Returns an error if a device was removed, or waiting fails.
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

    /// Processes one step of each direction: reads at most one packet, then delivers everything due
    /// before it. Only one packet at a time, so that neither bursts nor the other direction delay
    /// departures.
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

    /// Reads the next packet of a device, if there is one.
    fn read(&mut self, i: usize) -> Result<Option<PacketId>, Error> {
        if !self.readable[i] {
            return Ok(None);
        }
        let device = &self.devices[i];
        if self.shared.slots.is_full() {
            // Read anyway, because unread packets would delay later ones.
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

    /// Delivers the packets that have left the last link by `now`.
    fn deliver(&mut self, i: usize, now: Time, clock: Clock) -> Result<(), Error> {
        while let Some(Departure { at, packet: slot, .. }) =
            self.directions[i].due(now, &mut self.shared)
        {
            let packet = self.shared.slots.get(slot);
            let direction = &mut self.directions[i];
            let left = clock.now();
            match retry_on_intr(|| write(&self.devices[1 - i], packet)) {
                Ok(_) => {
                    direction.delivered.add(size_bytes(packet));
                    self.lateness_ns.record(left.since(at).as_ns(), 1);
                }
                // Linux's error for a removed device.
                Err(errno @ Errno::BADFD) => {
                    return Err(Error::system("cannot write to a device")(errno));
                }
                // The device is down or rejects the packet.
                Err(_) => direction.refused += 1,
            }
            self.shared.slots.give_back(slot);
        }
        Ok(())
    }

    fn next_time(&self) -> Time {
        self.directions[0].next_time().min(self.directions[1].next_time())
    }

    /// Waits for packets, the time `until`, or the stop request.
    fn wait(&mut self, until: Time, timer: &mut Timer) -> Result<(), Error> {
        timer.set(until).map_err(Error::system("cannot set a timer"))?;
        let mut descriptors = [
            PollFd::new(&self.devices[0], PollFlags::IN),
            PollFd::new(&self.devices[1], PollFlags::IN),
            PollFd::new(timer, PollFlags::IN),
            PollFd::new(&self.stop.0.descriptor, PollFlags::IN),
        ];
        retry_on_intr(|| poll(&mut descriptors, None)).map_err(Error::system("cannot wait"))?;
        // Errors also mark a device as readable. The next read then returns the error.
        let [first, second, ..] = descriptors.map(|descriptor| !descriptor.revents().is_empty());
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
            self.shared.slots.slots_in_use() as u64,
            self.directions.iter().map(Direction::packets_in_transit).sum::<u64>(),
            "every slot that is held belongs to a packet on its way"
        );
        let (late_ns, bound_ns) = (&self.lateness_ns, self.lateness_bound_ns);
        Ok(Outcome {
            summary: Summary::of(end, &mut self.directions, late_ns, bound_ns),
            journal: self.shared.journal.map(EventLog::finish),
        })
    }
}
