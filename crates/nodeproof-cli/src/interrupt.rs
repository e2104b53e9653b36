//! Ctrl-C: the first asks the run to end in order, the second ends it at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::anyhow;

use crate::outcome;
use crate::progress::Progress;

/// Whether the user asked to stop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interrupt(());

/// Whether there is a handler, and whether it was called.
static LISTENING: OnceLock<Result<(), String>> = OnceLock::new();
static ASKED: AtomicBool = AtomicBool::new(false);
/// What is done when the user first asks.
static ON_FIRST: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

impl Interrupt {
    /// Listens from now on; `on_first` is called on another thread when the user asks to stop, in place of what was to
    /// be called before.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn listen(on_first: impl Fn() + Send + 'static) -> anyhow::Result<Self> {
        *ON_FIRST.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(on_first));
        let listening = LISTENING.get_or_init(|| ctrlc::set_handler(hear).map_err(|error| error.to_string()));
        listening.as_ref().map_err(|error| anyhow!("cannot listen for Ctrl-C: {error}"))?;
        Ok(Self(()))
    }

    /// Listens from now on, and says through `progress` that it was heard.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn of(progress: &Progress) -> anyhow::Result<Self> {
        let progress = progress.clone();
        Self::listen(move || progress.say("stopping; press Ctrl-C again to stop at once"))
    }

    /// Whether the user has asked to stop.
    pub(crate) fn asked(self) -> bool {
        ASKED.load(Ordering::Relaxed)
    }
}

/// Called for each Ctrl-C.
fn hear() {
    if ASKED.swap(true, Ordering::Relaxed) {
        std::process::exit(outcome::INTERRUPTED.into());
    }
    if let Some(on_first) = &*ON_FIRST.lock().unwrap_or_else(PoisonError::into_inner) {
        on_first();
    }
}
