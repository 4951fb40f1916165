//! A table: boxes of memory values, each with an action, in Remy's file format.
//!
//! The file is a message `RemyBuffers.WhiskerTree` (`protobufs/dna.proto` of the Remy repository):
//!
//! | message | fields |
//! | --- | --- |
//! | `WhiskerTree` | 1 `domain`, 2 `children`, 3 `leaf`; what the table was made for from 4 on |
//! | `MemoryRange` | 11 `lower`, 12 `upper`; 13 the axes that the optimiser may split |
//! | `Memory` | 21 on: one `double` per axis |
//! | `Whisker` | 31 `window_increment`, 32 `window_multiple`, 33 `intersend`, 34 its domain again |

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec::Vec;

use super::memory::{AXES, Memory};
use super::protobuf::{Field, ProtobufReader, Result};

/// End of each axis (`MAX_MEMORY`), the upper limit of an unbounded box.
pub const LIMIT: f64 = 163_840.0;
/// Number of the first axis in `Memory`.
const FIRST_AXIS: u64 = 21;
/// Maximum depth of the tree. Remy halves an axis at each level, so that its tables have about a
/// dozen levels.
const MOST_LEVELS: u32 = 100;
/// Largest absolute value of the window multiple and of the time in ms.
const MOST: f64 = 1e6;
/// Largest window that an action leads to.
const MAX_WINDOW: f64 = 1e6;

/// Action of a sender for a box of memory values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Action {
    /// b: packets added to the window.
    pub increment: i32,
    /// m: factor of the window.
    pub multiple: f64,
    /// τ: minimum time between two packets, in ms.
    pub intersend_ms: f64,
}

impl Action {
    /// Returns the window after the action: ⌊m·W + b⌋, from 0 to 10⁶ (`Whisker::window`).
    pub fn window(&self, window: u32) -> u32 {
        let next = f64::from(window) * self.multiple + f64::from(self.increment);
        next.clamp(0.0, MAX_WINDOW) as u32
    }
}

/// A half-open box of memory values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryRange {
    /// Lower bound per axis, included.
    pub lower: [f64; AXES],
    /// Upper bound per axis, not included.
    pub upper: [f64; AXES],
}

impl MemoryRange {
    const UNBOUNDED: Self = Self { lower: [0.0; AXES], upper: [LIMIT; AXES] };

    /// Returns whether both boxes have the same upper corner.
    fn ends_with(&self, other: &Self) -> bool {
        self.upper == other.upper
    }

    fn contains(&self, memory: &Memory) -> bool {
        let values = memory.values();
        (0..AXES).all(|axis| self.lower[axis] <= values[axis] && values[axis] < self.upper[axis])
    }
}

#[derive(Clone, Copy, Debug)]
struct Node {
    domain: MemoryRange,
    /// Node at which the search continues if the memory is not in this box, or in none of its
    /// children.
    skip: u32,
    /// Action of a leaf.
    action: Option<Action>,
}

/// A complete table. Nodes are stored in search order, so that a search moves forwards through one
/// array.
#[derive(Clone, Debug)]
pub struct WhiskerTree {
    nodes: Vec<Node>,
}

impl WhiskerTree {
    /// Reads a table.
    ///
    /// # Errors
    /// If the file is invalid. The error describes the problem and its byte offset.
    pub fn parse(file: &[u8]) -> Result<Self> {
        if file.is_empty() {
            return Err("the file is empty".to_owned());
        }
        let mut table = Self { nodes: Vec::new() };
        table.read_tree(ProtobufReader::new(file), 0)?;
        Ok(table)
    }

    /// Returns the action for a memory, or `None` if no box contains it.
    pub fn action(&self, memory: &Memory) -> Option<Action> {
        let mut at = 0;
        while let Some(node) = self.nodes.get(at) {
            at = match node.domain.contains(memory) {
                true if node.action.is_some() => return node.action,
                true => at + 1,
                false => node.skip as usize,
            };
        }
        None
    }

