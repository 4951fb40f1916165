// C interface of jostle-testkit. cbindgen writes this file from src/; a test checks that it is current.

#ifndef JOSTLE_TESTKIT_H
#define JOSTLE_TESTKIT_H

#include <stddef.h>
#include <stdint.h>

// The call succeeded. A run has met its condition.
#define JTK_OK 0

// The time limit of a run was reached before its condition was met.
#define JTK_TIME_LIMIT 1

// Nothing can happen any more: no packet is in transit and no host has a deadline.
#define JTK_IDLE 2

// A host sends without end, or its deadline does not move after it has passed.
#define JTK_ENDLESS_LOOP 3

// An argument is null, misaligned, of another size, or has an impossible value.
#define JTK_BAD_ARGUMENT -1

// The network is invalid.
#define JTK_BAD_NETWORK -2

// A function of an endpoint returned something impossible.
#define JTK_BAD_ENDPOINT -3

// A function of an endpoint called a function with its own simulation.
#define JTK_BUSY -4

// A file cannot be written.
#define JTK_IO -5

// A fault of the test kit.
#define JTK_INTERNAL -6

// Deadline of an endpoint without a timer.
#define JTK_NEVER UINT64_MAX

// Largest payload that an endpoint can return at once.
#define JTK_PAYLOAD_MAX 65507

// Side of hosts whose packets cross the forward links.
#define JTK_LEFT 0

// Side of hosts whose packets cross the reverse links.
#define JTK_RIGHT 1

// One direction of a network. The other keys of a link are in JSON: see `jtk_simulation_from_json`.
typedef struct jtk_link {
  // sizeof(jtk_link).
  size_t size;
  // Rate in bit/s.
  uint64_t rate_bps;
  // One-way delay in ns.
  uint64_t delay_ns;
  // Packets that wait at most. 0: one BDP, at least 10.
  uint64_t queue_packets;
  // Probability with which a packet is lost.
  double loss;
  // Largest additional delay of a packet, uniformly distributed; packets keep their order.
  uint64_t jitter_ns;
} jtk_link;

// IP address and port.
typedef struct jtk_address {
  // 4, or 6. 0: there is no address.
  uint8_t family;
  // The 4 or 16 bytes of the address, in network byte order.
  uint8_t ip[16];
  // Port, in host byte order.
  uint16_t port;
} jtk_address;

// A datagram that arrived, or an IP packet if the host was added with `jtk_add_host`.
typedef struct jtk_datagram {
  // Sender.
  struct jtk_address source;
  // Receiver.
  struct jtk_address destination;
  // ECN field of the IP header.
  uint8_t ecn;
  // UDP payload, or IP packet. It is valid until the function returns.
  const uint8_t *payload;
  // Size of the payload.
  size_t length;
} jtk_datagram;

// A datagram to send, or several of equal size.
typedef struct jtk_transmit {
  // Buffer of `JTK_PAYLOAD_MAX` bytes to write the payload to.
  uint8_t *payload;
  // To set: size of the payload.
  size_t length;
  // To set: the payload is divided into datagrams of this size. 0: it is one datagram.
  size_t segment_bytes;
  // To set: receiver. A host that sends IP packets leaves it.
  struct jtk_address destination;
  // To set: ECN field of the IP header.
  uint8_t ecn;
} jtk_transmit;

// State of a sender's congestion control. 0 means that a value is unknown.
typedef struct jtk_sender_state {
  // Smoothed RTT in ns.
  uint64_t srtt_ns;
  // Minimum RTT in ns.
  uint64_t min_rtt_ns;
  // Congestion window in bytes.
  uint64_t cwnd_bytes;
  // Slow-start threshold in bytes.
  uint64_t ssthresh_bytes;
  // Bytes in flight.
  uint64_t in_flight_bytes;
  // Pacing rate in bit/s.
  uint64_t pacing_bps;
  // Maximum datagram size in bytes.
  uint32_t datagram_bytes;
} jtk_sender_state;

// Functions of a protocol stack. They must not call functions with the simulation that calls them.
typedef struct jtk_endpoint {
  // sizeof(jtk_endpoint).
  size_t size;
  // Passed to the functions.
  void *context;
  // Handles a datagram that arrived.
  void (*handle)(void *context, uint64_t now_ns, const struct jtk_datagram *datagram);
  // Writes the next datagram to send. Returns 0 if there is none. It is called again until it
  // returns 0.
  int32_t (*poll_transmit)(void *context, uint64_t now_ns, struct jtk_transmit *transmit);
  // Returns the time of the next timer, or `JTK_NEVER`.
  uint64_t (*deadline)(void *context);
  // Handles the timers that expire at `now_ns`. Null: `poll_transmit` does it.
  void (*on_deadline)(void *context, uint64_t now_ns);
  // Writes the state of a sender, for a qlog. Returns 0 if there is none. Null: there is none.
  int32_t (*sender_state)(void *context, struct jtk_sender_state *state);
} jtk_endpoint;

