//! The README's Rust example is the one in `examples/quickstart.rs`, and it runs.

#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;
use std::process::Command;

#[test]
fn the_rust_example_is_in_the_readme_and_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let (_, code) = include_str!("../examples/quickstart.rs").split_once("\n\n").unwrap();
    assert!(readme.contains(&format!("```rust\n{code}```")), "README.md and examples/quickstart.rs differ");

    // Of the whole workspace, as `cargo test --workspace` builds it, so that nothing is compiled twice.
    let arguments = ["build", "--locked", "--profile", "test", "--workspace", "--example", "quickstart"];
    let build = Command::new(env!("CARGO")).args(arguments).current_dir(&root).output().unwrap();
    assert!(build.status.success(), "{}", String::from_utf8_lossy(&build.stderr));
    let this_test = std::env::current_exe().unwrap();
    let example = this_test.ancestors().nth(2).unwrap().join("examples/quickstart");
    let output = Command::new(example).current_dir(root).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 24, "one line a paper:\n{text}");
    assert!(text.contains("9: falls to [Flip"), "{text}");
}
