//! Ctrl-C: the first asks the run to end in order, the second ends it at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;

use crate::outcome;
use crate::progress::Progress;

/// Whether the user asked to stop.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on; `on_first` is called on another thread when the user asks to stop.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn listen(on_first: impl Fn() + Send + 'static) -> anyhow::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        let shared = Arc::clone(&asked);
        ctrlc::set_handler(move || {
            if shared.swap(true, Ordering::Relaxed) {
                std::process::exit(outcome::INTERRUPTED.into());
            }
            on_first();
        })
        .map_err(|error| anyhow!("cannot listen for Ctrl-C: {error}"))?;
        Ok(Self(asked))
    }

    /// Listens from now on, and says through `progress` that it was heard.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn of(progress: &Progress) -> anyhow::Result<Self> {
        let progress = progress.clone();
        Self::listen(move || progress.say("finishing the nodes in progress; press Ctrl-C again to stop at once"))
    }

    /// Whether the user has asked to stop.
    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
