//! The end of `train`, as tables for people and as JSON for programs.

use nodeproof::results::{BudgetFields, SplitFields};
use nodeproof::{Engine, Graph, Model};
use nodeproof_report::tally::{Figures, Parts};
use nodeproof_report::text;
use serde::Serialize;

use super::Job;
use super::evaluate::{AverageRadius, Evaluation};
use super::plan::{Plan, split_in_words};
use crate::run::Time;
use crate::terminal;

/// What to say of a mean that may be too small.
const CUT_OFF: &str = "some nodes withstand all of --max-budget, and may withstand more";

/// How a run went.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Run {
    pub(super) steps: usize,
    /// Steps that an earlier run had taken.
    pub(super) resumed: usize,
    /// Time of training.
    #[serde(flatten)]
    pub(super) time: Time,
}

/// A run that came to its end.
pub(in crate::commands) struct Finished {
    pub(super) run: Run,
    pub(in crate::commands) model: Model,
    /// What it is worth, if that was looked at.
    pub(super) evaluation: Option<Evaluation>,
}

/// What to say where it was not.
const NOT_EVALUATED: &str = "none (--no-evaluation); nodeproof certify says what the network is worth";

/// Prints the summary.
///
/// # Errors
/// Whatever stdout says.
pub(super) fn print(graph: &Graph, job: &Job, finished: &[Finished], as_json: bool) -> anyhow::Result<()> {
    let text = match (&job.plans[..], finished) {
        (plans, _) if as_json => json(graph, plans, finished)?,
        _ if job.quiet => return Ok(()),
        ([plan], [finished]) => one_in_words(graph, plan, finished),
        (plans, _) => many_in_words(graph, plans, finished),
    };
    terminal::print(&text)?;
    Ok(())
}

#[derive(Serialize)]
struct RunJson<'a> {
    seed: u64,
    split: &'a SplitFields,
    #[serde(flatten)]
    run: Run,
    /// Whether accuracies and verdicts were looked at.
    evaluated: bool,
    #[serde(flatten)]
    parts: Option<Parts<Figures>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    average_radius: Option<AverageRadius>,
    out: String,
}

fn json(graph: &Graph, plans: &[Plan], finished: &[Finished]) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Json<'a> {
        nodeproof: &'static str,
        graph: String,
        method: Option<&'a str>,
        architecture: Option<&'a str>,
        budget: Option<BudgetFields>,
        runs: Vec<RunJson<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        over_runs: Vec<OverRuns>,
    }
    let runs = plans.iter().zip(finished).map(|(plan, finished)| RunJson {
        seed: plan.settings.seed,
        split: &plan.split_fields,
        run: finished.run,
        evaluated: finished.evaluation.is_some(),
        parts: finished.evaluation.as_ref().map(|evaluation| evaluation.summary.figures()),
        average_radius: finished.evaluation.as_ref().and_then(|evaluation| evaluation.radius),
        out: plan.files.out.display().to_string(),
    });
    let over_runs = if plans.len() > 1 { over_runs(finished) } else { Vec::new() };
    let json = Json {
        nodeproof: env!("CARGO_PKG_VERSION"),
        graph: graph.fingerprint(),
        method: plans.first().map(|plan| plan.settings.method.name()),
        architecture: plans.first().map(|plan| plan.settings.architecture.name()),
        budget: plans.first().map(|plan| BudgetFields::new(&plan.settings.budget, graph.attribute_count())),
        runs: runs.collect(),
        over_runs,
    };
    Ok(serde_json::to_string_pretty(&json)? + "\n")
}

