//! Web pages: as they are drawn, and how long they took to load.

use jostle_units::{Span, Stream};

use crate::{FlowStreams, Quantity, Sampler, WebSpec};

/// A page, and how long its reader looks at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Bytes of its main object.
    pub main_bytes: u64,
    /// Bytes of each other object, in the order in which they are asked for.
    pub objects_bytes: Vec<u64>,
    /// From the main object to the requests for the others.
    pub parse: Span,
    /// From the page to the request for the next.
    pub think: Span,
}

/// Pages of a browser, one after the other: the same on every backend.
#[derive(Clone, Debug)]
pub struct Pages {
    random: Stream,
    main: Sampler,
    objects: Sampler,
    object: Sampler,
    parse: Sampler,
    think: Sampler,
}

/// Most objects of a page: beyond any that was published.
pub(crate) const MOST_OBJECTS: u64 = 10_000;

impl Pages {
    /// Those of a flow in a run with `seed`.
    pub fn new(spec: &WebSpec, seed: u64, flow: &str) -> Self {
        let sampler = |quantity: &Quantity| Sampler::new(quantity.clone());
        Self {
            random: FlowStreams::of(seed, flow).stream("pages"),
            main: sampler(&spec.main_bytes),
            objects: sampler(&spec.objects),
            object: sampler(&spec.object_bytes),
            parse: sampler(&spec.parse_ns),
            think: sampler(&spec.think_ns),
        }
    }

    /// The next one.
    pub fn draw(&mut self) -> Page {
        let Self { random, main, objects, object, parse, think } = self;
        let main_bytes = main.count(random).max(1);
        // A page may have no other object: `count` would make one of it.
        let count = (objects.real(random).round() as u64).min(MOST_OBJECTS);
        let (parse, think) = (parse.span(random), think.span(random));
        let objects_bytes = (0..count).map(|_| object.count(random).max(1)).collect();
        Page { main_bytes, objects_bytes, parse, think }
    }
}

/// What became of a browser's pages until it was stopped.
#[derive(Clone, Debug, Default)]
pub struct PageLoads {
    /// Pages that were asked for.
    pub asked: u64,
    /// How long each took that was whole, in s, in their order; in rising order in the end.
    pub took_s: Vec<f64>,
}

impl PageLoads {
    /// A page is whole.
    pub(crate) fn loaded(&mut self, after: Span) {
        self.took_s.push(crate::tables::seconds(after.as_ns()));
    }

    /// All of them, by how long they took.
    pub(crate) fn sorted(&self) -> Self {
        let mut all = self.clone();
        all.took_s.sort_by(f64::total_cmp);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Distribution, Law};

    #[test]
    fn a_page_depends_on_its_number_and_the_seed_alone() {
        let drawn = |mean| Quantity::Drawn(Distribution::of(Law::Exponential { mean }));
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
