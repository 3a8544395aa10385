//! Which indexes feed which: refuses loops and shared outputs, and orders indexes so that each comes after those it feeds on.
//!
//! An index writes its output and its reference documents; it feeds on what it maps and on what it loads. Pure. Names are
//! compared without regard to case.

use std::collections::HashMap;

use super::context::same_name;
use crate::script::SourceCollection;

/// One index as the graph sees it.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub name: String,
    pub sources: Vec<SourceCollection>,
    /// The collections that it loads from.
    pub loads: Vec<String>,
    /// The collections that it writes.
    pub outputs: Vec<String>,
}

/// How an index takes in a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Maps,
    Loads,
}

impl Node {
    fn takes(&self, collection: &str) -> Option<Way> {
        let maps = self.sources.iter().any(|source| match source {
            SourceCollection::Named(name) => same_name(name, collection),
            SourceCollection::All => true,
        });
        let loads = || self.loads.iter().any(|name| same_name(name, collection));
        if maps { Some(Way::Maps) } else { loads().then_some(Way::Loads) }
    }

    /// The collection through which it feeds another, and how that one takes it in.
    fn feeds(&self, other: &Node) -> Option<(&str, Way)> {
        self.outputs.iter().find_map(|output| Some((output.as_str(), other.takes(output)?)))
    }
}

/// Checks a new definition against the others; the reason why it is refused names the whole path.
pub(crate) fn check(new: &Node, others: &[Node]) -> Result<(), String> {
    for output in &new.outputs {
        let verb = match new.takes(output) {
            Some(Way::Maps) => "is one of its own sources",
            Some(Way::Loads) => "is one that it loads from",
            None => continue,
        };
        return Err(format!("the collection '{output}', which it writes, {verb}, so it would never settle"));
    }
    for output in &new.outputs {
        let owner = others.iter().find(|other| other.outputs.iter().any(|theirs| same_name(theirs, output)));
        if let Some(owner) = owner {
            return Err(format!(
                "the collection '{output}' belongs to index '{}'; choose another collection, or delete that index",
                owner.name
            ));
        }
    }
    match find_loop(new, others) {
        Some(path) => Err(format!("it would close a loop: {}", shown(&path))),
        None => Ok(()),
    }
}

/// A loop in words; it ends with the index that it begins with.
fn shown(path: &[&Node]) -> String {
    let hop = |(n, node): (usize, &&Node)| {
        let next = path.get(n + 1).or(path.first())?;
        let (output, way) = node.feeds(next)?;
        let taken = match (n + 1 < path.len(), way) {
            (true, Way::Maps) => "read by ".to_owned(),
            (true, Way::Loads) => "loaded by ".to_owned(),
            (false, Way::Maps) => format!("which '{}' reads", next.name),
            (false, Way::Loads) => format!("which '{}' loads", next.name),
        };
        Some(format!("'{}' writes '{output}', {taken}", node.name))
    };
    path.iter().enumerate().filter_map(hop).collect()
}

/// The shortest way from `new` back to itself, `new` first. Looks at each index once, however many ways lead to it.
fn find_loop<'a>(new: &'a Node, others: &'a [Node]) -> Option<Vec<&'a Node>> {
    let mut reached: Vec<(&Node, usize)> = vec![(new, 0)];
    let mut at = 0;
    while let Some(&(node, _)) = reached.get(at) {
        if at > 0 && node.feeds(new).is_some() {
            return Some(way(&reached, at));
        }
        for next in others.iter().filter(|other| node.feeds(other).is_some()) {
            if !reached.iter().any(|(known, _)| std::ptr::eq(*known, next)) {
                reached.push((next, at));
            }
        }
        at += 1;
    }
    None
}

/// The way to a reached index; each stands with the place of the one it was reached from.
fn way<'a>(reached: &[(&'a Node, usize)], end: usize) -> Vec<&'a Node> {
    let mut way = Vec::new();
    let mut at = end;
    while let Some(&(node, from)) = reached.get(at) {
        way.push(node);
        if at == 0 {
            break;
        }
        at = from;
    }
    way.reverse();
    way
}

