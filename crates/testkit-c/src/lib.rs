//! C interface of jostle-testkit: `include/jostle_testkit.h`.
//!
//! C passes pointers, so that this crate needs unsafe code. It is confined: `arguments.rs` reads and
//! writes through pointers of the caller, after it has checked them for null, alignment and size;
//! `endpoint.rs` calls the caller's functions. Simulations are numbers, not pointers: one that does
//! not exist, that is freed twice, of another thread, or in use by its own endpoints is an error. No
//! panic leaves a function.

mod arguments;
mod endpoint;
mod failure;
mod measures;
mod simulations;

use std::ffi::{c_char, c_void};
use std::fs::File;
use std::io::{self, BufWriter};

use kit::{Network, PacketLimit, Rate, Side, Span, Time, Unfinished};

use arguments::{Structure, put, put_structure, put_text, structure, text};
pub use endpoint::{
    Address, Datagram, Endpoint, JTK_NEVER, JTK_PAYLOAD_MAX, SenderState, Transmit,
};
pub use failure::*;
use failure::{Failure, status};
pub use measures::{Direction, Measures};
use simulations::{Hosts, add_simulation, remove_simulation, with_simulation};

/// Side of hosts whose packets cross the forward links.
pub const JTK_LEFT: i32 = 0;
/// Side of hosts whose packets cross the reverse links.
pub const JTK_RIGHT: i32 = 1;

/// One direction of a network. The other keys of a link are in JSON: see `jtk_simulation_from_json`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// sizeof(jtk_link).
    pub size: usize,
    /// Rate in bit/s.
    pub rate_bps: u64,
    /// One-way delay in ns.
    pub delay_ns: u64,
    /// Packets that wait at most. 0: one BDP, at least 10.
    pub queue_packets: u64,
    /// Probability with which a packet is lost.
    pub loss: f64,
    /// Largest additional delay of a packet, uniformly distributed; packets keep their order.
    pub jitter_ns: u64,
}

// SAFETY: it is `repr(C)`, begins with its size, and consists of numbers.
unsafe impl Structure for Link {}

impl From<Link> for kit::Link {
    fn from(link: Link) -> Self {
        let mut made = Self::new(Rate::from_bps(link.rate_bps), Span::from_ns(link.delay_ns));
        if link.queue_packets > 0 {
            made = made.queue(PacketLimit::Packets(link.queue_packets));
        }
        if link.jitter_ns > 0 {
            made = made.jitter(Span::from_ns(link.jitter_ns), false);
        }
        // NaN, too, is refused when the network is checked.
        if link.loss == 0.0 { made } else { made.loss(link.loss) }
    }
}

fn start(
    network: Result<Network, kit::NetworkError>,
    seed: u64,
    number: *mut u64,
) -> Result<(), Failure> {
    let invalid = |error: kit::NetworkError| Failure::new(JTK_BAD_NETWORK, error);
    let made = kit::Simulation::new(&network.map_err(invalid)?, seed).map_err(invalid)?;
    // SAFETY: the functions below require that a number can be written.
    unsafe { put(number, 0, "simulation")? };
    let added = add_simulation(made);
    // SAFETY: as above.
    unsafe { put(number, added, "simulation") }
}

/// Creates a simulation with a link in each direction, and writes its number. The seed determines
/// all random events of the network. Use a simulation in the thread that created it.
///
/// # Safety
/// The pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jtk_simulation_new(
    forward: *const Link,
    reverse: *const Link,
    seed: u64,
    simulation: *mut u64,
) -> i32 {
    status(|| {
        // SAFETY: they are null or valid.
        let links = unsafe { [structure(forward, "forward")?, structure(reverse, "reverse")?] };
        let [forward, reverse] = links.map(kit::Link::from);
        start(Ok(Network::new(&[forward], &[reverse])), seed, simulation)
    })
}

/// Creates a simulation from the JSON of a network: an object with `forward`, `reverse` (lists of
/// links as in a run specification of jostle) and `mtu_bytes`.
///
/// # Safety
/// The pointers are null or valid, and `json` ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jtk_simulation_from_json(
    json: *const c_char,
    seed: u64,
    simulation: *mut u64,
) -> i32 {
    status(|| {
        // SAFETY: it is null or a text.
        let json = unsafe { text(json, "json")? };
        start(Network::from_json(json), seed, simulation)
    })
}

