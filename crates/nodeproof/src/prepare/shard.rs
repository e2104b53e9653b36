//! What all targets share under one budget.

use std::sync::{Arc, OnceLock};

use super::changes::{self, Changes};
use super::step_error::StepError;
use crate::bounds::Bounds;
use crate::budget::Limits;
use crate::engines::first_order::Reach;
use crate::flip::Flip;
use crate::graph::Graph;
use crate::ids::{AttributeId, NodeId};
use crate::network::Network;
use crate::relax::{Lines, Slopes};
use crate::rounding::cannot_overflow;
use crate::search::{AttributeTables, NormTable, PairTables, Search};
use crate::slice::{Heaviest, Region, Slice, SlicedFlip, Slicer, attribute_of, reversed};
use crate::values::Values;

/// What all targets share under one budget: bounds of all units they see, and the order in which searches visit attributes.
#[derive(Debug)]
pub(crate) struct Shard<'a> {
    pub(crate) network: &'a Network<'a>,
    pub(crate) limits: &'a Limits,
    pub(crate) region: Arc<Region>,
    pub(crate) bounds: Bounds,
    pub(crate) lines: Vec<Lines>,
    pub(crate) order: Order,
    /// What rounding costs on the way back through each layer; nothing where [`Order::Pairs`] makes that way superfluous.
    pub(crate) step_errors: Vec<StepError>,
    pub(crate) tables: &'a AttributeTables,
    /// How far flips move units, where that depends on the budget.
    reach: OnceLock<Reach>,
    heaviest: OnceLock<Heaviest>,
    /// Most flips in total that can be made.
    flips: usize,
    /// Added to every error: infinite where numbers may overflow.
    pub(crate) overflow_error: f64,
}

/// Neighbours of a node that bounds begin with where slices have more entries of the first layer than a few.
const KEPT: usize = 32;
const FEW: usize = 1024;

/// Attributes in the order in which the search visits them.
#[derive(Debug)]
pub(crate) enum Order {
    /// One table for each ordered pair of classes, for one hidden layer with default slopes.
    Pairs(PairTables),
    /// One table for everything, by the norms of the attributes' weights.
    Norms(NormTable),
}

/// Most flips in total that can be made.
pub(crate) fn flips_anywhere(graph: &Graph, limits: &Limits) -> usize {
    let nodes: Vec<u32> = graph.node_ids().map(|node| node.0).collect();
    limits.flips_within(&nodes)
}

impl<'a> Shard<'a> {
    pub(crate) fn new(
        network: &'a Network<'a>,
        limits: &'a Limits,
        region: Arc<Region>,
        bounds: Bounds,
        tables: &'a AttributeTables,
        slopes: &Slopes,
    ) -> Self {
        let mut given = match slopes {
            Slopes::Default => [].iter(),
            Slopes::Given(slopes) => slopes.iter(),
        };
        let lines = bounds.layers.iter().zip(network.layers()).enumerate();
        let lines: Vec<Lines> = lines
            .map(|(i, (bounds, layer))| {
                let given = if layer.is_hidden() { given.next() } else { None };
                Lines::new(bounds, layer.activation(), region.level(i + 1).nodes(), given)
            })
            .collect();
        let order = match &tables.pair_norms {
            Some(norms) => {
                let (logits, slopes) = (&bounds.clean.layers[1], &lines[0].upper);
                Order::Pairs(PairTables::new(network, limits, &region, logits, slopes, (&tables.rough, norms)))
            }
            None => Order::Norms(NormTable::new(&tables.rough, limits, network.graph().values())),
        };
        let step_errors = match order {
            Order::Pairs(_) => Vec::new(),
            Order::Norms(_) => StepError::of_layers(network, &region, &bounds.layers),
        };
        let overflow_error = if cannot_overflow(network, limits) { 0.0 } else { f64::INFINITY };
        let (reach, heaviest) = (OnceLock::new(), OnceLock::new());
        let flips = flips_anywhere(network.graph(), limits);
        Self {
            network,
            limits,
            region,
            bounds,
            lines,
            order,
            step_errors,
            tables,
            reach,
            heaviest,
            flips,
            overflow_error,
        }
    }

    /// The logits of a target on the graph as it is.
    pub(crate) fn logits(&self, target: crate::ids::NodeId) -> &[f64] {
        self.bounds.clean.layers[self.bounds.layers.len()].row(self.region.targets().place(target.0))
    }

