//! What can be wrong with an end.

/// What kept a connection from being made, or ended it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A setting is outside of what QUIC can have.
    #[error("{key} = {value}: {accepted}")]
    Setting {
        /// Name of the field of [`Settings`](crate::Settings).
        key: &'static str,
        /// What it was.
        value: u64,
        /// What would be accepted.
        accepted: &'static str,
    },
    /// The connection was not made.
    #[error("no connection: {0}")]
    Connect(String),
    /// The connection ended before its time.
    #[error("the connection was lost: {0}")]
    Lost(String),
}
