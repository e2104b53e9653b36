//! Checking certificates and radii.

use std::collections::BTreeMap;
use std::sync::Arc;

use nodeproof::results::{Header, Record};
use nodeproof_check::{Checker, NotAccepted, Rejection};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::errors::Failure;
use crate::graph::PyGraph;
use crate::model::PyModel;
use crate::work;

/// Records that are checked between two looks at whether to stop.
pub(crate) const AT_ONCE: usize = 64;

/// The nodes whose records the checker rejects, and why, and those that it did not check.
pub(crate) fn judged<R: Record + Send + Sync + 'static>(
    py: Python<'_>,
    (graph, model): (&PyGraph, &PyModel),
    (header, records): (Header, Vec<R>),
    judge: fn(&Checker<'_>, &R) -> Result<(), NotAccepted>,
    threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(BTreeMap<u32, String>, Vec<u32>)> {
    let (graph, model) = (Arc::clone(&graph.0), Arc::clone(&model.0));
    work::run(py, progress, move |watch| {
        let checker = Checker::of(&header, &graph, &model).map_err(Failure::input)?;
        let (pool, mut rejected, mut not_checked, mut done) = (work::pool(threads)?, BTreeMap::new(), Vec::new(), 0);
        for some in records.chunks(AT_ONCE) {
            let reason = |record: &R| Some((record.node().0, judge(&checker, record).err()?));
            for (node, reason) in pool.install(|| some.par_iter().filter_map(reason).collect::<Vec<_>>()) {
                match reason {
                    NotAccepted::NotChecked => not_checked.push(node),
                    NotAccepted::Rejected(rejection) => drop(rejected.insert(node, in_words(&rejection, &header))),
                }
            }
            done += some.len();
            if watch.tell(done, records.len()) {
                return Err(Failure::Stopped);
            }
        }
        Ok((rejected, not_checked))
    })
}

/// Why a record is rejected, and what to do where no proofs were asked for and there may be some.
fn in_words(rejection: &Rejection, header: &Header) -> String {
    match rejection {
        Rejection::Unproven(_) if !header.proofs && header.budget.edges().is_none() => {
            format!("{rejection}; proofs=True keeps proofs")
        }
        _ => rejection.to_string(),
    }
}
