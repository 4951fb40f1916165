//! The parts of the Protocol Buffers wire format that a table uses: a message is a sequence of
//! fields, each with a number and a value of one of four types.
//!
//! Strict where a general reader is lenient, because unknown content would change the meaning of a
//! table. Errors contain the byte offset.

use alloc::format;
use alloc::string::String;

/// A result whose error describes the problem and its byte offset.
pub type Result<T> = core::result::Result<T, String>;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 1.
    Fixed64([u8; 8]),
    /// Wire type 2: text, bytes, or a message.
    Bytes(ProtobufReader<'a>),
    /// Wire type 5.
    Fixed32([u8; 4]),
}

/// A field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field<'a> {
    /// Its number in the message's definition.
    pub number: u64,
    /// Its value.
    pub value: Value<'a>,
    /// Where it starts in the file.
    pub at: usize,
}

/// Reads a message field by field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProtobufReader<'a> {
    bytes: &'a [u8],
    /// Offset of the next byte in the file.
    at: usize,
}

impl<'a> ProtobufReader<'a> {
    /// Creates a reader of a complete file.
    pub fn new(file: &'a [u8]) -> Self {
        Self { bytes: file, at: 0 }
    }

    /// Returns the offset of the next byte in the file.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns the next field, or `None` at the end.
    pub fn next(&mut self) -> Result<Option<Field<'a>>> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let at = self.at;
        let tag = self.varint()?;
        let (number, wire_type) = (tag >> 3, tag & 7);
        if number == 0 {
            return Err(format!("byte {at}: no field has the number 0"));
        }
        let value = match wire_type {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(self.array()?),
            2 => Value::Bytes(self.message()?),
            5 => Value::Fixed32(self.array()?),
            // Types 3 and 4 are groups, which tables never contain.
            _ => return Err(format!("byte {at}: no field is of wire type {wire_type}")),
        };
        Ok(Some(Field { number, value, at }))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.bytes.split_at_checked(length) else {
            let (at, left) = (self.at, self.bytes.len());
            return Err(format!("byte {at}: {length} bytes should follow, there are {left}"));
        };
        self.bytes = rest;
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// Seven bits per byte, the lowest first; the eighth says that more follow.
    fn varint(&mut self) -> Result<u64> {
        let at = self.at;
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(format!("byte {at}: a number of more than 64 bits"))
    }

    fn message(&mut self) -> Result<ProtobufReader<'a>> {
        let length = self.varint()?;
        let at = self.at;
        // A length that does not fit into `usize` exceeds the data.
        let bytes = self.take(usize::try_from(length).unwrap_or(usize::MAX))?;
        Ok(ProtobufReader { bytes, at })
    }
}

impl<'a> Field<'a> {
    /// The field as a message.
    pub fn message(&self) -> Result<ProtobufReader<'a>> {
        match self.value {
            Value::Bytes(reader) => Ok(reader),
            _ => Err(self.unfit("a message")),
        }
    }

    /// Returns the field as a `double`, which must be finite.
    pub fn double(&self) -> Result<f64> {
        let Value::Fixed64(bytes) = self.value else {
            return Err(self.unfit("a double"));
        };
        let value = f64::from_le_bytes(bytes);
        match value.is_finite() {
            true => Ok(value),
            false => Err(format!("byte {}: field {} is {value}", self.at, self.number)),
        }
    }

    /// The field as a `sint32`: zigzag, so that small negative numbers are short.
    pub fn sint32(&self) -> Result<i32> {
        let Value::Varint(value) = self.value else {
            return Err(self.unfit("a whole number"));
        };
        let zigzag = u32::try_from(value).map_err(|_| self.unfit("a whole number of 32 bits"))?;
        Ok((zigzag >> 1) as i32 ^ -((zigzag & 1) as i32))
    }

    fn unfit(&self, expected: &str) -> String {
        format!("byte {}: field {} should be {expected}", self.at, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(bytes: &[u8]) -> Result<Option<Field<'_>>> {
        ProtobufReader::new(bytes).next()
    }

    #[test]
    fn numbers_are_those_of_the_encoding_guide() {
        // "Encoding" in the documentation of Protocol Buffers: 150 in field 1.
        let field = only(&[0x08, 0x96, 0x01]).unwrap().unwrap();
        assert_eq!((field.number, field.value), (1, Value::Varint(150)));
        // Its table of ZigZag.
        for (encoded, value) in [
            (&[0x00][..], 0),
            (&[0x01], -1),
            (&[0x02], 1),
            (&[0x03], -2),
            (&[0xfe, 0xff, 0xff, 0xff, 0x0f], i32::MAX),
            (&[0xff, 0xff, 0xff, 0xff, 0x0f], i32::MIN),
        ] {
            let bytes = [&[0x08], encoded].concat();
            assert_eq!(only(&bytes).unwrap().unwrap().sint32(), Ok(value));
        }
    }

    #[test]
    fn the_largest_number_has_64_bits() {
        let largest = [&[0x08][..], &[0xff; 9], &[0x01]].concat();
        assert_eq!(only(&largest).unwrap().unwrap().value, Value::Varint(u64::MAX));
        for too_large in [[&[0x08][..], &[0xff; 9], &[0x02]].concat(), vec![0xff; 11]] {
            assert!(only(&too_large).unwrap_err().contains("more than 64 bits"));
        }
    }

    #[test]
    fn positions_are_those_of_the_file() {
        // A message of field 2 that has field 1 and is cut off in its second field.
        let file = [0x12, 0x04, 0x08, 0x01, 0x11, 0x00];
        let mut inner = only(&file).unwrap().unwrap().message().unwrap();
        assert_eq!(inner.next().unwrap().unwrap().at, 2);
        assert_eq!(inner.next().unwrap_err(), "byte 5: 8 bytes should follow, there are 1");
    }

    #[test]
    fn what_is_no_field_is_refused() {
        assert_eq!(only(&[0x00, 0x00]).unwrap_err(), "byte 0: no field has the number 0");
        assert_eq!(only(&[0x0b]).unwrap_err(), "byte 0: no field is of wire type 3");
        let huge = [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert!(only(&huge).unwrap_err().contains("there are 0"));
        let field = only(&[0x08, 0x01]).unwrap().unwrap();
        assert_eq!(field.double().unwrap_err(), "byte 0: field 1 should be a double");
        let nan = [&[0x09][..], &f64::NAN.to_le_bytes()].concat();
        assert_eq!(only(&nan).unwrap().unwrap().double().unwrap_err(), "byte 0: field 1 is NaN");
    }
}
