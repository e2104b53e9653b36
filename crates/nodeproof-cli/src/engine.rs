//! From the engine options to a certifier, and to words.

use nodeproof::{Certifier, Engine};

use crate::cli::EngineArguments;
use crate::values::{Limit, Seconds};

/// How hard to try.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    engine: Engine,
    time_limit: Limit<Seconds>,
    total_time_limit: Limit<Seconds>,
}

impl Effort {
    /// What the options ask for, without a limit for all nodes together.
    pub(crate) fn new(arguments: &EngineArguments) -> Self {
        Self { engine: arguments.engine.into(), time_limit: arguments.limit.time_limit, total_time_limit: Limit(None) }
    }

    /// The same with a limit for all nodes together.
    pub(crate) fn within(mut self, total_time_limit: Limit<Seconds>) -> Self {
        self.total_time_limit = total_time_limit;
        self
    }

    /// The strongest engine to try.
    pub(crate) fn engine(self) -> Engine {
        self.engine
    }

    /// `certifier`, trying this hard.
    pub(crate) fn apply<'a>(self, certifier: Certifier<'a>) -> Certifier<'a> {
        let mut certifier = certifier.engine(self.engine);
        if let Some(limit) = self.time_limit.duration() {
            certifier = certifier.time_limit(limit);
        }
        if let Some(limit) = self.total_time_limit.duration() {
            certifier = certifier.total_time_limit(limit);
        }
        certifier
    }

    /// Whether there may be no time for any engine but the fast one.
    pub(crate) fn may_run_out_at_once(self) -> bool {
        self.total_time_limit.0.is_some() || self.time_limit.duration().is_some_and(|limit| limit.is_zero())
    }

    /// What may settle nodes that this leaves undecided.
    pub(crate) fn remedy(self) -> Option<String> {
        if self.engine != Engine::Complete {
            return Some("--engine complete".to_owned());
        }
        let limits = [("--time-limit", self.time_limit), ("--total-time-limit", self.total_time_limit)];
        let set = limits.iter().filter(|(_, limit)| limit.0.is_some());
        let words: Vec<_> = set.map(|(option, limit)| format!("{option} (now {limit})")).collect();
        (!words.is_empty()).then(|| format!("a longer {}", words.join(" or ")))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use clap::Parser;

    use super::*;
    use crate::values::time_limit;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        engine: EngineArguments,
    }

    #[test]
    fn the_remedy_is_a_stronger_engine_or_more_time() {
        let effort = |line: &str| {
            let words = std::iter::once("test").chain(line.split_whitespace());
            Effort::new(&Only::parse_from(words).engine)
        };
        assert_eq!(effort("--engine tight").remedy().unwrap(), "--engine complete");
        assert_eq!(effort("").remedy().unwrap(), "a longer --time-limit (now 10 s)");
        assert_eq!(effort("--time-limit none").remedy(), None);
        let both = effort("--time-limit 0.5").within(time_limit("60").unwrap());
        assert_eq!(both.remedy().unwrap(), "a longer --time-limit (now 0.5 s) or --total-time-limit (now 60 s)");
    }
}
