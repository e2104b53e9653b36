//! The linear program of the paper's appendix, written down as it stands there and solved by a simplex method.
//!
//! The library never builds it: its bounds are values of the dual. So they must be below the program's optimum, the best
//! slopes must reach it, and the optimum in turn must be below the margin of every admissible set.
use microlp::{ComparisonOp, OptimizationDirection, Solution, SolveOptions, Variable};
use nodeproof::check::textbook::{Bounds, Textbook};
use nodeproof::{Bound, Certificate, ClassId, Engine, Evidence, Flip, Matrix, Network, NodeId, Slopes};
use proptest::prelude::*;

use crate::common::seed::config;
use crate::common::{Dense, Problem, Sizes, TINY, problems, problems_with_slopes};

/// Most sets that are tried for one problem.
const SETS: usize = 400;
/// How far optima may be off, relative to the problem's scale.
const TOLERANCE: f64 = 1e-7;

/// One hidden layer of the program: per node that the target sees there, activations of all units.
type Activations = Vec<Option<Vec<Variable>>>;

/// The optimum. The solver lets every constraint be off by 1e-7 by default, which adds up to more than
/// [`TOLERANCE`] where weights are large: a budget of 0 then buys a little.
fn solve(lp: &microlp::Problem) -> Solution {
    let mut options = SolveOptions::default();
    options.tolerances.feasibility = 1e-10;
    lp.solve_with(options).unwrap().into_solution().unwrap()
}

/// The optimum of the paper's program for `target`, and the relaxed attributes that attain it.
///
/// | paper | here |
/// |---|---|
/// | Ẋ = H⁽¹⁾ | `x` |
/// | ε̂ | `moved` |
/// | Ĥ, H | `pre`, `post` |
/// | R, S | `lo`, `hi` |
fn program(problem: &Problem, target: usize, classes: (usize, usize), bounds: &[Bounds]) -> (f64, Vec<Vec<f64>>) {
    let world = problem.world::<f64>();
    let (allowed, local) = problem.allowed();
    let mut lp = microlp::Problem::new(OptimizationDirection::Minimize);
    let free = (f64::NEG_INFINITY, f64::INFINITY);

    // 0 ≤ Ẋ ≤ 1, |Ẋ − X| ≤ ε̂, Σ_d ε̂ ≤ q, Σ ε̂ ≤ Q; attributes that must not be flipped stay as they are.
    let mut x: Vec<Vec<Variable>> = Vec::new();
    let mut all_moved = Vec::new();
    for (n, row) in world.x.iter().enumerate() {
        let mut variables = Vec::new();
        let mut row_moved = Vec::new();
        for (d, &value) in row.iter().enumerate() {
            let (node, attribute) = ((n as u32).into(), (d as u32).into());
            if !allowed.contains(&Flip { node, attribute, to: 1.0 - value }) {
                variables.push(lp.add_var(0.0, (value, value)));
                continue;
            }
            let (variable, moved) = (lp.add_var(0.0, (0.0, 1.0)), lp.add_var(0.0, (0.0, f64::INFINITY)));
            lp.add_constraint([(variable, 1.0), (moved, -1.0)], ComparisonOp::Le, value);
            lp.add_constraint([(variable, 1.0), (moved, 1.0)], ComparisonOp::Ge, value);
            variables.push(variable);
            row_moved.push((moved, 1.0));
        }
        lp.add_constraint(&row_moved[..], ComparisonOp::Le, local[n] as f64);
        all_moved.extend(row_moved);
        x.push(variables);
    }
    lp.add_constraint(&all_moved[..], ComparisonOp::Le, f64::from(problem.global));

    let mut before: Activations = x.iter().cloned().map(Some).collect();
    for (i, layer) in world.layers.iter().enumerate() {
        let (weight, bias) = (&layer.terms[0].weight, &layer.bias);
        let last = i + 1 == world.layers.len();
        let nodes: Vec<usize> =
            if last { vec![target] } else { bounds[i].nodes.iter().map(|node| node.index()).collect() };
        let mut after: Activations = vec![None; problem.nodes];
        for (row, &m) in nodes.iter().enumerate() {
            let mut activations = Vec::new();
            for (unit, &bias) in bias.iter().enumerate() {
                // Ĥ = P H W + b; the margin is the difference of two outputs.
                let coefficient = match unit {
                    _ if !last => 0.0,
                    _ if unit == classes.0 => 1.0,
                    _ if unit == classes.1 => -1.0,
                    _ => continue,
                };
                let pre = lp.add_var(coefficient, free);
                let mut sum = vec![(pre, -1.0)];
                for (n, p) in &world.propagations[0][m] {
                    let inputs = before[*n].as_ref().expect("the slice holds what it depends on");
                    let terms = inputs.iter().zip(weight).map(|(&input, row)| (input, p * row[unit]));
                    sum.extend(terms.filter(|&(_, factor)| factor != 0.0));
                }
                lp.add_constraint(&sum[..], ComparisonOp::Eq, -bias);
                if last {
                    continue;
                }
                let (lo, hi) = (bounds[i].lo.get(row, unit), bounds[i].hi.get(row, unit));
                activations.push(if lo >= 0.0 {
                    pre
                } else if hi <= 0.0 {
                    lp.add_var(0.0, (0.0, 0.0))
                } else {
                    // H ≥ 0, H ≥ Ĥ, and H (hi − lo) ≤ hi (Ĥ − lo), divided by hi − lo.
                    let post = lp.add_var(0.0, (0.0, f64::INFINITY));
                    let chord = hi / (hi - lo);
                    lp.add_constraint([(post, 1.0), (pre, -1.0)], ComparisonOp::Ge, 0.0);
                    lp.add_constraint([(post, 1.0), (pre, -chord)], ComparisonOp::Le, -chord * lo);
                    post
                });
            }
            after[m] = Some(activations);
        }
        before = after;
    }
    let solution = solve(&lp);
    let value = |row: &Vec<Variable>| row.iter().map(|&x| solution.var_value(x)).collect();
    (solution.objective(), x.iter().map(value).collect())
}

