//! The small languages that options speak: shares, budgets and lists, parsed before any file is opened.

use std::ffi::OsString;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use nodeproof::results::ShardFields;
use nodeproof::settings;
use nodeproof::{LocalBudget, Part};
use nodeproof_report::plot::Size;

/// A share of something, `80%` or `0.8`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share(f64);

impl Share {
    /// The share as a number between 0 and 1.
    pub(crate) fn fraction(self) -> f64 {
        self.0
    }

    /// Whether `count` of `total` is less than this share, rounding of the share itself forgiven.
    pub(crate) fn exceeds(self, count: usize, total: usize) -> bool {
        (count as f64) < (self.0 - 1e-12) * total as f64
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, scale) = match text.trim().strip_suffix('%') {
            Some(number) => (number.trim_end(), 100.0),
            None => (text.trim(), 1.0),
        };
        match number.parse::<f64>() {
            Ok(number) if (0.0..=scale).contains(&number) => Ok(Self(number / scale)),
            _ => Err("give a share such as 80% or 0.8 (from 0% to 100%)".to_owned()),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = format!("{:.4}", self.0 * 100.0);
        write!(f, "{}%", percent.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// Parses `--global-budget`.
pub(crate) fn global_budget(text: &str) -> Result<u32, String> {
    match text.trim().parse() {
        Ok(0) => Err("with 0 flips there is nothing to prove; give at least 1".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err(format!("give a whole number of flips, such as 12 (at most {})", u32::MAX)),
    }
}

/// Parses `--global-budget` where edges may be deleted, too.
pub(crate) fn flips_beside(text: &str) -> Result<u32, String> {
    match text.trim().parse() {
        Ok(0) => {
            Err("with 0 flips there is nothing to prove; give at least 1, or --delete-edges without it".to_owned())
        }
        _ => global_budget(text),
    }
}

/// Parses `--delete-edges` and `--edges-per-node`.
pub(crate) fn deletions(text: &str) -> Result<u32, String> {
    match text.trim().parse() {
        Ok(0) => Err("with 0 deletions there is nothing to prove; give at least 1".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err(format!("give a whole number of edges, such as 5 (at most {})", u32::MAX)),
    }
}

/// Parses `--local-budget`.
pub(crate) fn local_budget(text: &str) -> Result<LocalBudget, String> {
    match text.parse() {
        Ok(LocalBudget::Count(0)) => {
            Err("with 0 flips at a node there is nothing to prove; give at least 1, or a share such as 1%".to_owned())
        }
        Ok(local) => Ok(local),
        Err(error) => Err(error.to_string()),
    }
}

/// A number, or none, for which options have a word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limit<T>(pub(crate) Option<T>);

impl Limit<usize> {
    fn count(text: &str, word: &str) -> Option<Self> {
        match text.trim() {
            text if text == word => Some(Self(None)),
            text => text.parse().ok().filter(|&count| count > 0).map(|count| Self(Some(count))),
        }
    }
}

/// Parses `--batch`.
pub(crate) fn batch(text: &str) -> Result<Limit<usize>, String> {
    Limit::count(text, "all").ok_or_else(|| "give a number of nodes, at least 1, such as 256, or all".to_owned())
}

/// Parses `--patience`.
pub(crate) fn patience(text: &str) -> Result<Limit<usize>, String> {
    Limit::count(text, "none").ok_or_else(|| "give a number of steps, at least 1, such as 50, or none".to_owned())
}

/// Parses `--sample` of `bench engines`.
pub(crate) fn sample(text: &str) -> Result<Limit<usize>, String> {
    Limit::count(text, "all").ok_or_else(|| "give a number of nodes, at least 1, such as 500, or all".to_owned())
}

/// Parses `--time-limit` and `--total-time-limit`.
pub(crate) fn time_limit(text: &str) -> Result<Limit<Duration>, String> {
    let seconds = |text: &str| settings::time_limit("time_limit", text.parse().ok()?).ok();
    match text.trim() {
        "none" => Ok(Limit(None)),
        text => seconds(text)
            .map(|duration| Limit(Some(duration)))
            .ok_or_else(|| "give a number of seconds, such as 10 or 0.5, or none".to_owned()),
    }
}

/// Parses `--memory-limit`.
pub(crate) fn memory_limit(text: &str) -> Result<usize, String> {
    settings::memory_limit("memory_limit", text).map_err(|_| "give a number of bytes, such as 512M or 4G".to_owned())
}

/// One of several parts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shard {
    number: usize,
    of: usize,
}

impl Shard {
    /// What it is of a run with so many nodes.
    pub(crate) fn of(self, nodes: usize) -> Option<ShardFields> {
        ShardFields::new(self.number, self.of, nodes)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem = || "give a shard and how many there are, such as 1/4 for the first of four".to_owned();
        let (number, of) = text.split_once('/').ok_or_else(problem)?;
        let count = |text: &str| text.trim().parse().ok().filter(|&count| count <= MOST_SHARDS);
        let (number, of) = count(number).zip(count(of)).ok_or_else(problem)?;
        let shard = Self { number, of };
        shard.of(0).map(|_| shard).ok_or_else(problem)
    }
}

/// More than there are nodes to share out.
const MOST_SHARDS: usize = 1_000_000;

/// Global budgets to compare under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Budgets(pub(crate) Vec<u32>);

impl FromStr for Budgets {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let budgets: Vec<u32> = items(text).map(global_budget).collect::<Result<_, _>>()?;
        if budgets.is_empty() {
            return Err("give global budgets, such as 5,12,25".to_owned());
        }
        Ok(Self(budgets))
    }
}

/// Numbers of nodes of graphs to draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sizes(pub(crate) Vec<usize>);

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sizes: Option<Vec<usize>> = items(text).map(|item| item.parse().ok().filter(|&size| size > 0)).collect();
        let sizes = sizes.filter(|sizes| !sizes.is_empty()).map(Self);
        sizes.ok_or_else(|| "give numbers of nodes from 1 on, such as 1000,10000".to_owned())
    }
}

/// Parses `--width` and `--height`.
pub(crate) fn millimetres(text: &str) -> Result<f64, String> {
    let possible = Size::MIN..=Size::MAX;
    let number = text.trim().parse().ok().filter(|number| possible.contains(number));
    number.ok_or_else(|| format!("give millimetres from {} to {}, such as 84", Size::MIN, Size::MAX))
}

/// Parses `--dpi`.
pub(crate) fn dots_per_inch(text: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok().filter(|number| (10.0..=2400.0).contains(number));
    number.ok_or_else(|| "give pixels an inch from 10 to 2400, such as 300".to_owned())
}

/// Parses `--clip` and `--saturation`.
pub(crate) fn positive_or_none(text: &str) -> Result<Limit<f64>, String> {
    let number = |text: &str| text.parse().ok().filter(|&number: &f64| number > 0.0).map(|number| Limit(Some(number)));
    let limit = if text.trim() == "none" { Some(Limit(None)) } else { number(text.trim()) };
    limit.ok_or_else(|| "give a positive number such as 1, or none".to_owned())
}

/// Units of each hidden layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HiddenSizes(pub(crate) Vec<usize>);

impl FromStr for HiddenSizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let size = |item: &str| item.parse().ok().filter(|&size| size > 0);
        let sizes: Option<Vec<usize>> = match text.trim() {
            "none" | "" => Some(Vec::new()),
            text => text.split(',').map(|item| size(item.trim())).collect(),
        };
        sizes.map(Self).ok_or_else(|| "give sizes from 1 on, such as 32 or 64,32, or none".to_owned())
    }
}

