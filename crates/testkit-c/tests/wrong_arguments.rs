//! Calls with wrong arguments return an error with a message.

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::{env, fs, process, slice, thread};

use jostle_testkit::*;

fn message() -> String {
    // SAFETY: the library returns a text that is valid until the next call of this thread.
    unsafe { CStr::from_ptr(jtk_last_error()) }.to_str().unwrap().to_owned()
}

/// Checks the status of a call, and that the message of a failed one contains `part`.
#[track_caller]
fn expect(status: i32, code: i32, part: &str) {
    let message = if status == JTK_OK { String::new() } else { message() };
    assert_eq!(status, code, "{message}");
    assert!(message.contains(part), "{message}");
}

fn link() -> Link {
    Link {
        size: size_of::<Link>(),
        rate_bps: 10_000_000,
        delay_ns: 1_000_000,
        queue_packets: 0,
        loss: 0.0,
        jitter_ns: 0,
    }
}

fn new_simulation() -> u64 {
    let mut simulation = 0;
    // SAFETY: the pointers are valid.
    expect(unsafe { jtk_simulation_new(&link(), &link(), 1, &mut simulation) }, JTK_OK, "");
    simulation
}

/// What the endpoints below do.
struct Stack {
    simulation: u64,
    transmit: Transmit,
    is_sent: bool,
    statuses: Vec<i32>,
    payload: &'static [u8],
    received: Vec<Vec<u8>>,
}

impl Stack {
    fn new(simulation: u64) -> Self {
        let destination = Address { family: 4, ip: ip([10, 0, 1, 1]), port: 7 };
        let transmit =
            Transmit { payload: null_mut(), length: 5, segment_bytes: 0, destination, ecn: 0 };
        let (statuses, received) = (Vec::new(), Vec::new());
        Self { simulation, transmit, is_sent: false, statuses, payload: b"", received }
    }
}

fn ip(bytes: [u8; 4]) -> [u8; 16] {
    let mut ip = [0; 16];
    ip[..4].copy_from_slice(&bytes);
    ip
}

unsafe extern "C" fn handle(context: *mut c_void, _: u64, datagram: *const Datagram) {
    // SAFETY: the context is the stack that the test has added; the kit passes a valid structure, and
    // so many bytes.
    let (stack, payload) = unsafe {
        let datagram = &*datagram;
        (&mut *context.cast::<Stack>(), slice::from_raw_parts(datagram.payload, datagram.length))
    };
    stack.received.push(payload.to_vec());
}

unsafe extern "C" fn poll_transmit(context: *mut c_void, _: u64, transmit: *mut Transmit) -> i32 {
    // SAFETY: the context is the stack that the test has added; the kit passes a valid structure.
    let (stack, transmit) = unsafe { (&mut *context.cast::<Stack>(), &mut *transmit) };
    if stack.is_sent {
        return 0;
    }
    stack.is_sent = true;
    *transmit = Transmit { payload: transmit.payload, ..stack.transmit };
    // SAFETY: the buffer is larger than what the tests send.
    unsafe { transmit.payload.copy_from(stack.payload.as_ptr(), stack.payload.len()) };
    // Calls with the own simulation, and with another.
    let mut now = 0;
    // SAFETY: the pointers are valid.
    stack.statuses.push(unsafe { jtk_now(stack.simulation, &mut now) });
    stack.statuses.push(jtk_simulation_free(stack.simulation));
    stack.statuses.push(jtk_simulation_free(new_simulation()));
    1
}

unsafe extern "C" fn deadline(_: *mut c_void) -> u64 {
    JTK_NEVER
}

fn endpoint(stack: &mut Stack) -> Endpoint {
    Endpoint {
        size: size_of::<Endpoint>(),
        context: (&raw mut *stack).cast(),
        handle: Some(handle),
        poll_transmit: Some(poll_transmit),
        deadline: Some(deadline),
        on_deadline: None,
        sender_state: None,
    }
}

/// Adds an endpoint and returns the status.
fn add(simulation: u64, side: i32, address: &CStr, endpoint: *const Endpoint) -> i32 {
    // SAFETY: the endpoint is null or outlives the calls of its functions, which the tests run.
    unsafe { jtk_add_endpoint(simulation, side, address.as_ptr(), endpoint, &mut 0) }
}

