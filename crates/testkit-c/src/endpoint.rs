//! Endpoints whose functions are written in C.

use std::cell::RefCell;
use std::ffi::c_void;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use kit::{Ecn, Host, Rate, Span, Time, UdpHost};

use crate::arguments::Structure;

/// Deadline of an endpoint without a timer.
pub const JTK_NEVER: u64 = u64::MAX;
/// Largest payload that an endpoint can return at once.
pub const JTK_PAYLOAD_MAX: usize = 65_507;

/// IP address and port.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Address {
    /// 4, or 6. 0: there is no address.
    pub family: u8,
    /// The 4 or 16 bytes of the address, in network byte order.
    pub ip: [u8; 16],
    /// Port, in host byte order.
    pub port: u16,
}

/// A datagram that arrived, or an IP packet if the host was added with `jtk_add_host`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// Sender.
    pub source: Address,
    /// Receiver.
    pub destination: Address,
    /// ECN field of the IP header.
    pub ecn: u8,
    /// UDP payload, or IP packet. It is valid until the function returns.
    pub payload: *const u8,
    /// Size of the payload.
    pub length: usize,
}

/// A datagram to send, or several of equal size.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Transmit {
    /// Buffer of `JTK_PAYLOAD_MAX` bytes to write the payload to.
    pub payload: *mut u8,
    /// To set: size of the payload.
    pub length: usize,
    /// To set: the payload is divided into datagrams of this size. 0: it is one datagram.
    pub segment_bytes: usize,
    /// To set: receiver. A host that sends IP packets leaves it.
    pub destination: Address,
    /// To set: ECN field of the IP header.
    pub ecn: u8,
}

/// State of a sender's congestion control. 0 means that a value is unknown.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SenderState {
    /// Smoothed RTT in ns.
    pub srtt_ns: u64,
    /// Minimum RTT in ns.
    pub min_rtt_ns: u64,
    /// Congestion window in bytes.
    pub cwnd_bytes: u64,
    /// Slow-start threshold in bytes.
    pub ssthresh_bytes: u64,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Pacing rate in bit/s.
    pub pacing_bps: u64,
    /// Maximum datagram size in bytes.
    pub datagram_bytes: u32,
}

/// Functions of a protocol stack. They must not call functions with the simulation that calls them.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Endpoint {
    /// sizeof(jtk_endpoint).
    pub size: usize,
    /// Passed to the functions.
    pub context: *mut c_void,
    /// Handles a datagram that arrived.
    pub handle:
        Option<unsafe extern "C" fn(context: *mut c_void, now_ns: u64, datagram: *const Datagram)>,
    /// Writes the next datagram to send. Returns 0 if there is none. It is called again until it
    /// returns 0.
    pub poll_transmit: Option<
        unsafe extern "C" fn(context: *mut c_void, now_ns: u64, transmit: *mut Transmit) -> i32,
    >,
    /// Returns the time of the next timer, or `JTK_NEVER`.
    pub deadline: Option<unsafe extern "C" fn(context: *mut c_void) -> u64>,
    /// Handles the timers that expire at `now_ns`. Null: `poll_transmit` does it.
    pub on_deadline: Option<unsafe extern "C" fn(context: *mut c_void, now_ns: u64)>,
    /// Writes the state of a sender, for a qlog. Returns 0 if there is none. Null: there is none.
    pub sender_state:
        Option<unsafe extern "C" fn(context: *mut c_void, state: *mut SenderState) -> i32>,
}

// SAFETY: it is `repr(C)`, begins with its size, and consists of integers and pointers. C cannot write
// a function pointer that is neither null nor a function of this signature, unless by a cast.
unsafe impl Structure for Endpoint {}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        let mut ip = [0; 16];
        let family = match address.ip() {
            IpAddr::V4(it) => {
                ip[..4].copy_from_slice(&it.octets());
                4
            }
            IpAddr::V6(it) => {
                ip = it.octets();
                6
            }
        };
        Self { family, ip, port: address.port() }
    }
}

impl Address {
    fn socket_address(&self) -> Option<SocketAddr> {
        let ip = match self.family {
            4 => IpAddr::from([self.ip[0], self.ip[1], self.ip[2], self.ip[3]]),
            6 => IpAddr::from(self.ip),
            _ => return None,
        };
        Some(SocketAddr::new(ip, self.port))
    }
}

/// First fault of an endpoint of a simulation.
pub(crate) type Fault = Rc<RefCell<Option<String>>>;

/// Functions that are all there, and what calls of them need.
pub(crate) struct Functions {
    endpoint: Endpoint,
    buffer: Vec<u8>,
    fault: Fault,
    /// In messages.
    address: SocketAddr,
}

impl Functions {
    /// Returns `None` if a function is missing.
    pub fn new(endpoint: Endpoint, address: SocketAddr, fault: Fault) -> Option<Self> {
        (endpoint.handle.and(endpoint.poll_transmit).is_some() && endpoint.deadline.is_some())
            .then(|| Self { endpoint, buffer: vec![0; JTK_PAYLOAD_MAX], fault, address })
    }

    fn handle(&mut self, now: Time, datagram: &Datagram) {
        if let Some(handle) = self.endpoint.handle {
            // SAFETY: `jtk_add_endpoint` requires that the functions may be called with the context;
            // the datagram outlives the call.
            unsafe { handle(self.endpoint.context, now.as_ns(), datagram) };
        }
    }

