//! What becomes of results when runs are interrupted, resumed, or compete.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::*;

/// The names of the files in a directory, sorted.
pub(super) fn names(directory: &Path) -> String {
    let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(directory).unwrap().map(name).collect();
    names.sort_unstable();
    names.join(" ")
}

/// A directory with the output `out.jsonl`.
struct Run {
    directory: tempfile::TempDir,
    destination: Destination,
}

impl Run {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let destination = Destination::of(directory.path().join("out.jsonl"));
        Self { directory, destination }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("out.jsonl")
    }

    fn unfinished(&self) -> PathBuf {
        self.directory.path().join("out.jsonl.unfinished")
    }

    fn names(&self) -> String {
        names(self.directory.path())
    }

    fn begin(&self) -> Unfinished {
        Unfinished::begin(&self.destination, &header(3)).unwrap()
    }

    /// Resumes and says which records there were.
    fn resume(&self) -> Result<(Unfinished, Vec<u64>), String> {
        let mut nodes = Vec::new();
        let resumed = Unfinished::resume(&self.destination, &header(3), |record: Value| {
            nodes.push(record["node"].as_u64().ok_or("it has no node")?);
            Ok(Keep::Keep)
        });
        resumed.map(|resumed| (resumed, nodes)).map_err(|error| error.to_string())
    }

    /// A file with `content` in place of the journal.
    fn interrupted(content: &[u8]) -> Self {
        let run = Self::new();
        fs::write(run.unfinished(), content).unwrap();
        run
    }
}

fn header(global: u32) -> Value {
    json!({"format": "nodeproof-test", "version": 2, "budget": {"global": global, "local": "1 %"}, "share": 1e-7})
}

fn record(unfinished: &mut Unfinished, nodes: std::ops::Range<u64>) {
    nodes.for_each(|node| unfinished.record(&json!({"node": node, "verdict": "robust"})).unwrap());
}

/// What a run over three nodes writes.
fn complete() -> Vec<u8> {
    let run = Run::new();
    let mut unfinished = run.begin();
    record(&mut unfinished, 0..3);
    unfinished.finish().unwrap();
    fs::read(run.path()).unwrap()
}

#[test]
fn results_appear_when_they_are_complete() {
    let run = Run::new();
    fs::write(run.path(), "old").unwrap();
    let mut unfinished = run.begin();
    assert_eq!((unfinished.kept(), unfinished.is_whole()), (0, false));
    record(&mut unfinished, 0..3);
    unfinished.flush().unwrap();
    assert_eq!(fs::read(run.path()).unwrap(), b"old");
    assert_eq!(fs::read(run.unfinished()).unwrap(), complete());
    unfinished.finish().unwrap();
    assert_eq!((fs::read(run.path()).unwrap(), run.names()), (complete(), "out.jsonl".into()));
}

#[test]
fn an_interrupted_run_leaves_its_records_and_a_fresh_one_discards_them() {
    let run = Run::new();
    fs::write(run.path(), "old").unwrap();
    let mut unfinished = run.begin();
    record(&mut unfinished, 5..9);
    drop(unfinished);
    assert_eq!(run.names(), "out.jsonl out.jsonl.unfinished");
    let mut unfinished = run.begin();
    record(&mut unfinished, 0..3);
    unfinished.finish().unwrap();
    assert_eq!((fs::read(run.path()).unwrap(), run.names()), (complete(), "out.jsonl".into()));
    drop(run.begin());
    assert_eq!(run.names(), "out.jsonl", "nothing was recorded, so nothing is left");
}

#[test]
fn wherever_a_run_is_cut_off_it_ends_with_the_same_bytes() {
    let complete = complete();
    for end in 0..=complete.len() {
        let run = Run::interrupted(&complete[..end]);
        let (mut resumed, nodes) = run.resume().unwrap();
        let lines = complete[..end].iter().filter(|&&byte| byte == b'\n').count();
        assert_eq!((nodes.len(), resumed.kept()), (lines.saturating_sub(1), nodes.len()));
        record(&mut resumed, nodes.len() as u64..3);
        resumed.finish().unwrap();
        assert_eq!((fs::read(run.path()).unwrap(), run.names()), (complete.clone(), "out.jsonl".into()), "{end}");
    }
}

