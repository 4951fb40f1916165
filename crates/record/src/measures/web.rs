//! Measures of the pages that a browser loads, over the whole run.

use super::group::ranked;
use super::row::measures_of_a_run;
use crate::page::PageLoads;

measures_of_a_run! {
    /// What the summary has of a browser's pages, of the whole run.
    pub(crate) WebSummary, of PageLoads by Pages;
    /// Median of the times from the moment at which a browser asks for a page, before it has a
    /// connection, to the last byte of the page's last object, over all pages that were whole.
    page_load_p50_s: Option<f64>, "page_load", "page load time", TIME; |pages| ranked(&pages.took_s, 0, 0.5);
    /// Mean of these times.
    page_load_mean_s: Option<f64>, "page_load_mean", "mean page load time", TIME; mean;
    /// Their 95th percentile.
    page_load_p95_s: Option<f64>, "page_load_p95", "page load time, p95", TIME; |pages| ranked(&pages.took_s, 0, 0.95);
    /// Pages that were whole.
    pages: Option<f64>, "pages", "pages", NUMBER; |pages| Some(pages.took_s.len() as f64);
    /// Pages that were asked for and not whole at the end of the run, or when the flow was stopped.
    pages_unfinished: Option<f64>, "pages_unfinished", "unfinished pages", NUMBER;
        |pages| Some((pages.asked - pages.took_s.len() as u64) as f64);
}

fn mean(pages: &PageLoads) -> Option<f64> {
    let count = pages.took_s.len();
    (count > 0).then(|| pages.took_s.iter().sum::<f64>() / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_not_whole_are_counted_apart() {
        let loads = PageLoads { asked: 5, took_s: vec![1.0, 2.0, 4.0, 5.0] };
        let expected = WebSummary {
            page_load_p50_s: Some(3.0),
            page_load_mean_s: Some(3.0),
            page_load_p95_s: Some(4.85),
            pages: Some(4.0),
            pages_unfinished: Some(1.0),
        };
        assert_eq!(WebSummary::of(&loads), expected);
        let none = WebSummary::of(&PageLoads { asked: 1, ..PageLoads::default() });
        assert_eq!((none.page_load_p50_s, none.pages), (None, Some(0.0)));
    }
}
