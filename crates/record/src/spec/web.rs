//! Web pages: what a browser asks for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Quantity;

/// A browser that loads one page after the other: a main object, then what that refers to. It opens
/// connections anew for every page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSpec {
    /// Pages after which it asks for no more (absent: there is always another).
    pub pages: Option<u64>,
    /// Payload bytes of a main object.
    pub main_bytes: Quantity,
    /// Objects that a page has beside its main object.
    pub objects: Quantity,
    /// Payload bytes of each of them.
    pub object_bytes: Quantity,
    /// Payload bytes of a request: of the packet that it is.
    pub request_bytes: u32,
    /// From the moment at which the main object is whole to the requests for the others.
    pub parse_ns: Quantity,
    /// From the moment at which a page is whole to the request for the next.
    pub think_ns: Quantity,
    /// Connections that load a page beside each other, at most; each loads one object after the other.
    pub connections: u32,
    /// Whether all objects of a page are asked for at once over its only connection, as in HTTP/2.
    pub multiplexed: bool,
}