#[test]
fn null_and_misaligned_pointers_are_refused() {
    let mut number = 0;
    // SAFETY: null is allowed, and a misaligned pointer is not read.
    unsafe {
        let link = link();
        expect(jtk_simulation_new(null(), &link, 1, &mut number), JTK_BAD_ARGUMENT, "`forward` is");
        expect(jtk_simulation_new(&link, null(), 1, &mut number), JTK_BAD_ARGUMENT, "`reverse` is");
        expect(
            jtk_simulation_new(&link, &link, 1, null_mut()),
            JTK_BAD_ARGUMENT,
            "`simulation` is",
        );
        let misaligned = (&raw const link).cast::<u8>().add(1).cast();
        expect(
            jtk_simulation_new(misaligned, &link, 1, &mut number),
            JTK_BAD_ARGUMENT,
            "not aligned",
        );
        expect(
            jtk_simulation_from_json(null(), 1, &mut number),
            JTK_BAD_ARGUMENT,
            "`json` is null",
        );
        let empty = c"".as_ptr();
        expect(
            jtk_simulation_of_flow(empty, null(), 1, &mut number),
            JTK_BAD_ARGUMENT,
            "`flow` is null",
        );
        let simulation = new_simulation();
        expect(jtk_now(simulation, null_mut()), JTK_BAD_ARGUMENT, "`now_ns` is null");
        expect(jtk_get_measures(simulation, null_mut()), JTK_BAD_ARGUMENT, "`measures` is null");
        expect(
            jtk_measures_json(simulation, null_mut(), 9, &mut 0),
            JTK_BAD_ARGUMENT,
            "`buffer` is null",
        );
        expect(
            jtk_measures_json(simulation, null_mut(), 9, null_mut()),
            JTK_BAD_ARGUMENT,
            "`length` is null",
        );
        expect(jtk_capture(simulation, 0, null()), JTK_BAD_ARGUMENT, "`path` is null");
        expect(jtk_qlog(simulation, 0, empty, null()), JTK_BAD_ARGUMENT, "`path` is null");
        expect(add(simulation, JTK_LEFT, c"10.0.0.1:7", null()), JTK_BAD_ARGUMENT, "`endpoint` is");
        let mut stack = Stack::new(simulation);
        let whole = endpoint(&mut stack);
        expect(
            jtk_add_endpoint(simulation, JTK_LEFT, null(), &whole, &mut 0),
            JTK_BAD_ARGUMENT,
            "`address` is null",
        );
        expect(
            jtk_add_host(simulation, JTK_LEFT, c"10.0.0.1:7".as_ptr(), &whole, null_mut()),
            JTK_BAD_ARGUMENT,
            "`host` is null",
        );
        // The host was not added.
        expect(jtk_wake(simulation, 0), JTK_BAD_ARGUMENT, "has 0 hosts");
        expect(jtk_run_until(simulation, 9, None, null_mut()), JTK_OK, "");
    }
}

#[test]
fn structures_of_another_size_are_refused() {
    let simulation = new_simulation();
    let mut stack = Stack::new(simulation);
    let short = Endpoint { size: 8, ..endpoint(&mut stack) };
    expect(
        add(simulation, JTK_LEFT, c"10.0.0.1:7", &short),
        JTK_BAD_ARGUMENT,
        "`endpoint.size` is 8, not 56",
    );
    let old = Link { size: 0, ..link() };
    let mut measures = MaybeUninit::<Measures>::zeroed();
    // SAFETY: the pointers are valid; zeroed measures have a size of 0.
    unsafe {
        expect(
            jtk_simulation_new(&old, &link(), 1, &mut 0),
            JTK_BAD_ARGUMENT,
            "`forward.size` is 0",
        );
        expect(
            jtk_get_measures(simulation, measures.as_mut_ptr()),
            JTK_BAD_ARGUMENT,
            "`measures.size` is 0",
        );
    }
}

#[test]
fn values_that_cannot_be_are_refused() {
    let simulation = new_simulation();
    let mut stack = Stack::new(simulation);
    let whole = endpoint(&mut stack);
    expect(add(simulation, 2, c"10.0.0.1:7", &whole), JTK_BAD_ARGUMENT, "`side` is 2");
    expect(add(simulation, JTK_LEFT, c"10.0.0.1", &whole), JTK_BAD_ARGUMENT, "an IP address and");
    expect(add(simulation, JTK_LEFT, c"\xff", &whole), JTK_BAD_ARGUMENT, "not UTF-8");
    let without = Endpoint { deadline: None, ..whole };
    expect(add(simulation, JTK_LEFT, c"10.0.0.1:7", &without), JTK_BAD_ARGUMENT, "lacks handle");
    for wrong in [
        Link { loss: 1.5, ..link() },
        Link { loss: f64::NAN, ..link() },
        Link { rate_bps: 0, ..link() },
        Link { delay_ns: u64::MAX, ..link() },
        Link { queue_packets: u64::MAX, ..link() },
    ] {
        // SAFETY: the pointers are valid.
        let status = unsafe { jtk_simulation_new(&wrong, &link(), 1, &mut 0) };
        expect(status, JTK_BAD_NETWORK, "`forward[0].");
    }
    // SAFETY: the pointers are valid.
    let status = unsafe { jtk_simulation_from_json(c"{}".as_ptr(), 1, &mut 0) };
    expect(status, JTK_BAD_NETWORK, "forward");
    let path = CString::new("/nowhere/file").unwrap();
    // SAFETY: the texts are valid.
    unsafe {
        expect(jtk_capture(simulation, 7, path.as_ptr()), JTK_BAD_ARGUMENT, "`host` is 7");
        expect(add(simulation, JTK_LEFT, c"10.0.0.1:7", &whole), JTK_OK, "");
        expect(jtk_capture(simulation, 0, path.as_ptr()), JTK_IO, "/nowhere/file");
        expect(jtk_qlog(simulation, 0, path.as_ptr(), path.as_ptr()), JTK_IO, "/nowhere/file");
    }
}

