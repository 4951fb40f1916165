//! Kernel memory of packets, which CAKE limits instead of their bytes.

use jostle_units::{FULL_PACKET_BYTES, Rate, Span};

/// Most that `tc` takes: it counts in 32 bits.
pub(super) const LARGEST_BYTES: i64 = u32::MAX as i64;

/// Least default limit of a shaper.
const DEFAULT_MIN_BYTES: u64 = 4 << 20;
/// Largest default of CAKE's memory limit: `sch->limit` full-sized packets.
pub const CAKE_MEMORY_MAX_BYTES: u64 = 10_240 * FULL_PACKET_BYTES as u64;

/// `sch_cake.c::cake_reconfigure`: returns the limit. The default is what the shaper sends in four times
/// `rtt`.
pub(super) fn limit_bytes(given_bytes: u64, rate: Option<Rate>, rtt: Span) -> u64 {
    if given_bytes > 0 {
        return given_bytes;
    }
    let default_bytes =
        rate.map_or(u64::MAX, |rate| rate.bytes_in(rtt.mul_div(4, 1)).max(DEFAULT_MIN_BYTES));
    default_bytes.min(CAKE_MEMORY_MAX_BYTES)
}

/// Bytes of a buffer in addition to the packet: `skb_shared_info`, and room for headers without Ethernet's
/// (`LL_RESERVED_SPACE` and its alignment).
const BUFFER_EXTRA_BYTES: u32 = 320 + 17;
/// `sizeof(struct sk_buff)`, aligned to cache lines.
const DESCRIPTOR_BYTES: u64 = 256;

/// Returns the memory of a packet that a socket has sent (`truesize`): its descriptor, and a buffer
/// of a power of two, as the kernel's allocator has them. In Linux 6.1 this is 1280 bytes for UDP
/// datagrams of 160 and 400 bytes and 2304 for 800 and 1400 bytes.
#[inline]
pub(super) fn of_packet(size_bytes: u32) -> u64 {
    DESCRIPTOR_BYTES + u64::from(size_bytes.saturating_add(BUFFER_EXTRA_BYTES)).next_power_of_two()
}
