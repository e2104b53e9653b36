//! The local budget: how many flips at one node.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::BudgetError;

/// The largest number of flips at one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
#[non_exhaustive]
pub enum LocalBudget {
    /// This many.
    Count(u32),
    /// This share of the number of attributes, rounded down, but at least 1.
    Percent(Percent),
}

impl LocalBudget {
    /// The number of flips for a graph with `attributes` attributes.
    ///
    /// ```
    /// # use nodeproof_problem::LocalBudget;
    /// let local: LocalBudget = "1%".parse()?;
    /// assert_eq!(local.count(2879), 28);
    /// assert_eq!(local.count(30), 1);
    /// # Ok::<(), nodeproof_problem::BudgetError>(())
    /// ```
    pub fn count(self, attributes: usize) -> usize {
        match self {
            Self::Count(count) => count as usize,
            Self::Percent(percent) => percent.floor_of(attributes).max(1),
        }
    }
}

impl FromStr for LocalBudget {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        let bad = || BudgetError::Local(text.to_owned());
        match text.trim().strip_suffix('%') {
            Some(number) => Percent::parse(number.trim_end()).map(Self::Percent).ok_or_else(bad),
            None => text.trim().parse().map(Self::Count).map_err(|_| bad()),
        }
    }
}

impl From<u32> for LocalBudget {
    fn from(count: u32) -> Self {
        Self::Count(count)
    }
}

impl TryFrom<String> for LocalBudget {
    type Error = BudgetError;

    fn try_from(text: String) -> Result<Self, BudgetError> {
        text.parse()
    }
}

impl fmt::Display for LocalBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Percent(percent) => percent.fmt(f),
        }
    }
}

impl From<LocalBudget> for String {
    fn from(local: LocalBudget) -> Self {
        local.to_string()
    }
}

/// A percentage above 0 and up to 100 with at most nine decimals, kept exactly: 29 % of 100 is 29, not
/// ⌊28.999…⌋.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percent {
    digits: u64,
    decimals: u32,
}

impl Percent {
    /// 1 %, the paper's share.
    pub const ONE: Self = Self { digits: 1, decimals: 0 };

    fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let decimals = u32::try_from(fraction.len()).ok().filter(|&decimals| decimals <= 9)?;
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || whole.len() > 3 || !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        let digits: u64 = format!("{whole}{fraction}").parse().ok()?;
        (digits > 0 && digits <= 100 * 10u64.pow(decimals)).then_some(Self { digits, decimals })
    }

    fn floor_of(self, count: usize) -> usize {
        let share = u128::from(self.digits) * count as u128 / (100 * 10u128.pow(self.decimals));
        share as usize
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = 10u64.pow(self.decimals);
        let (whole, fraction) = (self.digits / scale, self.digits % scale);
        match self.decimals as usize {
            0 => write!(f, "{whole}%"),
            decimals => write!(f, "{whole}.{fraction:0decimals$}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_budgets_parse_exactly() {
        let count = |text: &str, attributes| text.parse::<LocalBudget>().unwrap().count(attributes);
        assert_eq!((count("28", 5), count(" 1% ", 2879), count("1%", 3703), count("1%", 99)), (28, 28, 37, 1));
        assert_eq!((count("29%", 100), count("0.5%", 1000), count("100%", 7), count("0.000000001%", 7)), (29, 5, 7, 1));
        for bad in ["", "-1", "1.5", "0%", "100.1%", "%", "1e3", "nan%", "4294967296", "1%%", "0.0000000001%", "+1%"] {
            assert_eq!(bad.parse::<LocalBudget>(), Err(BudgetError::Local(bad.to_owned())), "{bad}");
        }
        for text in ["28", "1%", "0.05%", "100%"] {
            assert_eq!(text.parse::<LocalBudget>().unwrap().to_string(), text);
        }
    }
}