/// Slopes that are best for one hidden layer, target and pair of classes, and what they are worth.
///
/// For a set of flips F the relaxed margin is linear in the slopes Ω; the dual is the least of these over all F. So the
/// best slopes are those of another linear program: maximise θ, where θ ≤ constant(F) + Σ Ω_mj P_tm u_j x_mj(F) for
/// every F, over convex unstable units (m, j).
fn best_slopes(
    problem: &Problem,
    sets: &[Vec<Flip>],
    target: usize,
    classes: (usize, usize),
    bounds: &Bounds,
) -> (f64, Matrix) {
    let world = problem.world::<f64>();
    let hidden = world.cut(0);
    let (weight, bias) = (&world.layers[1].terms[0].weight, &world.layers[1].bias);
    let units = weight.len();
    let mut lp = microlp::Problem::new(OptimizationDirection::Maximize);
    let theta = lp.add_var(1.0, (f64::NEG_INFINITY, f64::INFINITY));
    let slopes: Vec<_> = (0..problem.nodes * units).map(|_| lp.add_var(0.0, (0.0, 1.0))).collect();
    for flips in sets {
        let pre = hidden.logits(flips);
        let mut constant = bias[classes.0] - bias[classes.1];
        let mut sum = vec![(theta, 1.0)];
        for (m, p) in &world.propagations[0][target] {
            let row = bounds.nodes.iter().position(|node| node.index() == *m).unwrap();
            for (unit, weights) in weight.iter().enumerate() {
                let factor = p * (weights[classes.0] - weights[classes.1]);
                let (lo, hi, x) = (bounds.lo.get(row, unit), bounds.hi.get(row, unit), pre[*m][unit]);
                if lo >= 0.0 {
                    constant += factor * x;
                } else if hi > 0.0 && factor < 0.0 {
                    constant += factor * hi / (hi - lo) * (x - lo);
                } else if hi > 0.0 && factor * x != 0.0 {
                    sum.push((slopes[m * units + unit], -factor * x));
                }
            }
        }
        lp.add_constraint(&sum[..], ComparisonOp::Le, constant);
    }
    let solution = solve(&lp);
    let slopes = slopes.iter().map(|&slope| solution.var_value(slope).clamp(0.0, 1.0)).collect();
    (solution.objective(), Matrix::from_values(problem.nodes, units, slopes))
}

