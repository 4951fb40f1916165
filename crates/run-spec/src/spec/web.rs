//! Web pages: the requests of a browser.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Quantity;

/// A browser that loads one page after the other: a main object, then the objects to which it
/// refers. It opens new connections for every page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSpec {
    /// Number of pages to load (absent: unlimited).
    pub pages: Option<u64>,
    /// Payload bytes of a main object.
    pub main_bytes: Quantity,
    /// Number of objects of a page in addition to its main object.
    pub objects: Quantity,
    /// Payload bytes of each of these objects.
    pub object_bytes: Quantity,
    /// Payload bytes of a request, which is one packet.
    pub request_bytes: u32,
    /// Time from the completion of the main object to the requests for the others.
    pub parse_ns: Quantity,
    /// Time from the completion of a page to the request for the next one.
    pub think_ns: Quantity,
    /// Maximum number of parallel connections for a page; each loads one object after the other.
    pub connections: u32,
    /// Whether all objects of a page are requested at once over a single connection, as in HTTP/2.
    pub multiplexed: bool,
}
