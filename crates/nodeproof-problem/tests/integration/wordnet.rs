//! The bundled graph is what `data/wordnet.py` makes of WordNet, where Python and WordNet are at hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nodeproof_problem::graph::GraphOptions;
use nodeproof_problem::{Graph, NodeId};

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/wordnet.py")
}

#[test]
fn the_bundled_graph_is_what_its_script_makes() {
    if !Path::new("/usr/share/wordnet/data.noun").is_file() {
        println!("skipped: no WordNet in /usr/share/wordnet; on Debian and Ubuntu, apt-get install wordnet-base");
        return;
    }
    let Ok(output) = Command::new("python3").arg("-B").arg(script()).arg("--check").output() else {
        println!("skipped: no python3");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    // Another zlib may pack the same arrays into other bytes.
    let same = output.status.success() || text.contains("holds the same arrays");
    assert!(same, "{text}{}", String::from_utf8_lossy(&output.stderr));
}

/// Five synsets of four parts of speech, in the format of wndb(5WN).
const FILES: [(&str, &str); 4] = [
    (
        "noun",
        "  1 This is the licence.\n\
         00000001 05 n 02 cat 0 true_cat 1 002 @ 00000002 n 0000 + 00000003 v 0101 | furry animal that hunts mice; \"an animal\"\n\
         00000002 05 n 01 mammal 0 001 ~ 00000001 n 0000 | furry animals with warm blood\n",
    ),
    ("verb", "00000003 29 v 01 purr 0 001 + 00000001 n 0101 01 + 02 00 | sound of a furry animal\n"),
    ("adj", "00000004 00 a 01 feline(a) 0 000 | furry as an animal\n"),
    ("adv", "00000005 02 r 01 there 0 000 | in that place\n"),
];

#[test]
fn the_full_graph_has_all_synsets() {
    let folder = tempfile::tempdir().unwrap();
    for (part, lines) in FILES {
        fs::write(folder.path().join(format!("data.{part}")), lines).unwrap();
    }
    let out = folder.path().join("full.npz");
    let run = |folder: &Path| {
        Command::new("python3").arg("-B").arg(script()).arg(folder).arg("--full").arg("--out").arg(&out).output()
    };
    let Ok(output) = run(folder.path()) else {
        println!("skipped: no python3");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (graph, _) = Graph::read(&out, GraphOptions::new()).unwrap();
    // By part of speech and number: feline, cat, mammal, there and purr. Two words have three uses.
    let names: Vec<_> = graph.node_ids().map(|node| graph.node_name(node)).collect();
    assert_eq!(names, ["feline", "cat", "mammal", "there", "purr"]);
    assert_eq!(graph.adjacency().iter().collect::<Vec<_>>(), [(1, 2), (1, 4), (2, 1), (4, 1)]);
    assert_eq!(graph.names().attributes.as_deref().unwrap(), ["animal", "furry"]);
    let rows: Vec<&[u32]> = (0..5).map(|node| graph.attributes().row(node)).collect();
    assert_eq!(rows, [&[0, 1][..], &[0, 1], &[0, 1], &[], &[0, 1]]);
    let class = |node| graph.class_name(graph.label(NodeId(node)).unwrap());
    assert_eq!([0, 1, 2, 3, 4].map(class), ["adj.all", "noun.animal", "noun.animal", "adv.all", "verb.body"]);

    let none = run(&folder.path().join("none")).unwrap();
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("apt-get install wordnet-base"));
}
