//! The immediate findings, progress (a bar on a terminal, occasional lines elsewhere), and the ways to stop a search: Ctrl-C
//! and a budget.
//!
//! When a search is to stop, the plans that are being tried end at once. The plain kernel has more time, since without it there is
//! nothing to report; then its run is cut, too.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use headstart::device::sim::Stop;
use headstart::report::{Outcome, Trial, number};
use headstart::tune::Progress;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::{explain, tell};
use crate::terminal;

/// Whether Ctrl-C was pressed while a search ran.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Ends simulated runs of plans.
pub static STOP: Stop = Stop::new();

/// How often it is looked whether a search is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// The time that the plain kernel has behind the budget: as much again, and this at least. What it has done by then says how long
/// it takes, about; the data of a launch that is not begun then are not waited for twice as long.
const GRACE: Duration = Duration::from_secs(60);

/// As a shell tells it of a command that an interrupt (signal 2) ended.
pub const INTERRUPTED_STATUS: u8 = 130;

/// As of a command line that asks for what cannot be had: more than its budget allows.
const LATE_STATUS: u8 = 2;

/// Whether a search was stopped by Ctrl-C.
pub fn was_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// A bar on standard error with the best plan so far; where that is no terminal, a line every ten seconds.
///
/// While it exists, Ctrl-C stops the search, which then reports its results so far; pressed again, it ends the command.
pub struct Bar {
    bar: ProgressBar,
    limits: Arc<Limits>,
    /// Plans of the search, and those that are done.
    plans: AtomicUsize,
    done: AtomicUsize,
    /// Those of them that the log has.
    known: AtomicUsize,
    begun: Instant,
    /// When the first plan was done that the log does not have.
    first: OnceLock<Instant>,
    /// The last line about the plans that are done, if there is no terminal.
    said: OnceLock<Mutex<Said>>,
}

/// A line about the plans that are done.
struct Said {
    at: Instant,
    /// The time that was said to be left.
    left: Option<Duration>,
}

/// When a search is to stop.
struct Limits {
    budget: Option<Duration>,
    until: Option<Instant>,
    /// Whether plans are being tried.
    is_trying: Mutex<bool>,
    /// The speedup of the fastest plan so far; nothing before the plain kernel is known.
    best: Mutex<Option<f64>>,
}

impl Limits {
    fn is_stopped(&self) -> bool {
        was_interrupted() || self.until.is_some_and(|until| Instant::now() >= until)
    }

    fn trying(&self, is_trying: bool) {
        let mut now = self.is_trying.lock().unwrap_or_else(PoisonError::into_inner);
        *now = is_trying;
        STOP.set(is_trying && self.is_stopped());
    }