/// Creates a simulation with the network of a flow of a run specification of jostle, in JSON.
///
/// # Safety
/// The pointers are null or valid, and the texts end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jtk_simulation_of_flow(
    run: *const c_char,
    flow: *const c_char,
    seed: u64,
    simulation: *mut u64,
) -> i32 {
    status(|| {
        // SAFETY: they are null or texts.
        let (run, flow) = unsafe { (text(run, "run")?, text(flow, "flow")?) };
        start(Network::of_flow(run, flow), seed, simulation)
    })
}

/// Frees a simulation. Its functions are not called any more.
#[unsafe(no_mangle)]
pub extern "C" fn jtk_simulation_free(simulation: u64) -> i32 {
    status(|| remove_simulation(simulation))
}

unsafe fn add(
    simulation: u64,
    side: i32,
    address: *const c_char,
    functions: *const Endpoint,
    sends_packets: bool,
    host: *mut u32,
) -> Result<(), Failure> {
    // SAFETY: the functions below require that they are null or valid.
    let (text, functions) =
        unsafe { (text(address, "address")?, structure(functions, "endpoint")?) };
    let side = match side {
        JTK_LEFT => Side::Left,
        JTK_RIGHT => Side::Right,
        other => {
            let message = format!("`side` is {other}: expected JTK_LEFT or JTK_RIGHT");
            return Err(Failure::argument(message));
        }
    };
    let Ok(address) = text.parse() else {
        let message = format!("`address` is \"{text}\": expected an IP address and a port");
        return Err(Failure::argument(message));
    };
    with_simulation(simulation, |hosts| {
        let Some(functions) = endpoint::Functions::new(functions, address, hosts.fault.clone())
        else {
            let message = "`endpoint` lacks handle, poll_transmit or deadline";
            return Err(Failure::argument(message));
        };
        // SAFETY: as above.
        unsafe { put(host, hosts.count(), "host")? };
        hosts.add(side, functions.into_host(sends_packets), address.ip());
        Ok(())
    })
}

/// Adds a protocol stack above UDP, and writes the number of its host. `address` is an IP address
/// and a port: "10.0.0.1:443" or "[fd00::1]:443".
///
/// # Safety
/// The pointers are null or valid, `address` ends with a zero byte, and the functions may be called
/// with their context until the simulation is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jtk_add_endpoint(
    simulation: u64,
    side: i32,
    address: *const c_char,
    endpoint: *const Endpoint,
    host: *mut u32,
) -> i32 {
    // SAFETY: the same requirements.
    status(|| unsafe { add(simulation, side, address, endpoint, false, host) })
}

/// Adds a host whose payloads are complete IP packets, such as a TCP. The port of `address` has no
/// meaning.
///
/// # Safety
/// As for `jtk_add_endpoint`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jtk_add_host(
    simulation: u64,
    side: i32,
    address: *const c_char,
    endpoint: *const Endpoint,
    host: *mut u32,
) -> i32 {
    // SAFETY: the same requirements.
    status(|| unsafe { add(simulation, side, address, endpoint, true, host) })
}

/// Says that a host may have something to send, or another deadline, because the test changed it.
#[unsafe(no_mangle)]
pub extern "C" fn jtk_wake(simulation: u64, host: u32) -> i32 {
    status(|| {
        with_simulation(simulation, |hosts| {
            let id = hosts.id(host)?;
            let _ = &mut hosts.simulation[id];
            Ok(())
        })
    })
}

/// Writes the time.
///
/// # Safety
/// `now_ns` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jtk_now(simulation: u64, now_ns: *mut u64) -> i32 {
    status(|| {
        with_simulation(simulation, |hosts| {
            // SAFETY: it is null or valid.
            unsafe { put(now_ns, hosts.simulation.now().as_ns(), "now_ns") }
        })
    })
}

