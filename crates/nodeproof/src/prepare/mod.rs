//! What is computed before any target is looked at: once for a network and its targets ([`Prepared`]), and once more for each
//! budget and the targets that are asked about under it ([`Shard`]).

mod changes;
mod shard;
mod step_error;

use std::ops::ControlFlow;
use std::sync::Arc;

use rayon::ThreadPool;

use crate::bounds::{Bounds, Clean};
use crate::budget::Limits;
use crate::dense::Matrix;
use crate::ids::NodeId;
use crate::network::Network;
use crate::relax::Slopes;
use crate::search::AttributeTables;
use crate::slice::Region;

pub(crate) use changes::{Change, Changes};
pub(crate) use shard::{Order, Shard, flips_anywhere};
#[cfg(test)]
pub(crate) use step_error::StepError;

/// What does not depend on the budget: the pre-activations of all nodes that some target sees, and tables about attributes.
#[derive(Debug)]
pub(crate) struct Prepared<'a> {
    network: &'a Network<'a>,
    slopes: &'a Slopes,
    region: Arc<Region>,
    clean: Arc<Clean>,
    tables: AttributeTables,
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(network: &'a Network<'a>, targets: &[NodeId], slopes: &'a Slopes, pool: &ThreadPool) -> Self {
        let region = Arc::new(network.region(targets));
        let pairs = network.has_one_hidden_layer() && *slopes == Slopes::Default;
        let (clean, tables) = pool.install(|| (Clean::new(network, &region), AttributeTables::new(network, pairs)));
        Self { network, slopes, clean: Arc::new(clean), tables, region }
    }

    /// What `targets`, of those that were prepared for, share under a budget; `None` if `observer`, called with `(done, total)`
    /// steps, breaks off.
    pub(crate) fn shard<'p>(
        &'p self,
        limits: &'p Limits,
        targets: &[NodeId],
        pool: &ThreadPool,
        observer: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Option<Shard<'p>> {
        let (region, clean) = self.restricted(targets);
        let bounds = Bounds::compute(self.network, limits, &region, clean, pool, observer)?;
        Some(pool.install(|| Shard::new(self.network, limits, region, bounds, &self.tables, self.slopes)))
    }

    /// The region of `targets` and the pre-activations there.
    fn restricted(&self, targets: &[NodeId]) -> (Arc<Region>, Arc<Clean>) {
        if targets.len() == self.region.targets().nodes().len() {
            return (Arc::clone(&self.region), Arc::clone(&self.clean));
        }
        let region = self.network.region(targets);
        let rows = |i: usize, clean: &Matrix| {
            let (level, all) = (region.level(i + 1).nodes(), self.region.level(i + 1));
            let rows = level.iter().flat_map(|&node| clean.row(all.place(node)).iter().copied());
            Matrix::from_values(level.len(), clean.columns(), rows.collect())
        };
        let layers = self.clean.layers.iter().enumerate().map(|(i, clean)| rows(i, clean)).collect();
        let parts = self.clean.parts.iter().enumerate();
        let parts = parts.map(|(i, part)| part.as_ref().map(|part| rows(i, part))).collect();
        let means = self.clean.means.as_ref().map(|means| {
            let (nodes, all) = (region.level(0).nodes(), self.region.level(0));
            let rows = nodes.iter().flat_map(|&node| means.row(all.place(node)).iter().copied());
            Matrix::from_values(nodes.len(), means.columns(), rows.collect())
        });
        (Arc::new(region), Arc::new(Clean { layers, parts, means }))
    }
}