/// What there is to compare for one node and another class.
struct Compared {
    /// The dual with the paper's slopes, or with given ones if they are better.
    dual: f64,
    program: f64,
    exact: f64,
    scale: f64,
}

fn compare(problem: &Problem, sets: &[Vec<Flip>], given: &[Vec<Matrix>]) -> Vec<Compared> {
    let (graph, model) = (problem.graph(), problem.model());
    let network = Network::new(&graph, &model).unwrap();
    let limits = problem.budget().limits(&graph).unwrap();
    let textbook = Textbook::new(&network, &limits).unwrap();
    let fast = problem.certify(Slopes::Default);
    let classes: Vec<ClassId> = fast.iter().map(|certificate| certificate.class).collect();
    let smallest = problem.world::<f64>().smallest_margins(sets, &classes);
    let scales = problem.scales();
    let mut compared = Vec::new();
    for Certificate { node, class, margins, .. } in &fast {
        let bounds = textbook.bounds(*node);
        let mut duals = vec![textbook.lower_bounds(*node, *class, None)];
        duals.extend(given.iter().map(|slopes| textbook.lower_bounds(*node, *class, Some(slopes))));
        duals.push(margins.iter().map(|margin| margin.map_or(0.0, Bound::value)).collect());
        for k in (0..margins.len()).filter(|&k| k != class.index()) {
            compared.push(Compared {
                dual: duals.iter().map(|dual| dual[k]).fold(f64::NEG_INFINITY, f64::max),
                program: program(problem, node.index(), (class.index(), k), &bounds).0,
                exact: smallest[node.index()][k],
                scale: scales[node.index()],
            });
        }
    }
    compared
}

/// Several slopes from one: itself, one minus it, all 0, all 1, and rounded.
fn variants(slopes: &[Matrix]) -> Vec<Vec<Matrix>> {
    let mapped = |f: &dyn Fn(f64) -> f64| -> Vec<Matrix> {
        let map = |matrix: &Matrix| {
            let values = matrix.values().iter().map(|&value| f(value)).collect();
            Matrix::from_values(matrix.rows(), matrix.columns(), values)
        };
        slopes.iter().map(map).collect()
    };
    vec![slopes.to_vec(), mapped(&|slope| 1.0 - slope), mapped(&|_| 0.0), mapped(&|_| 1.0), mapped(&f64::round)]
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn the_program_lies_between_the_dual_and_the_truth(
        (problem, slopes) in problems_with_slopes(Sizes { hidden_layers: (1, 2), ..TINY })
    ) {
        let (problem, sets) = problem.enumerable(SETS);
        for Compared { dual, program, exact, scale } in compare(&problem, &sets, &variants(&slopes)) {
            prop_assert!(dual <= program + TOLERANCE * scale, "dual {dual} > program {program}");
            prop_assert!(program <= exact + TOLERANCE * scale, "program {program} > truth {exact}");
        }
    }

    #[test]
    fn the_best_slopes_reach_the_program(
        problem in problems(Sizes { hidden_layers: (1, 1), ..TINY })
    ) {
        let (problem, sets) = problem.enumerable(SETS);
        let (graph, model) = (problem.graph(), problem.model());
        let network = Network::new(&graph, &model).unwrap();
        let limits = problem.budget().limits(&graph).unwrap();
        let textbook = Textbook::new(&network, &limits).unwrap();
        let target = problem.nodes - 1;
        let class = ClassId(problem.labels[target]);
        let tolerance = TOLERANCE * problem.scales()[target];
        let bounds = textbook.bounds(NodeId(target as u32));
        for k in (0..model.classes()).filter(|&k| k != class.index()) {
            let (optimum, _) = program(&problem, target, (class.index(), k), &bounds);
            let (value, slopes) = best_slopes(&problem, &sets, target, (class.index(), k), &bounds[0]);
            prop_assert!((value - optimum).abs() <= tolerance, "best slopes {value}, program {optimum}");
            let dual = textbook.lower_bounds(NodeId(target as u32), class, Some(std::slice::from_ref(&slopes)))[k];
            prop_assert!((dual - optimum).abs() <= tolerance, "dual {dual}, program {optimum}");
            let labelled = Problem { certify_labels: true, ..problem.clone() };
            let engine = labelled.certify(Slopes::Given(vec![slopes]))[target].margins[k].unwrap().value();
            prop_assert!((engine - optimum).abs() <= tolerance, "engine {engine}, program {optimum}");
        }
    }
}