fn one_in_words(graph: &Graph, plan: &Plan, finished: &Finished) -> String {
    let Finished { run, evaluation, .. } = finished;
    let method = format!("{}, {}, seed {}", plan.settings.method, steps_in_words(run), plan.settings.seed);
    let mut facts = vec![
        ("architecture", plan.settings.architecture.to_string()),
        ("method", method),
        ("budget", graph.budget_in_words(&plan.settings.budget)),
        ("split", split_in_words(&plan.split_fields)),
    ];
    facts.extend(evaluation_in_words(std::slice::from_ref(finished)));
    let radius = evaluation.as_ref().and_then(|evaluation| evaluation.radius);
    facts.extend(radius.map(|radius| ("average radius", radius_in_words(&radius))));
    facts.push(("time", time_in_words(run.time)));
    facts.push(("written", written_in_words(std::slice::from_ref(plan))));
    let table = evaluation.as_ref().map(|evaluation| evaluation.summary.table() + "\n").unwrap_or_default();
    table + &terminal::facts(&facts)
}

/// What the verdicts are by, if there are any.
fn evaluation_in_words(finished: &[Finished]) -> Option<(&'static str, String)> {
    let first = finished.first()?;
    let Some(evaluation) = &first.evaluation else { return Some(("evaluation", NOT_EVALUATED.to_owned())) };
    let undecided = finished.iter().flat_map(|finished| &finished.evaluation);
    let undecided = undecided.map(|evaluation| evaluation.summary.all().undecided).sum();
    Some(("engine", engine_in_words(evaluation.engine, undecided)))
}

/// What the verdicts are by.
fn engine_in_words(engine: Engine, undecided: usize) -> String {
    let more = if undecided > 0 { "; nodeproof certify may decide more nodes" } else { "" };
    format!("{}{more}", engine.name())
}

fn steps_in_words(run: &Run) -> String {
    let steps = text::counted(run.steps, "step");
    if run.resumed > 0 { format!("{steps} ({} of them before)", run.resumed) } else { steps }
}

fn time_in_words(time: Time) -> String {
    format!("{} of training", time.in_words())
}

fn radius_in_words(radius: &AverageRadius) -> String {
    let mut words = format!("{:.2} over all nodes", radius.all);
    for (group, mean) in [("labelled", radius.labelled), ("unlabelled", radius.unlabelled)] {
        words.extend(mean.map(|mean| format!(", {mean:.2} {group}")));
    }
    words += " (engine fast)";
    if radius.cut_off {
        words += "; ";
        words += CUT_OFF;
    }
    words
}

fn written_in_words(plans: &[Plan]) -> String {
    let name = terminal::shown;
    let files: Vec<_> = match plans {
        [] => Vec::new(),
        [plan] => plan.files.results().map(name).collect(),
        [first, .., last] => {
            let both = first.files.results().zip(last.files.results());
            both.map(|(first, last)| format!("{} to {}", name(first), name(last))).collect()
        }
    };
    files.join(", ")
}

fn many_in_words(graph: &Graph, plans: &[Plan], finished: &[Finished]) -> String {
    let shown: Vec<_> = over_runs(finished).into_iter().filter(|figure| figure.runs > 0).collect();
    let mut header = vec!["\nsplit".to_owned(), "\nseed".to_owned(), "\nsteps".to_owned()];
    header.extend(shown.iter().map(|figure| figure.figure.heading().to_owned()));
    let row = |(number, (plan, finished)): (usize, (&Plan, &Finished))| {
        let seed = plan.split_fields.seed.unwrap_or(plan.settings.seed);
        let mut row = vec![number.to_string(), seed.to_string(), finished.run.steps.to_string()];
        let cell = |figure: &OverRuns| figure.figure.of(finished).map_or("–".into(), |v| figure.figure.in_words(v));
        row.extend(shown.iter().map(cell));
        row
    };
    let mut rows: Vec<Vec<String>> = plans.iter().zip(finished).enumerate().map(row).collect();
    let total = |name: &str, value: &dyn Fn(&OverRuns) -> String| {
        let cells = shown.iter().map(value);
        [name.to_owned(), String::new(), String::new()].into_iter().chain(cells).collect::<Vec<_>>()
    };
    let mut facts = Vec::new();
    if !shown.is_empty() {
        rows.push(total("mean", &|figure| figure.figure.in_words(figure.mean)));
        rows.push(total("±", &|figure| figure.standard_deviation.map_or("–".into(), |v| figure.figure.in_words(v))));
        facts.push(("±", "sample standard deviation over the splits".to_owned()));
    }
    let alignment = "lrr".to_owned() + &"r".repeat(shown.len());
    let table = text::table(&alignment, Some(header), rows);

    if let Some(plan) = plans.first() {
        facts.push(("architecture", plan.settings.architecture.to_string()));
        facts.push(("method", plan.settings.method.to_string()));
        facts.push(("budget", graph.budget_in_words(&plan.settings.budget)));
    }
    facts.extend(evaluation_in_words(finished));
    let radii = finished.iter().flat_map(|finished| &finished.evaluation).filter_map(|evaluation| evaluation.radius);
    if radii.into_iter().any(|radius| radius.cut_off) {
        facts.push(("average radius", CUT_OFF.to_owned()));
    }
    let sum = |time: fn(&Time) -> f64| finished.iter().map(|finished| time(&finished.run.time)).sum();
    let time = Time { seconds: sum(|time| time.seconds), cpu_seconds: sum(|time| time.cpu_seconds) };
    facts.push(("time", time_in_words(time)));
    facts.push(("written", written_in_words(plans)));
    format!("{table}\n{}", terminal::facts(&facts))
}

