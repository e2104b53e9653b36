//! Every command that the README shows is run as it stands there.

#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Commands that run this test, that `./test` or another test runs, or that need the network.
const ELSEWHERE: [&str; 6] = [
    "./test",
    "cargo install --locked --path crates/nodeproof-cli",
    "nodeproof data get cora_ml citeseer pubmed",
    "cargo run --release -- demo",
    "pip install .",
    "nodeproof reproduce --data data --quick",
];

/// The commands of the README's `sh` blocks.
fn commands(readme: &str) -> Vec<String> {
    let blocks = readme.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.flat_map(str::lines).map(str::to_owned).collect()
}

/// Runs a command of the README in `folder` with the program under test.
fn run(command: &str, folder: &Path) -> Output {
    let arguments = command.strip_prefix("cargo run --release -- ").or_else(|| command.strip_prefix("nodeproof "));
    let arguments = arguments.unwrap_or_else(|| panic!("`{command}` is not a command of nodeproof"));
    let arguments = arguments.replace(" \\\n", " ");
    let mut words = Vec::new();
    for (i, part) in arguments.split('"').enumerate() {
        if i % 2 == 1 { words.push(part) } else { words.extend(part.split_whitespace()) }
    }
    Command::new(env!("CARGO_BIN_EXE_nodeproof")).args(words).current_dir(folder).output().unwrap()
}

/// A folder with the example files of the repository.
fn folder() -> (tempfile::TempDir, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("examples/papers")).unwrap();
    for name in ["graph.npz", "model.safetensors"] {
        fs::copy(root.join("examples/papers").join(name), folder.path().join("examples/papers").join(name)).unwrap();
    }
    (folder, fs::read_to_string(root.join("README.md")).unwrap())
}

#[test]
fn every_command_runs() {
    let (folder, readme) = folder();
    let commands = commands(&readme);
    assert!(commands.len() > 8, "the README's commands were not found");
    for elsewhere in ELSEWHERE {
        assert!(commands.iter().any(|command| command == elsewhere), "`{elsewhere}` is gone from the README");
    }
    for command in commands.iter().filter(|command| !ELSEWHERE.contains(&command.as_str())) {
        let output = run(command, folder.path());
        assert!(output.status.success(), "`{command}` failed: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_output_shown_is_what_comes_out() {
    let (folder, readme) = folder();
    let shown = readme.split("```text\n$ ").nth(1).unwrap().split("```").next().unwrap();
    let (command, expected) = shown.split_once("\n\n").unwrap();
    let output = run(command, folder.path());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}