/// Both inequalities are often strict, so that the properties above are not empty.
#[test]
fn random_programs_are_not_all_tight() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::new(config(256));
    let (mut all, mut above_dual, mut below_truth) = (0, 0, 0);
    for _ in 0..300 {
        let problem = problems(Sizes { hidden_layers: (1, 2), ..TINY }).new_tree(&mut runner).unwrap().current();
        let (problem, sets) = problem.enumerable(SETS);
        for Compared { dual, program, exact, scale } in compare(&problem, &sets, &[]) {
            all += 1;
            above_dual += usize::from(program > dual + 1e-4 * scale);
            below_truth += usize::from(exact > program + 1e-4 * scale);
        }
    }
    println!("{all} programs: {above_dual} above the dual with the paper's slopes, {below_truth} below the truth");
    assert!(above_dual >= 100 && below_truth >= 100, "{all} programs: {above_dual}, {below_truth}");
}

fn dense(inputs: usize, outputs: usize, weight: &[f64], bias: &[f64]) -> Dense {
    Dense { inputs, outputs, weight: weight.to_vec(), bias: bias.to_vec() }
}

/// The paper's Theorem 1 says that some optimum is binary. Here the only one is x = ½, worth −¼, and both binary points
/// are worth ¼: the node is robust, and branch and bound says so.
#[test]
fn the_only_optimum_may_be_fractional() {
    let hidden = dense(1, 2, &[-1.0, 1.0], &[0.5, -0.5]);
    let problem =
        Problem { global: 1, ..Problem::one_node(1, vec![hidden, dense(2, 2, &[1.0, 0.0, 1.0, 0.0], &[-0.25, 0.0])]) };
    let sets = problem.clone().enumerable(10).1;
    let (graph, model) = (problem.graph(), problem.model());
    let network = Network::new(&graph, &model).unwrap();
    let limits = problem.budget().limits(&graph).unwrap();
    let bounds = Textbook::new(&network, &limits).unwrap().bounds(NodeId(0));
    let (optimum, x) = program(&problem, 0, (0, 1), &bounds);
    assert!((optimum + 0.25).abs() < 1e-7, "{optimum}");
    assert!((x[0][0] - 0.5).abs() < 1e-7, "{x:?}");
    assert!((best_slopes(&problem, &sets, 0, (0, 1), &bounds[0]).0 + 0.25).abs() < 1e-7);

    let margins = sets.iter().map(|flips| problem.world::<f64>().logits(flips)[0].clone()).map(|row| row[0] - row[1]);
    assert_eq!(margins.collect::<Vec<_>>(), [0.25, 0.25]);
    let certificates = problem.certify_with(Engine::Complete, Slopes::Default);
    assert!(matches!(certificates[0].evidence, Evidence::Robust), "{:?}", certificates[0].evidence);
    let certificates = problem.certify_with(Engine::Fast, Slopes::Default);
    assert!(matches!(certificates[0].evidence, Evidence::Open { .. }), "{:?}", certificates[0].evidence);
}