    /// Returns what to send, with the payload in the buffer.
    fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        let mut transmit = Transmit {
            payload: self.buffer.as_mut_ptr(),
            length: 0,
            segment_bytes: 0,
            destination: Address::default(),
            ecn: 0,
        };
        let poll = self.endpoint.poll_transmit?;
        // SAFETY: as above; the buffer has the size that the interface promises.
        let more = unsafe { poll(self.endpoint.context, now.as_ns(), &mut transmit) };
        if more == 0 {
            return None;
        }
        let wrong = if transmit.length > JTK_PAYLOAD_MAX {
            format!("a payload of {} bytes: at most {JTK_PAYLOAD_MAX}", transmit.length)
        } else if transmit.ecn > 3 {
            format!("an ECN field of {}: expected 0 to 3", transmit.ecn)
        } else {
            return Some(transmit);
        };
        self.fail(&wrong)
    }

    fn fail<T>(&self, wrong: &str) -> Option<T> {
        let message = || format!("poll_transmit of {} returned {wrong}", self.address);
        self.fault.borrow_mut().get_or_insert_with(message);
        None
    }

    fn deadline(&mut self) -> Option<Time> {
        let deadline = self.endpoint.deadline?;
        // SAFETY: as above.
        let at = unsafe { deadline(self.endpoint.context) };
        (at != JTK_NEVER).then(|| Time::from_ns(at))
    }

    fn on_deadline(&mut self, now: Time) {
        if let Some(on_deadline) = self.endpoint.on_deadline {
            // SAFETY: as above.
            unsafe { on_deadline(self.endpoint.context, now.as_ns()) };
        }
    }

    fn sender_state(&mut self) -> Option<kit::SenderState> {
        let mut state = SenderState::default();
        let sender_state = self.endpoint.sender_state?;
        // SAFETY: as above.
        if unsafe { sender_state(self.endpoint.context, &mut state) } == 0 {
            return None;
        }
        let known = |value: u64| (value > 0).then_some(value);
        Some(kit::SenderState {
            srtt: Span::from_ns(state.srtt_ns),
            min_rtt: known(state.min_rtt_ns).map_or(Span::MAX, Span::from_ns),
            cwnd_bytes: state.cwnd_bytes,
            ssthresh_bytes: known(state.ssthresh_bytes),
            in_flight_bytes: state.in_flight_bytes,
            pacing_rate: known(state.pacing_bps).map(Rate::from_bps),
            datagram_bytes: state.datagram_bytes,
            ..kit::SenderState::default()
        })
    }
}

impl kit::Endpoint for Functions {
    fn handle(&mut self, now: Time, datagram: &kit::Datagram<'_>) {
        let datagram = Datagram {
            source: datagram.source.into(),
            destination: datagram.destination.into(),
            ecn: datagram.ecn.bits(),
            payload: datagram.payload.as_ptr(),
            length: datagram.payload.len(),
        };
        Functions::handle(self, now, &datagram);
    }

    fn poll_transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<kit::Transmit> {
        let transmit = Functions::poll_transmit(self, now)?;
        let destination = transmit.destination.socket_address();
        let Some(destination) = destination.filter(|it| it.is_ipv4() == self.address.is_ipv4())
        else {
            return self.fail(&format!(
                "a destination of family {}: expected the family of the host",
                transmit.destination.family
            ));
        };
        payload.extend_from_slice(&self.buffer[..transmit.length]);
        let segment_bytes = (transmit.segment_bytes > 0).then_some(transmit.segment_bytes);
        let ecn = Ecn::from_bits(transmit.ecn);
        Some(kit::Transmit { destination, source: None, ecn, segment_bytes })
    }

    fn deadline(&mut self) -> Option<Time> {
        Functions::deadline(self)
    }

    fn on_deadline(&mut self, now: Time) {
        Functions::on_deadline(self, now);
    }

    fn sender_state(&mut self) -> Option<kit::SenderState> {
        Functions::sender_state(self)
    }
}

/// A host that sends and receives IP packets.
struct PacketHost(Functions);

impl Host for PacketHost {
    fn handle(&mut self, now: Time, packet: &[u8]) {
        let datagram = Datagram {
            source: Address::default(),
            destination: self.0.address.into(),
            ecn: 0,
            payload: packet.as_ptr(),
            length: packet.len(),
        };
        self.0.handle(now, &datagram);
    }

    fn poll_transmit(&mut self, now: Time, packet: &mut Vec<u8>) -> bool {
        let transmit = self.0.poll_transmit(now);
        packet.extend_from_slice(&self.0.buffer[..transmit.map_or(0, |it| it.length)]);
        transmit.is_some()
    }

    fn deadline(&mut self) -> Option<Time> {
        self.0.deadline()
    }

    fn on_deadline(&mut self, now: Time) {
        self.0.on_deadline(now);
    }

    fn has_address(&self, address: IpAddr) -> bool {
        self.0.address.ip() == address
    }

    fn sender_state(&mut self) -> Option<kit::SenderState> {
        self.0.sender_state()
    }
}

impl Functions {
    /// Returns a host with these functions, which exchange UDP payloads or complete IP packets.
    pub fn into_host(self, sends_packets: bool) -> Box<dyn Host> {
        if sends_packets {
            Box::new(PacketHost(self))
        } else {
            Box::new(UdpHost::new(self.address, self))
        }
    }
}
