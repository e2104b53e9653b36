//! The radii of a network, verdict by verdict in a journal, so that a search that is stopped continues where it was.

use std::ops::ControlFlow;
use std::time::Duration;

use nodeproof::files::{Destination, Keep, Unfinished};
use nodeproof::results::{Header, Radii, Record, Trial};
use nodeproof::{Budget, Certifier, CertifySettings, Engine, Finish, LocalBudget, Model, NodeId, Percent, SearchEvent};

use super::Observer;
use super::plan::{Network, Plan, TIME_LIMIT};
use super::steps::{is_of_no_use, tell};
use crate::LabError;

/// Finds the radii of `network` up to a global budget, and writes them.
///
/// # Errors
/// If the model cannot be read, or the radii not be written.
pub(super) fn search(
    plan: &Plan,
    network: &Network,
    (engine, most): (Engine, u32),
    observe: Observer,
) -> Result<Finish, LabError> {
    let graph = &network.source.graph;
    let model = Model::read(network.model(plan.folder))?;
    let budget = Budget::new(most, LocalBudget::Percent(Percent::ONE)).capped(graph);
    let most = budget.global();
    let mut settings = CertifySettings::new(budget);
    (settings.engine, settings.threads) = (engine, plan.threads);
    settings.time_limit = Some(Duration::from_secs(TIME_LIMIT.into()));
    let nodes: Vec<NodeId> = graph.node_ids().collect();
    let header = Header::new(graph, &model, &settings, nodes.len());
    let certifier = Certifier::new(graph, &model)?.settings(settings);

    let destination = Destination::File(network.radii(plan.folder, engine));
    let mut search = certifier.search_radii(&nodes, most);
    let resumed = Unfinished::resume_journal(&destination, &Trial::header_line(&header), |line| {
        search.learn(&Trial::of_line(line, &header)?).map(|()| Keep::Keep)
    });
    let mut journal = match resumed {
        Err(error) if is_of_no_use(&error) => {
            search = certifier.search_radii(&nodes, most);
            Unfinished::begin_journal(&destination, &Trial::header_line(&header))?
        }
        resumed => resumed?,
    };
    let mut written = Ok(());
    let finish = search.run(|search, event| {
        if let SearchEvent::Verdict(trial) = event {
            written = journal.record(&trial.line(&header));
            if written.is_err() {
                return ControlFlow::Break(());
            }
        }
        let (done, total) = search.progress();
        tell(observe, &format!("nodes, round {}", search.round()), done, total)
    })?;
    written?;
    if finish == Finish::Cancelled {
        journal.flush()?;
        return Ok(finish);
    }
    let mut radii = Radii::new(header);
    radii.records = search.radii();
    journal.finish_with(|out| radii.write(out))?;
    Ok(Finish::Complete)
}