    /// All boxes with an action, in the order of the file.
    #[cfg(test)]
    pub fn whiskers(&self) -> impl Iterator<Item = (MemoryRange, Action)> + '_ {
        self.nodes.iter().filter_map(|node| Some((node.domain, node.action?)))
    }

    /// Returns whether a descendant of a node ends at the node's upper corner. All descendants are
    /// read. Checking the children would be sufficient, because they have been checked themselves.
    fn reaches_upper_corner(&self, place: usize) -> bool {
        let domain = self.nodes[place].domain;
        self.nodes[place + 1..].iter().any(|node| node.domain.ends_with(&domain))
    }

    fn read_tree(&mut self, mut reader: ProtobufReader<'_>, level: u32) -> Result<()> {
        let at = reader.at();
        if level >= MOST_LEVELS {
            return Err(format!("byte {at}: a tree of more than {MOST_LEVELS} levels"));
        }
        let place = self.nodes.len();
        self.nodes.push(Node { domain: MemoryRange::UNBOUNDED, skip: 0, action: None });
        while let Some(field) = reader.next()? {
            match field.number {
                1 => self.nodes[place].domain = domain(field.message()?)?,
                2 => self.read_tree(field.message()?, level + 1)?,
                3 => self.nodes[place].action = Some(whisker(field.message()?)?),
                // Settings of Remy for the generation of the table.
                _ => {}
            }
        }
        let inner = self.nodes.len() > place + 1;
        match (inner, self.nodes[place].action) {
            (true, Some(_)) => Err(format!("byte {at}: a tree with both children and a whisker")),
            (false, None) => Err(format!("byte {at}: a tree with neither children nor a whisker")),
            // Children divide their parent's box, and Remy writes the child at the upper corner
            // last (`MemoryRange::bisect`). A file that ends between two children therefore lacks
            // at least that child.
            (true, None) if !self.reaches_upper_corner(place) => Err(format!(
                "byte {at}: a tree with no child at the upper corner of its box; is the file cut off?"
            )),
            _ => {
                // `MAX_FILE_BYTES` limits the number of nodes.
                self.nodes[place].skip = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
                Ok(())
            }
        }
    }
}

/// A `MemoryRange`. "If fields are missing in the DNA, we want to wildcard the resulting rule to
/// match anything" (`memory.cc`).
fn domain(mut reader: ProtobufReader<'_>) -> Result<MemoryRange> {
    let at = reader.at();
    let mut domain = MemoryRange::UNBOUNDED;
    while let Some(field) = reader.next()? {
        match field.number {
            11 => corner(field.message()?, &mut domain.lower, |value| value <= 0.0)?,
            12 => corner(field.message()?, &mut domain.upper, |value| value >= LIMIT)?,
            _ => {}
        }
    }
    match (0..AXES).find(|&axis| domain.lower[axis] > domain.upper[axis]) {
        Some(axis) => {
            let number = FIRST_AXIS + axis as u64;
            Err(format!("byte {at}: a box whose lower end of axis {number} is above its upper end"))
        }
        None => Ok(domain),
    }
}

/// Reads a `Memory` as a corner of a box. Rejects unknown axes.
fn corner(
    mut reader: ProtobufReader<'_>,
    into: &mut [f64; AXES],
    is_wildcard: fn(f64) -> bool,
) -> Result<()> {
    while let Some(field) = reader.next()? {
        let value = field.double()?;
        let axis = field.number.checked_sub(FIRST_AXIS).and_then(|it| usize::try_from(it).ok());
        match axis.and_then(|axis| into.get_mut(axis)) {
            Some(bound) => *bound = value,
            None if is_wildcard(value) => {}
            None => {
                let (at, number) = (field.at, field.number);
                return Err(format!(
                    "byte {at}: a box bounded along axis {number}, which no memory here has: \
                     known are 21 (send_ewma), 22 (rec_ewma), 23 (rtt_ratio), 24 (slow_rec_ewma), \
                     25 (rtt_diff) and 26 (queueing_delay)"
                ));
            }
        }
    }
    Ok(())
}

/// Reads a `Whisker`. Missing fields are 0, the default of Protocol Buffers.
fn whisker(mut reader: ProtobufReader<'_>) -> Result<Action> {
    let mut action = Action::default();
    while let Some(field) = reader.next()? {
        match field.number {
            31 => action.increment = field.sint32()?,
            32 => action.multiple = action_value(&field)?,
            33 => action.intersend_ms = action_value(&field)?,
            34 => {}
            number => {
                let at = field.at;
                return Err(format!(
                    "byte {at}: a whisker with field {number}: an action of another kind than \
                     window and spacing"
                ));
            }
        }
    }
    Ok(action)
}

fn action_value(field: &Field<'_>) -> Result<f64> {
    let value = field.double()?;
    match (0.0..=MOST).contains(&value) {
        true => Ok(value),
        false => {
            let (at, number) = (field.at, field.number);
            Err(format!("byte {at}: field {number} is {value}, not from 0 to {MOST}"))
        }
    }
}