/// A figure that every run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Figure {
    AccuracyLabelled,
    AccuracyUnlabelled,
    RobustShare,
    RobustShareLabelled,
    RobustShareUnlabelled,
    AverageRadius,
}

impl Figure {
    const ALL: [Self; 6] = [
        Self::AccuracyLabelled,
        Self::AccuracyUnlabelled,
        Self::RobustShare,
        Self::RobustShareLabelled,
        Self::RobustShareUnlabelled,
        Self::AverageRadius,
    ];

    fn of(self, finished: &Finished) -> Option<f64> {
        let Evaluation { summary, radius, .. } = finished.evaluation.as_ref()?;
        let parts = summary.figures();
        match self {
            Self::AccuracyLabelled => parts.labelled?.accuracy,
            Self::AccuracyUnlabelled => parts.unlabelled?.accuracy,
            Self::RobustShare => parts.all.robust_share,
            Self::RobustShareLabelled => parts.labelled?.robust_share,
            Self::RobustShareUnlabelled => parts.unlabelled?.robust_share,
            Self::AverageRadius => radius.map(|radius| radius.all),
        }
    }

    /// Two lines.
    fn heading(self) -> &'static str {
        match self {
            Self::AccuracyLabelled => "accuracy\nlabelled",
            Self::AccuracyUnlabelled => "accuracy\nunlabelled",
            Self::RobustShare => "robust\nall",
            Self::RobustShareLabelled => "robust\nlabelled",
            Self::RobustShareUnlabelled => "robust\nunlabelled",
            Self::AverageRadius => "average\nQ",
        }
    }

    fn in_words(self, value: f64) -> String {
        if self == Self::AverageRadius { format!("{value:.2}") } else { format!("{:.1}%", 100.0 * value) }
    }
}

/// A figure over all runs that have it.
#[derive(Debug, Serialize)]
struct OverRuns {
    figure: Figure,
    runs: usize,
    mean: f64,
    /// That of a sample; none for fewer than two runs.
    standard_deviation: Option<f64>,
}

fn over_runs(finished: &[Finished]) -> Vec<OverRuns> {
    let over = |figure: Figure| {
        let values: Vec<f64> = finished.iter().filter_map(|finished| figure.of(finished)).collect();
        let (mean, standard_deviation) = mean_and_deviation(&values)?;
        Some(OverRuns { figure, runs: values.len(), mean, standard_deviation })
    };
    Figure::ALL.into_iter().filter_map(over).collect()
}

fn mean_and_deviation(values: &[f64]) -> Option<(f64, Option<f64>)> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (!values.is_empty()).then(|| (mean, (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_those_of_a_sample() {
        assert_eq!(mean_and_deviation(&[]), None);
        assert_eq!(mean_and_deviation(&[2.0]), Some((2.0, None)));
        assert_eq!(mean_and_deviation(&[1.0, 3.0]), Some((2.0, Some(2f64.sqrt()))));
    }
}
