//! From the options of an engine to settings, and what may settle nodes that stay undecided.

use std::time::Duration;

use nodeproof::{Budget, CertifySettings, Engine, Model};

use crate::cli::{EngineArguments, ModelArguments};

/// The settings that the options ask for, without a limit for all nodes together and with as many threads as cores.
pub(crate) fn settings(budget: Budget, model: &ModelArguments, engine: &EngineArguments) -> CertifySettings {
    let mut settings = CertifySettings::new(budget);
    settings.target_class = model.class.into();
    settings.engine = engine.engine.into();
    settings.time_limit = engine.limit.time_limit.0;
    settings
}

/// Whether there may be no time for any engine but the `fast` one.
pub(crate) fn may_have_no_time(settings: &CertifySettings) -> bool {
    settings.total_time_limit.is_some() || settings.time_limit.is_some_and(|limit| limit.is_zero())
}

/// What may settle nodes of a network that these settings leave undecided.
pub(crate) fn remedy(model: &Model, settings: &CertifySettings) -> Option<String> {
    if !model.is_plain() {
        return None;
    }
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
    #![allow(clippy::unwrap_used)]

    use nodeproof::{Activation, Layer, Matrix, Propagation, Source, Term};

    use super::*;

    #[test]
    fn the_remedy_is_a_stronger_engine_or_more_time() {
        let weight = Matrix::zeros(1, 2);
        let plain = Model::gcn(vec![(weight.clone(), vec![0.0; 2])], Propagation::SymmetricGcn).unwrap();
        let mut settings = CertifySettings::default();
        settings.engine = Engine::Tight;
        assert_eq!(remedy(&plain, &settings).as_deref(), Some("--engine complete"));
        settings.engine = Engine::Complete;
        assert_eq!(remedy(&plain, &settings), None);
        settings.time_limit = Some(Duration::from_millis(500));
        assert_eq!(remedy(&plain, &settings).as_deref(), Some("a longer --time-limit (now 0.5 s)"));
        settings.total_time_limit = Some(Duration::from_secs(60));
        let both = "a longer --time-limit (now 0.5 s) or --total-time-limit (now 60 s)";
        assert_eq!(remedy(&plain, &settings).as_deref(), Some(both));
        let terms = [0, 1].map(|propagation| Term::new(Source::Attributes, propagation, weight.clone()));
        let layer = Layer::new(terms.to_vec(), vec![0.0; 2], Activation::None);
        let sage = Model::new(1, vec![Propagation::RowMean, Propagation::Identity], vec![layer]).unwrap();
        assert_eq!(remedy(&sage, &settings), None, "no engine goes further than `fast`");
    }
}
