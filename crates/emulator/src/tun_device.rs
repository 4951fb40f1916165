//! TUN devices.

use std::os::fd::{AsFd, BorrowedFd};

use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use crate::Error;

/// Length of the kernel's queue, which holds packets while the event loop is late.
const KERNEL_QUEUE_PACKETS: u32 = 10_000;

/// A TUN device. It is removed when its last descriptor is closed, in any namespace.
pub struct Device(SyncDevice);

/// Creates a TUN device in the network namespace of the calling thread. It is down and has no
/// address. It can be moved to another namespace; the returned descriptor remains valid.
///
/// Offloads are disabled: the kernel passes single packets with complete checksums.
///
/// # Errors
/// Returns an error if the kernel does not support TUN, or the caller lacks the permission.
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
