//! What every transport that has a window does in the same way: pacing, the reduction of the window,
//! and whether the window is the limit.

mod pacer;
mod reduction;
mod window_use;

pub use pacer::Pacer;
pub use reduction::Reduction;
pub use window_use::WindowUse;