/// An id, or a range of ids with both ends.
pub(crate) type IdRange = RangeInclusive<u32>;

/// Parses `17` or `10-20`.
pub(crate) fn id_range(text: &str) -> Option<IdRange> {
    let id = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten();
    match text.split_once('-') {
        None => id(text).map(|id| id..=id),
        Some((first, last)) => {
            let (first, last) = (id(first)?, id(last)?);
            (first <= last).then_some(first..=last)
        }
    }
}

/// Which nodes an option names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeList {
    /// Every node of the graph.
    All,
    /// A part of the split.
    Part(Part),
    /// These ids.
    Ids(Vec<IdRange>),
    /// The ids in this file.
    File(PathBuf),
}

impl NodeList {
    /// The file that holds the list, if one does.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            _ => None,
        }
    }
}

/// As it is typed.
impl fmt::Display for NodeList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Part(part) => f.write_str(part.name()),
            Self::Ids(ranges) => {
                let range = |range: &IdRange| match (range.start(), range.end()) {
                    (first, last) if first == last => first.to_string(),
                    (first, last) => format!("{first}-{last}"),
                };
                f.write_str(&ranges.iter().map(range).collect::<Vec<_>>().join(","))
            }
            Self::File(path) => write!(f, "@{}", path.display()),
        }
    }
}

