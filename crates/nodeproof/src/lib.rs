//! Proofs that a graph convolutional network's predictions withstand tampering with node attributes.
//!
//! # The problem
//!
//! A network with layers `W⁰, b⁰, …, Wᴸ, bᴸ` and propagation `P ≥ 0` reads binary attributes `X` (nodes ×
//! attributes) and computes
//!
//! ```text
//! Z⁰ = P X W⁰ + b⁰,     Zⁱ = P relu(Zⁱ⁻¹) Wⁱ + bⁱ,     logits of node t = row t of Zᴸ.
//! ```
//!
//! An attacker flips entries of `X`: at most Q in all and q_n in the row of node n ([`Budget`]). Node t with class y is
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
//! The modules follow the paper (Zügner and Günnemann, *Certifiable Robustness and Robust Training for Graph
//! Convolutional Networks*, KDD 2019): [`graph`] → [`model`] → [`network`] → [`budget`] → `slice` → `bounds` →
//! `relaxation` → `search` and `selection` → [`certify`], with `rounding` under all of them; [`train`] makes networks.
//! [`check`] stands beside: it computes the same quantities from the plain formulas and shares no code with the engines.
//! Names: Â is `propagation`, R and S are `lo` and `hi`, Ω are slopes, q and Q the local and the global budget.

pub mod budget;
pub mod certify;
pub mod check;
pub mod graph;
pub mod model;
pub mod network;
pub mod sparse;
pub mod train;

mod bounds;
mod dense;
mod exact;
mod files;
mod kernels;
mod npz;
mod relaxation;
mod rounding;
mod search;
mod selection;
mod slice;
mod tensors;

pub use budget::{Budget, BudgetError, Direction, Flip, Limits, LocalBudget, Percent};
pub use certify::{
    Certificate, Certifier, CertifyError, Engine, Event, Finish, Gap, Radius, Slopes, TargetClass, Verdict, Witness,
};
pub use dense::Matrix;
pub use graph::{
    AttributeId, ClassId, Cleaning, Graph, GraphError, GraphOptions, GraphStatistics, Names, NodeId, Part, Split,
    SplitError, SplitSize,
};
pub use model::{Layer, Model, ModelError, Propagation};
pub use network::Network;
pub use npz::NpzError;
pub use sparse::{Pattern, SparseMatrix};
