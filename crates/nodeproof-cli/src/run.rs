//! How long a run took.

use std::time::Instant;

use cpu_time::ProcessTime;
use nodeproof_report::text::duration;
use serde::Serialize;

/// A run that is going on.
#[derive(Debug)]
pub(crate) struct Clock {
    wall: Instant,
    cpu: ProcessTime,
}

impl Clock {
    /// Starts now.
    pub(crate) fn start() -> Self {
        Self { wall: Instant::now(), cpu: ProcessTime::now() }
    }

    /// The time until now.
    pub(crate) fn time(&self) -> Time {
        Time { seconds: self.wall.elapsed().as_secs_f64(), cpu_seconds: self.cpu.elapsed().as_secs_f64() }
    }
}

/// How long something took.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Time {
    /// Wall time.
    pub(crate) seconds: f64,
    /// CPU time, user and system.
    pub(crate) cpu_seconds: f64,
}

impl Time {
    /// The time in words.
    pub(crate) fn in_words(self) -> String {
        format!("{} ({} CPU)", duration(self.seconds), duration(self.cpu_seconds))
    }

    /// The time and the rate in words, for `nodes` nodes.
    pub(crate) fn of_nodes(self, nodes: usize) -> String {
        let rate = match nodes as f64 / self.seconds.max(1e-9) {
            _ if nodes == 0 => return self.in_words(),
            rate if rate < 10.0 => format!("{rate:.1}"),
            rate => format!("{rate:.0}"),
        };
        format!("{}, {rate} nodes/s", self.in_words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let time = Time { seconds: 0.5, cpu_seconds: 130.0 };
        assert_eq!(time.of_nodes(1000), "0.50 s (2.2 min CPU), 2000 nodes/s");
        assert_eq!(time.of_nodes(1), "0.50 s (2.2 min CPU), 2.0 nodes/s");
        assert_eq!(time.of_nodes(0), "0.50 s (2.2 min CPU)");
    }
}
