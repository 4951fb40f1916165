//! Flows that compete for links.

use std::borrow::Cow;

use jostle_run_spec::{FlowSpec, RunSpec};
use jostle_units::{FlowId, LinkId, Time};

/// Contests of the flows of a run, which change with their routes.
#[derive(Clone, Debug)]
pub(crate) struct Contests {
    /// Contest of each flow on all its routes.
    overall: Vec<usize>,
    /// Routes of each flow with the times at which they begin; empty if no route changes.
    routes: Vec<Vec<(Time, Vec<LinkId>)>>,
    no_link: usize,
    continuations: Vec<Option<FlowId>>,
}

impl Contests {
    pub(crate) fn new(spec: &RunSpec) -> Self {
        let continuations = spec.continuations();
        let changes = spec.flows.iter().any(|flow| !flow.routes.is_empty());
        let routes = |flow: &FlowSpec| {
            let starts_ns = std::iter::once(0).chain(flow.routes.iter().map(|route| route.at_ns));
            let links = |path| spec.links_with_tunnels(std::iter::once(path));
            let routes = starts_ns.zip(flow.paths());
            routes.map(|(ns, path)| (Time::from_ns(ns), links(path))).collect()
        };
        Self {
            overall: contests(spec, &continuations),
            routes: spec.flows.iter().filter(|_| changes).map(routes).collect(),
            no_link: spec.links.len(),
            continuations,
        }
    }

    /// Returns the contest of each flow on the routes that are in use between two times.
    pub(crate) fn between(&self, from: Time, to: Time) -> Cow<'_, [usize]> {
        if self.routes.is_empty() {
            return Cow::Borrowed(&self.overall);
        }
        let used = |routes: &Vec<(Time, Vec<LinkId>)>| -> Vec<LinkId> {
            let ends = routes.iter().skip(1).map(|(start, _)| *start).chain([Time::NEVER]);
            let used = routes.iter().zip(ends);
            let used =
                used.filter(|((start, _), end)| *end > from && (*start < to || *start <= from));
            used.flat_map(|((_, links), _)| links.iter().copied()).collect()
        };
        let paths: Vec<_> = self.routes.iter().map(used).collect();
        let paths: Vec<&[LinkId]> = paths.iter().map(Vec::as_slice).collect();
        Cow::Owned(contests_of(self.no_link, &paths, &self.continuations))
    }
}

/// Returns for each flow the number of its contest: flows whose data cross a common link, directly
/// or through other flows, are in the same one. So an upload does not compete with a download,
/// whose ACKs alone use its links. All legs of a split flow are in the same. A tunnel and the flows
/// inside are in one contest, too. Measured flows have no links: they are in one contest if the
/// same hosts are named as their ends.
fn contests(spec: &RunSpec, continuations: &[Option<FlowId>]) -> Vec<usize> {
    if spec.links.is_empty() {
        let hosts = |flow: &FlowSpec| (flow.sender_host.clone(), flow.receiver_host.clone());
        let all: Vec<_> = spec.flows.iter().map(hosts).collect();
        return all.iter().filter_map(|own| all.iter().position(|other| other == own)).collect();
    }
    let paths: Vec<Vec<LinkId>> =
        spec.flows.iter().map(|flow| spec.links_with_tunnels(flow.paths())).collect();
    let paths: Vec<&[LinkId]> = paths.iter().map(Vec::as_slice).collect();
    contests_of(spec.links.len(), &paths, continuations)
}

/// Returns the contest of each flow, named after its first link. `None` if a flow has no links.
pub fn contest_names(spec: &RunSpec) -> Vec<Option<&str>> {
    let contests = contests(spec, &spec.continuations());
    contests.iter().map(|link| spec.links.get(*link).map(|link| link.name.as_str())).collect()
}

/// `no_link` is the number of links, which serves as the link number of flows without links.
fn contests_of(
    no_link: usize,
    paths: &[&[LinkId]],
    continuations: &[Option<FlowId>],
) -> Vec<usize> {
    let mut contest_of_link: Vec<usize> = (0..=no_link).collect();
    let links = |flow: usize| match paths[flow] {
        [] => vec![no_link],
        path => path.iter().map(|link| link.index()).collect(),
    };
    let mut merge = |links: &[usize]| {
        let contests: Vec<usize> = links.iter().map(|link| contest_of_link[*link]).collect();
        let least = contests.iter().copied().min().unwrap_or(no_link);
        for contest in contest_of_link.iter_mut().filter(|it| contests.contains(*it)) {
            *contest = least;
        }
    };
    for (flow, next) in continuations.iter().enumerate() {
        let mut together = links(flow);
        together.extend(next.iter().flat_map(|next| links(next.index())));
        merge(&together);
    }
    (0..paths.len()).map(|flow| contest_of_link[links(flow)[0]]).collect()
}

#[cfg(test)]
mod tests {
    use jostle_units::{FlowId, LinkId};

    fn contests_of(no_link: usize, paths: &[&[u32]], continuations: &[Option<u32>]) -> Vec<usize> {
        let paths: Vec<Vec<_>> =
            paths.iter().map(|path| path.iter().copied().map(LinkId).collect()).collect();
        let paths: Vec<_> = paths.iter().map(Vec::as_slice).collect();
        let continuations: Vec<_> = continuations.iter().map(|next| next.map(FlowId)).collect();
        super::contests_of(no_link, &paths, &continuations)
    }

    #[test]
    fn flows_compete_if_a_chain_of_common_links_connects_them() {
        let none = [None; 3];
        // Upload and downloads.
        assert_eq!(contests_of(2, &[&[1], &[0], &[0]], &none), [1, 0, 0]);
        // A parking lot: the first flow meets the others on different links.
        assert_eq!(contests_of(3, &[&[0, 1, 2], &[1], &[2]], &none), [0, 0, 0]);
        // The last flow connects the others.
        assert_eq!(contests_of(3, &[&[2], &[0], &[0, 2]], &none), [0, 0, 0]);
        // Without links, as in captures.
        assert_eq!(contests_of(0, &[&[], &[], &[]], &none), [0, 0, 0]);
        assert_eq!(contests_of(2, &[&[], &[1], &[0]], &none), [2, 1, 0]);
        // Legs of a split flow.
        assert_eq!(contests_of(3, &[&[0], &[1], &[2]], &[Some(1), None, None]), [0, 0, 2]);
    }
}
