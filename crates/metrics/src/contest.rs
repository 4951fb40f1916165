//! Flows that compete for links.

use jostle_run_spec::{FlowSpec, RunSpec};
use jostle_units::{FlowId, LinkId};

/// Returns for each flow the number of its contest: flows whose data cross a common link, directly
/// or through other flows, are in the same one. So an upload does not compete with a download,
/// whose ACKs alone use its links. All legs of a split flow are in the same. A tunnel and the flows
/// inside are in one contest, too. Measured flows have no links: they are in one contest if the
/// same hosts are named as their ends.
pub(crate) fn contests(spec: &RunSpec, continuations: &[Option<FlowId>]) -> Vec<usize> {
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
