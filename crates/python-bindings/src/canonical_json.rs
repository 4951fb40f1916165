//! JSON as Python writes it with sorted keys, so that documents of both sides are equal as text.

use std::borrow::Cow;

/// Returns compact JSON as `json.dumps(…, sort_keys=True, separators=(",", ":"),
/// ensure_ascii=False)` writes it; only the order of keys and exponents of numbers differ.
///
/// `None` if the text is not JSON without spaces between its tokens.
pub fn canonical(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut reader = Reader::new(text);
    write_value(&mut reader, &mut out)?;
    reader.is_at_end().then_some(out)
}

fn write_value(reader: &mut Reader<'_>, out: &mut String) -> Option<()> {
    match reader.peek()? {
        b'{' => write_object(reader, out)?,
        b'[' => {
            out.push('[');
            reader.list(|reader| {
                write_value(reader, out)?;
                out.push(',');
                Some(())
            })?;
            close(out, ']');
        }
        b'"' => out.push_str(reader.string()?),
        _ => push_token(reader.token(), out),
    }
    Some(())
}

fn write_object(reader: &mut Reader<'_>, out: &mut String) -> Option<()> {
    out.push('{');
    let begin = out.len();
    // Key, and where its member begins and ends in `out`.
    let mut members: Vec<(&str, usize, usize)> = Vec::new();
    reader.object(|reader, key| {
        let from = out.len();
        out.push_str(key);
        out.push(':');
        write_value(reader, out)?;
        out.push(',');
        members.push((key, from, out.len()));
        Some(())
    })?;
    let order = if members.iter().any(|(key, ..)| key.contains('\\')) {
        |one: &str, other: &str| unescaped(one).cmp(&unescaped(other))
    } else {
        // Without the quotes, which would come after blanks and exclamation marks.
        |one: &str, other: &str| one[1..one.len() - 1].cmp(&other[1..other.len() - 1])
    };
    if !members.is_sorted_by(|one, other| order(one.0, other.0).is_le()) {
        let unsorted = out.split_off(begin);
        members.sort_by(|one, other| order(one.0, other.0));
        for (_, from, to) in members {
            out.push_str(&unsorted[from - begin..to - begin]);
        }
    }
    close(out, '}');
    Some(())
}

/// Ends a list or object, after whose last member there is a comma.
fn close(out: &mut String, end: char) {
    if out.ends_with(',') {
        out.pop();
    }
    out.push(end);
}

/// Reads compact JSON. Every method returns `None` if the text is something else.
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    pub const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub const fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    /// Returns the first byte of the next token.
    pub fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.at += 1;
        (self.text.as_bytes().get(self.at - 1) == Some(&byte)).then_some(())
    }

    /// Reads a list; `value` reads each value.
    pub fn list(&mut self, mut value: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.take(b'[')?;
        if self.peek()? != b']' {
            value(self)?;
            while self.peek()? == b',' {
                self.at += 1;
                value(self)?;
            }
        }
        self.take(b']')
    }

    /// Reads an object; `value` gets each key with its quotes, and reads its value.
    pub fn object(
        &mut self,
        mut value: impl FnMut(&mut Self, &'a str) -> Option<()>,
    ) -> Option<()> {
        let mut end = b'{';
        self.take(end)?;
        if self.peek()? == b'}' {
            return self.take(b'}');
        }
        while end != b'}' {
            let key = self.string()?;
            self.take(b':')?;
            value(self, key)?;
            end = self.peek().filter(|byte| b",}".contains(byte))?;
            self.at += 1;
        }
        Some(())
    }

    /// Returns a string with its quotes.
    pub fn string(&mut self) -> Option<&'a str> {
        let begin = self.at;
        self.take(b'"')?;
        while self.peek()? != b'"' {
            self.at += if self.peek()? == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        self.text.get(begin..self.at)
    }

    /// Returns a number, `true`, `false` or `null`.
    pub fn token(&mut self) -> &'a str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let token = &rest[..rest.find([',', ']', '}']).unwrap_or(rest.len())];
        self.at += token.len();
        token
    }
}

/// Returns the text of a string that is given with its quotes.
pub fn unescaped(quoted: &str) -> Cow<'_, str> {
    let inner = &quoted[1..quoted.len() - 1];
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    serde_json::from_str(quoted).map_or(Cow::Borrowed(inner), Cow::Owned)
}

/// Writes a token; numbers below 10⁻⁴ or from 10¹⁶ on have an exponent of a sign and two digits.
fn push_token(token: &str, out: &mut String) {
    if let Some((mantissa, exponent)) = token.split_once('e').filter(|(head, _)| !head.is_empty()) {
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent.trim_start_matches('+')),
        };
        if mantissa.ends_with(|end: char| end.is_ascii_digit()) {
            let zero = if digits.len() < 2 { "0" } else { "" };
            out.push_str(mantissa.strip_suffix(".0").unwrap_or(mantissa));
            out.push('e');
            out.push(sign);
            out.push_str(zero);
            out.push_str(digits);
            return;
        }
    }
    let (sign, size) = token.strip_prefix('-').map_or(("", token), |size| ("-", size));
    let Some(digits) = size.strip_prefix("0.0000") else {
        return out.push_str(token);
    };
    let leading = digits.len() - digits.trim_start_matches('0').len();
    let significant = &digits[leading..];
    let Some((first, others)) = significant.split_at_checked(1) else {
        return out.push_str(token);
    };
    out.push_str(sign);
    out.push_str(first);
    if !others.is_empty() {
        out.push('.');
        out.push_str(others);
    }
    out.push_str(&format!("e-{:02}", leading + 5));
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn keys_are_sorted_at_every_level() {
        let text = r#"{"b":[{"d":1,"c":null}],"a":{"z":"}","é":"\"","\"":[],"A":{}}}"#;
        let sorted = r#"{"a":{"\"":[],"A":{},"z":"}","é":"\""},"b":[{"c":null,"d":1}]}"#;
        assert_eq!(canonical(text).unwrap(), sorted);
        assert_eq!(canonical(sorted).unwrap(), sorted);
    }

    #[test]
    fn numbers_are_those_of_python() {
        let text = "[0.00001,-0.0000123,1e-7,1.5e-300,1e16,2.5e+20,1e100,0.0001,0.0,-0.0,100000]";
        let python = "[1e-05,-1.23e-05,1e-07,1.5e-300,1e+16,2.5e+20,1e+100,0.0001,0.0,-0.0,100000]";
        assert_eq!(canonical(text).unwrap(), python);
        assert_eq!(canonical("[true,false,null]").unwrap(), "[true,false,null]");
    }

    #[test]
    fn text_that_is_cut_off_is_no_json() {
        let text = r#"{"a":[1,{"b":"\"c"}],"d":{}}"#;
        for end in 0..text.len() {
            assert_eq!(canonical(&text[..end]), None, "{}", &text[..end]);
        }
        assert_eq!(canonical(text).unwrap(), text);
    }
}
