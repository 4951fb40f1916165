//! Random web pages, and their load times.

use jostle_units::{RandomStream, Span};
use serde::{Deserialize, Serialize};

use jostle_run_spec::{FlowRandomStreams, MOST_OBJECTS, Quantity, QuantitySampler, WebSpec};

/// A web page and its reading time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Size of the main object.
    pub main_bytes: u64,
    /// Sizes of the other objects, in the order of their requests.
    pub objects_bytes: Vec<u64>,
    /// Time from the main object to the requests for the other objects.
    pub parse: Span,
    /// Time from the completion of the page to the request for the next one.
    pub think: Span,
}

/// Generator of a browser's pages. All backends get the same pages.
#[derive(Clone, Debug)]
pub struct Pages {
    random: RandomStream,
    main: QuantitySampler,
    objects: QuantitySampler,
    object: QuantitySampler,
    parse: QuantitySampler,
    think: QuantitySampler,
}

impl Pages {
    /// Creates the pages of a flow in a run with `seed`.
    pub fn new(spec: &WebSpec, seed: u64, flow: &str) -> Self {
        let sampler = |quantity: &Quantity| QuantitySampler::new(quantity.clone());
        Self {
            random: FlowRandomStreams::of(seed, flow).stream("pages"),
            main: sampler(&spec.main_bytes),
            objects: sampler(&spec.objects),
            object: sampler(&spec.object_bytes),
            parse: sampler(&spec.parse_ns),
            think: sampler(&spec.think_ns),
        }
    }

    /// Draws the next page.
    pub fn draw(&mut self) -> Page {
        let Self { random, main, objects, object, parse, think } = self;
        let main_bytes = main.count(random).max(1);
        // `count` returns at least 1, but a page may have no other object.
        let count = (objects.real(random).round() as u64).min(MOST_OBJECTS);
        let (parse, think) = (parse.span(random), think.span(random));
        let objects_bytes = (0..count).map(|_| object.count(random).max(1)).collect();
        Page { main_bytes, objects_bytes, parse, think }
    }
}

/// A page that a browser requested. Times are in ns of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageRecord {
    /// Time of the request.
    pub requested_ns: u64,
    /// Time from the request to the completion, if the page is complete.
    pub load_ns: Option<u64>,
}

/// Page loads of a browser until it was stopped.
#[derive(Clone, Debug, Default)]
pub struct PageLoads {
    /// Number of pages requested.
    pub requested: u64,
    /// Load times of the complete pages in seconds, in order of completion; increasing after
    /// `sorted`.
    pub load_times_s: Vec<f64>,
}

impl PageLoads {
    /// Adds a complete page.
    pub fn loaded(&mut self, after: Span) {
        self.load_times_s.push(after.as_ns() as f64 / 1e9);
    }

    /// Returns a copy with the load times in increasing order.
    pub fn sorted(&self) -> Self {
        let mut all = self.clone();
        all.load_times_s.sort_by(f64::total_cmp);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jostle_run_spec::{Distribution, DistributionKind};

    #[test]
    fn a_page_depends_on_its_number_and_the_seed_alone() {
        let drawn =
            |mean| Quantity::Drawn(Distribution::of(DistributionKind::Exponential { mean }));
        let spec = WebSpec {
            pages: None,
            main_bytes: drawn(1e4),
            objects: drawn(5.0),
            object_bytes: drawn(8e3),
            request_bytes: 350,
            parse_ns: Quantity::Constant(130_000_000),
            think_ns: drawn(3e10),
            connections: 6,
            multiplexed: false,
        };
        let first = |spec: &WebSpec, seed| {
            let mut pages = Pages::new(spec, seed, "web");
            (0..50).map(|_| pages.draw()).collect::<Vec<_>>()
        };
        let pages = first(&spec, 1);
        assert_eq!(pages, first(&WebSpec { multiplexed: true, connections: 1, ..spec.clone() }, 1));
        assert_ne!(pages, first(&spec, 2));
        let objects = pages.iter().map(|page| page.objects_bytes.len());
        // A twentieth of all numbers with a mean of 5 is below a half.
        assert_eq!(objects.clone().min(), Some(0));
        assert!((150..350).contains(&objects.sum::<usize>()));
        assert!(pages.iter().all(|page| page.main_bytes > 0 && page.parse == Span::from_ms(130)));
    }
}
