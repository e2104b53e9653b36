//! The paper's experiments, on tiny graphs under the names of its data sets.

#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use nodeproof::{ClassId, Graph};
use nodeproof_lab::LabError;
use nodeproof_lab::reproduce::{Event, Settings, Summary, run};

/// A connected graph with labels.
fn write_graph(path: &Path, nodes: u32) {
    let edges: Vec<_> =
        (0..nodes).flat_map(|node| [(node, (node + 1) % nodes), (node, (node * 7 + 5) % nodes)]).collect();
    let ones: Vec<_> = (0..nodes).flat_map(|node| (0..3).map(move |i| (node, (node * (2 * i + 1) + i) % 12))).collect();
    let labels = (0..nodes).map(|node| Some(ClassId(node % 3))).collect();
    let graph = Graph::new(nodes as usize, 12, &edges, &ones).unwrap().with_labels(labels).unwrap();
    graph.write(path).unwrap();
}

/// Runs until `stop` says so of an event within a step.
fn reproduce(folder: &Path, out: &str, mut stop: impl FnMut() -> bool) -> Result<Option<Summary>, LabError> {
    let settings = Settings { data: folder.join("data"), out: folder.join(out), splits: 1, threads: 2 };
    run(&settings, |event| match event {
        Event::Progress { .. } if stop() => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })
}

/// The content of every file below `folder`, by its path.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(file, bytes)| (format!("{name}/{file}"), bytes)));
        } else {
            found.insert(name, fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn a_run_that_is_stopped_again_and_again_comes_to_the_same() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("data")).unwrap();
    write_graph(&folder.path().join("data/citeseer.npz"), 40);
    let whole = reproduce(folder.path(), "whole", || false).unwrap().unwrap();
    assert_eq!((whole.findings.len(), whole.findings[0].outcomes.len(), whole.figures.len()), (1, 4, 9));
    assert_eq!(whole.missing, ["Cora-ML", "PubMed"]);

    let (mut stops, mut summary) = (0, None);
    while summary.is_none() {
        let mut events = 0;
        summary = reproduce(folder.path(), "stopped", || {
            events += 1;
            events > 333
        })
        .unwrap();
        stops += 1;
        assert!(stops < 1000, "it comes to no end");
        if stops == 5 {
            // Another run may not work in the same folder; this one has let go of it.
            let left = files(&folder.path().join("stopped"));
            assert!(left.keys().any(|name| name.ends_with(".checkpoint") || name.ends_with(".unfinished")), "{left:?}");
        }
    }
    assert!(stops > 10, "{stops}");
    assert_eq!(summary.unwrap().findings, whole.findings);
    let (whole, stopped) = (files(&folder.path().join("whole")), files(&folder.path().join("stopped")));
    assert_eq!(whole.keys().collect::<Vec<_>>(), stopped.keys().collect::<Vec<_>>(), "nothing is left behind");
    for (name, bytes) in &whole {
        // These say how long it took.
        assert!(["README.md", "steps.jsonl"].contains(&name.as_str()) || stopped[name] == *bytes, "{name}");
    }
}

#[test]
fn two_runs_do_not_work_in_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("data")).unwrap();
    write_graph(&folder.path().join("data/cora_ml.npz"), 30);
    let mut refused = None;
    let first = reproduce(folder.path(), "out", || {
        refused = Some(reproduce(folder.path(), "out", || true).unwrap_err().to_string());
        true
    });
    assert!(first.unwrap().is_none());
    assert!(refused.unwrap().contains("another run of nodeproof"));
}
