//! The program, end to end. One program for all tests, so that they link once.

#![allow(clippy::unwrap_used, missing_docs)]

mod bad_input;
mod bundled;
mod certify;
mod check;
mod collective;
mod common;
mod data;
mod demo;
mod download;
mod edges;
mod engines;
mod explain;
mod interrupt;
mod killed;
mod model;
mod normalised_rows;
mod outputs;
mod plot;
mod predict;
mod radius;
mod readme;
mod real_values;
mod report;
mod reproduce;
mod resume;
mod shards;
mod since;
mod train;
