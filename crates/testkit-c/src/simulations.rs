//! The simulations of a thread, by number.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use kit::{Host, HostId, Side, Simulation};

use crate::endpoint::Fault;
use crate::failure::{Failure, JTK_BUSY};

/// A simulation with its hosts.
pub(crate) struct Hosts {
    pub simulation: Simulation<Box<dyn Host>>,
    hosts: Vec<(HostId, IpAddr)>,
    pub fault: Fault,
}

/// Numbers are not used again, and are different in each thread.
static NEXT: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static SIMULATIONS: RefCell<BTreeMap<u64, Rc<RefCell<Hosts>>>> = RefCell::default();
}

fn unknown(number: u64) -> Failure {
    let message = format!("there is no simulation {number} in this thread: is it freed already?");
    Failure::argument(message)
}

/// Returns the number of a new simulation.
pub(crate) fn add_simulation(simulation: Simulation<Box<dyn Host>>) -> u64 {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let hosts = Hosts { simulation, hosts: Vec::new(), fault: Fault::default() };
    SIMULATIONS.with_borrow_mut(|all| all.insert(number, Rc::new(RefCell::new(hosts))));
    number
}

pub(crate) fn remove_simulation(number: u64) -> Result<(), Failure> {
    with_simulation(number, |_| Ok(()))?;
    // It is dropped outside of the borrow.
    let removed = SIMULATIONS.with_borrow_mut(|all| all.remove(&number));
    drop(removed);
    Ok(())
}

/// Calls a function with a simulation, unless one of its endpoints does.
pub(crate) fn with_simulation<T>(
    number: u64,
    call: impl FnOnce(&mut Hosts) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let hosts = SIMULATIONS.with_borrow(|all| all.get(&number).cloned());
    let hosts = hosts.ok_or_else(|| unknown(number))?;
    let Ok(mut hosts) = hosts.try_borrow_mut() else {
        let message = "a function of an endpoint, or a condition, called its own simulation";
        return Err(Failure::new(JTK_BUSY, message));
    };
    call(&mut hosts)
}

impl Hosts {
    pub fn add(&mut self, side: Side, host: Box<dyn Host>, address: IpAddr) {
        let id = self.simulation.add(side, host);
        self.hosts.push((id, address));
    }

    /// Returns the number of hosts, which is the number of the next one.
    pub fn count(&self) -> u32 {
        self.hosts.len() as u32
    }

    fn host(&self, host: u32) -> Result<(HostId, IpAddr), Failure> {
        self.hosts.get(host as usize).copied().ok_or_else(|| {
            let count = self.hosts.len();
            Failure::argument(format_args!("`host` is {host}: the simulation has {count} hosts"))
        })
    }

    pub fn id(&self, host: u32) -> Result<HostId, Failure> {
        self.host(host).map(|(id, _)| id)
    }

    pub fn address(&self, host: u32) -> Result<IpAddr, Failure> {
        self.host(host).map(|(_, address)| address)
    }
}