#[test]
fn every_changed_byte_is_refused_unless_it_cuts_off_the_last_line() {
    let complete = complete();
    for position in 0..complete.len() {
        for flip in [1, 2, 0x20, 0x80] {
            let mut changed = complete.clone();
            changed[position] ^= flip;
            let run = Run::interrupted(&changed);
            match run.resume() {
                Ok((resumed, nodes)) => {
                    assert_eq!((position, nodes), (complete.len() - 1, vec![0, 1]));
                    drop(resumed);
                }
                Err(text) => {
                    assert!(text.starts_with("cannot resume") && text.contains("again without resuming"), "{text}");
                    assert_eq!(fs::read(run.unfinished()).unwrap(), changed, "what is refused stays as it was");
                }
            }
            fs::rename(run.unfinished(), run.path()).unwrap();
            if position < complete.len() - 1 {
                assert!(run.resume().is_err(), "under its final name");
                assert_eq!(fs::read(run.path()).unwrap(), changed);
            }
        }
    }
}

#[test]
fn missing_and_moved_lines_are_refused_with_their_number() {
    let complete = complete();
    let lines: Vec<&[u8]> = complete.split_inclusive(|&byte| byte == b'\n').collect();
    for (content, line) in [
        (vec![lines[0], lines[2], lines[3]], "line 2 is damaged: its hash does not fit"),
        (vec![lines[0], lines[1], lines[3]], "line 3 is damaged"),
        (vec![lines[0], lines[1], lines[3], lines[2]], "line 3 is damaged"),
        (vec![lines[0], lines[1], lines[1]], "line 3 is damaged"),
        (vec![lines[0], lines[1], b"\n"], "line 3 is damaged"),
    ] {
        let text = Run::interrupted(&content.concat()).resume().unwrap_err();
        assert!(text.contains(line) && text.contains("out.jsonl.unfinished"), "{text}");
    }
}

#[test]
fn other_runs_are_refused_with_the_difference() {
    let other = |header: Value| Run::interrupted(format!("{header}\n").as_bytes()).resume().unwrap_err();
    let text = other(header(4));
    assert!(
        text.ends_with("(budget.global: 4 there, 3 now); use the same settings, or start again without resuming"),
        "{text}"
    );
    let mut longer = header(3);
    longer["graph"] = "a fingerprint that is long".into();
    longer["budget"]["local"] = Value::Null;
    let text = other(longer);
    assert!(
        text.contains("(budget.local: none there, \"1 %\" now; graph: \"a fingerprint that… there, none now)"),
        "{text}"
    );
    let written_otherwise = header(3).to_string().replace("e-7", "E-7") + "\n";
    let text = Run::interrupted(written_otherwise.as_bytes()).resume().unwrap_err();
    assert!(text.contains("line 1 is damaged: it is not as it was written"), "{text}");
}

#[test]
fn other_versions_and_other_files_are_refused() {
    for version in [1, 3] {
        let mut header = header(3);
        header["version"] = version.into();
        let text = Run::interrupted(format!("{header}\n{{\"node\":0}}\n").as_bytes()).resume().unwrap_err();
        assert!(
            text.contains(&format!("version {version} of its format, and this nodeproof writes version 2")),
            "{text}"
        );
    }
    for content in ["hello", "hello\n", "{}\n", "{\"format\":\"other\",\"version\":2}\n", "\n", "{\"format\":\"oth"] {
        let run = Run::interrupted(content.as_bytes());
        assert!(run.resume().unwrap_err().contains("it is not a file that this command writes"), "{content}");
        fs::rename(run.unfinished(), run.path()).unwrap();
        assert!(run.resume().unwrap_err().contains("it is not a file that this command writes"), "{content}");
        assert_eq!((fs::read_to_string(run.path()).unwrap(), run.names()), (content.to_owned(), "out.jsonl".into()));
    }
}

