//! A budget as a person would say it.

use super::{Budget, Direction, EdgeBudget, LocalBudget};

impl Budget {
    /// The budget in words, for a graph with so many attributes: “at most 12 flips, 28 at one node (1% of 2879
    /// attributes), only additions”.
    ///
    /// ```
    /// # use nodeproof_problem::Budget;
    /// let budget = Budget::new(12, "1%".parse()?);
    /// assert_eq!(budget.in_words(2879), "at most 12 flips, 28 at one node (1% of 2879 attributes)");
    /// # Ok::<(), nodeproof_problem::BudgetError>(())
    /// ```
    pub fn in_words(&self, attributes: usize) -> String {
        match &self.edges {
            Some(edges) if self.global == 0 => {
                edges.in_words().into_iter().chain(self.protected_in_words()).collect::<Vec<_>>().join(", ")
            }
            _ => format!("at most {}, {}", counted(self.global as usize, "flip"), self.local_in_words(attributes)),
        }
    }

    /// The same without the number of flips in total.
    pub fn local_in_words(&self, attributes: usize) -> String {
        let share = match self.local {
            LocalBudget::Percent(percent) => format!(" ({percent} of {attributes} attributes)"),
            LocalBudget::Count(_) => String::new(),
        };
        let direction = match self.direction {
            Direction::AddOnly => Some("only additions".to_owned()),
            Direction::DeleteOnly => Some("only deletions".to_owned()),
            Direction::Both => None,
        };
        let words = [format!("{} at one node{share}", self.local.count(attributes))];
        words.into_iter().chain(direction).chain(self.exceptions()).collect::<Vec<_>>().join(", ")
    }

    /// What limits an attacker beyond the number that searches for radii vary: [`Budget::local_in_words`], or where edges may be deleted,
    /// “2 at one node, each node keeps one, beside at most 1 flip, 3 at one node”. Nothing if there is no such limit.
    pub fn limits_in_words(&self, attributes: usize) -> String {
        let Some(edges) = &self.edges else { return self.local_in_words(attributes) };
        let at_node = edges.most_at_node().map(|count| format!("{count} at one node"));
        let mut words: Vec<String> = at_node.into_iter().chain(edges.exceptions()).collect();
        if self.global == 0 {
            words.extend(self.protected_in_words());
        } else {
            let flips = Self { edges: None, ..self.clone() };
            words.push(format!("beside {}", flips.in_words(attributes)));
        }
        words.join(", ")
    }

    fn protected_in_words(&self) -> Option<String> {
        let protected = self.protected_nodes.len();
        (protected > 0).then(|| format!("{} protected", counted(protected, "node")))
    }

    /// To what the budget does not apply, in words: “3 nodes protected”.
    pub fn exceptions(&self) -> Vec<String> {
        let own = self.local_at.len();
        let mut words = Vec::new();
        if own > 0 {
            let whose = if own == 1 { "its" } else { "their" };
            words.push(format!("{} with a local budget of {whose} own", counted(own, "node")));
        }
        if let Some(edges) = &self.edges {
            words.extend(edges.in_words());
        }
        for (count, noun) in [(self.protected_nodes.len(), "node"), (self.protected_attributes.len(), "attribute")] {
            if count > 0 {
                words.push(format!("{} protected", counted(count, noun)));
            }
        }
        words
    }
}

impl EdgeBudget {
    /// What may be deleted, in words, and what not.
    fn in_words(&self) -> Vec<String> {
        let at_node = self.most_at_node().map_or(String::new(), |count| format!(" ({count} at one node)"));
        let most = format!("at most {} deleted{at_node}", counted(self.global() as usize, "edge"));
        std::iter::once(most).chain(self.exceptions()).collect()
    }

    /// What may not be deleted.
    fn exceptions(&self) -> impl Iterator<Item = String> {
        let protected = self.protected().len();
        let one = self.keeps_one().then(|| "each node keeps one".to_owned());
        one.into_iter().chain((protected > 0).then(|| format!("{} protected", counted(protected, "edge"))))
    }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;

    #[test]
    fn every_part_is_said() {
        let edges = EdgeBudget::new(5).at_node(2).keep_one(true);
        let budget = Budget::new(0, LocalBudget::Count(3)).delete_edges(edges.clone()).protect_nodes([NodeId(1)]);
        let words = "at most 5 edges deleted (2 at one node), each node keeps one, 1 node protected";
        assert_eq!(budget.in_words(200), words);
        let words = "at most 1 flip, 3 at one node, at most 5 edges deleted (2 at one node), each node keeps one, 1 node protected";
        assert_eq!(budget.limits_in_words(200), "2 at one node, each node keeps one, 1 node protected");
        let both = budget.with_global(1);
        assert_eq!(both.in_words(200), words);
        let limits = "2 at one node, each node keeps one, beside at most 1 flip, 3 at one node, 1 node protected";
        assert_eq!(both.limits_in_words(200), limits);
        let plain = Budget::new(0, LocalBudget::Count(3)).delete_edges(EdgeBudget::new(5));
        assert_eq!(plain.limits_in_words(200), "");
        let budget = Budget::new(12, "1%".parse().unwrap()).direction(Direction::AddOnly).protect_nodes([NodeId(1)]);
        let words = "at most 12 flips, 2 at one node (1% of 200 attributes), only additions, 1 node protected";
        assert_eq!(budget.in_words(200), words);
        assert_eq!(budget.limits_in_words(200), budget.local_in_words(200));
        assert_eq!(Budget::new(1, LocalBudget::Count(3)).in_words(200), "at most 1 flip, 3 at one node");
    }
}
