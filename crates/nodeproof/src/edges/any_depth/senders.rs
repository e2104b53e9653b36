//! What the deletions at a node have in common.

use std::collections::HashMap;

use super::base::Base;
use super::cones::Listed;
use super::region::NOWHERE;

/// The nodes that deletions are at.
#[derive(Debug)]
pub(super) struct Senders {
    pub(super) nodes: Vec<u32>,
    /// Of each node its place after all deletions.
    places: Vec<u32>,
    /// For each deletion: its ends, and neighbours of both.
    pub(super) own: Vec<Vec<u32>>,
    /// How many deletions there are of each kind, and at each of the nodes; and of these how many have another node as their own.
    pub(super) counts: Vec<usize>,
    others: HashMap<(usize, u32), usize>,
}

impl Senders {
    pub(super) fn new(base: &Base, listed: &[Listed]) -> Self {
        let mut nodes: Vec<u32> = listed.iter().flat_map(|listed| listed.ends).filter(|&n| n != NOWHERE).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let mut places = vec![NOWHERE; base.degrees.len()];
        let mut counts: Vec<usize> = listed.iter().map(|listed| listed.count).collect();
        for (place, &n) in nodes.iter().enumerate() {
            places[n as usize] = (listed.len() + place) as u32;
            counts.push(listed.iter().filter(|listed| listed.ends.contains(&n)).map(|listed| listed.count).sum());
        }
        let own = |listed: &Listed| {
            let [a, b] = listed.ends;
            let mut own: Vec<u32> = [a, b].into_iter().filter(|&n| n != NOWHERE).collect();
            if let [a, b] = own[..] {
                let of_both = |n: &&u32| base.neighbours[b as usize].binary_search(n).is_ok();
                own.extend(base.neighbours[a as usize].iter().filter(of_both));
            }
            own
        };
        let own: Vec<Vec<u32>> = listed.iter().map(own).collect();
        let mut others = HashMap::new();
        for (listed, own) in listed.iter().zip(&own) {
            for n in listed.ends.into_iter().filter(|&n| n != NOWHERE) {
                let place = places[n as usize] as usize;
                own.iter().for_each(|&m| *others.entry((place, m)).or_insert(0) += listed.count);
            }
        }
        Self { own, nodes, places, counts, others }
    }

    /// How many deletions move a node as they do, if they are at another one together with others: all but those whose own it is.
    pub(super) fn count(&self, f: usize, n: u32) -> usize {
        self.counts[f] - self.others.get(&(f, n)).copied().unwrap_or(0)
    }

    /// The place of what all deletions at a node have in common.
    pub(super) fn place(&self, n: u32) -> Option<usize> {
        (n != NOWHERE).then(|| self.places[n as usize] as usize)
    }
}