#[test]
fn a_record_can_be_refused() {
    let run = Run::interrupted(&complete());
    let refused = Unfinished::resume(&run.destination, &header(3), |record: Value| {
        if record["node"] == 1 { Err("it is about node 1".to_owned()) } else { Ok(Keep::Keep) }
    });
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("line 3 does not fit this run: it is about node 1; use the same settings"), "{text}");
    let text = Unfinished::resume(&run.destination, &header(3), |_: Vec<u8>| Ok(Keep::Keep)).unwrap_err().to_string();
    assert!(text.contains("line 2 is damaged"), "{text}");
    assert_eq!(fs::read(run.unfinished()).unwrap(), complete());
}

#[test]
fn records_can_be_cut_back() {
    let cut = |run: &Run, first: u64| {
        let each = |record: Value| Ok(if record["node"] == first { Keep::Stop } else { Keep::Keep });
        Unfinished::resume(&run.destination, &header(3), each)
    };
    for complete_name in [false, true] {
        for first in 0..4 {
            let run = Run::interrupted(&complete());
            if complete_name {
                fs::rename(run.unfinished(), run.path()).unwrap();
            }
            let mut resumed = cut(&run, first).unwrap();
            assert_eq!((resumed.kept() as u64, resumed.is_whole()), (first.min(3), complete_name && first == 3));
            assert_eq!(run.path().exists(), complete_name);
            if complete_name {
                assert_eq!(fs::read(run.path()).unwrap(), complete());
            }
            record(&mut resumed, first.min(3)..3);
            resumed.finish().unwrap();
            assert_eq!((fs::read(run.path()).unwrap(), run.names()), (complete(), "out.jsonl".into()));
        }
    }
    let mut damaged = complete();
    let last = damaged.len() - 5;
    damaged[last] ^= 1;
    let run = Run::interrupted(&damaged);
    assert!(cut(&run, 0).unwrap_err().to_string().contains("line 4 is damaged"), "also what is dropped is verified");
    assert_eq!(fs::read(run.unfinished()).unwrap(), damaged);
}

#[test]
fn a_complete_file_is_resumed_without_a_change() {
    let run = Run::new();
    fs::write(run.path(), complete()).unwrap();
    let modified = || fs::metadata(run.path()).unwrap().modified().unwrap();
    let before = modified();
    let (mut resumed, nodes) = run.resume().unwrap();
    assert_eq!((nodes, resumed.kept(), resumed.is_whole()), (vec![0, 1, 2], 3, true));
    resumed.flush().unwrap();
    assert_eq!(run.names(), "out.jsonl");
    resumed.finish().unwrap();
    assert_eq!((modified(), run.names()), (before, "out.jsonl".into()));
}

#[test]
fn a_complete_file_can_be_continued() {
    let run = Run::new();
    let complete = complete();
    let end = complete.len() - complete.rsplit(|&byte| byte == b'\n').nth(1).unwrap().len() - 1;
    fs::write(run.path(), &complete[..end]).unwrap();
    let (mut resumed, nodes) = run.resume().unwrap();
    assert_eq!(nodes, [0, 1]);
    record(&mut resumed, 2..3);
    assert_eq!(run.names(), "out.jsonl out.jsonl.unfinished");
    assert_eq!(fs::read(run.path()).unwrap(), &complete[..end]);
    resumed.finish().unwrap();
    assert_eq!((fs::read(run.path()).unwrap(), run.names()), (complete.clone(), "out.jsonl".into()));
    fs::write(run.path(), &complete[..end + 5]).unwrap();
    assert!(run.resume().unwrap_err().contains("line 4 is damaged: its end is missing"));
    fs::write(run.path(), &complete[..20]).unwrap();
    assert!(run.resume().unwrap().1.is_empty());
}

#[test]
fn nothing_to_resume_begins_anew() {
    let run = Run::new();
    let (mut resumed, nodes) = run.resume().unwrap();
    assert!(nodes.is_empty());
    record(&mut resumed, 0..3);
    resumed.finish().unwrap();
    assert_eq!((fs::read(run.path()).unwrap(), run.names()), (complete(), "out.jsonl".into()));
}

