//! Progress on the standard error; hidden when that is no terminal.

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use std::fmt::{Display, Write};
use std::time::Duration;

/// A bar of so many steps. It goes away when dropped.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new(steps: usize) -> Self {
        let bar = ProgressBar::new(steps as u64);
        // The built-in style, if this one were invalid: better than to stop.
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {left} left  {msg}") {
            bar.set_style(style.with_key("left", left));
        }
        Self(bar)
    }

    /// Shows the next step.
    pub(crate) fn step(&self, what: impl Display) {
        self.0.set_message(what.to_string());
        self.0.tick();
    }

    /// Shows the next of so many that are not known beforehand.
    pub(crate) fn more(&self, what: impl Display) {
        self.0.inc_length(1);
        self.0.inc(1);
        self.step(what);
    }

    /// Shows that it is done.
    pub(crate) fn done(&self) {
        self.0.inc(1);
    }

    /// Calls `f` with the bar out of the way.
    pub(crate) fn aside<R>(&self, f: impl FnOnce() -> R) -> R {
        self.0.suspend(f)
    }
}

/// The time left, if what is to do takes as long as what is done. The crate's own estimate follows the last steps, and
/// jumps where a slow lock follows a fast one.
fn left(state: &ProgressState, out: &mut dyn Write) {
    // If it cannot be written, it is not shown.
    let _ = match time_left(state.elapsed(), state.pos(), state.len().unwrap_or(0)) {
        Some(left) => write!(out, "{:#}", HumanDuration(left)),
        None => out.write_char('?'),
    };
}

fn time_left(elapsed: Duration, done: u64, all: u64) -> Option<Duration> {
    let to_do = all.saturating_sub(done) as f64;
    (done > 0).then(|| elapsed.mul_f64(to_do / done as f64))
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::time_left;
    use std::time::Duration;

    #[test]
    fn what_is_left_takes_as_long_as_what_is_done() {
        let seconds = |elapsed, done, all| {
            time_left(Duration::from_secs(elapsed), done, all).map(|left| left.as_secs())
        };
        assert_eq!(seconds(9, 0, 4), None);
        assert_eq!(seconds(9, 3, 4), Some(3));
        assert_eq!(seconds(2, 1, 4), Some(6));
        assert_eq!(seconds(9, 4, 4), Some(0));
    }
}
