//! Counts of radii, as bars of text.

use serde::Serialize;

use crate::text;

/// Most bars, not counting the one for nodes that withstand everything.
const MOST_BARS: u32 = 16;
/// Characters of the longest bar.
const LONGEST_BAR: usize = 52;

/// How many nodes have a radius from `from` to `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Bar {
    /// The smallest radius.
    pub from: u32,
    /// The largest.
    pub to: u32,
    /// Nodes.
    pub nodes: usize,
}

/// Radii in bars of one width: 1, 2, 5, 10, …; those of the largest budget that was tried have a bar of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Histogram {
    bars: Vec<Bar>,
    #[serde(skip)]
    most: u32,
}

impl Histogram {
    /// Counts `radii`, looked for up to `most`.
    pub fn new(radii: &[u32], most: u32) -> Self {
        let below = radii.iter().copied().filter(|&radius| radius < most);
        let mut bars = Vec::new();
        if let Some(largest) = below.clone().max() {
            let width = width(largest);
            bars.extend((0..=largest / width).map(|i| Bar {
                from: i * width,
                to: (i * width).saturating_add(width - 1).min(most - 1),
                nodes: 0,
            }));
            below.for_each(|radius| bars[(radius / width) as usize].nodes += 1);
        }
        let all = radii.iter().filter(|&&radius| radius >= most).count();
        if all > 0 {
            bars.push(Bar { from: most, to: most, nodes: all });
        }
        Self { bars, most }
    }

    /// The bars, those of small radii first.
    pub fn bars(&self) -> &[Bar] {
        &self.bars
    }

    /// The bars as lines, each with the share of its nodes.
    pub fn in_words(&self) -> String {
        let (total, longest) = self.bars.iter().fold((0, 1), |(sum, max), bar| (sum + bar.nodes, max.max(bar.nodes)));
        let row = |bar: &Bar| {
            let length = (bar.nodes * LONGEST_BAR).div_ceil(longest);
            vec![self.label(bar), bar.nodes.to_string(), text::percentage(bar.nodes, total), "█".repeat(length)]
        };
        let header = ["radius", "nodes", "share", ""].map(str::to_owned).to_vec();
        text::table("rrrl", Some(header), self.bars.iter().map(row).collect())
    }

    fn label(&self, bar: &Bar) -> String {
        match bar {
            bar if bar.from == self.most => format!("≥ {}", bar.from),
            bar if bar.from == bar.to => bar.from.to_string(),
            bar => format!("{}–{}", bar.from, bar.to),
        }
    }
}

/// The smallest of 1, 2, 5, 10, 20, … for which there are not too many bars.
fn width(largest: u32) -> u32 {
    let steps = (0..10).flat_map(|exponent| [1, 2, 5].map(|step: u32| step.saturating_mul(10u32.pow(exponent))));
    steps.into_iter().find(|width| largest / width < MOST_BARS).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(radii: &[u32], most: u32) -> Vec<(u32, u32, usize)> {
        Histogram::new(radii, most).bars.iter().map(|bar| (bar.from, bar.to, bar.nodes)).collect()
    }

    #[test]
    fn every_radius_has_its_bar() {
        assert_eq!(bars(&[0, 2, 2, 3], 3), [(0, 0, 1), (1, 1, 0), (2, 2, 2), (3, 3, 1)]);
        assert_eq!(bars(&[7], 7), [(7, 7, 1)]);
        assert_eq!(bars(&[], 7), []);
        assert_eq!(bars(&[0, 17], 18).len(), 9);
        assert_eq!(bars(&[17], 18)[8], (16, 17, 1));
        assert_eq!(bars(&[16], 17)[8], (16, 16, 1), "no bar reaches beyond what was tried");
        let many: Vec<u32> = (0..1000).collect();
        let counted = bars(&many, 5000);
        assert!(counted.len() <= 16 && counted.iter().map(|bar| bar.2).sum::<usize>() == 1000, "{counted:?}");
        assert_eq!(bars(&[u32::MAX - 1], u32::MAX).iter().map(|bar| bar.2).sum::<usize>(), 1);
    }

    #[test]
    fn bars_fit_a_line() {
        let mut radii = vec![3; 100_000];
        radii.extend([12; 40]);
        radii.extend([100; 1]);
        let text = Histogram::new(&radii, 100).in_words();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(
            text.contains("\n    12      40  <0.1%  █\n") && text.contains("\n ≥ 100       1  <0.1%  █\n"),
            "{text}"
        );
    }
}
