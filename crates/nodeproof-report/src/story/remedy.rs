//! What may decide nodes that were left undecided.

use nodeproof_problem::{CertifySettings, Engine, Obstacle};

/// How options are written: for the command line, or for Python.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// An option of the library, such as `time_limit`, as it is typed.
    pub name: fn(&str) -> String,
    /// What asks for the strongest engine.
    pub strongest: &'static str,
}

/// What may decide nodes that `obstacles` kept these settings from deciding, what is likely where none is known; `None` if
/// nothing would.
pub fn remedy(
    settings: &CertifySettings,
    obstacles: impl IntoIterator<Item = Obstacle>,
    options: Options,
) -> Option<String> {
    let mut obstacles: Vec<Obstacle> = obstacles.into_iter().collect();
    obstacles.sort_unstable();
    obstacles.dedup();
    if obstacles.is_empty() {
        let likely: &[_] =
            if settings.engine == Engine::Complete { &[Obstacle::Time, Obstacle::Memory] } else { &[Obstacle::Engine] };
        obstacles.extend(likely);
    }
    let words: Vec<String> = obstacles.into_iter().filter_map(|obstacle| one(settings, obstacle, options)).collect();
    (!words.is_empty()).then(|| words.join(" or "))
}

fn one(settings: &CertifySettings, obstacle: Obstacle, options: Options) -> Option<String> {
    match obstacle {
        Obstacle::Engine => (settings.engine != Engine::Complete).then(|| options.strongest.to_owned()),
        Obstacle::Time => {
            let limits = [("time_limit", settings.time_limit), ("total_time_limit", settings.total_time_limit)];
            let set = limits.into_iter().filter_map(|(name, limit)| Some(((options.name)(name), limit?.as_secs_f64())));
            let words: Vec<String> = set.map(|(name, seconds)| format!("{name} (now {seconds} s)")).collect();
            (!words.is_empty()).then(|| format!("a longer {}", words.join(" or ")))
        }
        Obstacle::Memory => {
            let (name, now) = ((options.name)("memory_limit"), bytes_in_words(settings.memory_limit));
            Some(format!("a larger {name} (now {now})"))
        }
        _ => None,
    }
}

/// A number of bytes as it is typed: `512M`.
fn bytes_in_words(bytes: usize) -> String {
    let units = ["", "K", "M", "G", "T"];
    let power = (0..units.len()).rev().find(|&power| bytes.is_multiple_of(1 << (10 * power))).unwrap_or(0);
    if bytes == 0 { "0".to_owned() } else { format!("{}{}", bytes >> (10 * power), units[power]) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_obstacle_has_its_remedy() {
        let options = Options { name: |name| format!("--{}", name.replace('_', "-")), strongest: "--engine complete" };
        let mut settings = CertifySettings::default();
        let words = |settings: &CertifySettings, obstacles: &[Obstacle]| {
            remedy(settings, obstacles.iter().copied(), options).unwrap_or_default()
        };
        settings.engine = Engine::Tight;
        assert_eq!(words(&settings, &[Obstacle::Engine]), "--engine complete");
        assert_eq!(words(&settings, &[]), "--engine complete", "likely");
        settings.engine = Engine::Complete;
        assert_eq!(words(&settings, &[]), "a larger --memory-limit (now 1G)", "time has no limit");
        settings.time_limit = Some(Duration::from_millis(500));
        assert_eq!(words(&settings, &[Obstacle::Time]), "a longer --time-limit (now 0.5 s)");
        let likely = "a longer --time-limit (now 0.5 s) or a larger --memory-limit (now 1G)";
        assert_eq!(words(&settings, &[]), likely);
        assert_eq!(words(&settings, &[Obstacle::Overflow]), "", "nothing helps");
        settings.total_time_limit = Some(Duration::from_secs(60));
        let both = "a longer --time-limit (now 0.5 s) or --total-time-limit (now 60 s)";
        assert_eq!(words(&settings, &[Obstacle::Time, Obstacle::Time]), both);
        let all = format!("{both} or a larger --memory-limit (now 1G)");
        assert_eq!(words(&settings, &[Obstacle::Memory, Obstacle::Time]), all);
    }

    #[test]
    fn bytes_are_told_as_they_are_typed() {
        assert_eq!(
            [0, 1000, 1 << 10, 512 << 20, 3 << 29, 1 << 40].map(bytes_in_words),
            ["0", "1000", "1K", "512M", "1536M", "1T"]
        );
    }
}
