//! How a command ends, and the exit code that says so to a script.

use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::thread;

use crate::terminal;

/// Exit code of a run that was stopped by a signal.
pub(crate) const INTERRUPTED: u8 = 130;
const GATE_FAILED: u8 = 1;
const BAD_INPUT: u8 = 2;
const INTERNAL_ERROR: u8 = 3;

/// How a command that was not refused ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything asked for was done.
    Done,
    /// It was done, but fewer nodes are robust than `--fail-under` asks for, or a certificate was rejected.
    GateFailed,
    /// A signal stopped it.
    Interrupted,
}

/// Runs `command`, reports what went wrong on stderr, and translates the end into an exit code.
pub(crate) fn exit_code_of(command: impl FnOnce() -> anyhow::Result<Outcome>) -> ExitCode {
    // Workers panic on threads of their own: the hook keeps the first panic for the one message that is printed.
    static PANIC: OnceLock<String> = OnceLock::new();
    panic::set_hook(Box::new(|panic| {
        let _ = PANIC.set(panic.to_string());
    }));
    let ended = panic::catch_unwind(AssertUnwindSafe(command));
    let (code, message) = judge(ended, || PANIC.get().cloned().unwrap_or_default());
    if let Some(message) = message {
        terminal::complain(&message);
    }
    ExitCode::from(code)
}

/// The exit code, and what to say.
fn judge(ended: thread::Result<anyhow::Result<Outcome>>, panic: impl FnOnce() -> String) -> (u8, Option<String>) {
    match ended {
        Ok(Ok(Outcome::Done)) => (0, None),
        Ok(Ok(Outcome::GateFailed)) => (GATE_FAILED, None),
        Ok(Ok(Outcome::Interrupted)) => (INTERRUPTED, None),
        // Whoever read our results has seen enough.
        Ok(Err(error)) if is_closed_pipe(&error) => (0, None),
        Ok(Err(error)) => (BAD_INPUT, Some(format!("error: {}", describe(&error)))),
        Err(_) => {
            let report = format!(
                "error: nodeproof failed, and the fault is its own ({}). Please report this message and the command \
                 at {}/issues",
                panic(),
                env!("CARGO_PKG_REPOSITORY")
            );
            (INTERNAL_ERROR, Some(report))
        }
    }
}

/// Only writing to stdout passes an [`io::Error`] on as it is; every other error is put into words first.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The error and its causes in one sentence, without causes that the sentence already contains.
fn describe(error: &anyhow::Error) -> String {
    error.chain().skip(1).fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_once() {
        let error = anyhow::anyhow!("disk full").context("cannot write: disk full");
        assert_eq!(describe(&error), "cannot write: disk full");
        let error = anyhow::anyhow!("disk full").context("cannot write");
        assert_eq!(describe(&error), "cannot write: disk full");
    }

    #[test]
    fn every_end_has_its_code() {
        let code = |ended| judge(ended, || "index out of bounds".to_owned());
        assert_eq!(code(Ok(Ok(Outcome::Done))), (0, None));
        assert_eq!(code(Ok(Ok(Outcome::GateFailed))), (1, None));
        assert_eq!(code(Ok(Err(anyhow::anyhow!("bad")))), (2, Some("error: bad".to_owned())));
        assert_eq!(code(Ok(Ok(Outcome::Interrupted))), (130, None));
        let (panicked, message) = code(Err(Box::new(())));
        assert!(
            panicked == 3
                && message.is_some_and(|text| text.contains("index out of bounds") && text.contains("report"))
        );
    }

    #[test]
    fn only_a_plain_broken_pipe_is_quiet() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_closed_pipe(&broken().into()));
        assert!(!is_closed_pipe(&anyhow::anyhow!("cannot write out.jsonl: {}", broken())));
    }
}
