//! From the options of an engine to settings, and what may settle nodes that stay undecided.

use std::time::Duration;

use nodeproof::{Budget, CertifySettings, Engine};

use crate::cli::{EngineArguments, ModelArguments};

/// The settings that the options ask for, without a limit for all nodes together and with as many threads as cores.
pub(crate) fn settings(budget: Budget, model: &ModelArguments, engine: &EngineArguments) -> CertifySettings {
    let mut settings = CertifySettings::new(budget);
    settings.target_class = model.class.into();
    settings.engine = engine.engine.into();
    settings.time_limit = engine.limit.time_limit.0;
    settings
}

/// What may settle nodes that these settings leave undecided.
pub(crate) fn remedy(settings: &CertifySettings) -> Option<String> {
    if settings.engine != Engine::Complete {
        return Some("--engine complete".to_owned());
    }
    let limits = [("--time-limit", settings.time_limit), ("--total-time-limit", settings.total_time_limit)];
    let now = |limit: Duration| limit.as_secs_f64();
    let set = limits.iter().filter_map(|&(option, limit)| Some(format!("{option} (now {} s)", now(limit?))));
    let words: Vec<_> = set.collect();
    (!words.is_empty()).then(|| format!("a longer {}", words.join(" or ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_is_a_stronger_engine_or_more_time() {
        let mut settings = CertifySettings::default();
        settings.engine = Engine::Tight;
        assert_eq!(remedy(&settings).as_deref(), Some("--engine complete"));
        settings.engine = Engine::Complete;
        assert_eq!(remedy(&settings), None);
        settings.time_limit = Some(Duration::from_millis(500));
        assert_eq!(remedy(&settings).as_deref(), Some("a longer --time-limit (now 0.5 s)"));
        settings.total_time_limit = Some(Duration::from_secs(60));
        let both = "a longer --time-limit (now 0.5 s) or --total-time-limit (now 60 s)";
        assert_eq!(remedy(&settings).as_deref(), Some(both));
    }
}
