//! The figures of the paper.

use std::ops::ControlFlow;

use nodeproof::results::{Radii, TrainingLog};
use nodeproof::{Budget, Certifier, Engine, Gap, LocalBudget, Method, Model, NodeId, Percent};
use nodeproof_report::Attack;
use nodeproof_report::plot::figures::{self, Aims, Compared, Curves, Reference, Run};
use nodeproof_report::plot::{Figure, Point, Size};
use nodeproof_report::structure;
use nodeproof_report::text::counted;
use serde::Serialize;

use super::paper::{self, BUDGET, ROBUST, STANDARD};
use super::plan::{MAX_BUDGET_BEYOND, Network, Plan, Source};
use super::steps::tell;
use super::{Observer, write};
use crate::LabError;

/// The largest global budget that figures show, which is about that of the paper's.
const SHOWN: u32 = 100;
/// What the paper's curves are called.
const PAPER: &str = "Zügner & Günnemann";
/// Width and height in millimetres, and pixels in an inch.
const SIZE: (f64, f64) = (84.0, 58.0);
const RESOLUTION: f64 = 300.0;

/// A figure that was drawn, as SVG and PNG.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Drawn {
    /// Its name, without extension.
    pub name: String,
    /// What it shows.
    pub caption: String,
}

/// Draws all figures; `None` if the observer broke off.
///
/// # Errors
/// If a file cannot be read or written.
pub(super) fn draw(plan: &Plan, observe: Observer) -> Result<Option<Vec<Drawn>>, LabError> {
    write(&plan.folder.join("paper-figure-1.csv"), paper::CERTIFICATES)?;
    write(&plan.folder.join("paper-figure-6.csv"), paper::BY_TRAINING)?;
    let mut artist = Artist { plan, drawn: Vec::new() };
    for source in plan.sources {
        artist.every(source)?;
    }
    if let Some(source) = plan.main() {
        let Some(gaps) = gaps(plan, source, observe)? else { return Ok(None) };
        let caption = format!(
            "Figure 7, {}: how far the bound and the best attack are apart under {BUDGET} flips, with default slopes and \
             with bounds optimised in at most 200 steps; the paper reports that most gaps close",
            source.data.title
        );
        artist.draw("gap", source, caption, figures::gap(&gaps[0], &gaps[1]))?;
        artist.main(source)?;
    }
    Ok(Some(artist.drawn))
}

struct Artist<'a> {
    plan: &'a Plan<'a>,
    drawn: Vec<Drawn>,
}

impl<'a> Artist<'a> {
    /// Writes a figure.
    fn draw(&mut self, name: &str, source: &Source, caption: String, figure: Figure) -> Result<(), LabError> {
        let name = format!("{name}-{}", source.data.stem);
        let figure = figure.size(Size::new(SIZE.0, SIZE.1)?);
        let file = |extension: &str| self.plan.folder.join("figures").join(format!("{name}.{extension}"));
        write(&file("svg"), figure.svg())?;
        write(&file("png"), figure.png(RESOLUTION)?)?;
        self.drawn.push(Drawn { name, caption });
        Ok(())
    }

    /// Radii of a network by the `fast` engine, as far as they are shown.
    fn shown(&self, network: &Network) -> Result<Radii, LabError> {
        Ok(self.plan.radii(network, Engine::Fast)?.up_to(SHOWN))
    }

    fn compared(&self, name: String, network: &Network, trained_for: Option<u32>) -> Result<Compared, LabError> {
        let Curves { robust, attack, .. } = Curves::of(&self.shown(network)?);
        Ok(Compared { name, robust, attack, trained_for })
    }

    /// What is drawn for every data set.
    fn every(&mut self, source: &'a Source) -> Result<(), LabError> {
        let title = source.data.title;
        let network = |method: Method| self.plan.network(source, 0, method);
        let standard = self.shown(&network(STANDARD))?;
        let robust = Curves::of(&self.shown(&network(ROBUST))?);
        let is_known = source.data == paper::DATA_SETS[0];
        let reference = |csv: &str| is_known.then(|| published(csv));
        let methods = Method::ALL.map(|method| self.compared(paper::name(method), &network(method), None));
        let methods = methods.into_iter().collect::<Result<Vec<_>, _>>()?;

        let areas = Curves::of(&standard);
        let caption = format!(
            "Figure 1, {title}: nodes of a network trained by cross entropy that the paper's certificate (the `fast` engine) \
             proves robust and nonrobust"
        );
        let figure = figures::certificates((None, &areas), None, reference(paper::CERTIFICATES).as_ref());
        self.draw("certificates", source, caption, figure)?;
        let caption =
            format!("Figure 2, {title}: neighbourhood purity and the largest Q for which a node is proven robust");
        self.draw(
            "purity",
            source,
            caption,
            figures::purity(&structure::purities(&source.graph, &standard), Attack::Flips, standard.max_budget()),
        )?;
        let caption = format!("Figure 3, {title}: degree and the largest Q for which a node is proven robust");
        self.draw(
            "degree",
            source,
            caption,
            figures::degree(&structure::degrees(&source.graph, &standard), Attack::Flips, standard.max_budget()),
        )?;
        let caption =
            format!("Figures 4 and 5, {title}: a network trained by RH-U, and dashed the one trained by cross entropy");
        let (name, against) = (paper::name(ROBUST), paper::name(STANDARD));
        let figure = figures::certificates((Some(&name), &robust), Some((&against, &areas)), None);
        self.draw("robust-training", source, caption, figure)?;
        let caption = format!("Figure 6, {title}: robust nodes by method of training, each against {BUDGET} flips");
        let figure = figures::comparison(&methods, reference(paper::BY_TRAINING).as_ref());
        self.draw("methods", source, caption, figure)
    }

