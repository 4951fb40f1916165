//! Errors of an endpoint.

/// Error of a connection or its settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A setting is outside of the range that QUIC allows.
    #[error("{key} = {value}: {accepted}")]
    Setting {
        /// Name of the field of [`Settings`](crate::Settings).
        key: &'static str,
        /// Value of the setting.
        value: u64,
        /// Accepted values.
        accepted: &'static str,
    },
    /// The connection was not established.
    #[error("no connection: {0}")]
    Connect(String),
    /// The connection ended unexpectedly.
    #[error("the connection was lost: {0}")]
    Lost(String),
    /// A datagram cannot be sent.
    #[error("a datagram of {bytes} bytes: {why}")]
    Datagram {
        /// Size of the datagram.
        bytes: usize,
        /// Reason of the QUIC stack.
        why: String,
    },
}