    /// Ends what is to end, for as long as the search lasts.
    fn watch(search: &Weak<Limits>) {
        while let Some(limits) = search.upgrade() {
            {
                let is_trying = limits.is_trying.lock().unwrap_or_else(PoisonError::into_inner);
                STOP.set(*is_trying && limits.is_stopped());
                STOP.set_late(limits.is_stopped());
            }
            if let (Some(budget), Some(until)) = (limits.budget, limits.until) {
                let best = limits.best.lock().unwrap_or_else(PoisonError::into_inner);
                let grace = budget.max(GRACE);
                STOP.set_cut(best.is_none() && until.elapsed() > grace);
                if best.is_none() && until.elapsed() > 2 * grace {
                    eprintln!(
                        "headstart: the plain kernel is not done, {} s after the `--budget` of {} s; a larger one, or a smaller launch",
                        until.elapsed().as_secs(),
                        budget.as_secs_f64()
                    );
                    std::process::exit(LATE_STATUS.into());
                }
            }
            drop(limits);
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Limits {
    fn drop(&mut self) {
        STOP.set(false);
        STOP.set_late(false);
        STOP.set_cut(false);
    }
}

/// How often a line says how far the search has come where no bar can be drawn.
const SAY: Duration = Duration::from_secs(10);

/// The time that is left of a search, by the time since its first plan was done: until then data are made and checked. Trials
/// that the log has took none, and say nothing of it.
fn left(since_first: Duration, done: usize, known: usize, plans: usize) -> Option<Duration> {
    let more = done.checked_sub(known + 1).filter(|more| *more > 0)?;
    Some(since_first.mul_f64(plans.saturating_sub(done) as f64 / more as f64))
}

/// A time that is left, which is at most what was left a while ago without that while.
fn never_more(before: Option<(Duration, Duration)>, now: Option<Duration>) -> Option<Duration> {
    let before = before.map(|(left, since)| left.saturating_sub(since));
    now.into_iter().chain(before).min()
}

/// By how much a plan has to be faster than the one before, or than the kernel as it is, for a line of its own.
const WORTH_TELLING: f64 = 1.02;

/// A bar that is not drawn where only errors are wanted.
fn bar() -> ProgressBar {
    match terminal::is_quiet() {
        true => ProgressBar::hidden(),
        false => ProgressBar::no_length(),
    }
}

/// How long the phases of a command take, for `--verbose`; a budget begins with the first.
pub struct Clock {
    began: Instant,
    since: Instant,
}

impl Clock {
    /// The first phase begins.
    pub fn start() -> Clock {
        let began = Instant::now();
        Clock { began, since: began }
    }

    /// A phase is over, and the next begins.
    pub fn over(&mut self, phase: &str) {
        let took = self.since.elapsed();
        explain(|| format!("{}  {phase}", seconds(took)));
        self.since = Instant::now();
    }
}

/// A time in seconds, as wide as those above and below it.
fn seconds(time: Duration) -> String {
    format!("{:>8.3} s", time.as_secs_f64())
}

/// A plan's outcome, and the reason.
fn fate(trial: &Trial) -> String {
    match &trial.outcome {
        Outcome::Ok { time_ns, speedup, .. } => format!(
            "`{}`: {}, {}",
            trial.plan,
            number::speedup(*speedup),
            number::duration(*time_ns)
        ),
        Outcome::Dropped { after, at_most } => format!(
            "`{}`: dropped after {}, at most {}",
            trial.plan,
            number::percent(*after),
            number::speedup(*at_most)
        ),
        Outcome::Rejected { reason } => format!("`{}`: rejected: {reason}", trial.plan),
        Outcome::Failed { reason, .. } => format!("`{}`: failed: {reason}", trial.plan),
    }
}

impl Bar {
    /// A bar that appears when the search begins. After `budget`, counted from the command's begin, the search begins no further
    /// plan, and ends those that it has begun.
    pub fn new(clock: &Clock, budget: Option<Duration>) -> Bar {
        Bar::until(clock, budget, budget)
    }

    /// The same without a word of a budget by the user: after `time` no plan begins, and the plain kernel may take longer.
    pub fn about(clock: &Clock, time: Duration) -> Bar {
        Bar::until(clock, None, Some(time))
    }

    fn until(clock: &Clock, budget: Option<Duration>, plans: Option<Duration>) -> Bar {
        // A second bar of one command finds the handler in place, which is what it wants.
        let _ = ctrlc::set_handler(|| {
            if INTERRUPTED.swap(true, Ordering::Relaxed) {
                std::process::exit(INTERRUPTED_STATUS.into());
            }
            eprintln!("headstart: stopping the current plans; Ctrl-C again ends the command");
        });
        let limits = Arc::new(Limits {
            budget,
            until: plans.and_then(|plans| clock.began.checked_add(plans)),
            is_trying: Mutex::new(false),
            best: Mutex::new(None),
        });
        let watched = Arc::downgrade(&limits);
        thread::spawn(move || Limits::watch(&watched));
        Bar {
            bar: bar(),
            limits,
            plans: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            known: AtomicUsize::new(0),
            begun: Instant::now(),
            first: OnceLock::new(),
            said: OnceLock::new(),
        }
    }

    /// Where there is no bar, a line now and then.
    fn say(&self, done: usize) {
        let Some(said) = self.said.get() else { return };
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        let plans = self.plans.load(Ordering::Relaxed).max(done);
        let known = self.known.load(Ordering::Relaxed);
        if done <= known {
            return;
        }
        let since_first = self.first.get_or_init(Instant::now).elapsed();
        let shown = left(since_first, done, known, plans)
            .into_iter()
            .chain(self.left())
            .min();
        let shown = never_more(said.left.map(|left| (left, said.at.elapsed())), shown);
        // What was shown may have been too little: then no time is shown, rather than none being left.
        let some_left = shown.filter(|left| left.as_secs() > 0);
        let text = some_left.map_or(String::new(), |left| format!(", about {} s left", left.as_secs()));
        if !self.bar.is_hidden() {
            self.bar.set_prefix(text);
        } else if said.at.elapsed() >= SAY {
            tell(&format!("headstart: {done} of {plans} plans{text}"));
        } else {
            return;
        }
        *said = Said {
            at: Instant::now(),
            left: shown,
        };
    }

    fn tell_fate(&self, trial: &Trial, from: &str) {
        if terminal::is_verbose() {
            let at = seconds(self.begun.elapsed());
            self.bar
                .suspend(|| explain(|| format!("{at}  {}{from}", fate(trial))));
        }
    }

    fn show(&self, trial: &Trial, from: &str) {
        self.tell_fate(trial, from);
        self.bar.inc(1);
        self.say(self.done.fetch_add(1, Ordering::Relaxed) + 1);
        let mut best = self.limits.best.lock().unwrap_or_else(PoisonError::into_inner);
        if trial.plan.is_none() {
            *best = Some(1.0);
        }
        let (Some((time_ns, speedup)), Some(best)) = (trial.measured(), best.as_mut()) else {
            return;
        };
        if speedup > *best {
            let (times, time) = (number::speedup(speedup), number::duration(time_ns));
            let plan = format!("the fastest plan so far is `{}`: {times}, {time}", trial.plan);
            self.bar.set_message(format!("{times} {}", trial.plan));
            if self.bar.is_hidden() && speedup > *best * WORTH_TELLING {
                tell(&format!("headstart: {plan}"));
            }
            *best = speedup;
        }
    }
}

impl Progress for Bar {
    fn understood(&self, sentence: &str) {
        tell(sentence);
    }

    fn begin(&self, plans: usize) {
        let at = seconds(self.begun.elapsed());
        explain(|| format!("{at}  plans listed and derived"));
        // A search goes on with its plans in another geometry.
        if self.said.get().is_none() {
            tell(&format!("plans to try, the plain kernel included: {plans}"));
        }
        let said = Said {
            at: Instant::now(),
            left: None,
        };
        let _ = self.said.set(Mutex::new(said));
        self.plans.store(plans, Ordering::Relaxed);
        let style = ProgressStyle::with_template("{bar:28} {pos}/{len} plans{prefix}  {wide_msg}");
        self.bar
            .set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.bar.set_length(plans as u64);
        self.bar.enable_steady_tick(Duration::from_millis(200));
    }

    fn done(&self, trial: &Trial) {
        self.show(trial, "");
    }

    fn known(&self, trial: &Trial) {
        self.known.fetch_add(1, Ordering::Relaxed);
        self.show(trial, ", from the log");
    }

    fn refused(&self, trial: &Trial) {
        self.tell_fate(trial, "");
    }

    fn is_stopped(&self) -> bool {
        self.limits.is_stopped()
    }

    fn trying(&self, is_trying: bool) {
        self.limits.trying(is_trying);
    }

    fn left(&self) -> Option<Duration> {
        let until = self.limits.until?;
        Some(until.saturating_duration_since(Instant::now()))
    }
}

/// The same for a sweep, which runs all of its points. Ctrl-C ends the command.
pub struct Points(ProgressBar);

impl Points {
    /// A bar for this many points.
    pub fn new(points: usize) -> Points {
        let style = ProgressStyle::with_template("{bar:28} {pos}/{len} points, {eta} left");
        let bar = bar();
        bar.set_length(points as u64);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(200));
        Points(bar)
    }

    /// One more is done.
    pub fn done(&self) {
        self.0.inc(1);
    }
}

impl Drop for Points {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_log_has_says_nothing_of_the_time_that_is_left() {
        let ten = Duration::from_secs(10);
        assert_eq!(left(ten, 6, 0, 11), Some(ten));
        // 42 of 112 from the log, four made in the ten seconds since the first one was: 65 more take 162.5.
        assert_eq!(left(ten, 47, 42, 112), Some(Duration::from_millis(162_500)));
        for done in [42, 43] {
            assert_eq!(left(ten, done, 42, 112), None);
        }
    }

    #[test]
    fn the_time_that_is_left_never_grows() {
        let seconds = Duration::from_secs;
        assert_eq!(never_more(None, Some(seconds(13))), Some(seconds(13)));
        let after_ten = Some((seconds(13), seconds(10)));
        assert_eq!(never_more(after_ten, Some(seconds(46))), Some(seconds(3)));
        assert_eq!(never_more(after_ten, Some(seconds(2))), Some(seconds(2)));
        assert_eq!(never_more(after_ten, None), Some(seconds(3)));
        let long_ago = Some((seconds(13), seconds(20)));
        assert_eq!(never_more(long_ago, Some(seconds(72))), Some(Duration::ZERO));
    }
}