/// Orders indexes so that each comes after those whose outputs it reads. Returns positions in `nodes`.
pub(crate) fn order(nodes: &[Node]) -> Vec<usize> {
    let inputs = inputs(nodes);
    let mut ordered: Vec<usize> = Vec::with_capacity(nodes.len());
    let mut is_placed = vec![false; nodes.len()];
    while ordered.len() < nodes.len() {
        let before = ordered.len();
        for (n, inputs) in inputs.iter().enumerate() {
            let is_ready = inputs.iter().all(|m| is_placed.get(*m).is_none_or(|placed| *placed));
            if let Some(placed) = is_placed.get_mut(n).filter(|placed| is_ready && !**placed) {
                *placed = true;
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
    let inputs = inputs(nodes);
    let mut found = reach(&readers(&inputs), &start);
    found.extend(reach(&inputs, &start));
    found.sort_unstable();
    found.dedup();
    found
}

/// Some indexes and all that feed on them, near or far. Positions in `nodes`.
pub(crate) fn behind(nodes: &[Node], start: &[usize]) -> Vec<usize> {
    reach(&readers(&inputs(nodes)), start)
}

/// For each index, the positions of those that read its outputs.
fn readers(inputs: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut readers = vec![Vec::new(); inputs.len()];
    for (n, inputs) in inputs.iter().enumerate() {
        for &input in inputs {
            readers.get_mut(input).into_iter().for_each(|readers: &mut Vec<usize>| readers.push(n));
        }
    }
    readers
}

/// For each index, the positions of those whose outputs it reads.
fn inputs(nodes: &[Node]) -> Vec<Vec<usize>> {
    let writers: HashMap<String, usize> = nodes
        .iter()
        .enumerate()
        .flat_map(|(n, node)| node.outputs.iter().map(move |output| (crate::id::lower(output), n)))
        .collect();
    let read_by = |node: &Node| -> Vec<usize> {
        if node.sources.contains(&SourceCollection::All) {
            return writers.values().copied().collect();
        }
        let names = node.sources.iter().filter_map(|source| match source {
            SourceCollection::Named(name) => Some(crate::id::lower(name)),
            SourceCollection::All => None,
        });
        let names = names.chain(node.loads.iter().map(|name| crate::id::lower(name)));
        names.filter_map(|name| writers.get(&name).copied()).collect()
    };
    nodes.iter().map(read_by).collect()
}

fn reach(leads_to: &[Vec<usize>], start: &[usize]) -> Vec<usize> {
    let mut found = start.to_vec();
    let mut next = 0;
    while let Some(ways) = found.get(next).and_then(|&n| leads_to.get(n)) {
        for &n in ways {
            if !found.contains(&n) {
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
            loads: Vec::new(),
            outputs: (!output.is_empty()).then(|| output.to_owned()).into_iter().collect(),
        }
    }

    fn loading(name: &str, source: &str, loads: &str, outputs: &[&str]) -> Node {
        let outputs = outputs.iter().map(|output| (*output).to_owned()).collect();
        Node { loads: vec![loads.to_owned()], outputs, ..node(name, &[source], "") }
    }

    #[test]
    fn what_is_loaded_and_what_lists_results_close_loops_too() {
        let reason = check(&loading("A", "Orders", "SALES", &["Sales"]), &[]).unwrap_err();
        assert!(reason.contains("'Sales'") && reason.contains("loads from"), "{reason}");
        let reason = check(&node("A", &["Sales/References"], "x"), &[]).map(|()| String::new());
        assert_eq!(reason, Ok(String::new()));
        let first = loading("First", "Orders", "Rates", &["Sales", "Sales/References"]);
        let reason = check(&node("Back", &["sales/references"], "Rates"), &[first]).unwrap_err();
        assert_eq!(
            reason,
            "it would close a loop: 'Back' writes 'Rates', loaded by 'First' writes 'Sales/References', which 'Back' reads"
        );
        let diamond = [loading("L", "A", "R", &["B"]), node("R", &["A"], "C")];
        assert_eq!(check(&loading("Join", "B", "C", &["D", "D/References"]), &diamond), Ok(()));
    }

    #[test]
    fn two_indexes_never_share_a_reference_collection() {
        let one = loading("One", "Orders", "Rates", &["Sales", "Refs"]);
        for outputs in [["x", "REFS"], ["refs", "y"], ["sales", "y"]] {
            let reason = check(&loading("Two", "Orders", "Rates", &outputs), std::slice::from_ref(&one)).unwrap_err();
            assert!(reason.contains("belongs to index 'One'"), "{reason}");
        }
    }

    #[test]
    fn an_index_over_its_own_output_is_refused() {
        let reason = check(&node("A", &["Orders", "SALES"], "Sales"), &[]).unwrap_err();
        assert!(reason.contains("'Sales'") && reason.contains("is one of its own sources"), "{reason}");
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
    fn a_ladder_of_a_hundred_rungs_is_checked_without_walking_all_of_its_ways() {
        let mut others = Vec::new();
        for rung in 0..100 {
            let below = [format!("L{rung}"), format!("R{rung}")];
            let below: Vec<&str> = if rung == 0 { vec!["Base"] } else { below.iter().map(String::as_str).collect() };
            for side in ["L", "R"] {
                others.push(node(&format!("{side}{rung}"), &below, &format!("{side}{}", rung + 1)));
            }
        }
        assert_eq!(check(&node("Ground", &["Orders"], "Base"), &others), Ok(()));
        let reason = check(&node("Ground", &["L100"], "Base"), &others).unwrap_err();
        assert_eq!(reason.matches(", read by ").count(), 100, "{reason}");
        others.reverse();
        assert_eq!(order(&others).len(), 200);
        assert_eq!(connected(&others, &["l0".to_owned()]).len(), 199, "its neighbour on the first rung is no relation");
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
        assert_eq!(behind(&nodes, &[2]), [2, 0]);
    }
}
