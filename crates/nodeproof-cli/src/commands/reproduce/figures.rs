//! The figures of the paper, drawn by `nodeproof plot`.

use std::path::{Path, PathBuf};

use super::paper::{self, METHODS, Method, ROBUST, STANDARD};
use super::plan::{MAX_BUDGET_BEYOND, Network, Plan, Source};
use crate::commands::line::{Line, named};
use crate::export::replace;
use crate::outcome::Outcome;
use crate::terminal::counted;

/// The largest global budget that figures show, which is about that of the paper's.
const SHOWN: u32 = 100;
/// What the paper's curves are called.
const PAPER: &str = "Zügner & Günnemann";

/// A figure that was drawn.
#[derive(Debug)]
pub(super) struct Drawn {
    /// Its name, without extension.
    pub(super) name: String,
    pub(super) caption: String,
}

/// A figure to draw.
struct Sketch {
    name: String,
    caption: String,
    line: Line,
}

/// Draws all figures, as SVG and PNG; `None` if the user stopped it.
///
/// # Errors
/// If a file cannot be read or written.
pub(super) fn draw(plan: &Plan) -> anyhow::Result<Option<Vec<Drawn>>> {
    let references = References::write(plan.folder)?;
    let mut sketches = Vec::new();
    for source in plan.sources {
        sketches.extend(of_data_set(plan, source, &references));
    }
    if let Some(source) = plan.main() {
        sketches.extend(of_one_data_set(plan, source)?);
    }
    let mut drawn = Vec::new();
    for Sketch { name, caption, line } in sketches {
        let file = |extension: &str| plan.folder.join("figures").join(format!("{name}.{extension}"));
        let line = line.with("--out", file("svg")).with("--out", file("png")).word("--quiet");
        if crate::commands::run(line.parse()?)? == Outcome::Interrupted {
            return Ok(None);
        }
        drawn.push(Drawn { name, caption });
    }
    Ok(Some(drawn))
}

/// Files with the curves of the paper.
struct References {
    certificates: PathBuf,
    by_training: PathBuf,
}

impl References {
    fn write(folder: &Path) -> anyhow::Result<Self> {
        let (certificates, by_training) = (folder.join("paper-figure-1.csv"), folder.join("paper-figure-6.csv"));
        replace(&certificates, paper::CERTIFICATES.as_bytes())?;
        replace(&by_training, paper::BY_TRAINING.as_bytes())?;
        Ok(Self { certificates, by_training })
    }
}

/// What is drawn for every data set.
fn of_data_set<'a>(plan: &Plan<'a>, source: &'a Source, references: &References) -> Vec<Sketch> {
    let title = source.data.title;
    let radii = |method: Method| plan.network(source, 0, method).radii(plan.folder, "fast");
    let is_known = source.data == paper::DATA_SETS[0];
    let with_reference = |line: Line, path: &Path| match is_known {
        true => line.with("--reference", named(PAPER, path)),
        false => line,
    };
    let shown = |line: Line| line.with("--up-to", SHOWN.to_string());
    let sketch = |name: &str, caption: String, line: Line| Sketch {
        name: format!("{name}-{}", source.data.stem),
        caption,
        line: shown(line),
    };
    let comparison =
        METHODS.into_iter().fold(Line::new("plot comparison"), |line, method| line.named(method.name, &radii(method)));
    let against = named(STANDARD.name, &radii(STANDARD));
    vec![
        sketch(
            "certificates",
            format!(
                "Figure 1, {title}: nodes of a network trained by cross entropy that the paper's certificate (engine `fast`) proves robust and nonrobust"
            ),
            with_reference(Line::new("plot certificates").word(radii(STANDARD)), &references.certificates),
        ),
        sketch(
            "purity",
            format!("Figure 2, {title}: neighbourhood purity and the largest Q for which a node is proven robust"),
            source.graph(Line::new("plot purity").word(radii(STANDARD))),
        ),
        sketch(
            "degree",
            format!("Figure 3, {title}: degree and the largest Q for which a node is proven robust"),
            source.graph(Line::new("plot degree").word(radii(STANDARD))),
        ),
        sketch(
            "robust-training",
            format!("Figures 4 and 5, {title}: a network trained by RH-U, and dashed the one trained by cross entropy"),
            Line::new("plot certificates").named(ROBUST.name, &radii(ROBUST)).with("--against", against),
        ),
        sketch(
            "methods",
            format!("Figure 6, {title}: robust nodes by way of training, each against 12 flips"),
            with_reference(comparison, &references.by_training),
        ),
    ]
}

/// What is drawn for the main data set only.
fn of_one_data_set<'a>(plan: &Plan<'a>, source: &'a Source) -> anyhow::Result<Vec<Sketch>> {
    let title = source.data.title;
    let (standard, robust) = (plan.network(source, 0, STANDARD), plan.network(source, 0, ROBUST));
    let folder = plan.folder;
    let budgets: Vec<Network> = std::iter::once(robust.clone()).chain(plan.other_budgets()).collect();
    let line = budgets.iter().fold(Line::new("plot comparison"), |line, network| {
        line.named(&format!("for {} flips", network.budget), &network.radii(folder, "fast"))
    });
    let line = line.named(STANDARD.name, &standard.radii(folder, "fast"));
    let trained_for: Vec<String> = budgets.iter().map(|network| network.budget.to_string()).collect();
    let dynamics = Line::new("plot dynamics").named(STANDARD.name, &standard.log(folder));
    let gap = source.graph(Line::new("plot gap")).with("--model", standard.model(folder));
    let truth = Line::new("plot truth").word(standard.radii(folder, "fast")).word(standard.radii(folder, "complete"));
    let sketch = |name: &str, caption: String, line: Line| Sketch {
        name: format!("{name}-{}", source.data.stem),
        caption,
        line,
    };
    let known = plan.radii(&standard, "complete")?;
    let open = known.records.iter().filter(|record| !record.is_exact()).count();
    let open = if open == 0 { "no white area".to_owned() } else { format!("open for {}", counted(open, "node")) };
    Ok(vec![
        sketch(
            "gap",
            format!(
                "Figure 7, {title}: how far the bound and the best attack are apart under {} flips, with default slopes and with bounds optimised in at most 200 steps; the paper reports that most gaps close",
                paper::BUDGET
            ),
            gap.with("--global-budget", paper::BUDGET.to_string()),
        ),
        sketch(
            "dynamics",
            format!("Figure 8, {title}: mean worst-case margin while training"),
            dynamics.named(ROBUST.name, &robust.log(folder)),
        ),
        sketch(
            "budgets",
            format!("Figure 9, {title}: robust nodes of networks trained by RH-U against several budgets"),
            line.with("--trained-for", trained_for.join(",")).with("--up-to", SHOWN.to_string()),
        ),
        sketch(
            "truth",
            format!(
                "What the paper's certificate leaves open (hatched), and what is the case by the engine `complete`, {title}, cross entropy: {open}"
            ),
            truth.with("--up-to", MAX_BUDGET_BEYOND.to_string()),
        ),
    ])
}
