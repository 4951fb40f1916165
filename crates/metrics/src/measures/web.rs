//! Measures of the pages that a browser loads, over the complete run.

use super::definition::measures_of_a_run;
use super::group::ranked;
use jostle_traffic::PageLoads;

measures_of_a_run! {
    /// Summary of a browser's pages over the complete run.
    pub(crate) WebSummary, of PageLoads by Pages;
    /// Median page load time over all complete pages: from the moment at which a browser requests a
    /// page, before it has a connection, to the last byte of the page's last object.
    page_load_time_p50_s: Option<f64>, "page_load_time", "median page load time", TIME; |pages| ranked(&pages.load_times_s, 0, 0.5);
    /// Mean page load time over all complete pages.
    page_load_time_mean_s: Option<f64>, "page_load_time_mean", "mean page load time", TIME; mean;
    /// 95th percentile of the page load time over all complete pages.
    page_load_time_p95_s: Option<f64>, "page_load_time_p95", "p95 page load time", TIME; |pages| ranked(&pages.load_times_s, 0, 0.95);
    /// Complete pages.
    pages: Option<f64>, "pages", "pages", NUMBER; |pages| Some(pages.load_times_s.len() as f64);
    /// Pages requested but not complete at the end of the run, or when the flow was stopped.
    pages_unfinished: Option<f64>, "pages_unfinished", "unfinished pages", NUMBER;
        |pages| Some((pages.requested - pages.load_times_s.len() as u64) as f64);
}

fn mean(pages: &PageLoads) -> Option<f64> {
    let count = pages.load_times_s.len();
    (count > 0).then(|| pages.load_times_s.iter().sum::<f64>() / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_not_whole_are_counted_apart() {
        let loads = PageLoads { requested: 5, load_times_s: vec![1.0, 2.0, 4.0, 5.0] };
        let expected = WebSummary {
            page_load_time_p50_s: Some(3.0),
            page_load_time_mean_s: Some(3.0),
            page_load_time_p95_s: Some(4.85),
            pages: Some(4.0),
            pages_unfinished: Some(1.0),
        };
        assert_eq!(WebSummary::of(&loads), expected);
        let none = WebSummary::of(&PageLoads { requested: 1, ..PageLoads::default() });
        assert_eq!((none.page_load_time_p50_s, none.pages), (None, Some(0.0)));
    }
}
