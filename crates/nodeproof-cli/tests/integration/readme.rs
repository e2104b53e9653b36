//! Every command that README.md and the pages in docs/ show is run as it stands there, and what they show is what comes out.

use std::fs;
use std::path::{Path, PathBuf};
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

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A page of the documentation.
struct Page {
    /// Its path in the repository.
    path: String,
    text: String,
}

impl Page {
    fn read(path: &str) -> Self {
        Self { path: path.to_owned(), text: fs::read_to_string(root().join(path)).unwrap() }
    }

    /// README.md and everything in docs/, sorted.
    fn all() -> Vec<Self> {
        let names = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().file_name());
        let names = names.map(|name| format!("docs/{}", name.to_str().unwrap()));
        let mut paths: Vec<_> = names.filter(|path| path.ends_with(".md")).collect();
        paths.push("README.md".to_owned());
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    /// The fenced blocks: language and content, without the last line feed.
    fn blocks(&self) -> impl Iterator<Item = (&str, &str)> {
        self.text.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'))
    }

    /// The commands of its `sh` blocks.
    fn commands(&self) -> Vec<&str> {
        self.blocks().filter(|(language, _)| *language == "sh").flat_map(|(_, text)| text.lines()).collect()
    }
}

/// The words of a command of nodeproof.
fn words(command: &str) -> Vec<String> {
    let arguments = command.strip_prefix("cargo run --release -- ").or_else(|| command.strip_prefix("nodeproof "));
    let arguments = arguments.unwrap_or_else(|| panic!("`{command}` is not a command of nodeproof"));
    let arguments = arguments.replace(" \\\n", " ");
    let mut words = Vec::new();
    for (i, piece) in arguments.split('"').enumerate() {
        let quoted = i % 2 == 1;
        if quoted { words.push(piece.to_owned()) } else { words.extend(piece.split_whitespace().map(str::to_owned)) }
    }
    words
}

/// Runs a command in `folder` with the program under test.
fn run(command: &str, folder: &Path) -> Output {
    let output =
        Command::new(env!("CARGO_BIN_EXE_nodeproof")).args(words(command)).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "`{command}` failed: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The file that a command writes with `--out`.
fn written(command: &str, folder: &Path) -> Option<String> {
    let words = words(command);
    let out = words.iter().position(|word| word == "--out")?;
    Some(fs::read_to_string(folder.join(&words[out + 1])).unwrap())
}

/// A folder with the example files of the repository.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let examples = folder.path().join("examples/papers");
    fs::create_dir_all(&examples).unwrap();
    for name in ["graph.npz", "model.safetensors"] {
        fs::copy(root().join("examples/papers").join(name), examples.join(name)).unwrap();
    }
    folder
}

/// Goes through the blocks of a page in order, in one folder: runs the commands of `sh` blocks; compares a `text` block that
/// begins with `$ ` with what the command prints, and a `json` block right after an `sh` block with the file that its last
/// command writes.
fn check(page: &Page) {
    let folder = folder();
    let mut last_command = None;
    for (language, text) in page.blocks() {
        match (language, text.strip_prefix("$ ")) {
            ("sh", _) => {
                let mut here = text.lines().filter(|command| !ELSEWHERE.contains(command));
                here.clone().for_each(|command| drop(run(command, folder.path())));
                last_command = here.next_back();
                continue;
            }
            ("text", Some(shown)) => {
                let (command, expected) = shown.split_once("\n\n").unwrap();
                let output = String::from_utf8(run(command, folder.path()).stdout).unwrap();
                assert_eq!(output, format!("{expected}\n"), "{}: `{command}`", page.path);
            }
            ("json", _) => {
                if let Some(command) = last_command {
                    let file = written(command, folder.path()).unwrap();
                    assert_eq!(file, format!("{text}\n"), "{}: `{command}`", page.path);
                }
            }
            _ => {}
        }
        last_command = None;
    }
}

#[test]
fn every_command_of_the_readme_runs() {
    let readme = Page::read("README.md");
    assert!(readme.commands().len() > 6, "the README's commands were not found");
    check(&readme);
}

#[test]
fn every_command_of_other_pages_runs_and_gives_what_is_shown() {
    let pages = Page::all();
    let commands: Vec<&str> = pages.iter().flat_map(Page::commands).collect();
    assert!(commands.len() > 25, "the commands of the documentation were not found");
    for elsewhere in ELSEWHERE {
        assert!(commands.contains(&elsewhere), "no page has `{elsewhere}` any more");
    }
    pages.iter().filter(|page| page.path != "README.md").for_each(check);
}

#[test]
fn the_readme_is_short_and_pages_say_whom_they_are_for() {
    for page in Page::all() {
        if page.path == "README.md" {
            assert!(page.text.lines().count() <= 200, "README.md is longer than 200 lines; move details to docs/");
        } else {
            let first = page.text.lines().nth(2).unwrap();
            assert!(first.starts_with("This page is for "), "{} does not begin with its readers: {first}", page.path);
        }
    }
}

/// Links of the form `](target)`, without those to the web and without code.
fn links(text: &str) -> Vec<&str> {
    let prose = text.split("\n```").step_by(2);
    let targets = prose.flat_map(|prose| prose.split("](").skip(1)).filter_map(|rest| Some(rest.split_once(')')?.0));
    targets.filter(|target| !target.contains("://") && !target.contains(char::is_whitespace)).collect()
}

/// The anchor that a heading gets: lower case, without punctuation, hyphens for spaces.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn links_between_pages_lead_somewhere() {
    let others = ["CONTRIBUTING.md", "CHANGELOG.md"].map(Page::read);
    for page in Page::all().iter().chain(&others) {
        for link in links(&page.text) {
            let (file, section) = link.split_once('#').unwrap_or((link, ""));
            let here = root().join(&page.path);
            let target = if file.is_empty() { here } else { here.with_file_name(file) };
            assert!(target.exists(), "{}: there is no {link}", page.path);
            if !section.is_empty() {
                let text = fs::read_to_string(&target).unwrap();
                let headings = text.lines().filter(|line| line.starts_with('#'));
                let mut anchors = headings.map(|line| anchor(line.trim_start_matches('#').trim()));
                assert!(anchors.any(|anchor| anchor == section), "{}: there is no section {link}", page.path);
            }
        }
    }
}