#[test]
fn simulations_that_are_not_there_are_refused() {
    let simulation = new_simulation();
    let mut now = 0;
    // SAFETY: the pointer is valid.
    let elsewhere = thread::spawn(move || unsafe { jtk_now(simulation, &mut 0) }).join().unwrap();
    assert_eq!(elsewhere, JTK_BAD_ARGUMENT);
    expect(jtk_simulation_free(simulation), JTK_OK, "");
    expect(jtk_simulation_free(simulation), JTK_BAD_ARGUMENT, "is it freed already?");
    // SAFETY: the pointers are valid, or null where that is allowed.
    unsafe {
        expect(jtk_now(simulation, &mut now), JTK_BAD_ARGUMENT, "there is no simulation");
        expect(jtk_run_until(simulation, 1, None, null_mut()), JTK_BAD_ARGUMENT, "no simulation");
    }
    expect(jtk_finish_files(0), JTK_BAD_ARGUMENT, "there is no simulation 0");
}

/// Runs a stack that sends what `change` sets.
fn run(change: impl Fn(&mut Transmit)) -> (i32, Vec<i32>, u64) {
    let simulation = new_simulation();
    let (mut left, mut right) = (Stack::new(simulation), Stack::new(simulation));
    change(&mut left.transmit);
    right.is_sent = true;
    let endpoints = [endpoint(&mut left), endpoint(&mut right)];
    expect(add(simulation, JTK_LEFT, c"10.0.0.1:7", &endpoints[0]), JTK_OK, "");
    expect(add(simulation, JTK_RIGHT, c"10.0.1.1:7", &endpoints[1]), JTK_OK, "");
    // SAFETY: without a condition, and with valid pointers.
    let status = unsafe { jtk_run_until(simulation, 10_000_000, None, null_mut()) };
    let mut measures = MaybeUninit::<Measures>::zeroed();
    // SAFETY: the size is the first field; zeroed measures are valid.
    let measures = unsafe {
        measures.as_mut_ptr().cast::<usize>().write(size_of::<Measures>());
        expect(jtk_get_measures(simulation, measures.as_mut_ptr()), JTK_OK, "");
        measures.assume_init()
    };
    let statuses = left.statuses.clone();
    (status, statuses, measures.forward.delivered_packets)
}

#[test]
fn an_endpoint_cannot_use_its_own_simulation() {
    assert_eq!(run(|_| {}), (JTK_OK, vec![JTK_BUSY, JTK_BUSY, JTK_OK], 1));
    assert_eq!(run(|it| it.segment_bytes = 2).2, 3);
}

#[test]
fn what_an_endpoint_returns_is_checked() {
    #[track_caller]
    fn refused(part: &str, change: impl Fn(&mut Transmit)) {
        let (status, _, delivered) = run(change);
        assert_eq!((status, delivered), (JTK_BAD_ENDPOINT, 0));
        let message = message();
        assert!(message.contains(part), "{message}");
    }
    refused("10.0.0.1:7 returned a payload of 65508 bytes", |it| it.length = JTK_PAYLOAD_MAX + 1);
    refused("an ECN field of 4", |it| it.ecn = 4);
    refused("a destination of family 6", |it| it.destination.family = 6);
    refused("a destination of family 0", |it| it.destination.family = 0);
    // Allowed, but larger than the MTU.
    assert_eq!(run(|it| it.length = JTK_PAYLOAD_MAX).2, 0);
}

