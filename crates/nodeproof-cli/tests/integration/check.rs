//! `nodeproof check` on certificates that are right, and on ones that were tampered with.

use nodeproof::{AttributeKind, Graph, Matrix, Model, Propagation};

use crate::common::{self, Fixture, json};

/// A graph, a model, and certificates with proofs, all of which are accepted.
fn fixture() -> Fixture {
    let fixture = Fixture::new();
    common::graph(60, 12).write(fixture.path("graph.npz")).unwrap();
    common::model(12).write(fixture.path("model.safetensors")).unwrap();
    fixture.run(&format!("{CERTIFY} --proof --out proven.jsonl --quiet")).succeeded();
    fixture
}

const CERTIFY: &str =
    "certify --graph graph.npz --model model.safetensors --global-budget 4 --local-budget 2 --threads 1";
const CHECK: &str = "check --graph graph.npz --model model.safetensors";

#[test]
fn certificates_with_proofs_are_accepted() {
    let fixture = fixture();
    let run = fixture.run(&format!("{CHECK} proven.jsonl"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("accepted") && run.stdout.contains("rejected"), "{}", run.stdout);
    let json = fixture.run(&format!("{CHECK} proven.jsonl --json --quiet"));
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((json["checked"].as_u64(), json["rejected"].as_array().unwrap().len()), (Some(60), 0));
    assert!(json["robust"].as_u64() > Some(0) && json["nonrobust"].as_u64() > Some(0), "{json}");
}

#[test]
fn radii_with_proofs_are_accepted_and_larger_ones_are_not() {
    let fixture = fixture();
    let radius = "radius --graph graph.npz --model model.safetensors --max-budget 6 --local-budget 2 --threads 1";
    fixture.run(&format!("{radius} --proof --out radii.jsonl --quiet")).succeeded();
    let run = fixture.run(&format!("{CHECK} radii.jsonl"));
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("accepted") && run.stdout.contains("60 exact"), "{}", run.stdout);
    let mut radii = nodeproof::results::Radii::read(fixture.path("radii.jsonl")).unwrap();
    let most = radii.max_budget();
    for radius in radii.records.iter_mut().filter(|radius| radius.nonrobust_from().is_some()) {
        radius.robust_up_to = Some(most);
        let found = radius.found.as_mut().unwrap();
        (found.nonrobust_from, found.witness, found.proofs) = (None, None, Some(Default::default()));
        found.exact = true;
    }
    radii.write(std::fs::File::create(fixture.path("forged.jsonl")).unwrap()).unwrap();
    let run = fixture.run(&format!("{CHECK} forged.jsonl"));
    assert_eq!(run.code, 1);
    assert!(run.stdout.contains("called exact: the margin over class"), "{}", run.stdout);
    assert_eq!(fixture.run(&format!("{radius} --proof --scan --engine fast --out scan.jsonl")).code, 2);
    fixture.run(&format!("{radius} --scan --engine fast --out scan.jsonl --quiet")).succeeded();
    assert_eq!(fixture.run(&format!("{CHECK} scan.jsonl")).code, 0, "the bound alone shows what `fast` does");
}

#[test]
fn a_run_that_was_cut_off_goes_on_with_proofs() {
    let fixture = Fixture::new();
    common::copy_papers(&fixture);
    let papers = "--graph papers.npz --model papers.safetensors";
    let certify = format!("certify {papers} --global-budget 4 --local-budget 4 --out proven.jsonl");
    fixture.run(&format!("{certify} --proof --quiet")).succeeded();
    let whole = fixture.read("proven.jsonl");
    assert!(whole.contains("\"branches\":[") && whole.contains("\"slopes\":["), "there are proofs of both kinds");
    fixture.run(&format!("check {papers} proven.jsonl")).succeeded();
    std::fs::remove_file(fixture.path("proven.jsonl")).unwrap();
    fixture.write("proven.jsonl.unfinished", &whole[..whole.len() / 2]);
    fixture.run(&format!("{certify} --proof --resume --quiet")).succeeded();
    assert_eq!(fixture.read("proven.jsonl"), whole);
    let refused = fixture.run(&format!("{certify} --resume"));
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("proofs: true there, none now"), "{}", refused.stderr);
}

