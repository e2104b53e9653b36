//! Errors of the library in the words of the command line: options are called as they are typed.

use anyhow::anyhow;
use nodeproof::files::FileError;
use nodeproof::train::TrainError;
use nodeproof::{AttributeKind, CertifyError, ModelError, SettingsError};

/// An option of the library as it is typed: `time_limit` is `--time-limit`.
pub(crate) fn flag(option: &str) -> String {
    format!("--{}", option.replace('_', "-"))
}

/// Settings that make no sense.
pub(crate) fn settings(error: SettingsError) -> anyhow::Error {
    let text = error.in_words(flag);
    let remedy = match error {
        SettingsError::NoLabels => "--class predicted",
        SettingsError::WithoutLabel { .. } => "--nodes, or --class predicted",
        SettingsError::Scan { .. } => "add --engine fast, or leave out --scan",
        SettingsError::UnseenClass { .. } | SettingsError::NothingToLearn => "--split, --train, --train-per-class",
        _ => return anyhow!(text),
    };
    anyhow!("{text} ({remedy})")
}

/// Nodes that cannot be certified.
pub(crate) fn certifying(error: CertifyError) -> anyhow::Error {
    match error {
        CertifyError::Settings(error) => settings(error),
        CertifyError::Threads { .. } => anyhow!("{error} (--threads)"),
        CertifyError::Model(error) => model_fit(error),
        CertifyError::Edges(error) => anyhow!(error.in_words(flag)),
        error => error.into(),
    }
}

/// A model that does not fit its graph.
fn model_fit(error: ModelError) -> anyhow::Error {
    match error {
        ModelError::Kind { model: AttributeKind::NormalisedRows, .. } => anyhow!("{error} (--normalise-rows)"),
        ModelError::Kind { model: AttributeKind::RealValues, .. } => anyhow!("{error} (--real-values)"),
        ModelError::Kind { graph: AttributeKind::NormalisedRows, .. } => anyhow!("{error} (--normalise-rows)"),
        ModelError::Kind { .. } => anyhow!("{error} (--real-values)"),
        error => error.into(),
    }
}

/// A network that cannot be trained.
pub(crate) fn training(error: TrainError) -> anyhow::Error {
    match error {
        TrainError::Settings(error) => settings(error),
        TrainError::Diverged { .. } => anyhow!("{error} (--learning-rate)"),
        TrainError::Model(error) => model_fit(error),
        error => error.into(),
    }
}

/// A file that cannot be written, or not be resumed.
pub(crate) fn file(error: FileError) -> anyhow::Error {
    let text = error.to_string();
    match error {
        FileError::Unfinished { .. } => anyhow!("{text} (--resume)"),
        _ => anyhow!(text.replace("without resuming", "without --resume")),
    }
}

#[cfg(test)]
mod tests {
    use nodeproof::Engine;
    use nodeproof::settings::time_limit;

    use super::*;

    #[test]
    fn options_are_called_as_they_are_typed() {
        let error = time_limit("total_time_limit", -1.0).map(drop).unwrap_err();
        assert_eq!(settings(error).to_string(), "--total-time-limit is -1; give a number of seconds such as 10");
        let scan = settings(SettingsError::Scan { engine: Engine::Tight }).to_string();
        assert!(scan.ends_with("(add --engine fast, or leave out --scan)"), "{scan}");
        let other = FileError::OtherRun { path: "a".into(), differences: "nodes: 1 there, 2 now".to_owned() };
        assert!(file(other).to_string().ends_with("or start again without --resume"));
    }
}