#[test]
fn hosts_exchange_ip_packets() {
    // An IPv4 header with the protocol 253 (for experiments), from 10.0.0.1 to 10.0.1.1.
    const PACKET: &[u8] =
        &[0x45, 0, 0, 24, 0, 0, 0, 0, 64, 253, 0x65, 0xe3, 10, 0, 0, 1, 10, 0, 1, 1, 1, 2, 3, 4];
    let simulation = new_simulation();
    let (mut left, mut right) = (Stack::new(simulation), Stack::new(simulation));
    (left.payload, left.transmit.length) = (PACKET, PACKET.len());
    right.is_sent = true;
    let endpoints = [endpoint(&mut left), endpoint(&mut right)];
    let sides = [(JTK_LEFT, c"10.0.0.1:0"), (JTK_RIGHT, c"10.0.1.1:0")];
    for ((side, address), endpoint) in sides.iter().zip(&endpoints) {
        // SAFETY: the endpoints outlive the run.
        let status = unsafe { jtk_add_host(simulation, *side, address.as_ptr(), endpoint, &mut 0) };
        expect(status, JTK_OK, "");
    }
    // SAFETY: without a condition.
    expect(unsafe { jtk_run_until(simulation, 10_000_000, None, null_mut()) }, JTK_OK, "");
    assert_eq!(right.received, [PACKET]);
    assert!(left.received.is_empty());
}

unsafe extern "C" fn never(_: *mut c_void, _: u64) -> i32 {
    0
}

#[test]
fn a_run_says_why_it_ended() {
    let simulation = new_simulation();
    // SAFETY: the condition ignores its context.
    let run = || unsafe { jtk_run_until(simulation, 1_000, Some(never), null_mut()) };
    expect(run(), JTK_IDLE, "nothing can happen");
    let mut stack = Stack::new(simulation);
    stack.is_sent = true;
    unsafe extern "C" fn late(_: *mut c_void) -> u64 {
        2_000
    }
    let endpoint = Endpoint { deadline: Some(late), ..endpoint(&mut stack) };
    expect(add(simulation, JTK_LEFT, c"10.0.0.1:7", &endpoint), JTK_OK, "");
    expect(run(), JTK_TIME_LIMIT, "not met");
    // SAFETY: without a condition.
    let stuck = unsafe { jtk_run_until(simulation, 3_000, None, null_mut()) };
    expect(stuck, JTK_ENDLESS_LOOP, "was called 1000000 times");
}

#[test]
fn measures_and_files_are_complete() {
    let simulation = new_simulation();
    let mut stack = Stack::new(simulation);
    unsafe extern "C" fn sender_state(_: *mut c_void, state: *mut SenderState) -> i32 {
        // SAFETY: the kit passes a valid structure.
        unsafe { (*state).cwnd_bytes = 4_321 };
        1
    }
    let endpoint = Endpoint { sender_state: Some(sender_state), ..endpoint(&mut stack) };
    expect(add(simulation, JTK_LEFT, c"10.0.0.1:7", &endpoint), JTK_OK, "");
    let folder = env::temp_dir().join(format!("jostle-testkit-c-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| CString::new(folder.join(name).to_str().unwrap()).unwrap();
    let (capture, log) = (path("capture.pcapng"), path("log.sqlog"));
    let (mut buffer, mut length): ([c_char; 4_096], _) = ([0; 4_096], 0);
    // SAFETY: the texts and the buffer are valid.
    let json = unsafe {
        expect(jtk_capture(simulation, 0, capture.as_ptr()), JTK_OK, "");
        expect(jtk_qlog(simulation, 0, c"title".as_ptr(), log.as_ptr()), JTK_OK, "");
        expect(jtk_run_until(simulation, 1_000_000, None, null_mut()), JTK_OK, "");
        let short = jtk_measures_json(simulation, buffer.as_mut_ptr(), 10, &mut length);
        expect(short, JTK_BAD_ARGUMENT, &format!("10 bytes: {} are needed", length + 1));
        let whole = jtk_measures_json(simulation, buffer.as_mut_ptr(), length + 1, &mut length);
        expect(whole, JTK_OK, "");
        CStr::from_ptr(buffer.as_ptr()).to_str().unwrap()
    };
    assert_eq!(json.len(), length);
    let measures: serde_json::Value = serde_json::from_str(json).unwrap();
    // There is no host with the destination's address.
    assert_eq!(measures["forward"]["unroutable_packets"], 1);
    expect(jtk_finish_files(simulation), JTK_OK, "");
    let read = |name| fs::read(folder.join(name)).unwrap();
    assert!(read("capture.pcapng").len() > 200);
    assert!(String::from_utf8(read("log.sqlog")).unwrap().contains("\"congestion_window\":4321"));
    fs::remove_dir_all(&folder).unwrap();
}