#[test]
fn a_second_run_is_refused() {
    let run = Run::new();
    let mut first = run.begin();
    record(&mut first, 0..2);
    first.flush().unwrap();
    for second in [
        Unfinished::begin(&run.destination, &header(3)),
        Unfinished::begin_journal(&run.destination, &header(3)),
        Unfinished::resume(&run.destination, &header(3), |_: Value| Ok(Keep::Keep)),
    ] {
        let text = second.unwrap_err().to_string();
        assert!(
            text.ends_with(
                "out.jsonl: another run of nodeproof is writing it; wait for its end or choose another name"
            ),
            "{text}"
        );
    }
    record(&mut first, 2..3);
    first.finish().unwrap();
    assert_eq!(fs::read(run.path()).unwrap(), complete());
    let (mut whole, _) = run.resume().unwrap();
    let third = run.begin();
    assert!(matches!(whole.record(&json!({"node": 3})), Err(FileError::Busy { .. })));
    drop(third);
    assert!(whole.finish().is_err(), "a record was lost");
    assert_eq!((fs::read(run.path()).unwrap(), run.names()), (complete(), "out.jsonl".into()));
}

#[test]
fn runs_that_compete_never_mix() {
    let run = Run::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    match Unfinished::begin(&run.destination, &header(3)) {
                        Ok(mut unfinished) => {
                            record(&mut unfinished, 0..3);
                            unfinished.finish().unwrap();
                        }
                        Err(error) => assert!(matches!(error, FileError::Busy { .. }), "{error}"),
                    }
                    if let Ok(there) = fs::read(run.path()) {
                        assert_eq!(there, complete());
                    }
                }
            });
        }
    });
    assert_eq!(run.names(), "out.jsonl");
}

#[test]
fn a_result_of_another_form_takes_the_place_of_the_journal() {
    let run = Run::new();
    fs::write(run.path(), "old").unwrap();
    let mut journal = Unfinished::begin_journal(&run.destination, &header(3)).unwrap();
    record(&mut journal, 0..2);
    drop(journal);
    let resume = || Unfinished::resume_journal(&run.destination, &header(3), |_: Value| Ok(Keep::Keep)).unwrap();
    let mut journal = resume();
    record(&mut journal, 2..3);
    let full = |out: &mut dyn Write| out.write_all(b"half").and_then(|()| Err(io::ErrorKind::StorageFull.into()));
    let text = journal.finish_with(full).unwrap_err().to_string();
    assert!(text.contains("the records so far are in") && text.ends_with("make room there and resume"), "{text}");
    assert_eq!(
        (fs::read(run.path()).unwrap(), run.names()),
        (b"old".to_vec(), "out.jsonl out.jsonl.unfinished".into())
    );
    let journal = resume();
    assert_eq!(journal.kept(), 3);
    journal.finish_with(|out| out.write_all(b"node,verdict\n")).unwrap();
    assert_eq!((fs::read(run.path()).unwrap(), run.names()), (b"node,verdict\n".to_vec(), "out.jsonl".into()));
    let again =
        Unfinished::resume_journal(&run.destination, &header(3), |_: Value| Ok(Keep::Keep)).unwrap_err().to_string();
    assert!(again.contains("it is there, but no unfinished run of it"), "{again}");
    fs::remove_file(run.path()).unwrap();
    assert_eq!(resume().kept(), 0);
}

#[test]
fn a_failure_at_the_end_keeps_everything() {
    let run = Run::new();
    let mut unfinished = run.begin();
    record(&mut unfinished, 0..3);
    fs::create_dir(run.path()).unwrap();
    let text = unfinished.finish().unwrap_err().to_string();
    assert!(text.contains("out.jsonl.unfinished: make room there and resume"), "{text}");
    fs::remove_dir(run.path()).unwrap();
    let (resumed, nodes) = run.resume().unwrap();
    assert_eq!(nodes, [0, 1, 2]);
    resumed.finish().unwrap();
    assert_eq!((fs::read(run.path()).unwrap(), run.names()), (complete(), "out.jsonl".into()));
}