impl FromStr for NodeList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "all" => Ok(Self::All),
            text => match (text.strip_prefix('@'), text.parse()) {
                (Some(""), _) => Err("`@` must be followed by the name of a file".to_owned()),
                (Some(path), _) => Ok(Self::File(path.into())),
                (None, Ok(part)) => Ok(Self::Part(part)),
                (None, Err(_)) => ids(text).map(Self::Ids),
            },
        }
    }
}

fn ids(text: &str) -> Result<Vec<IdRange>, String> {
    let parse = |item: &str| id_range(item).ok_or_else(|| not_a_node(item));
    let ranges: Vec<_> = items(text).map(parse).collect::<Result<_, _>>()?;
    if ranges.is_empty() { Err(not_a_node("")) } else { Ok(ranges) }
}

/// What to say of an item that is neither an id nor a range.
pub(crate) fn not_a_node(item: &str) -> String {
    format!(
        "`{item}` is not a node id or a range; give ids such as 0,4,10-20, or all, @FILE, train, validation, test or \
         unlabelled"
    )
}

/// The items of a list: separated by commas or white space.
pub(crate) fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c == ',' || c.is_whitespace()).filter(|item| !item.is_empty())
}

/// The lines of a list file with their numbers, counted from 1, comments left out.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .map(|line| line.split_once('#').map_or(line, |(before, _)| before))
        .enumerate()
        .map(|(i, l)| (i + 1, l))
}

/// A file, and what its content is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedFile {
    pub(crate) name: Option<String>,
    pub(crate) path: PathBuf,
}

impl From<OsString> for NamedFile {
    /// `NAME=FILE`, or a file alone; one that is there is taken as a whole, whatever its name contains.
    fn from(typed: OsString) -> Self {
        if !Path::new(&typed).exists()
            && let Some((name, path)) = typed.to_str().and_then(|text| text.split_once('='))
            && !name.is_empty()
        {
            return Self { name: Some(name.to_owned()), path: path.into() };
        }
        Self { name: None, path: typed.into() }
    }
}

