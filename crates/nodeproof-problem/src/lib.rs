//! What nodeproof is asked and answers: graphs, models, budgets, settings, certificates, radii, and all their files.
//!
//! # The problem
//!
//! A network with layers `W⁰, b⁰, …, Wᴸ, bᴸ` and propagation `P ≥ 0` reads binary attributes `X` (nodes × attributes) and
//! computes
//!
//! ```text
//! Z⁰ = P X W⁰ + b⁰,     Zⁱ = P relu(Zⁱ⁻¹) Wⁱ + bⁱ,     logits of node t = row t of Zᴸ.
//! ```
//!
//! An attacker flips entries of `X`: at most Q in total and q_n in the row of node n ([`Budget`]). Node t with class y is
//! **robust** when for every admissible set of flips and every other class k
//!
//! ```text
//! margin_k = logit_y − logit_k > 0.
//! ```
//!
//! A [`Certificate`] is a verdict on that with its [`Evidence`]; a [`Radius`] is the largest Q for which a node is robust.
//!
//! No engine is in here: the crate `nodeproof` has them.

pub mod budget;
pub mod certificate;
pub mod checkpoint;
pub mod files;
pub mod fingerprint;
pub mod flip;
pub mod graph;
pub mod ids;
pub mod matrix;
pub mod model;
pub mod provenance;
pub mod radius;
pub mod results;
pub mod settings;
pub mod sparse;

mod npz;
mod tensors;

pub use budget::{Budget, BudgetError, Direction, Limits, LocalBudget, Percent};
pub use certificate::{Bound, Certificate, Evidence, Verdict, Witness};
pub use flip::Flip;
pub use graph::{
    Cleaning, Graph, GraphError, GraphOptions, GraphStatistics, Names, Part, Split, SplitError, SplitSize,
};
pub use ids::{AttributeId, ClassId, NodeId};
pub use matrix::Matrix;
pub use model::{Activation, Layer, Model, ModelError, Propagation, Source, Term, Weight};
pub use npz::NpzError;
pub use radius::{Found, Radius};
pub use settings::{
    Architecture, CertifySettings, Engine, Method, Schedule, SettingsError, TargetClass, TrainSettings,
};
pub use sparse::{Pattern, SparseMatrix};
