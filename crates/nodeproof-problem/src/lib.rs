//! What nodeproof is asked and answers: graphs, models, budgets, settings, certificates, radii, and all their files.
//!
//! # The problem
//!
//! A network is a sequence of layers. Each adds up *terms*, which read the attributes `X` (nodes × attributes), an
//! earlier layer or the constant 1 through a propagation P (nodes × nodes) and a weight W:
//!
//! ```text
//! Zⁱ = Σ_k P_k h_k W_k + bⁱ,     hⁱ = activation(Zⁱ),     logits of node t = row t of the last Z.
//! ```
//!
//! A graph convolutional network has one term a layer, `Zⁱ = P relu(Zⁱ⁻¹) Wⁱ + bⁱ`.
//!
//! An attacker flips entries of `X`, or sets them to other values: at most Q in total and q_n in the row of node n ([`Budget`]). Node t with class y is
//! **robust** when for every admissible set of flips and every other class k
//!
//! ```text
//! margin_k = logit_y − logit_k > 0.
//! ```
//!
//! A [`Certificate`] is a verdict on that with its [`Evidence`]; a [`Radius`] is the largest Q for which a node is robust.
//!
//! No engine is in here: the crate `nodeproof` has them.

pub mod attributes;
pub mod budget;
pub mod certificate;
pub mod checkpoint;
pub mod collective;
pub mod edge;
pub mod files;
pub mod fingerprint;
pub mod flip;
pub mod graph;
pub mod ids;
pub mod matrix;
pub mod model;
pub mod proof;
pub mod provenance;
pub mod radius;
pub mod results;
pub mod settings;
pub mod sparse;
pub mod values;

mod bytes;
mod nearest;
mod npz;
mod tensors;

#[cfg(test)]
#[path = "../../nodeproof/tests/integration/common/seed.rs"]
mod seed;

pub use attributes::AttributeKind;
pub use budget::{Budget, BudgetError, Direction, EdgeBudget, EdgeLimits, Limits, LocalBudget, Percent};
pub use certificate::{Bound, Certificate, Evidence, Obstacle, Verdict, Witness};
pub use collective::{Collective, CutMultipliers};
pub use edge::Edge;
pub use flip::Flip;
pub use graph::{
    Cleaning, Graph, GraphError, GraphOptions, GraphStatistics, Names, Part, Split, SplitError, SplitSize,
};
pub use ids::{AttributeId, ClassId, NodeId};
pub use matrix::Matrix;
pub use model::{Activation, Layer, Model, ModelError, Propagation, Source, Term, Weight};
pub use nearest::{did_you_mean, nearest};
pub use npz::NpzError;
pub use proof::{Branch, Proof, Proofs, UnitSlope};
pub use radius::{Found, Radius};
pub use settings::{
    Architecture, Arithmetic, CertifySettings, Engine, Method, Schedule, SettingsError, TargetClass, TrainSettings,
    WorstCase,
};
pub use sparse::{Pattern, SparseMatrix};
pub use values::Values;
