//! Worker processes, each for one job at a time. One that faults or hangs is ended, and another goes on.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::job::{Job, Ran, Reply};
use crate::device::cuda::gpu::GpuFacts;

/// How long a worker may say nothing.
const SILENCE: Duration = Duration::from_secs(90);

/// What came of a trial.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tried {
    /// The first image ran under all launches.
    pub ran: bool,
    /// The outcomes of the other images.
    pub images: Vec<(usize, Vec<Ran>)>,
    /// Images in which the context was lost, in which launch, and the driver's words.
    pub lost: Vec<(usize, usize, String)>,
}

/// What came of a job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    /// Of each of its trials.
    pub trials: Vec<Tried>,
    /// Images that cannot be loaded, with the driver's words.
    pub not_loaded: Vec<(usize, String)>,
}

struct Worker {
    child: Child,
    input: ChildStdin,
    replies: Receiver<Reply>,
}

impl Worker {
    fn start(word: &str) -> Result<(Worker, GpuFacts), String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut child = Command::new(program)
            .arg(word)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("a worker: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a worker has no pipes".to_owned());
        };
        let (sender, replies) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let Ok(reply) = serde_json::from_str(&line) else {
                    continue;
                };
                if sender.send(reply).is_err() {
                    break;
                }
            }
        });
        let worker = Worker {
            child,
            input,
            replies,
        };
        match worker.replies.recv_timeout(SILENCE) {
            Ok(Reply::Opened(facts)) => Ok((worker, facts)),
            Ok(Reply::NoGpu(why)) => Err(why),
            other => Err(format!("a worker does not begin: {other:?}")),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Workers that are free, and how many there are.
pub struct Pool {
    free: Mutex<Vec<Option<Worker>>>,
    freed: Condvar,
    word: String,
    facts: GpuFacts,
}

impl Pool {
    /// This many workers; this program, started with this word, is one.
    ///
    /// # Errors
    /// There is no GPU.
    pub fn new(count: usize, word: &str) -> Result<Pool, String> {
        let (first, facts) = Worker::start(word)?;
        let mut free: Vec<Option<Worker>> = (1..count).map(|_| None).collect();
        free.push(Some(first));
        Ok(Pool {
            free: Mutex::new(free),
            freed: Condvar::new(),
            word: word.to_owned(),
            facts,
        })
    }

    /// The GPU.
    pub fn facts(&self) -> &GpuFacts {
        &self.facts
    }

    /// Runs a job, through as many workers as that takes.
    ///
    /// # Errors
    /// A worker cannot be started.
    pub(crate) fn run(&self, job: &Job) -> Result<Done, String> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut worker = loop {
            match free.pop() {
                Some(worker) => break worker,
                None => free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(free);
        let done = self.through(&mut worker, job);
        self.free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(worker);
        self.freed.notify_one();
        done
    }

    fn through(&self, slot: &mut Option<Worker>, job: &Job) -> Result<Done, String> {
        let mut done = Done {
            trials: vec![Tried::default(); job.trials.len()],
            ..Done::default()
        };
        let mut rest = job.clone();
        rest.trials
            .iter_mut()
            .enumerate()
            .for_each(|(number, trial)| trial.number = number);
        while !rest.trials.is_empty() {
            let worker = match slot {
                Some(worker) => worker,
                None => slot.insert(Worker::start(&self.word)?.0),
            };
            let line = serde_json::to_string(&rest).map_err(|error| error.to_string())?;
            let given = writeln!(worker.input, "{line}").and_then(|()| worker.input.flush());
            let over = given.is_ok() && listen(&worker.replies, &mut rest, &mut done);
            if !over {
                *slot = None;
            }
        }
        Ok(done)
    }
}

/// Takes what is done out of the rest. True if the worker can go on.
fn listen(replies: &Receiver<Reply>, rest: &mut Job, done: &mut Done) -> bool {
    loop {
        match replies.recv_timeout(SILENCE) {
            Ok(Reply::Done { number, ran, images }) => {
                let tried = &mut done.trials[number];
                tried.ran = ran;
                tried.images.extend(images);
                rest.trials.retain(|trial| trial.number != number);
            }
            Ok(Reply::NotLoaded { image, why }) => {
                if !done.not_loaded.iter().any(|(own, _)| *own == image) {
                    done.not_loaded.push((image, why));
                }
            }
            Ok(Reply::Lost {
                number,
                image,
                launch,
                why,
            }) => {
                lose(rest, done, number, image, launch, why);
                return false;
            }
            Ok(Reply::Over) => {
                rest.trials.clear();
                return true;
            }
            Ok(Reply::Opened(_) | Reply::NoGpu(_)) => {}
            Err(silence) => {
                // The trials are run in order: it was in the first that is left.
                let why = match silence {
                    RecvTimeoutError::Timeout => "the worker says nothing any more",
                    RecvTimeoutError::Disconnected => "the worker ended",
                };
                if let Some(trial) = rest.trials.first() {
                    let (number, image) = (trial.number, trial.images.last().copied().unwrap_or(0));
                    lose(rest, done, number, image, 0, why.to_owned());
                }
                return false;
            }
        }
    }
}

/// The trial goes on without an image; without the first it does not.
fn lose(rest: &mut Job, done: &mut Done, number: usize, image: usize, launch: usize, why: String) {
    done.trials[number].lost.push((image, launch, why));
    let Some(trial) = rest.trials.iter_mut().find(|trial| trial.number == number) else {
        return;
    };
    if trial.images.first() == Some(&image) {
        rest.trials.retain(|trial| trial.number != number);
    } else {
        trial.images.retain(|own| *own != image);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::job::Trial;

    fn job() -> Job {
        let trial = |number| Trial {
            number,
            entry: format!("k{number}"),
            groups: 1,
            group: 1,
            images: vec![0, 1, 2],
            launches: Vec::new(),
        };
        Job {
            images: Vec::new(),
            data: "data".into(),
            results: "results".into(),
            trials: (0..3).map(trial).collect(),
        }
    }

    fn told(rest: &mut Job, done: &mut Done, replies: Vec<Reply>) -> bool {
        let (sender, receiver) = channel();
        for reply in replies {
            sender.send(reply).expect("the receiver is here");
        }
        drop(sender);
        listen(&receiver, rest, done)
    }

    #[test]
    fn what_a_lost_worker_had_not_done_is_left() {
        let mut rest = job();
        let mut done = Done {
            trials: vec![Tried::default(); 3],
            ..Done::default()
        };
        let same = || vec![(1, vec![Ran::Same])];
        let lost = |number, image| Reply::Lost {
            number,
            image,
            launch: 3,
            why: "a fault".to_owned(),
        };
        let first = Reply::Done {
            number: 0,
            ran: true,
            images: same(),
        };
        assert!(!told(&mut rest, &mut done, vec![first, lost(1, 2)]));
        let left: Vec<(usize, &[usize])> = rest
            .trials
            .iter()
            .map(|trial| (trial.number, &trial.images[..]))
            .collect();
        assert_eq!(left, [(1, &[0, 1][..]), (2, &[0, 1, 2])]);
        // The original itself faults: nothing of the entry can be compared.
        let second = Reply::Done {
            number: 1,
            ran: true,
            images: same(),
        };
        assert!(!told(&mut rest, &mut done, vec![second, lost(2, 0)]));
        assert!(rest.trials.is_empty());
        assert_eq!(
            done.trials.iter().map(|tried| tried.ran).collect::<Vec<_>>(),
            [true, true, false]
        );
        assert_eq!(done.trials[1].lost, [(2, 3, "a fault".to_owned())]);
        assert_eq!(done.trials[1].images, [(1, vec![Ran::Same])]);
    }

    #[test]
    fn a_worker_that_ends_without_a_word_takes_one_image_along() {
        let mut rest = job();
        let mut done = Done {
            trials: vec![Tried::default(); 3],
            ..Done::default()
        };
        for left in [vec![0, 1], vec![0]] {
            assert!(!told(&mut rest, &mut done, Vec::new()));
            assert_eq!(rest.trials[0].images, left);
        }
        assert!(!told(&mut rest, &mut done, Vec::new()));
        assert_eq!(rest.trials.len(), 2);
        assert!(told(&mut rest, &mut done, vec![Reply::Over]));
        assert!(rest.trials.is_empty());
    }
}