#[test]
fn results_survive_that_their_journal_is_removed() {
    let run = Run::new();
    let mut unfinished = run.begin();
    record(&mut unfinished, 0..2);
    unfinished.flush().unwrap();
    fs::remove_file(run.unfinished()).unwrap();
    record(&mut unfinished, 2..3);
    unfinished.finish().unwrap();
    assert_eq!((fs::read(run.path()).unwrap(), run.names()), (complete(), "out.jsonl".into()));
}

#[test]
fn places_that_cannot_work_are_refused() {
    let run = Run::new();
    let begin = |path: PathBuf| Unfinished::begin(&Destination::of(path), &header(3)).unwrap_err();
    assert!(matches!(begin(run.directory.path().to_owned()), FileError::Directory { .. }));
    assert!(matches!(begin(run.directory.path().join("no/file")), FileError::NoDirectory { .. }));
    fs::create_dir(run.unfinished()).unwrap();
    let text = begin(run.path()).to_string();
    assert!(text.contains("out.jsonl.unfinished is in the way, which is not a regular file"), "{text}");
    assert!(run.resume().is_err());
    struct Unserializable;
    impl serde::Serialize for Unserializable {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("no"))
        }
    }
    fs::remove_dir(run.unfinished()).unwrap();
    assert!(Unfinished::begin(&run.destination, &Unserializable).is_err());
    assert_eq!(run.names(), "");
    let mut unfinished = run.begin();
    assert!(unfinished.record(&Unserializable).is_err());
    assert!(unfinished.record(&json!({"node": 0})).unwrap_err().to_string().contains("failed before"));
    assert!(unfinished.finish().is_err());
    assert_eq!(run.names(), "");
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let run = Run::new();
    let other = tempfile::tempdir().unwrap();
    let target = other.path().join("target");
    symlink(&target, run.path()).unwrap();
    for old in [false, true] {
        if old {
            fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let mut unfinished = run.begin();
        record(&mut unfinished, 0..3);
        assert!(names(other.path()).ends_with("target.unfinished"));
        unfinished.finish().unwrap();
        assert!(run.path().is_symlink());
        assert_eq!((run.names(), names(other.path())), ("out.jsonl".into(), "target".into()));
        assert_eq!(fs::read(&target).unwrap(), complete());
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o077 == 0, old);
    }
}

#[cfg(unix)]
#[test]
fn a_journal_is_not_written_through_a_link() {
    let run = Run::new();
    let precious = run.directory.path().join("precious");
    fs::write(&precious, "precious").unwrap();
    std::os::unix::fs::symlink("precious", run.unfinished()).unwrap();
    assert!(matches!(Unfinished::begin(&run.destination, &header(3)), Err(FileError::Unwritable { .. })));
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
}

#[cfg(target_os = "linux")]
#[test]
fn devices_are_written_to() {
    let [null, full] = ["/dev/null", "/dev/full"].map(Destination::of);
    for _ in 0..2 {
        let mut one = Unfinished::begin(&null, &header(3)).unwrap();
        let two = Unfinished::resume(&null, &header(3), |_: Value| Err("nothing can be there".to_owned())).unwrap();
        record(&mut one, 0..3);
        one.finish().unwrap();
        two.finish().unwrap();
    }
    let error = Unfinished::begin(&full, &header(3)).unwrap_err();
    assert!(error.to_string().contains("/dev/full") && !error.is_closed_pipe(), "{error}");
    let mut journal = Unfinished::begin_journal(&full, &header(3)).unwrap();
    record(&mut journal, 0..1000);
    journal.flush().unwrap();
    assert!(journal.finish_with(|out| out.write_all(b"result")).is_err());
}

#[cfg(target_os = "linux")]
#[test]
fn a_closed_pipe_is_recognised() {
    use std::os::fd::AsRawFd;
    let (reader, writer) = io::pipe().unwrap();
    let destination = Destination::of(format!("/proc/self/fd/{}", writer.as_raw_fd()));
    let mut unfinished = Unfinished::begin(&destination, &header(3)).unwrap();
    drop(reader);
    record(&mut unfinished, 0..3);
    assert!(unfinished.flush().unwrap_err().is_closed_pipe());
    let closed = io::Error::from(io::ErrorKind::BrokenPipe);
    assert!(Destination::Stdout.failure(closed).is_closed_pipe());
}