/// Runs until a condition returns other than 0, at most to `limit_ns`, and returns `JTK_OK`,
/// `JTK_TIME_LIMIT`, `JTK_IDLE` or `JTK_ENDLESS_LOOP`. The condition is checked at the start and after
/// the events of each time. It must not call functions with this simulation.
///
/// Without a condition (null), runs to `limit_ns` and returns `JTK_OK`.
///
/// # Safety
/// `is_met` is null or a function that may be called with `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jtk_run_until(
    simulation: u64,
    limit_ns: u64,
    is_met: Option<unsafe extern "C" fn(context: *mut c_void, now_ns: u64) -> i32>,
    context: *mut c_void,
) -> i32 {
    status(|| {
        with_simulation(simulation, |hosts| {
            let fault = hosts.fault.clone();
            let limit = Time::from_ns(limit_ns);
            let ended = hosts.simulation.run_until(limit, |simulation| {
                let now_ns = simulation.now().as_ns();
                // SAFETY: the caller says that the function may be called with the context.
                let ends = is_met.is_some_and(|is_met| unsafe { is_met(context, now_ns) } != 0);
                ends || fault.borrow().is_some()
            });
            if let Some(message) = fault.take() {
                return Err(Failure::new(JTK_BAD_ENDPOINT, message));
            }
            let code = match ended {
                Ok(_) => return Ok(()),
                Err(Unfinished::EndlessLoop { .. }) => JTK_ENDLESS_LOOP,
                Err(Unfinished::TimeLimit(_)) if is_met.is_none() => return Ok(()),
                Err(Unfinished::Idle(_)) if is_met.is_none() => {
                    // Its only failure is an endless loop, which no idle simulation has.
                    return hosts
                        .simulation
                        .run_to(limit)
                        .map_err(|error| Failure::new(JTK_INTERNAL, error));
                }
                Err(Unfinished::TimeLimit(_)) => JTK_TIME_LIMIT,
                Err(Unfinished::Idle(_)) => JTK_IDLE,
            };
            Err(Failure::new(code, ended.err().map_or(String::new(), |error| error.to_string())))
        })
    })
}

/// Writes the measures from 0 to now.
///
/// # Safety
/// `measures` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jtk_get_measures(simulation: u64, measures: *mut Measures) -> i32 {
    status(|| {
        with_simulation(simulation, |hosts| {
            let made = Measures::from(&hosts.simulation.measures());
            // SAFETY: it is null or valid.
            unsafe { put_structure(measures, made, "measures") }
        })
    })
}

/// Writes all measures, also of each link, as JSON with a zero byte at its end. `length` is its size
/// without the zero byte, also if the buffer is too small for it.
///
/// # Safety
/// The pointers are null or valid, and `capacity` bytes can be written to `buffer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jtk_measures_json(
    simulation: u64,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> i32 {
    status(|| {
        with_simulation(simulation, |hosts| {
            let json = serde_json::to_string(&hosts.simulation.measures());
            let json = json.map_err(|error| Failure::new(JTK_INTERNAL, error))?;
            // SAFETY: they are null or valid.
            unsafe { put(length, json.len(), "length")? };
            // SAFETY: as above.
            unsafe { put_text(buffer, capacity, &json, "buffer") }
        })
    })
}

fn create(path: &str) -> Result<BufWriter<File>, Failure> {
    File::create(path).map(BufWriter::new).map_err(|error| io_failure(path, &error))
}

fn io_failure(path: &str, error: &io::Error) -> Failure {
    Failure::new(JTK_IO, format_args!("{path}: {error}"))
}

/// Writes all packets that a host sends and receives from now on to a pcapng file.
///
/// # Safety
/// `path` is null, or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jtk_capture(simulation: u64, host: u32, path: *const c_char) -> i32 {
    status(|| {
        // SAFETY: it is null or a text.
        let path = unsafe { text(path, "path")? };
        with_simulation(simulation, |hosts| {
            let (id, address) = (hosts.id(host)?, hosts.address(host)?);
            let started =
                hosts.simulation.capture(id, &format!("host{host}"), address, create(path)?);
            started.map_err(|error| io_failure(path, &error))
        })
    })
}

/// Writes a qlog of the QUIC packets of a host from now on, and of its `sender_state`.
///
/// # Safety
/// The texts are null, or end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jtk_qlog(
    simulation: u64,
    host: u32,
    title: *const c_char,
    path: *const c_char,
) -> i32 {
    status(|| {
        // SAFETY: they are null or texts.
        let (title, path) = unsafe { (text(title, "title")?, text(path, "path")?) };
        with_simulation(simulation, |hosts| {
            let id = hosts.id(host)?;
            let started = hosts.simulation.qlog(id, title, create(path)?);
            started.map_err(|error| io_failure(path, &error))
        })
    })
}

/// Ends all captures and logs, and writes their files.
#[unsafe(no_mangle)]
pub extern "C" fn jtk_finish_files(simulation: u64) -> i32 {
    status(|| {
        with_simulation(simulation, |hosts: &mut Hosts| {
            hosts.simulation.finish_files().map_err(|error| Failure::new(JTK_IO, error))
        })
    })
}
