//! The C functions of a library (`jostle_bridge.h`).

use std::ffi::c_void;
use std::path::Path;
use std::ptr::NonNull;

use jostle_kernel_bridge::{
    AckEvent, CongestionCall, ControllerState, EstablishedCall, LostCall, MarksCall, Properties,
    RawAckEvent, RecordValue, SendCall,
};
use libloading::Library;

/// Length of the longest reason of a refused registration.
const REASON_BYTES: usize = 1_000;

/// A registration or a connection, which only the library reads.
pub(crate) type Handle = NonNull<c_void>;

type EventCall<T> = unsafe extern "C" fn(Handle, &T, &mut ControllerState);
type Call<T> = unsafe extern "C" fn(Handle, T, &mut ControllerState);
type TimedCall<T> = unsafe extern "C" fn(Handle, u64, T, &mut ControllerState);

macro_rules! functions {
    ($($name:ident: $symbol:literal, $type:ty;)+) => {
        /// The functions of a library.
        pub(crate) struct Functions {
            $(pub(crate) $name: $type,)+
        }

        impl Functions {
            /// Loads a library; it is never unloaded.
            pub(crate) fn load(path: &Path) -> Result<Self, String> {
                // SAFETY: loading executes initialisers of the library, which the user allowed.
                let library = unsafe { Library::new(path) }.map_err(|error| error.to_string())?;
                let functions = Self {
                    // SAFETY: the symbol has this type: the library was compiled from the sources
                    // of this engine, whose version is a part of its identity.
                    $($name: *unsafe { library.get::<$type>($symbol) }
                        .map_err(|error| error.to_string())?,)+
                };
                std::mem::forget(library);
                Ok(functions)
            }
        }
    };
}

functions! {
    describe: "jk_describe", unsafe extern "C" fn(*mut u8, usize) -> usize;
    last_failure: "jk_failure", unsafe extern "C" fn(*mut u8, usize) -> usize;
    register: "jk_register", unsafe extern "C" fn(*const u8, usize, *mut u8, usize) -> Option<Handle>;
    unregister: "jk_unregister", unsafe extern "C" fn(Handle);
    properties: "jk_properties", unsafe extern "C" fn(Handle) -> Properties;
    connect: "jk_connect", unsafe extern "C" fn(Handle, u32) -> Option<Handle>;
    disconnect: "jk_disconnect", unsafe extern "C" fn(Handle);
    on_ecn_negotiated: "jk_on_ecn_negotiated", Call<u32>;
    on_established: "jk_on_established", EventCall<EstablishedCall>;
    on_mss_change: "jk_on_mss_change", Call<u32>;
    on_send: "jk_on_send", EventCall<SendCall>;
    on_raw_ack: "jk_on_raw_ack", EventCall<RawAckEvent>;
    on_ecn_marks: "jk_on_ecn_marks", EventCall<MarksCall>;
    on_packet_lost: "jk_on_packet_lost", EventCall<LostCall>;
    on_congestion: "jk_on_congestion", EventCall<CongestionCall>;
    on_ack: "jk_on_ack", EventCall<AckEvent>;
    on_undo: "jk_on_undo", Call<u64>;
    on_cwr_complete: "jk_on_cwr_complete", Call<u64>;
    on_idle_restart: "jk_on_idle_restart", Call<u64>;
    on_wakeup: "jk_on_wakeup", Call<u64>;
    set_cwnd: "jk_set_cwnd", Call<u32>;
    set_ssthresh: "jk_set_ssthresh", Call<u32>;
    on_ack_event: "jk_on_ack_event", TimedCall<u32>;
    on_recovery_state: "jk_on_recovery_state", TimedCall<u32>;
    mode: "jk_mode", unsafe extern "C" fn(Handle, &mut usize) -> *const u8;
    observe: "jk_observe", unsafe extern "C" fn(Handle, RecordValue, *mut c_void);
}

impl Functions {
    /// Returns the rows of the library's controllers as JSON; empty if a controller panicked.
    pub(crate) fn described(&self) -> String {
        text_of(self.describe)
    }

    /// Returns where and why the last call of this thread panicked.
    pub(crate) fn failure(&self) -> String {
        text_of(self.last_failure)
    }

    /// Reads the line of a registration.
    pub(crate) fn register(&self, line: &str) -> Result<Handle, String> {
        let mut reason = [0; REASON_BYTES];
        // SAFETY: both pairs are a pointer to memory and its size.
        let registration = unsafe {
            (self.register)(line.as_ptr(), line.len(), reason.as_mut_ptr(), reason.len())
        };
        registration.ok_or_else(|| {
            let length = reason.iter().position(|&byte| byte == 0).unwrap_or(reason.len());
            String::from_utf8_lossy(&reason[..length]).into_owned()
        })
    }
}

/// Returns the text that a function writes. It returns the length, also of a text that is too long.
fn text_of(write: unsafe extern "C" fn(*mut u8, usize) -> usize) -> String {
    let mut text = Vec::new();
    loop {
        // SAFETY: the pointer and the size are of one buffer.
        let length = unsafe { write(text.as_mut_ptr(), text.len()) };
        if length <= text.len() {
            text.truncate(length);
            return String::from_utf8_lossy(&text).into_owned();
        }
        text.resize(length, 0);
    }
}