    /// The place in the region of each node of `slice`, for the level of each layer.
    pub(crate) fn places(&self, slice: &Slice) -> Vec<Vec<u32>> {
        let level = |level: usize| {
            let nodes = slice.level(level).iter();
            nodes.map(|&node| self.region.level(level).place(node) as u32).collect()
        };
        (1..=self.network.layers().len()).map(level).collect()
    }

    /// What a flip changes its entry by: of bits 1 if it adds the attribute, and −1 if it removes it.
    #[inline]
    pub(crate) fn change(&self, slice: &Slice, flip: SlicedFlip) -> f64 {
        changes::change(self.network.graph(), self.limits, slice.level(0)[flip.0 as usize], flip)
    }

    /// What a flip of an entry changes it by that another flip has brought to the opposite end.
    pub(crate) fn change_back(&self, slice: &Slice, flip: SlicedFlip) -> f64 {
        let (node, values) = (slice.level(0)[flip.0 as usize], self.network.graph().values());
        let end = |values: &Values, flip| changes::end(values, self.limits, node, flip);
        values.map_or(0.0, |values| end(values, flip) - end(values, reversed(flip)))
    }

    /// What flips of a slice do to its rows.
    pub(crate) fn changes(&self, slice: &Slice, flips: &[SlicedFlip]) -> Changes {
        Changes::new(self.network.graph(), self.limits, flips, |position| slice.level(0)[position as usize])
    }

    /// `X_n W` of a row of a slice, where rows are divided by the number of their ones.
    pub(crate) fn mean(&self, slice: &Slice, position: u32) -> Option<&[f64]> {
        let place = self.region.level(0).place(slice.level(0)[position as usize]);
        self.bounds.clean.means.as_ref().map(|means| means.row(place))
    }

    /// The flip of the graph that one of a slice stands for.
    pub(crate) fn flip(&self, slice: &Slice, flip: SlicedFlip) -> Flip {
        let (node, graph) = (slice.level(0)[flip.0 as usize], self.network.graph());
        let (id, attribute) = (NodeId(node), AttributeId(attribute_of(flip) as u32));
        match graph.values() {
            None => Flip::of(graph, id, attribute),
            Some(values) => Flip { node: id, attribute, to: changes::end(values, self.limits, node, flip) },
        }
    }

    /// Most flips in total that can be made in sight of the target of a slice, or anywhere where some of it is left out.
    pub(crate) fn flips_within(&self, slice: &Slice) -> usize {
        if slice.is_whole() { self.limits.flips_within(slice.level(0)) } else { self.flips }
    }

    /// The neighbours to begin with, where bounds need not see all of a slice.
    pub(crate) fn heaviest(&self) -> Option<&Heaviest> {
        let made = || self.heaviest.get_or_init(|| Heaviest::new(self.network.matrix(0, 0), KEPT, FEW));
        matches!(self.order, Order::Pairs(_)).then(made)
    }

    /// The first slice to look at; all of it where nothing is to be left out, and the dual is the bound to begin with if `with_dual` says so.
    pub(crate) fn first_slice<'s>(&self, slicer: &'s mut Slicer, target: NodeId, with_dual: bool) -> &'s Slice {
        // The dual of other networks needs all units.
        let routes = || self.tables.routes(self.network).filter(|_| !with_dual);
        match (self.heaviest(), routes()) {
            (Some(heaviest), _) => slicer.near(target, heaviest),
            (None, Some(routes)) => slicer.cut(target, routes),
            (None, None) => slicer.slice(target),
        }
    }

    /// How far a flip can move units where the ones of rows are divided by their number, of which the budget leaves at least some.
    pub(crate) fn normalised_reach(&self) -> Option<&Reach> {
        let Self { network, limits, .. } = self;
        let graph = network.graph();
        let fewest = |n: u32| {
            let removed = if limits.deletions() { limits.local(NodeId(n)).min(limits.global()) } else { 0 };
            graph.attributes().row(n as usize).len().saturating_sub(removed).max(1) as f64
        };
        let made = || self.reach.get_or_init(|| Reach::of_normalised(network, fewest));
        graph.kind().is_normalised().then(made)
    }

    /// Numbers that are added up for μ of a row of a slice, at most; 0 where there is no μ.
    pub(crate) fn longest_mean(&self, slice: &Slice) -> usize {
        let attributes = self.network.graph().attributes();
        let lengths = slice.level(0).iter().map(|&n| attributes.row(n as usize).len());
        self.bounds.clean.means.as_ref().and_then(|_| lengths.max()).unwrap_or(0)
    }

    /// Searches flips with the largest gains.
    pub(crate) fn search(&self) -> Search<'_> {
        Search::new(self.network, self.limits, &self.tables.rough)
    }
}
