//! The README's Rust example is the one in `examples/quickstart.rs`, and it runs.

use std::path::Path;
use std::process::Command;

#[test]
fn the_rust_example_is_in_the_readme_and_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let (_, code) = include_str!("../../examples/quickstart.rs").split_once("\n\n").unwrap();
    assert!(readme.contains(&format!("```rust\n{code}```")), "README.md and examples/quickstart.rs differ");

    // As `cargo test --workspace` builds it, so that nothing is compiled twice.
    let this_test = std::env::current_exe().unwrap();
    let folder = this_test.ancestors().nth(2).unwrap();
    let profile = folder.file_name().unwrap().to_str().unwrap();
    let profile = if profile == "debug" { "test" } else { profile };
    let arguments =
        ["build", "--locked", "--profile", profile, "--workspace", "--example", "quickstart", "--target-dir"];
    let build = Command::new(env!("CARGO")).args(arguments).arg(folder.join("..")).current_dir(&root).output().unwrap();
    assert!(build.status.success(), "{}", String::from_utf8_lossy(&build.stderr));
    let output = Command::new(folder.join("examples/quickstart")).current_dir(root).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 24, "one line a paper:\n{text}");
    assert!(text.contains("9: falls to [Flip"), "{text}");
}
