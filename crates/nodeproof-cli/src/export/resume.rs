//! Reading the certificates of an interrupted run.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use nodeproof::NodeId;
use nodeproof_report::results::{CertificatesHeader, Record};
use serde_json::Value;

use super::Header;

/// What of a file can be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Kept {
    /// Bytes up to the end of the last whole line.
    pub(crate) bytes: u64,
    /// Certificates in them.
    pub(crate) records: usize,
}

/// Reads the file at `path`, which a run with this header over `nodes` must have begun, and hands its certificates to
/// `each`. The last line is dropped if its end is missing; without a file there is nothing to keep.
///
/// # Errors
/// If the file is of another run or damaged before its last line.
pub(crate) fn scan(
    path: &Path,
    header: &Header<CertificatesHeader>,
    nodes: &[NodeId],
    mut each: impl FnMut(&Record) -> anyhow::Result<()>,
) -> anyhow::Result<Kept> {
    let cannot_read = |error: io::Error| anyhow!("cannot read {} to resume it: {error}", path.display());
    let mut lines = match File::open(path) {
        Ok(file) => BufReader::new(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Kept::default()),
        Err(error) => return Err(cannot_read(error)),
    };
    let mut line = Vec::new();
    let expected = header.line()?;
    if !next_line(&mut lines, &mut line).map_err(cannot_read)? {
        // Cut off within the header: nothing lost by starting anew, if it is our header.
        if expected.as_bytes().starts_with(&line) {
            return Ok(Kept::default());
        }
        bail!("{}", not_ours(path));
    }
    check_header(&line, &expected).with_context(|| format!("cannot resume {}", path.display()))?;
    let mut kept = Kept { bytes: line.len() as u64 + 1, records: 0 };
    while next_line(&mut lines, &mut line).map_err(cannot_read)? {
        let place = || format!("cannot resume {}: line {}", path.display(), kept.records + 2);
        let record: Record = serde_json::from_slice(&line)
            .map_err(|error| anyhow!("{} is damaged ({error}); start anew without --resume", place()))?;
        match nodes.get(kept.records) {
            Some(node) if node.0 == record.node => each(&record)?,
            expected => bail!(
                "{} is about node {}, but this run has {} there; give the same --nodes, or start anew without --resume",
                place(),
                record.node,
                expected.map_or("none".to_owned(), |node| format!("node {node}"))
            ),
        }
        kept.bytes += line.len() as u64 + 1;
        kept.records += 1;
    }
    Ok(kept)
}

/// Reads a line without its end; `false` if the end is missing.
fn next_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    lines.read_until(b'\n', line)?;
    Ok(line.pop_if(|last| *last == b'\n').is_some())
}

fn check_header(found: &[u8], expected: &str) -> anyhow::Result<()> {
    if found == expected.as_bytes() {
        return Ok(());
    }
    let expected: Value = serde_json::from_str(expected)?;
    match serde_json::from_slice::<Value>(found) {
        Ok(found) if found["format"] == expected["format"] => {
            let mut differences = Vec::new();
            compare("", &found, &expected, &mut differences);
            bail!(
                "it belongs to another run ({}); use the same settings, or start anew without --resume",
                differences.join("; ")
            )
        }
        _ => bail!("it is not a file of certificates; start anew without --resume, which overwrites it"),
    }
}

fn not_ours(path: &Path) -> String {
    format!(
        "cannot resume {}: it is not a file of certificates; start anew without --resume, which overwrites it",
        path.display()
    )
}

/// Lists the fields in which two headers differ.
fn compare(field: &str, found: &Value, expected: &Value, differences: &mut Vec<String>) {
    if let (Value::Object(left), Value::Object(right)) = (found, expected) {
        let keys: std::collections::BTreeSet<_> = left.keys().chain(right.keys()).collect();
        for key in keys {
            let name = if field.is_empty() { key.clone() } else { format!("{field}.{key}") };
            compare(&name, &found[key], &expected[key], differences);
        }
    } else if found != expected {
        let short = |value: &Value| crate::terminal::shorten(&value.to_string(), 20);
        differences.push(format!("{field}: {} there, {} now", short(found), short(expected)));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use nodeproof_report::results::VerdictName;

    use super::*;
    use crate::export::record::tests::{header, record};

    const NODES: [NodeId; 2] = [NodeId(0), NodeId(1)];

    fn scanned(text: &str, header: &Header<CertificatesHeader>) -> Result<Kept, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.jsonl");
        std::fs::write(&path, text).unwrap();
        scan(&path, header, &NODES, |_| Ok(())).map_err(|error| format!("{error:#}"))
    }

    fn line(node: u32) -> String {
        serde_json::to_string(&record(node, VerdictName::Robust)).unwrap() + "\n"
    }

    #[test]
    fn whole_lines_are_kept_and_the_rest_dropped() {
        let header = header(2);
        let first = header.line().unwrap() + "\n";
        let whole = first.clone() + &line(0);
        let kept = |text: &str| scanned(text, &header).unwrap();
        assert_eq!(kept(""), Kept::default());
        assert_eq!(kept(&first[..20]), Kept::default());
        assert_eq!(kept(&first), Kept { bytes: first.len() as u64, records: 0 });
        assert_eq!(kept(&whole), Kept { bytes: whole.len() as u64, records: 1 });
        assert_eq!(kept(&(whole.clone() + &line(1)[..30])), Kept { bytes: whole.len() as u64, records: 1 });
        assert_eq!(scan(Path::new("/no/such/file"), &header, &NODES, |_| Ok(())).unwrap(), Kept::default());
    }

    #[test]
    fn other_runs_are_refused_with_the_difference() {
        let now = header(2);
        let text = scanned(&(header(3).line().unwrap() + "\n"), &now).unwrap_err();
        assert!(text.contains("budget.global: 3 there, 2 now") && text.contains("without --resume"), "{text}");
        assert!(scanned("hello\n", &now).unwrap_err().contains("not a file of certificates"));
        assert!(scanned("hello", &now).unwrap_err().contains("not a file of certificates"));
        let first = now.line().unwrap() + "\n";
        assert!(scanned(&(first.clone() + &line(1)), &now).unwrap_err().contains("line 2 is about node 1"));
        assert!(scanned(&(first.clone() + "{}\n" + &line(0)), &now).unwrap_err().contains("line 2 is damaged"));
        assert!(scanned(&(first + &line(0) + &line(1) + &line(0)), &now).unwrap_err().contains("line 4"));
    }
}
