//! Memory and panics of a kernel.

use core::alloc::{GlobalAlloc, Layout};
use core::fmt::{self, Write};
use core::panic::PanicInfo;

unsafe extern "C" {
    /// Returns memory aligned to 8 bytes, and to the size if that is a power of two; null if there
    /// is none.
    fn jk_alloc(size_bytes: usize) -> *mut u8;
    /// Returns memory of `jk_alloc`.
    fn jk_free(memory: *mut u8);
    /// Stops the kernel with a message.
    fn jk_panic(text: *const u8, length: usize) -> !;
}

/// Alignment of all memory that `kmalloc` returns (`ARCH_KMALLOC_MINALIGN` in Linux).
const ALIGN: usize = 8;

struct KernelMemory;

// SAFETY: `jk_alloc` returns distinct memory of the requested size. Its alignment is sufficient: a
// size with a larger alignment is rounded up to a power of two.
unsafe impl GlobalAlloc for KernelMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = layout.size();
        let rounded = size.max(layout.align()).next_power_of_two();
        // SAFETY: the function has no requirements.
        unsafe { jk_alloc(if layout.align() > ALIGN { rounded } else { size }) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, _layout: Layout) {
        // SAFETY: `memory` is from `alloc`.
        unsafe { jk_free(memory) }
    }
}

#[global_allocator]
static MEMORY: KernelMemory = KernelMemory;

/// The beginning of a message: a panic must not allocate.
struct Message {
    bytes: [u8; 400],
    length: usize,
}

impl Write for Message {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.length..];
        let length = text.len().min(room.len());
        room[..length].copy_from_slice(&text.as_bytes()[..length]);
        self.length += length;
        Ok(())
    }
}

#[panic_handler]
fn on_panic(info: &PanicInfo<'_>) -> ! {
    let mut message = Message { bytes: [0; 400], length: 0 };
    let _ = write!(message, "{info}");
    // SAFETY: the pointer and the length are of one buffer.
    unsafe { jk_panic(message.bytes.as_ptr(), message.length) }
}

/// Landing pads of the compiled standard libraries name these functions. Nothing unwinds.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    panic!("unwinding")
}
