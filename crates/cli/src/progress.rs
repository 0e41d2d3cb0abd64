//! What is being done, on standard error; hidden when that is no terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::fmt::Display;

/// A bar of so many steps. It goes away when dropped.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new(steps: usize) -> Self {
        let bar = ProgressBar::new(steps as u64);
        // The built-in style, if this one were invalid: better than to stop.
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {eta} left  {msg}") {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Tells what the next step is.
    pub(crate) fn step(&self, what: impl Display) {
        self.0.set_message(what.to_string());
        self.0.tick();
    }

    /// Tells that it is done.
    pub(crate) fn done(&self) {
        self.0.inc(1);
    }

    /// Calls `f` with the bar out of the way.
    pub(crate) fn aside<R>(&self, f: impl FnOnce() -> R) -> R {
        self.0.suspend(f)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