    /// What is drawn for the main data set only, but for the gaps.
    fn main(&mut self, source: &'a Source) -> Result<(), LabError> {
        let (title, plan) = (source.data.title, self.plan);
        let (standard, robust) = (plan.network(source, 0, STANDARD), plan.network(source, 0, ROBUST));
        let runs = [&standard, &robust].map(|network| {
            let path = network.log(plan.folder);
            let log = TrainingLog::read(&path).map_err(|source| LabError::Unreadable { path, source })?;
            Ok::<_, LabError>((Run::of(paper::name(network.method), &log), Aims::of(&log)))
        });
        let [standard_run, robust_run] = runs;
        let ((standard_run, _), (robust_run, aims)) = (standard_run?, robust_run?);
        let caption = format!("Figure 8, {title}: mean worst-case margin while training");
        self.draw("dynamics", source, caption, figures::dynamics(&[standard_run, robust_run], aims))?;

        let budgets = std::iter::once(robust).chain(plan.other_budgets());
        let model =
            |network: Network| self.compared(format!("for {} flips", network.budget), &network, Some(network.budget));
        let mut models = budgets.map(model).collect::<Result<Vec<_>, _>>()?;
        models.push(self.compared(paper::name(STANDARD), &standard, None)?);
        let caption = format!("Figure 9, {title}: robust nodes of networks trained by RH-U against several budgets");
        self.draw("budgets", source, caption, figures::comparison(&models, None))?;

        let fast = plan.radii(&standard, Engine::Fast)?.up_to(MAX_BUDGET_BEYOND);
        let complete = plan.radii(&standard, Engine::Complete)?.up_to(MAX_BUDGET_BEYOND);
        let open = complete.records.iter().filter(|record| !record.is_exact()).count();
        let open = if open == 0 { "no white area".to_owned() } else { format!("open for {}", counted(open, "node")) };
        let caption = format!(
            "What the paper's certificate leaves open (hatched), and what is the case by the `complete` engine, {title}, \
             cross entropy: {open}"
        );
        self.draw("truth", source, caption, figures::truth(&Curves::of(&fast), &Curves::of(&complete)))
    }
}

/// The gaps of all nodes of the standard network, with default slopes and with optimised ones; `None` if the observer broke
/// off.
fn gaps(plan: &Plan, source: &Source, observe: Observer) -> Result<Option<[Vec<f64>; 2]>, LabError> {
    let network = plan.network(source, 0, STANDARD);
    let model = Model::read(network.model(plan.folder))?;
    let nodes: Vec<NodeId> = source.graph.node_ids().collect();
    let mut found: [Vec<f64>; 2] = Default::default();
    for (engine, widths) in [Engine::Fast, Engine::Tight].into_iter().zip(&mut found) {
        let budget = Budget::new(BUDGET, LocalBudget::Percent(Percent::ONE));
        let certifier = Certifier::new(&source.graph, &model)?.budget(budget).engine(engine).threads(plan.threads);
        let gaps = certifier.gaps(&nodes, |done| -> ControlFlow<()> { tell(observe, "gaps", done, nodes.len()) })?;
        let Some(gaps) = gaps else { return Ok(None) };
        *widths = gaps.iter().map(Gap::width).collect();
    }
    Ok(Some(found))
}

/// The paper's curves: percentages of nodes, one column a curve, against Q.
fn published(csv: &str) -> Reference {
    let mut lines = csv.lines().map(|line| line.split(','));
    let names = lines.next().into_iter().flatten().skip(1);
    let mut curves: Vec<(String, Vec<Point>)> = names.map(|name| (name.to_owned(), Vec::new())).collect();
    for mut cells in lines {
        let budget = cells.next().and_then(|cell| cell.parse().ok());
        for (cell, (_, points)) in cells.zip(&mut curves) {
            points.extend(budget.zip(cell.parse().ok()).map(|(budget, percent): (f64, f64)| (budget, percent / 100.0)));
        }
    }
    Reference { name: PAPER.to_owned(), curves }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_curves_fall_from_all_nodes() {
        for (csv, names) in [
            (paper::CERTIFICATES, vec!["percent_robust", "percent_not_nonrobust"]),
            (paper::BY_TRAINING, vec!["RH-U", "RCE", "RH", "CE"]),
        ] {
            let reference = published(csv);
            assert_eq!(reference.curves.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), names);
            for (name, points) in &reference.curves {
                assert_eq!((points.len(), points[0]), (csv.lines().count() - 1, (0.0, 1.0)), "{name}");
                assert!(points.is_sorted_by(|left, right| left.0 < right.0 && left.1 >= right.1), "{name}");
            }
        }
    }
}
