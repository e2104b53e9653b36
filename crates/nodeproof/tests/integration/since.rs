//! Certificates that are carried over after an edit are, bit for bit, those that a full run makes.

use std::cell::Cell;

use nodeproof::{
    Arithmetic, Before, Certificate, Certifier, Engine, Everything, Graph, Matrix, Model, NodeId, Propagation, Touched,
};
use proptest::prelude::*;

use crate::common::seed::config;
use crate::common::{Problem, Sizes, problems, problems_of_terms, with_normalised_rows, with_values};

/// So many nodes that most edits are out of sight of some.
const SPARSE: Sizes = Sizes { nodes: 24, attributes: 6, hidden_layers: (0, 2), units: 4, global: 3 };

/// What a target may take, which ends long searches at the same point in every run.
const MEMORY: usize = 1 << 16;

/// One edit of a problem; numbers are taken modulo what there is.
#[derive(Debug, Clone, Copy)]
enum Edit {
    Attribute(u32, u32),
    Edge(u32, u32),
    Label(u32),
    LocalBudget(u32, u32),
    ProtectedNode(u32),
    NewNode(u32),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = (0u8..12, any::<u32>(), any::<u32>()).prop_map(|(sort, a, b)| match sort {
        0..=3 => Edit::Attribute(a, b),
        4..=7 => Edit::Edge(a, b),
        8 => Edit::Label(a),
        9 => Edit::LocalBudget(a, b),
        10 => Edit::ProtectedNode(a),
        _ => Edit::NewNode(a),
    });
    prop::collection::vec(edit, 1..=3)
}

/// Takes out what is there, and adds what is not.
fn toggle<T: PartialEq>(list: &mut Vec<T>, same: impl Fn(&T) -> bool, item: T) {
    let before = list.len();
    list.retain(|other| !same(other));
    if list.len() == before {
        list.push(item);
    }
}

impl Edit {
    fn make(self, problem: &mut Problem) {
        let (nodes, attributes) = (problem.nodes as u32, problem.attributes as u32);
        match self {
            Self::Attribute(n, d) => {
                let (n, d) = (n % nodes, d % attributes);
                match &mut problem.values {
                    Some(values) => {
                        // Within the column, so that what holds for all rows mostly stays.
                        let other = values.entries[((n + 1) % nodes * attributes + d) as usize];
                        values.entries[(n * attributes + d) as usize] = other;
                    }
                    None => toggle(&mut problem.ones, |&one| one == (n, d), (n, d)),
                }
            }
            Self::Edge(a, b) => {
                let (a, b) = (a % nodes, b % nodes);
                toggle(&mut problem.edges, |&edge| edge == (a, b) || edge == (b, a), (a, b));
            }
            Self::Label(n) => {
                let label = &mut problem.labels[(n % nodes) as usize];
                *label = 1 - (*label).min(1);
            }
            Self::LocalBudget(n, count) => problem.local_at.push((n % nodes, count % (attributes + 1))),
            Self::ProtectedNode(n) => toggle(&mut problem.protected_nodes, |&node| node == n % nodes, n % nodes),
            Self::NewNode(n) => {
                problem.nodes += 1;
                problem.labels.push(0);
                problem.edges.push((nodes, n % nodes));
                if let Some(values) = &mut problem.values {
                    values.entries.extend(vec![0.0; problem.attributes]);
                }
            }
        }
    }
}

/// What is asked beyond the problem.
#[derive(Debug, Clone, Copy)]
struct Asked {
    engine: Engine,
    proofs: bool,
    margin: f64,
    arithmetic: Arithmetic,
}

fn asked() -> impl Strategy<Value = Asked> {
    let margin = prop_oneof![4 => Just(0.0), 1 => Just(0.25)];
    let arithmetic = prop_oneof![4 => Just(Arithmetic::Exact), 1 => Just(Arithmetic::F32)];
    (prop::sample::select(Engine::ALL.to_vec()), any::<bool>(), margin, arithmetic)
        .prop_map(|(engine, proofs, margin, arithmetic)| Asked { engine, proofs, margin, arithmetic })
}

impl Asked {
    fn certifier<'a>(self, problem: &Problem, graph: &'a Graph, model: &'a Model) -> Certifier<'a> {
        let Self { engine, proofs, margin, arithmetic } = self;
        let certifier =
            Certifier::new(graph, model).unwrap().budget(problem.budget()).target_class(problem.target_class());
        certifier.engine(engine).proofs(proofs).margin(margin).arithmetic(arithmetic).memory_limit(MEMORY).threads(1)
    }
}

/// Bit for bit, but for the time.
fn text(certificate: &Certificate) -> String {
    let mut certificate = certificate.clone();
    certificate.time = None;
    format!("{certificate:?}")
}

/// How many certificates were carried over, of how many.
fn check(problem: &Problem, edits: &[Edit], asked: Asked) -> Result<(usize, usize), TestCaseError> {
    let mut edited = problem.clone();
    edits.iter().for_each(|edit| edit.make(&mut edited));
    let (graph, model) = (problem.graph(), problem.model());
    let (new_graph, new_model) = (edited.graph(), edited.model());
    let before = asked.certifier(problem, &graph, &model);
    let after = asked.certifier(&edited, &new_graph, &new_model);
    let all = |graph: &Graph| graph.node_ids().collect::<Vec<NodeId>>();
    let (old, new) = (before.certify(&all(&graph)).unwrap(), after.certify(&all(&new_graph)).unwrap());
    let budget = problem.budget();
    let touched = after.touched_since(Before { graph: &graph, model: &model, budget: &budget }).unwrap();
    let again: Vec<NodeId> = new_graph.node_ids().filter(|&node| touched.contains(node)).collect();
    let made = after.certify(&again).unwrap();
    for certificate in &made {
        prop_assert_eq!(text(certificate), text(&new[certificate.node.index()]), "certified again");
    }
    for node in new_graph.node_ids().filter(|&node| !touched.contains(node)) {
        prop_assert_eq!(text(&old[node.index()]), text(&new[node.index()]), "carried over");
    }
    Ok((new.len() - again.len(), new.len()))
}

