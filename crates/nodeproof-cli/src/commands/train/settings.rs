//! From options as they are typed to settings of training.

use nodeproof::TrainSettings;

use crate::cli::{OptionArguments, TrainArguments};
use crate::words;

/// The settings of the method, with the options that were given in place of its defaults. The budget is yet to be set.
///
/// # Errors
/// If an option was given that the method has no use for.
pub(super) fn read(arguments: &TrainArguments) -> anyhow::Result<TrainSettings> {
    let given = &arguments.options;
    let mut settings = TrainSettings::new(arguments.method.into());
    for option in names(given) {
        settings.method.check_use(option).map_err(words::settings)?;
    }
    settings.architecture = given.architecture.into();
    settings.hidden = given.hidden.as_ref().map(|hidden| hidden.0.clone());
    set(&mut settings.steps, given.steps);
    set(&mut settings.labelled_steps, given.labelled_steps);
    set(&mut settings.batch, given.batch.map(|batch| batch.0));
    set(&mut settings.labelled_batch, given.labelled_batch.map(|batch| batch.0));
    set(&mut settings.learning_rate, given.learning_rate);
    set(&mut settings.schedule, given.schedule.map(Into::into));
    settings.weight_decay = given.weight_decay;
    settings.dropout = given.dropout;
    settings.attribute_dropout = given.attribute_dropout;
    set(&mut settings.cross_entropy_weight, given.cross_entropy_weight);
    settings.robust_weight = given.robust_weight;
    settings.worst_case = given.worst_case.map(Into::into);
    set(&mut settings.labelled_margin, given.labelled_margin);
    set(&mut settings.unlabelled_margin, given.unlabelled_margin);
    set(&mut settings.warm_up, given.warm_up);
    set(&mut settings.saturation, given.saturation.map(|saturation| saturation.0));
    set(&mut settings.clip, given.clip.map(|clip| clip.0));
    set(&mut settings.patience, given.patience.map(|patience| patience.0));
    settings.propagation = given.propagation.map(Into::into);
    settings.seed = given.seed;
    Ok(settings)
}

fn set<T>(setting: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *setting = given;
    }
}

/// The options that were given and that not every method has a use for.
fn names(given: &OptionArguments) -> impl Iterator<Item = &'static str> {
    let options = [
        ("batch", given.batch.is_some()),
        ("attribute_dropout", given.attribute_dropout.is_some()),
        ("robust_weight", given.robust_weight.is_some()),
        ("worst_case", given.worst_case.is_some()),
        ("warm_up", given.warm_up.is_some()),
        ("saturation", given.saturation.is_some()),
        ("labelled_margin", given.labelled_margin.is_some()),
        ("unlabelled_margin", given.unlabelled_margin.is_some()),
        ("labelled_steps", given.labelled_steps.is_some()),
    ];
    options.into_iter().filter(|(_, there)| *there).map(|(option, _)| option)
}
