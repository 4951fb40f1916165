//! Random streams of a flow.

use jostle_units::{RandomStream, RandomStreamName};

/// Random streams of a flow or of one of its connections, one per purpose. They depend only on the
/// run's seed and on names, so that every backend draws the same numbers.
#[derive(Clone, Copy, Debug)]
pub struct FlowRandomStreams {
    seed: u64,
    /// `flow/NAME`.
    name: RandomStreamName,
}

impl FlowRandomStreams {
    /// Creates the streams of a flow in a run with `seed`.
    pub fn of(seed: u64, flow: &str) -> Self {
        Self { seed, name: RandomStreamName::of("flow/").and(flow) }
    }

    /// Returns the streams of the flow's `number`-th connection, counted from 0. They depend only
    /// on the seed, the flow's name and the number.
    #[must_use]
    pub fn of_connection(self, number: u32) -> Self {
        Self { name: self.name.and("/").and_number(number), ..self }
    }

    /// Returns the stream for `part`.
    pub fn stream(self, part: &str) -> RandomStream {
        RandomStream::named(self.seed, self.name.and("/").and(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_named_as_a_flow_with_its_number() {
        let draw = |streams: FlowRandomStreams| streams.stream("sizes").bits();
        let web = FlowRandomStreams::of(3, "web");
        assert_eq!(draw(web), RandomStream::new(3, "flow/web/sizes").bits());
        assert_eq!(draw(web.of_connection(12)), draw(FlowRandomStreams::of(3, "web/12")));
        assert_ne!(draw(web.of_connection(12)), draw(web.of_connection(13)));
    }
}