/// Tries many problems, of which enough is carried over for the test to mean something.
fn try_many(cases: u32, problems: impl Strategy<Value = Problem>, least: f64) {
    let (carried, total) = (Cell::new(0), Cell::new(0));
    // More flips than this take long where there are many nodes.
    let problems = problems.prop_map(|problem| Problem { global: problem.global.min(SPARSE.global), ..problem });
    let mut runner = proptest::test_runner::TestRunner::new(config(cases));
    let tried = runner.run(&(problems, edits(), asked()), |(problem, edits, asked)| {
        let (some, all) = check(&problem, &edits, asked)?;
        carried.set(carried.get() + some);
        total.set(total.get() + all);
        Ok(())
    });
    tried.unwrap_or_else(|error| panic!("{error}"));
    let share = carried.get() as f64 / f64::from(total.get() as u32);
    assert!(share > least, "{share} carried over");
}

#[test]
fn chains() {
    try_many(400, problems(SPARSE), 0.2);
}

#[test]
fn layers_of_terms() {
    try_many(400, problems_of_terms(SPARSE, 3), 0.1);
}

#[test]
fn normalised_rows() {
    try_many(200, with_normalised_rows(problems(SPARSE)), 0.2);
}

#[test]
fn real_values() {
    try_many(150, with_values(problems(SPARSE), SPARSE), 0.1);
}

/// Eight nodes, and a network with one hidden layer, which sees two steps far.
fn path(edges: &[(u32, u32)], ones: &[(u32, u32)]) -> (Graph, Model) {
    let weight = || (Matrix::from_values(2, 2, vec![1.0, -0.5, 0.25, 1.0]), vec![0.0, 0.1]);
    let model = Model::gcn(vec![weight(), weight()], Propagation::SymmetricGcn).unwrap();
    (Graph::new(8, 2, edges, ones).unwrap(), model)
}

#[test]
fn an_edit_touches_what_sees_it_and_nothing_else() {
    let edges: Vec<(u32, u32)> = (0..7).map(|node| (node, node + 1)).collect();
    let (before, model) = path(&edges, &[(0, 0), (7, 1)]);
    let touched = |edges: &[(u32, u32)], ones: &[(u32, u32)]| {
        let (after, model) = (path(edges, ones).0, &model);
        let certifier = Certifier::new(&after, model).unwrap();
        let budget = nodeproof::Budget::new(1, 1.into());
        match certifier.touched_since(Before { graph: &before, model, budget: &budget }).unwrap() {
            Touched::Nodes(marked) => (0..8).filter(|&node| marked[node]).collect::<Vec<usize>>(),
            all => panic!("{all:?}"),
        }
    };
    assert_eq!(touched(&edges, &[(0, 0), (7, 1)]), Vec::<usize>::new());
    assert_eq!(touched(&edges, &[(0, 1), (7, 1)]), [0, 1, 2]);
    assert_eq!(touched(&edges, &[(0, 0), (7, 1), (4, 0)]), [2, 3, 4, 5, 6]);
    // Without its last edge node 6 has another degree, which rows 5, 6 and 7 of the propagation know, and node 4 sees row 5.
    assert_eq!(touched(&edges[..6], &[(0, 0), (7, 1)]), [4, 5, 6, 7]);
}

#[test]
fn what_holds_for_all_nodes_touches_all() {
    let (graph, model) = path(&[(0, 1)], &[(0, 0)]);
    let certifier = Certifier::new(&graph, &model).unwrap();
    let other =
        Model::gcn(vec![(Matrix::from_values(2, 2, vec![1.0; 4]), vec![0.0; 2])], Propagation::SymmetricGcn).unwrap();
    let (budget, larger) = (nodeproof::Budget::new(1, 1.into()), nodeproof::Budget::new(2, 1.into()));
    let since =
        |graph: &Graph, model: &Model, budget| certifier.touched_since(Before { graph, model, budget }).unwrap();
    assert_eq!(since(&graph, &other, &budget), Touched::All(Everything::Model));
    assert_eq!(since(&graph, &model, &larger), Touched::All(Everything::Budget));
    let wide = Graph::new(8, 3, &[(0, 1)], &[(0, 0)]).unwrap();
    assert_eq!(since(&wide, &model, &budget), Touched::All(Everything::Attributes));
    let hub: Vec<(u32, u32)> = (1..8).map(|node| (0, node)).collect();
    let sums =
        Model::gcn(vec![(Matrix::from_values(2, 2, vec![1.0; 4]), vec![0.0; 2])], Propagation::Adjacency).unwrap();
    let (star, pair) = (Graph::new(8, 2, &hub, &[]).unwrap(), Graph::new(8, 2, &[(0, 1)], &[]).unwrap());
    let certifier = Certifier::new(&star, &sums).unwrap();
    let touched = certifier.touched_since(Before { graph: &pair, model: &sums, budget: &budget }).unwrap();
    assert_eq!(touched, Touched::All(Everything::Rounding));
}
