//! Progress on a terminal, and silence in a pipe.

use std::sync::Mutex;
use std::time::Duration;

use headstart::report::{Trial, number};
use headstart::tune::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// A bar on standard error with the best plan so far. It draws nothing where standard error is no terminal.
pub struct Bar {
    bar: ProgressBar,
    best: Mutex<f64>,
}

impl Bar {
    /// A bar that appears when the search begins.
    pub fn new() -> Bar {
        Bar {
            bar: ProgressBar::no_length(),
            best: Mutex::new(0.0),
        }
    }
}

impl Progress for Bar {
    fn begin(&self, plans: usize) {
        let style = ProgressStyle::with_template("{bar:28} {pos}/{len} plans, {eta} left  {wide_msg}");
        self.bar
            .set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.bar.set_length(plans as u64);
        self.bar.enable_steady_tick(Duration::from_millis(200));
    }

    fn done(&self, trial: &Trial) {
        self.bar.inc(1);
        let Some((_, speedup)) = trial.measured() else {
            return;
        };
        let mut best = self
            .best
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if speedup > *best {
            *best = speedup;
            self.bar
                .set_message(format!("{} {}", number::speedup(speedup), trial.plan));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
