//! From the options of an engine to settings, and what may settle nodes that stay undecided.

use nodeproof::{Budget, CertifySettings, Obstacle};
use nodeproof_report::story::{self, Options};

use crate::cli::{AskedArguments, EngineArguments, ModelArguments};
use crate::words;

/// How options are written here.
const OPTIONS: Options = Options { name: words::flag, strongest: "--engine complete" };

/// The settings that the options ask for, without a limit for all nodes together and with as many threads as cores.
pub(crate) fn settings(budget: Budget, model: &ModelArguments, engine: &EngineArguments) -> CertifySettings {
    let mut settings = CertifySettings::new(budget);
    settings.target_class = model.class.into();
    settings.engine = engine.engine.into();
    settings.time_limit = engine.limit.time_limit.0;
    settings.memory_limit = engine.memory_limit;
    settings
}

/// Has the settings ask for margins above a number, in an arithmetic.
///
/// # Errors
/// If no margin can exceed that number.
pub(crate) fn ask(settings: &mut CertifySettings, asked: &AskedArguments) -> anyhow::Result<()> {
    (settings.margin, settings.arithmetic) = (asked.margin, asked.arithmetic.into());
    settings.check_margin().map_err(words::settings)
}

/// What may settle nodes that these obstacles, or likely ones if none is known, kept from being decided.
pub(crate) fn remedy(settings: &CertifySettings, obstacles: impl IntoIterator<Item = Obstacle>) -> Option<String> {
    story::remedy(settings, obstacles, OPTIONS)
}
