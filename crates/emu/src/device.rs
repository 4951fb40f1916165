//! TUN devices.

use std::os::fd::{AsFd, BorrowedFd};

use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use crate::Error;

/// Packets that the kernel keeps for a loop that is late, before it drops them unseen.
const KERNEL_QUEUE_PACKETS: u32 = 10_000;

/// A TUN device. It vanishes with its last descriptor, wherever it was moved to.
pub struct Device(SyncDevice);

/// Makes a TUN device in the network namespace of the calling thread; it is down and has no address.
/// It can be moved to another namespace and stays connected to what this returns.
///
/// Nothing is offloaded to it: the kernel hands over single packets, each with its checksums.
///
/// # Errors
/// When the kernel has no TUN devices, or the caller is not allowed to make one.
pub fn open(name: &str, mtu_bytes: u16) -> Result<Device, Error> {
    DeviceBuilder::new()
        .name(name)
        .layer(Layer::L3)
        .mtu(mtu_bytes)
        .enable(false)
        .with(|builder| {
            builder.offload(false).packet_information(false).tx_queue_len(KERNEL_QUEUE_PACKETS);
        })
        .build_sync()
        .map(Device)
        .map_err(|why| Error::System { what: format!("cannot make the TUN device {name}"), why })
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