impl NamedFile {
    /// The name that was given, or else that of the file without its extension.
    pub(crate) fn shown_name(&self) -> String {
        let stem = || self.path.file_stem().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned();
        self.name.clone().unwrap_or_else(stem)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn shares_are_percentages_or_fractions() {
        for (text, fraction, shown) in [("80%", 0.8, "80%"), ("0.8", 0.8, "80%"), (" 7.5 % ", 0.075, "7.5%")] {
            let share: Share = text.parse().unwrap();
            assert_eq!((share.fraction(), share.to_string().as_str()), (fraction, shown));
        }
        for bad in ["", "80", "-1%", "100.1%", "nan", "inf%", "x", "%"] {
            assert!(bad.parse::<Share>().unwrap_err().contains("80%"), "{bad}");
        }
    }

    #[test]
    fn a_share_met_exactly_is_met() {
        for hundredths in 0..=100usize {
            let share: Share = format!("{hundredths}%").parse().unwrap();
            assert!(!share.exceeds(hundredths * 7, 700));
            assert!(hundredths == 0 || share.exceeds(hundredths * 7 - 1, 700));
        }
        assert!(!"58.3%".parse::<Share>().unwrap().exceeds(583, 1000));
    }

    #[test]
    fn budgets_of_nothing_are_refused() {
        assert_eq!(global_budget("12"), Ok(12));
        assert!(global_budget("0").unwrap_err().contains("at least 1"));
        for bad in ["", "-3", "1.5", "4294967296", "10%"] {
            assert!(global_budget(bad).unwrap_err().contains("whole number"), "{bad}");
        }
        assert_eq!(local_budget("3"), Ok(LocalBudget::Count(3)));
        assert!(local_budget("0").unwrap_err().contains("at least 1"));
        assert!(local_budget("101%").unwrap_err().contains("at most 100%"));
    }

    #[test]
    fn limits_are_numbers_or_words() {
        assert_eq!((batch("256"), batch("all")), (Ok(Limit(Some(256))), Ok(Limit(None))));
        assert_eq!((patience("5"), patience("none")), (Ok(Limit(Some(5))), Ok(Limit(None))));
        assert_eq!((positive_or_none("0.5"), positive_or_none("none")), (Ok(Limit(Some(0.5))), Ok(Limit(None))));
        for bad in ["", "0", "-1", "x", "1.5", "NaN"] {
            assert!(batch(bad).is_err() && patience(bad).is_err(), "{bad}");
        }
        for bad in ["", "0", "-1", "all", "NaN"] {
            assert!(positive_or_none(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn time_limits_are_seconds_or_none() {
        let limit = |text: &str| time_limit(text).map(|limit| limit.0);
        assert_eq!((limit("10"), limit(" none ")), (Ok(Some(Duration::from_secs(10))), Ok(None)));
        assert_eq!((limit("0.25"), limit("0")), (Ok(Some(Duration::from_millis(250))), Ok(Some(Duration::ZERO))));
        for bad in ["", "-1", "x", "NaN", "inf", "1e300", "10 s", "1,5"] {
            assert!(time_limit(bad).unwrap_err().contains("number of seconds, such as 10"), "{bad}");
        }
    }

    #[test]
    fn budgets_to_compare_are_a_list() {
        assert_eq!("5, 12".parse(), Ok(Budgets(vec![5, 12])));
        assert!("5,0".parse::<Budgets>().unwrap_err().contains("at least 1"));
        for bad in ["5,x", "-1", "1.5"] {
            assert!(bad.parse::<Budgets>().unwrap_err().contains("whole number"), "{bad}");
        }
        assert!(",".parse::<Budgets>().unwrap_err().contains("5,12,25"));
    }

    #[test]
    fn hidden_sizes_are_a_list() {
        let sizes = |text: &str| text.parse::<HiddenSizes>().map(|sizes| sizes.0);
        assert_eq!((sizes("32"), sizes("64, 32")), (Ok(vec![32]), Ok(vec![64, 32])));
        assert_eq!((sizes("none"), sizes("")), (Ok(vec![]), Ok(vec![])));
        for bad in ["0", "32,", "32,0", "-1", "x"] {
            assert!(sizes(bad).unwrap_err().contains("64,32"), "{bad}");
        }
    }

    #[test]
    fn node_lists_of_every_kind() {
        assert_eq!("all".parse(), Ok(NodeList::All));
        assert_eq!("unlabelled".parse(), Ok(NodeList::Part(Part::Unlabelled)));
        assert_eq!("@ids.txt".parse(), Ok(NodeList::File("ids.txt".into())));
        assert_eq!("0,4, 10-20".parse(), Ok(NodeList::Ids(vec![0..=0, 4..=4, 10..=20])));
        for bad in ["", ",", "20-10", "-4", "1-", "a", "1;2", "4294967296", "+1", "1-2-3"] {
            assert!(bad.parse::<NodeList>().unwrap_err().contains("0,4,10-20"), "{bad}");
        }
        assert!("@".parse::<NodeList>().is_err());
        for typed in ["all", "train", "validation", "test", "unlabelled", "@ids.txt", "0,4,10-20"] {
            assert_eq!(typed.parse::<NodeList>().unwrap().to_string(), typed);
        }
    }

    #[test]
    fn comments_end_lines_but_not_their_count() {
        let found: Vec<_> = lines("1 2\n# none\n3 # three").collect();
        assert_eq!(found, [(1, "1 2"), (2, ""), (3, "3 ")]);
    }

    #[test]
    fn files_may_have_names() {
        let file = |text: &str| NamedFile::from(OsString::from(text));
        assert_eq!(file("a=b/c.jsonl"), NamedFile { name: Some("a".into()), path: "b/c.jsonl".into() });
        assert_eq!(file("a=b=c"), NamedFile { name: Some("a".into()), path: "b=c".into() });
        assert_eq!(file("=c"), NamedFile { name: None, path: "=c".into() });
        assert_eq!([file("b/c.jsonl").shown_name(), file("x=c").shown_name()], ["c", "x"]);
        let folder = tempfile::tempdir().unwrap();
        let there = folder.path().join("a=b");
        std::fs::write(&there, "").unwrap();
        assert_eq!(NamedFile::from(there.clone().into_os_string()), NamedFile { name: None, path: there });
    }
}
