//! Proofs that a graph convolutional network's predictions withstand tampering with node attributes.
//!
//! # The problem
//!
//! A network is a sequence of layers. Each adds up *terms*, which read the binary attributes `X` (nodes × attributes), an
//! earlier layer or the constant 1 through a propagation P (nodes × nodes) and a weight W:
//!
//! ```text
//! Zⁱ = Σ_k P_k h_k W_k + bⁱ,     hⁱ = activation(Zⁱ),     logits of node t = row t of the last Z.
//! ```
//!
//! A graph convolutional network has one term a layer, `Zⁱ = P relu(Zⁱ⁻¹) Wⁱ + bⁱ`.
//!
//! An attacker flips entries of `X`: at most Q in total and q_n in the row of node n ([`Budget`]). Node t with class y is
//! **robust** when for every admissible set of flips and every other class k
//!
//! ```text
//! margin_k = logit_y − logit_k > 0.
//! ```
//!
//! [`Certifier`] bounds every margin from below over all admissible sets at once and looks for a *witness*, a set that
//! makes one negative. Its verdict per node is `robust`, `nonrobust` or `undecided` ([`Verdict`]).
//!
//! # Reading the code
//!
//! What is asked and answered (graphs, models, budgets, settings, certificates and their files) is in the crate
//! `nodeproof-problem`, whose items are found here, too. This crate has the engines, and its modules follow the paper (Zügner
//! and Günnemann, *Certifiable Robustness and Robust Training for Graph Convolutional Networks*, KDD 2019): [`network`] →
//! `slice` → `forward` and `backward`, the two walks over the layers → `bounds` → `relax` → `selection` and `search` →
//! `prepare` → `engines` → `run`, with `rounding` under all of them; [`train`] makes networks. [`check`] stands beside: it
//! computes the same quantities from the plain formulas and shares no code with the engines. `docs/maths.md` has the lemmas
//! that they rely on. Names: Â is `propagation`, R and S are `lo` and `hi`, Ω are slopes, q and Q the local and the global
//! budget.

pub mod check;
pub mod network;
pub mod train;

mod arithmetic;
mod backward;
mod bounds;
mod collective;
mod dense;
mod edges;
mod engines;
mod exact;
mod forward;
mod gradient;
mod kernels;
mod prepare;
mod relax;
mod rounding;
mod run;
mod search;
mod selection;
mod slice;

#[cfg(test)]
#[path = "../tests/integration/common/seed.rs"]
mod seed;

pub use edges::EdgesError;
pub use network::Network;
pub use nodeproof_problem::{
    Activation, Architecture, Arithmetic, AttributeId, AttributeKind, Bound, Budget, BudgetError, Certificate,
    CertifySettings, ClassId, Cleaning, Collective, CutMultipliers, Direction, Edge, EdgeBudget, EdgeLimits, Engine,
    Evidence, Flip, Found, Graph, GraphError, GraphOptions, GraphStatistics, Layer, Limits, LocalBudget, Matrix,
    Method, Model, ModelError, Names, NodeId, NpzError, Obstacle, Part, Pattern, Percent, Proof, Propagation, Radius,
    Schedule, SettingsError, Source, SparseMatrix, Split, SplitError, SplitSize, TargetClass, Term, TrainSettings,
    Values, Verdict, Weight, Witness, WorstCase,
};
pub use nodeproof_problem::{
    attributes, budget, certificate, checkpoint, edge, files, flip, graph, ids, matrix, model, proof, provenance,
    radius, results, settings, sparse, values,
};
pub use nodeproof_problem::{did_you_mean, nearest};
pub use relax::Slopes;
pub use run::{
    Before, Certifier, CertifyError, Event, Everything, Finish, Gap, RadiusSearch, Recheck, SearchEvent, Stage, Touched,
};
