//! Certificates, radii and training logs: JSON Lines, read as they are, and once more with hashes that fit.
#![no_main]

use std::io::BufReader;
use std::path::Path;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use nodeproof_check::Checker;
use nodeproof_fuzz::{example, example_graph};
use nodeproof_problem::results::{Certificates, LineWriter, Radii, Results, TableWriter};
use nodeproof_problem::{Certificate, Graph, Model, Radius};
use nodeproof_report::page::Page;
use nodeproof_report::plot::figures::{self, Aims, Curves, Run};
use nodeproof_report::tally::{RadiusSummary, Summary};
use serde_json::value::RawValue;

fuzz_target!(|text: &str| {
    use_results(text.as_bytes());
    if let Some(text) = with_hashes(text) {
        use_results(&text);
    }
});

/// The same lines with hashes that fit, if all are JSON.
fn with_hashes(text: &str) -> Option<Vec<u8>> {
    let mut lines = text.lines().map(serde_json::from_str::<&RawValue>);
    let mut writer = LineWriter::begin(Vec::new(), &lines.next()?.ok()?).ok()?;
    for line in lines {
        writer.record(&line.ok()?).ok()?;
    }
    Some(writer.into_inner())
}

fn read(bytes: &[u8]) -> Option<Results> {
    Results::read_from(BufReader::new(bytes), "fuzz").ok()
}

fn use_results(bytes: &[u8]) {
    match read(bytes) {
        Some(Results::Certificates(certificates)) => use_certificates(certificates),
        Some(Results::Radii(radii)) => use_radii(radii),
        Some(Results::Training(log)) => {
            figures::dynamics(&[Run::of("log".to_owned(), &log)], Aims::of(&log)).svg();
        }
        _ => {}
    }
}

/// The graph and the model that the seeds are about.
fn papers() -> &'static (Graph, Model) {
    static PAPERS: OnceLock<(Graph, Model)> = OnceLock::new();
    PAPERS.get_or_init(|| (example_graph(), Model::read(example("model.safetensors")).unwrap()))
}

fn use_certificates(certificates: Certificates) {
    let written = |certificates: &Certificates| {
        let mut bytes = Vec::new();
        certificates.write(&mut bytes).unwrap();
        bytes
    };
    let once = written(&certificates);
    let back = Certificates::of(read(&once).expect("what was written can be read"), Path::new("fuzz")).unwrap();
    assert_eq!(written(&back), once, "what is read and written again stays as it is");

    let (graph, model) = papers();
    let mut table = TableWriter::begin::<Certificate>(Vec::new(), graph).unwrap();
    let mut summary = Summary::new(None);
    for record in &certificates.records {
        table.record(record).unwrap();
        summary.add(record);
    }
    let _ = (summary.table(), summary.figures(), certificates.header.budget_in_words());
    if let Ok(checker) = Checker::of(&certificates.header, graph, model) {
        certificates.records.iter().for_each(|record| drop(checker.certificate(record)));
    }
    drop(Page::new(graph, "papers").model("model", Some(certificates), None).html());
}

fn use_radii(radii: Radii) {
    let written = |radii: &Radii| {
        let mut bytes = Vec::new();
        radii.write(&mut bytes).unwrap();
        bytes
    };
    let once = written(&radii);
    let back = Radii::of(read(&once).expect("what was written can be read"), Path::new("fuzz")).unwrap();
    assert_eq!(written(&back), once, "what is read and written again stays as it is");

    let (graph, _) = papers();
    let mut table = TableWriter::begin::<Radius>(Vec::new(), graph).unwrap();
    radii.records.iter().for_each(|record| table.record(record).unwrap());
    let summary = RadiusSummary::new(&radii, None);
    let _ = (summary.table(), summary.notes(), summary.histogram.in_words());
    figures::certificates((None, &Curves::of(&radii)), None, None).svg();
    let fewer = radii.clone().up_to(radii.max_budget() / 2);
    assert!(fewer.records.iter().all(|record| record.robust_up_to <= Some(fewer.max_budget())));
    drop(Page::new(graph, "papers").model("model", None, Some(radii)).html());
}
