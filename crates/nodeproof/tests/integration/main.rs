//! What the library promises, held against truths that share no code with it. One program, so that it links once.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod arithmetic;
mod attack;
mod brute_force;
mod collective;
mod collective_checked;
mod collective_harsh;
mod common;
mod differential;
mod golden;
mod left_out;
mod linear_program;
mod overflow;
mod proofs;
mod readme;
mod rounding;
mod since;
mod tampering;
mod textbook;
