//! Which indexes feed which: refuses loops and shared outputs, and orders indexes so that each comes after those it feeds on.
//!
//! Pure. Names are compared without regard to case.

use super::context::same_name;
use crate::script::SourceCollection;

/// One index as the graph sees it.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub name: String,
    pub sources: Vec<SourceCollection>,
    pub output: Option<String>,
}

impl Node {
    fn reads(&self, collection: &str) -> bool {
        self.sources.iter().any(|source| match source {
            SourceCollection::Named(name) => same_name(name, collection),
            SourceCollection::All => true,
        })
    }

    fn feeds(&self, other: &Node) -> bool {
        self.output.as_ref().is_some_and(|output| other.reads(output))
    }
}

/// Checks a new definition against the others; the reason why it is refused names the whole path.
pub(crate) fn check(new: &Node, others: &[Node]) -> Result<(), String> {
    let Some(output) = &new.output else {
        return Ok(());
    };
    if new.reads(output) {
        return Err(format!("its output collection '{output}' is one of its own sources, so it would never settle"));
    }
    let owner = others.iter().find(|other| other.output.as_ref().is_some_and(|theirs| same_name(theirs, output)));
    if let Some(owner) = owner {
        return Err(format!(
            "the collection '{output}' belongs to index '{}'; choose another output collection, or delete that index",
            owner.name
        ));
    }
    let mut path = vec![new];
    if closes_loop(new, others, &mut path) {
        let hops: Vec<String> = path
            .iter()
            .map(|node| format!("'{}' writes '{}'", node.name, node.output.as_deref().unwrap_or("nothing")))
            .collect();
        return Err(format!("it would close a loop: {}, which '{}' reads", hops.join(", read by "), new.name));
    }
    Ok(())
}

/// Depth first from the last node of `path`; leaves the whole loop in `path` when it comes back to `new`.
fn closes_loop<'a>(new: &Node, others: &'a [Node], path: &mut Vec<&'a Node>) -> bool
where
{
    let Some(last) = path.last().copied() else { return false };
    if path.len() > 1 && last.feeds(new) {
        return true;
    }
    for next in others.iter().filter(|other| last.feeds(other)) {
        if path.iter().any(|known| same_name(&known.name, &next.name)) {
            continue;
        }
        path.push(next);
        if closes_loop(new, others, path) {
            return true;
        }
        path.pop();
    }
    false
}

/// Orders indexes so that each comes after those whose outputs it reads. Returns positions in `nodes`.
pub(crate) fn order(nodes: &[Node]) -> Vec<usize> {
    let mut ordered: Vec<usize> = Vec::with_capacity(nodes.len());
    while ordered.len() < nodes.len() {
        let before = ordered.len();
        for (n, node) in nodes.iter().enumerate() {
            let is_ready = |(m, other): (usize, &Node)| m == n || !other.feeds(node) || ordered.contains(&m);
            if !ordered.contains(&n) && nodes.iter().enumerate().all(is_ready) {
                ordered.push(n);
            }
        }
        if ordered.len() == before {
            let rest: Vec<usize> = (0..nodes.len()).filter(|n| !ordered.contains(n)).collect();
            ordered.extend(rest);
        }
    }
    ordered
}

/// The indexes in `names`, those they feed on, and those that feed on them. Positions in `nodes`.
pub(crate) fn connected(nodes: &[Node], names: &[String]) -> Vec<usize> {
    let is_named = |node: &Node| names.iter().any(|name| same_name(name, &node.name));
    let start: Vec<usize> = (0..nodes.len()).filter(|&n| nodes.get(n).is_some_and(is_named)).collect();
    let mut found = reach(nodes, &start, Node::feeds);
    found.extend(reach(nodes, &start, |from, to| to.feeds(from)));
    found.sort_unstable();
    found.dedup();
    found
}

fn reach(nodes: &[Node], start: &[usize], leads: impl Fn(&Node, &Node) -> bool) -> Vec<usize> {
    let mut found = start.to_vec();
    let mut next = 0;
    while let Some(from) = found.get(next).and_then(|&n| nodes.get(n)) {
        for (n, to) in nodes.iter().enumerate() {
            if leads(from, to) && !found.contains(&n) {
                found.push(n);
            }
        }
        next += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, sources: &[&str], output: &str) -> Node {
        Node {
            name: name.to_owned(),
            sources: sources.iter().map(|source| SourceCollection::Named((*source).to_owned())).collect(),
            output: (!output.is_empty()).then(|| output.to_owned()),
        }
    }

    #[test]
    fn an_index_over_its_own_output_is_refused() {
        let reason = check(&node("A", &["Orders", "SALES"], "Sales"), &[]).unwrap_err();
        assert!(reason.contains("'Sales' is one of its own sources"), "{reason}");
    }

    #[test]
    fn a_loop_through_other_indexes_is_refused_with_its_path() {
        let others = [node("Daily", &["A"], "B"), node("Monthly", &["B"], "C"), node("Aside", &["B"], "D")];
        let reason = check(&node("Back", &["C"], "a"), &others).unwrap_err();
        assert_eq!(
            reason,
            "it would close a loop: 'Back' writes 'a', read by 'Daily' writes 'B', read by 'Monthly' writes 'C', which 'Back' reads"
        );
    }

    #[test]
    fn a_diamond_is_accepted() {
        let others = [node("L", &["A"], "B"), node("R", &["A"], "C")];
        assert_eq!(check(&node("Join", &["B", "C"], "D"), &others), Ok(()));
    }

    #[test]
    fn two_indexes_never_share_an_output() {
        let reason = check(&node("Two", &["X"], "sales"), &[node("One", &["Orders"], "Sales")]).unwrap_err();
        assert!(reason.contains("belongs to index 'One'"), "{reason}");
    }

    #[test]
    fn indexes_are_ordered_after_those_they_feed_on() {
        let nodes = [node("Year", &["M"], "Y"), node("Day", &["Orders"], "D"), node("Month", &["D"], "M")];
        assert_eq!(order(&nodes), [1, 2, 0]);
        assert_eq!(connected(&nodes, &["month".to_owned()]), [0, 1, 2]);
    }
}
