//! The random streams of a flow.

use jostle_units::{Stream, StreamName};

/// The random streams of a flow or of one of its connections, by what each of them drives. They depend
/// on the run's seed and on names, so that every backend draws the same.
#[derive(Clone, Copy, Debug)]
pub struct FlowStreams {
    seed: u64,
    /// `flow/NAME`.
    name: StreamName,
}

impl FlowStreams {
    /// Those of a flow in a run with `seed`.
    pub fn of(seed: u64, flow: &str) -> Self {
        Self { seed, name: StreamName::of("flow/").and(flow) }
    }

    /// Those of the flow's `number`-th connection, counted from 0: what it draws depends on nothing but
    /// the seed, the flow's name and its number.
    #[must_use]
    pub fn of_connection(self, number: u32) -> Self {
        Self { name: self.name.and("/").and_number(number), ..self }
    }

    /// The stream that drives `part`.
    pub fn stream(self, part: &str) -> Stream {
        Stream::named(self.seed, self.name.and("/").and(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_named_as_a_flow_with_its_number() {
        let draw = |streams: FlowStreams| streams.stream("sizes").bits();
        let web = FlowStreams::of(3, "web");
        assert_eq!(draw(web), Stream::new(3, "flow/web/sizes").bits());
        assert_eq!(draw(web.of_connection(12)), draw(FlowStreams::of(3, "web/12")));
        assert_ne!(draw(web.of_connection(12)), draw(web.of_connection(13)));
    }
}
