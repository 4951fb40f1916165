//! Numbers of flows, connections and links, as separate types: the number of a flow cannot be used
//! as the number of a link or connection.

use core::fmt;

use serde::{Deserialize, Serialize};

macro_rules! identifiers {
    ($($(#[$text:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$text])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[repr(transparent)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the identifier of the element with this index.
            #[inline]
            pub const fn at(index: usize) -> Self {
                debug_assert!(index <= u32::MAX as usize);
                Self(index as u32)
            }

            /// Returns the index into a list of all elements.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, to)
            }
        }
    )+};
}

identifiers! {
    /// A flow: its position in the specification of the run.
    FlowId,
    /// A connection of a run. The first connections belong to one flow each, in the order of the
    /// flows, and have the numbers of their flows. The connections that multi-connection flows open
    /// later have the numbers after them.
    ConnectionId,
    /// A link: its position in the specification of the run.
    LinkId,
}

impl From<FlowId> for ConnectionId {
    /// Returns the connection that has the number of its flow.
    #[inline]
    fn from(flow: FlowId) -> Self {
        Self(flow.0)
    }
}

impl ConnectionId {
    /// Returns the flow with the number of this connection, in a run with `flows` flows. `None` for
    /// a later connection of a multi-connection flow.
    #[inline]
    pub const fn own_flow(self, flows: usize) -> Option<FlowId> {
        if self.index() < flows { Some(FlowId(self.0)) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_connections_have_the_numbers_of_their_flows() {
        let connection = ConnectionId::from(FlowId(2));
        assert_eq!(connection, ConnectionId::at(2));
        assert_eq!(connection.own_flow(3), Some(FlowId(2)));
        assert_eq!(connection.own_flow(2), None);
    }
}
