//! Looks at a network in training, for the progress shown and for the log.

use nodeproof::train::{Phase, Sample, StepRecord, accuracy};
use nodeproof::{Graph, Model, NodeId, Part};

use super::plan::Plan;
use crate::progress::{GroupSight, Sight, TrainingProgress};

/// Nodes that are certified where the method itself says nothing of margins.
const SAMPLED: usize = 100;
/// Weight of the past in what is shown of batches.
const SMOOTHING: f64 = 0.9;

/// Keeps what is known of a run up to date, and shows it.
pub(super) struct Monitor<'a> {
    graph: &'a Graph,
    labelled: Vec<NodeId>,
    unlabelled: Vec<NodeId>,
    two_phases: bool,
    /// Whether it looks at all nodes.
    looks: bool,
    /// For methods without worst-case margins.
    sample: Option<Sample<'a>>,
    progress: TrainingProgress,
    /// Which of the splits, where there are several.
    run: String,
    sight: Sight,
}

impl<'a> Monitor<'a> {
    /// Shows `progress`; with a number of threads it looks at all nodes now and then.
    pub(super) fn new(
        graph: &'a Graph,
        plan: &'a Plan,
        threads: Option<usize>,
        run: String,
        progress: TrainingProgress,
    ) -> Self {
        let method = plan.settings.method;
        let sampled = threads.filter(|_| !method.is_robust() && !progress.is_hidden());
        Self {
            graph,
            labelled: plan.split.part(Part::Train),
            unlabelled: plan.split.part(Part::Unlabelled),
            two_phases: method.has_two_phases(),
            looks: threads.is_some(),
            sample: sampled
                .map(|threads| Sample::of_all(graph, &plan.split, &plan.settings.budget, SAMPLED).threads(threads)),
            progress,
            run,
            sight: Sight::default(),
        }
    }

    /// Accuracy of `model` on labelled and on unlabelled nodes, if it looks at them.
    pub(super) fn accuracies(&self, model: &Model) -> anyhow::Result<[Option<f64>; 2]> {
        if !self.looks {
            return Ok([None; 2]);
        }
        let of = |nodes: &[NodeId]| accuracy(self.graph, model, nodes);
        Ok([of(&self.labelled)?, of(&self.unlabelled)?])
    }

    /// Shows what a step came to, which led to `model`.
    pub(super) fn step(&mut self, step: &StepRecord, model: &Model) -> anyhow::Result<()> {
        if self.progress.is_hidden() {
            return Ok(());
        }
        self.sight.place = self.place(step.phase);
        self.sight.loss = step.loss;
        smooth(&mut self.sight.positive_share, step.robust_share);
        smooth(&mut self.sight.labelled.margin, step.labelled_margin);
        smooth(&mut self.sight.unlabelled.margin, step.unlabelled_margin);
        if self.progress.wants_a_look(step.step) {
            self.look(model)?;
        }
        self.progress.show(step.step, &self.sight);
        Ok(())
    }

    fn look(&mut self, model: &Model) -> anyhow::Result<()> {
        [self.sight.labelled.accuracy, self.sight.unlabelled.accuracy] = self.accuracies(model)?;
        if let Some(sample) = &self.sample {
            let (labelled, unlabelled) = (sample.labelled(model)?, sample.unlabelled(model)?);
            let robust = (labelled.robust + unlabelled.robust) as f64;
            self.sight.positive_share = Some(robust / (labelled.nodes + unlabelled.nodes).max(1) as f64);
            self.sight.labelled = GroupSight { margin: labelled.margin, ..self.sight.labelled };
            self.sight.unlabelled = GroupSight { margin: unlabelled.margin, ..self.sight.unlabelled };
        }
        Ok(())
    }

    fn place(&self, phase: Phase) -> String {
        let phase = match phase {
            _ if !self.two_phases => "",
            Phase::Labelled => "phase 1/2",
            _ => "phase 2/2",
        };
        [&self.run, phase].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// Takes the progress away.
    pub(super) fn clear(&self) {
        self.progress.clear();
    }
}

/// Lets `value` follow what is seen.
fn smooth(value: &mut Option<f64>, seen: Option<f64>) {
    if let Some(seen) = seen {
        *value = Some(value.map_or(seen, |value| SMOOTHING * value + (1.0 - SMOOTHING) * seen));
    }
}
