//! From options as they are typed to options of the library.

use anyhow::{anyhow, bail};
use nodeproof::train::{Method, TrainError, TrainOptions};

use crate::cli::OptionArguments;

/// The options of `method`, those that were given in place of its defaults. The budget is yet to be set.
///
/// # Errors
/// If an option was given that the method has no use for.
pub(super) fn chosen(method: Method, given: &OptionArguments) -> anyhow::Result<TrainOptions> {
    refuse_unused(method, given)?;
    let mut options = TrainOptions::new(method);
    if let Some(hidden) = &given.hidden {
        options.hidden.clone_from(&hidden.0);
    }
    set(&mut options.steps, given.steps);
    set(&mut options.labelled_steps, given.labelled_steps);
    set(&mut options.batch, given.batch.map(|batch| batch.0));
    set(&mut options.learning_rate, given.learning_rate);
    set(&mut options.schedule, given.schedule.map(Into::into));
    options.weight_decay = given.weight_decay;
    set(&mut options.dropout, given.dropout);
    options.attribute_dropout = given.attribute_dropout;
    set(&mut options.cross_entropy_weight, given.cross_entropy_weight);
    options.robust_weight = given.robust_weight;
    set(&mut options.labelled_margin, given.labelled_margin);
    set(&mut options.unlabelled_margin, given.unlabelled_margin);
    set(&mut options.warm_up, given.warm_up);
    set(&mut options.saturation, given.saturation.map(|saturation| saturation.0));
    set(&mut options.clip, given.clip.map(|clip| clip.0));
    set(&mut options.patience, given.patience.map(|patience| patience.0));
    options.propagation = given.propagation.into();
    options.seed = given.seed;
    Ok(options)
}

fn set<T>(option: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *option = given;
    }
}

fn refuse_unused(method: Method, given: &OptionArguments) -> anyhow::Result<()> {
    let refuse = |option: &str, given: bool, used: fn(Method) -> bool| {
        if given && !used(method) {
            let names: Vec<_> = Method::ALL.into_iter().filter(|&method| used(method)).map(Method::name).collect();
            bail!("{option}: method {method} has no use for it; leave it out, or choose {}", one_of(&names));
        }
        Ok(())
    };
    refuse("--batch", given.batch.is_some(), Method::is_robust)?;
    refuse("--attribute-dropout", given.attribute_dropout.is_some(), Method::is_robust)?;
    refuse("--robust-weight", given.robust_weight.is_some(), Method::is_robust)?;
    refuse("--warm-up", given.warm_up.is_some(), Method::is_robust)?;
    refuse("--saturation", given.saturation.is_some(), Method::has_two_phases)?;
    refuse("--labelled-margin", given.labelled_margin.is_some(), Method::has_hinge)?;
    refuse("--unlabelled-margin", given.unlabelled_margin.is_some(), Method::has_two_phases)?;
    refuse("--labelled-steps", given.labelled_steps.is_some(), Method::has_two_phases)
}

/// `a, b or c`.
fn one_of(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [name] => (*name).to_owned(),
        [names @ .., last] => format!("{} or {last}", names.join(", ")),
    }
}

/// The error, with options called as they are typed.
pub(super) fn in_words(error: TrainError) -> anyhow::Error {
    match error {
        TrainError::Option { option, value, remedy } if !option.contains(' ') => {
            anyhow!("--{} is {value}; {remedy}", option.replace('_', "-"))
        }
        error => error.into(),
    }
}
