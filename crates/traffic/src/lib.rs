//! Application models, sans-IO: when applications write, read and send requests.

mod application;
mod datagram_schedule;
mod message_tracker;
mod reader;
mod socket_application;
mod video_playback;
mod video_player;
mod web_browser;
mod web_page;

pub use application::{Action, ApplicationInstance, ApplicationModel, MessageSizes};
pub use datagram_schedule::{DatagramTimes, SendSchedule};
pub use message_tracker::MessageTracker;
pub use reader::Reader;
pub use socket_application::{MessageRecord, SocketApplication};
pub use video_playback::{PlayerBuffer, VideoMeter, VideoSession};
pub use video_player::VideoPlayer;
pub use web_browser::{BrowserAction, WebBrowser};
pub use web_page::{Page, PageLoads, PageRecord, Pages};
