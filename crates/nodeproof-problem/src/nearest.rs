//! Names that were probably meant.

/// The longest name that is compared letter by letter.
const LONGEST: usize = 64;

/// The one of `known` that `name` probably stands for: the same but for case, hyphens, underscores and white space, or else the
/// first that few changes of letters make of it, no more than a third of its letters.
///
/// ```
/// use nodeproof_problem::nearest;
/// let methods = ["ce", "rce", "rh", "rh-u"];
/// assert_eq!(nearest("RH_U", methods), Some("rh-u"));
/// assert_eq!(nearest("magic", methods), None);
/// ```
pub fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let letters = plain(name);
    if letters.is_empty() || letters.len() > LONGEST {
        return None;
    }
    let most = letters.len() / 3;
    let candidate = |known: &'n str| {
        let other = plain(known);
        let is_near = !other.is_empty() && other.len().abs_diff(letters.len()) <= most;
        is_near.then(|| changes(&letters, &other)).filter(|&count| count <= most).map(|count| (count, known))
    };
    known.into_iter().filter_map(candidate).min_by_key(|&(count, _)| count).map(|(_, known)| known)
}

/// What to add to a message about `name`: `; did you mean rh-u?`, or nothing.
pub fn did_you_mean<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    nearest(name, known).map(|meant| format!("; did you mean {meant}?")).unwrap_or_default()
}

/// The letters and digits, in lower case.
fn plain(name: &str) -> Vec<char> {
    name.chars().filter(|c| !matches!(c, '-' | '_') && !c.is_whitespace()).flat_map(char::to_lowercase).collect()
}

/// How many letters must be put in, taken out, changed or swapped with their neighbour to make one of the other.
fn changes(one: &[char], other: &[char]) -> usize {
    let mut before = vec![0; other.len() + 1];
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, &a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &b) in other.iter().enumerate() {
            let changed = last[j] + usize::from(a != b);
            let mut least = changed.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a == other[j - 1] && one[i - 1] == b {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        (before, last) = (last, row);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted() {
        let count = |one: &str, other: &str| changes(&plain(one), &plain(other));
        assert_eq!(count("tight", "tight"), 0);
        assert_eq!(count("tihgt", "tight"), 1, "two letters swapped");
        assert_eq!(count("tigt", "tight"), 1);
        assert_eq!(count("tightt", "tight"), 1);
        assert_eq!(count("kitten", "sitting"), 3);
        assert_eq!(count("", "abc"), 3);
    }

    #[test]
    fn the_nearest_name_is_found_if_it_is_near() {
        let engines = ["fast", "tight", "complete"];
        for (typed, meant) in
            [("compleet", "complete"), ("Tight", "tight"), ("fst", "fast"), (" complete ", "complete")]
        {
            assert_eq!(nearest(typed, engines), Some(meant), "{typed}");
        }
        for far in ["", "ray", "x", "fa", "thoroughly", "-", &"f".repeat(1000)] {
            assert_eq!(nearest(far, engines), None, "{far}");
        }
        assert_eq!(nearest("RHU", ["rh", "rh-u"]), Some("rh-u"), "hyphens do not count");
        assert_eq!(nearest("Straße", ["strasse", "straße"]), Some("straße"));
        assert_eq!(did_you_mean("fsat", engines), "; did you mean fast?");
        assert_eq!(did_you_mean("ray", engines), "");
    }
}
