//! How many predictions one admissible set of flips can change at most (Lemmas 72 to 74 of `docs/maths.md`), and attacks on many at once.
//!
//! A set that changes target t meets every *cut* of t, an inequality `Σ_{f∈F} w_t(f) ≥ 1`: it takes the margin, or what is beyond a part of
//! it ([`table`]), and it has more flips than the radius in what t sees. For any multipliers λ ≥ 0 of cuts
//!
//! ```text
//! changed ≤ Σ_t (1 − Σ_i λ_ti)₊ + max_{F admissible} Σ_{f∈F} Σ_{t,i} λ_ti w_ti(f),
//! ```
//!
//! of which [`prices`] has the right side and [`balance`] good multipliers.

mod attack;
mod balance;
mod prices;
mod single;
mod table;
mod tampered;
#[cfg(test)]
mod tests;

pub(crate) use attack::{Score, attack};
pub(crate) use balance::{Balance, balance};
pub(crate) use prices::Cuts;
pub(crate) use single::best_single;
pub(crate) use table::{Filling, Seen, Table};
pub(crate) use tampered::Tampered;