#[test]
fn certify_can_check_what_it_wrote_before_it_judges() {
    let fixture = fixture();
    let run = fixture.run(&format!("{CERTIFY} --proof --check --fail-under 1% --out again.jsonl"));
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("all certificates are accepted"), "{}", run.stdout);
    let run = fixture.run(&format!("{CERTIFY} --proof --check --out -"));
    assert_eq!((run.code, &run.stdout[..]), (2, ""), "it is refused before anything is done");
    assert!(run.stderr.contains("give --out the name of a file"), "{}", run.stderr);
    assert_eq!(fixture.run(&format!("{CERTIFY} --check --out again.jsonl")).code, 2, "there is nothing to check");
}

/// The margin is 1 + 2 relu(2x + 0.5) − relu(2x) + 2 relu(x + 0.5), at least 1. No tree of flips shows that: after any of them x still moves
/// between the ends of its range.
#[test]
fn the_summary_counts_robust_nodes_without_a_proof() {
    let fixture = Fixture::new();
    Graph::new(2, 1, &[], &[]).unwrap().write(fixture.path("graph.npz")).unwrap();
    let layers = vec![
        (Matrix::from_values(1, 3, vec![2.0, 2.0, 1.0]), vec![0.5, 0.0, 0.5]),
        (Matrix::from_values(3, 2, vec![2.0, 0.0, -1.0, 0.0, 2.0, 0.0]), vec![1.0, 0.0]),
    ];
    let model = Model::gcn(layers, Propagation::SymmetricGcn).unwrap().with_kind(AttributeKind::RealValues);
    model.write(fixture.path("model.safetensors")).unwrap();
    fixture.write("ranges.csv", "all, -1, 1\n");
    let files = "--graph graph.npz --real-values --ranges ranges.csv --model model.safetensors";
    let certify = format!("certify {files} --global-budget 1 --local-budget 1");
    for (more, expected, words) in [
        ("", 2, "proofs none for 2 of 2 robust nodes, which `nodeproof check` may reject"),
        ("--protect-nodes 1", 1, "proofs none for 1 of 2 robust nodes, which `nodeproof check` may reject"),
        ("--protect-nodes 0-1", 0, "proofs for each of 2 robust nodes"),
    ] {
        let run = fixture.run(&format!("{certify} {more} --proof --out proven.jsonl")).succeeded();
        let told = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(words), "{}", run.stdout);
        let written = fixture.read("proven.jsonl").matches("\"proofs\":null").count();
        let summary =
            json(&fixture.run(&format!("{certify} {more} --proof --json --out json.jsonl")).succeeded().stdout);
        assert_eq!((&summary["all"]["robust"], &summary["without_proof"]), (&2.into(), &expected.into()), "{summary}");
        assert_eq!(written, expected);
        let checked = fixture.run(&format!("check {files} proven.jsonl"));
        assert_eq!(checked.code, i32::from(expected > 0), "{}", checked.stdout);
    }
    let run = fixture.run(&certify).succeeded();
    assert!(!run.stdout.contains("proofs"), "{}", run.stdout);
    let summary = json(&fixture.run(&format!("{certify} --json")).succeeded().stdout);
    assert!(summary.get("without_proof").is_none(), "none were asked for");
}

#[test]
fn radius_can_check_what_it_wrote() {
    let fixture = fixture();
    let radius = "radius --graph graph.npz --model model.safetensors --max-budget 3";
    let run = fixture.run(&format!("{radius} --proof --check --out radii.jsonl"));
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("all radii are accepted"), "{}", run.stdout);
    assert_eq!(fixture.run(&format!("{radius} --check --out radii.jsonl")).code, 2, "there is nothing to check");
}