// Measures of one direction, from 0 to now. Bytes include Ethernet headers.
typedef struct jtk_direction {
  // Delivered bytes per time, in bit/s.
  double throughput_bps;
  // Packets delivered to hosts.
  uint64_t delivered_packets;
  // Bytes of these packets.
  uint64_t delivered_bytes;
  // Packets that links dropped, lost in queues or on the way.
  uint64_t dropped_packets;
  // Packets that queues marked with ECN.
  uint64_t marked_packets;
  // Packets larger than the MTU.
  uint64_t too_large_packets;
  // Packets to an address that no host has.
  uint64_t unroutable_packets;
  // Minimum one-way delay. All delays are 0 if no packet was delivered.
  uint64_t delay_min_ns;
  // Median of the one-way delay.
  uint64_t delay_p50_ns;
  // 95th percentile of the one-way delay.
  uint64_t delay_p95_ns;
  // Maximum one-way delay.
  uint64_t delay_max_ns;
} jtk_direction;

// Measures of both directions.
typedef struct jtk_measures {
  // sizeof(jtk_measures).
  size_t size;
  // Length of the simulation so far.
  double duration_s;
  // From the left to the right side.
  struct jtk_direction forward;
  // From the right to the left side.
  struct jtk_direction reverse;
} jtk_measures;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the message of the last call in this thread that did not return `JTK_OK`. It is valid
// until the next such call.
const char *jtk_last_error(void);

// Creates a simulation with a link in each direction, and writes its number. The seed determines
// all random events of the network. Use a simulation in the thread that created it.
//
// # Safety
// The pointers are null or valid.
int32_t jtk_simulation_new(const struct jtk_link *forward,
                           const struct jtk_link *reverse,
                           uint64_t seed,
                           uint64_t *simulation);

// Creates a simulation from the JSON of a network: an object with `forward`, `reverse` (lists of
// links as in a run specification of jostle) and `mtu_bytes`.
//
// # Safety
// The pointers are null or valid, and `json` ends with a zero byte.
int32_t jtk_simulation_from_json(const char *json, uint64_t seed, uint64_t *simulation);

// Creates a simulation with the network of a flow of a run specification of jostle, in JSON.
//
// # Safety
// The pointers are null or valid, and the texts end with a zero byte.
int32_t jtk_simulation_of_flow(const char *run,
                               const char *flow,
                               uint64_t seed,
                               uint64_t *simulation);

// Frees a simulation. Its functions are not called any more.
int32_t jtk_simulation_free(uint64_t simulation);

// Adds a protocol stack above UDP, and writes the number of its host. `address` is an IP address
// and a port: "10.0.0.1:443" or "[fd00::1]:443".
//
// # Safety
// The pointers are null or valid, `address` ends with a zero byte, and the functions may be called
// with their context until the simulation is freed.
int32_t jtk_add_endpoint(uint64_t simulation,
                         int32_t side,
                         const char *address,
                         const struct jtk_endpoint *endpoint,
                         uint32_t *host);

// Adds a host whose payloads are complete IP packets, such as a TCP. The port of `address` has no
// meaning.
//
// # Safety
// As for `jtk_add_endpoint`.
int32_t jtk_add_host(uint64_t simulation,
                     int32_t side,
                     const char *address,
                     const struct jtk_endpoint *endpoint,
                     uint32_t *host);

// Says that a host may have something to send, or another deadline, because the test changed it.
int32_t jtk_wake(uint64_t simulation, uint32_t host);

// Writes the time.
//
// # Safety
// `now_ns` is null or valid.
int32_t jtk_now(uint64_t simulation, uint64_t *now_ns);

// Runs until a condition returns other than 0, at most to `limit_ns`, and returns `JTK_OK`,
// `JTK_TIME_LIMIT`, `JTK_IDLE` or `JTK_ENDLESS_LOOP`. The condition is checked at the start and after
// the events of each time. It must not call functions with this simulation.
//
// Without a condition (null), runs to `limit_ns` and returns `JTK_OK`.
//
// # Safety
// `is_met` is null or a function that may be called with `context`.
int32_t jtk_run_until(uint64_t simulation,
                      uint64_t limit_ns,
                      int32_t (*is_met)(void *context, uint64_t now_ns),
                      void *context);

// Writes the measures from 0 to now.
//
// # Safety
// `measures` is null or valid.
int32_t jtk_get_measures(uint64_t simulation, struct jtk_measures *measures);

// Writes all measures, also of each link, as JSON with a zero byte at its end. `length` is its size
// without the zero byte, also if the buffer is too small for it.
//
// # Safety
// The pointers are null or valid, and `capacity` bytes can be written to `buffer`.
int32_t jtk_measures_json(uint64_t simulation, char *buffer, size_t capacity, size_t *length);

// Writes all packets that a host sends and receives from now on to a pcapng file.
//
// # Safety
// `path` is null, or ends with a zero byte.
int32_t jtk_capture(uint64_t simulation, uint32_t host, const char *path);

// Writes a qlog of the QUIC packets of a host from now on, and of its `sender_state`.
//
// # Safety
// The texts are null, or end with a zero byte.
int32_t jtk_qlog(uint64_t simulation, uint32_t host, const char *title, const char *path);

// Ends all captures and logs, and writes their files.
int32_t jtk_finish_files(uint64_t simulation);

// Returns the message of the last call in this thread that did not return `JTK_OK`. It is valid
// until the next such call.
const char *jtk_last_error(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* JOSTLE_TESTKIT_H */