#[test]
fn a_report_says_whether_its_results_were_checked() {
    let fixture = fixture();
    let report =
        |more: &str| fixture.run(&format!("report proven.jsonl --graph graph.npz --out page.html --quiet {more}"));
    let checked = || std::fs::read_to_string(fixture.path("page.html")).unwrap().contains("\"checked\":true");
    report("").succeeded();
    assert!(!checked());
    report("--check model.safetensors").succeeded();
    assert!(checked());
    common::model(13).write(fixture.path("other.safetensors")).unwrap();
    let run = fixture.run("report proven.jsonl --graph graph.npz --out page.html --check model.safetensors");
    assert!(run.succeeded().stdout.contains("all results are accepted"));
    let run = report("--check other.safetensors");
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("the model of “proven” is missing"), "{}", run.stderr);
    std::fs::remove_file(fixture.path("page.html")).unwrap();
    forge(&fixture, |certificate| {
        certificate.proofs.take();
        for margin in certificate.margins.iter_mut().flatten() {
            *margin = nodeproof::Bound::AtLeast(margin.value() + 10.0);
        }
        certificate.worst_class = nodeproof::certificate::smallest(&certificate.margins).0;
    });
    let run = fixture.run("report forged.jsonl --graph graph.npz --out page.html --check model.safetensors");
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("of the certificates of “forged” are rejected"), "{}", run.stderr);
    assert!(!fixture.path("page.html").exists());
}

/// Writes certificates again after `change`, with hashes that fit.
fn forge(fixture: &Fixture, change: impl Fn(&mut nodeproof::Certificate)) {
    let mut certificates = nodeproof::results::Certificates::read(fixture.path("proven.jsonl")).unwrap();
    certificates.records.iter_mut().for_each(change);
    certificates.write(std::fs::File::create(fixture.path("forged.jsonl")).unwrap()).unwrap();
}

#[test]
fn forged_certificates_are_rejected_though_their_hashes_fit() {
    use nodeproof::{Bound, Evidence};
    let fixture = fixture();
    // Nonrobust nodes are called robust.
    forge(&fixture, |certificate| {
        if certificate.witness().is_some() {
            certificate.evidence = Evidence::Robust;
            certificate.margins.iter_mut().flatten().for_each(|margin| *margin = Bound::Positive);
            certificate.proofs = Some(Default::default());
            certificate.worst_class = nodeproof::certificate::smallest(&certificate.margins).0;
        }
    });
    let run = fixture.run(&format!("{CHECK} forged.jsonl"));
    assert_eq!(run.code, 1);
    assert!(run.stdout.contains("called robust: the margin over class"), "{}", run.stdout);
    // Margins are larger than they are.
    forge(&fixture, |certificate| {
        for margin in certificate.margins.iter_mut().flatten() {
            *margin = Bound::AtLeast(margin.value() + 10.0);
        }
        certificate.worst_class = nodeproof::certificate::smallest(&certificate.margins).0;
    });
    assert_eq!(fixture.run(&format!("{CHECK} forged.jsonl")).code, 1);
}

#[test]
fn other_graphs_models_and_files_are_refused() {
    let fixture = fixture();
    common::graph(60, 13).write(fixture.path("other.npz")).unwrap();
    common::model(13).write(fixture.path("other.safetensors")).unwrap();
    let run = fixture.run("check proven.jsonl --graph other.npz --model other.safetensors");
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("is about another graph; give --graph"), "{}", run.stderr);
    let run = fixture.run("check model.safetensors --graph graph.npz --model model.safetensors");
    assert_eq!(run.code, 2);
    let bytes = std::fs::read(fixture.path("proven.jsonl")).unwrap();
    let text = String::from_utf8(bytes).unwrap().replacen("\"robust\"", "\"undecided\"", 1);
    std::fs::write(fixture.path("edited.jsonl"), text).unwrap();
    let run = fixture.run(&format!("{CHECK} edited.jsonl"));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("its hash does not fit"), "{}", run.stderr);
}
