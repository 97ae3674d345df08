//! Compiling many kernels at a time, none for longer than it may take.
//!
//! The driver's compiler cannot be stopped: thousands of instructions in one loop keep it busy for minutes, and it gives no
//! sign. Kernels are compiled on threads of a pool, and the caller continues without those that are late. Their threads
//! end only with the process, so the caller has to replace it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::{Failure, FailureKind};

/// A thread's message.
enum Message<T> {
    Started(usize),
    Done(usize, Result<T, Failure>),
}

/// The outcome of each item, in order.
pub(super) struct Compiled<T> {
    pub results: Vec<Result<T, Failure>>,
    /// Some were late, and are compiled still.
    pub is_busy: bool,
}

/// Compiles `count` items on `threads` threads, each within `limit`.
pub(super) fn all<T: Send + 'static>(
    count: usize,
    threads: usize,
    limit: Duration,
    compile: impl Fn(usize) -> Result<T, Failure> + Send + Sync + 'static,
) -> Compiled<T> {
    let (compile, next) = (Arc::new(compile), Arc::new(AtomicUsize::new(0)));
    let (tell, told) = mpsc::channel();
    let start = || {
        let (compile, next, tell) = (Arc::clone(&compile), Arc::clone(&next), tell.clone());
        let work = move || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                // The receiver is gone once all are known.
                if index >= count || tell.send(Message::Started(index)).is_err() {
                    break;
                }
                if tell.send(Message::Done(index, compile(index))).is_err() {
                    break;
                }
            }
        };
        thread::Builder::new().spawn(work).is_ok()
    };
    let running = (0..threads.clamp(1, count.max(1))).filter(|_| start()).count();
    let mut results: Vec<Option<Result<T, Failure>>> = (0..count).map(|_| None).collect();
    let mut started: Vec<Option<Instant>> = vec![None; count];
    let (mut missing, mut is_busy) = (count, false);
    while missing > 0 && running > 0 {
        let first = (0..count)
            .filter(|&index| results[index].is_none())
            .filter_map(|index| Some((started[index]?, index)))
            .min();
        let left = first.map_or(limit, |(at, _)| {
            (at + limit).saturating_duration_since(Instant::now())
        });
        match (told.recv_timeout(left), first) {
            (Ok(Message::Started(index)), _) => started[index] = Some(Instant::now()),
            (Ok(Message::Done(index, result)), _) if results[index].is_none() => {
                results[index] = Some(result);
                missing -= 1;
            }
            // The abandoned items.
            (Ok(Message::Done(..)), _) => {}
            (Err(_), Some((at, index))) if at.elapsed() >= limit => {
                results[index] = Some(Err(late(limit)));
                (missing, is_busy) = (missing - 1, true);
                // Others wait for the thread that is busy with it.
                start();
            }
            (Err(mpsc::RecvTimeoutError::Timeout), _) => {}
            (Err(mpsc::RecvTimeoutError::Disconnected), _) => break,
        }
    }
    let lost = || Err(Failure::new(FailureKind::Driver, "the compiler gave no answer"));
    let results = results.into_iter().map(|own| own.unwrap_or_else(lost)).collect();
    Compiled { results, is_busy }
}

/// The failure of a text that is not compiled within a limit.
pub(super) fn late(limit: Duration) -> Failure {
    let seconds = limit.as_secs_f64();
    Failure::new(
        FailureKind::Resources,
        format!("the driver's compiler was not done with a kernel after {seconds} s"),
    )
    .accepted("a smaller plan, or more seconds in HEADSTART_PTXAS_LIMIT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_are_in_time_have_their_result_in_order() {
        let compiled = all(20, 3, Duration::from_secs(60), |index| match index {
            7 => Err(Failure::new(FailureKind::Compilation, "no")),
            _ => Ok(index * index),
        });
        assert!(!compiled.is_busy && compiled.results.len() == 20);
        for (index, result) in compiled.results.into_iter().enumerate() {
            match index {
                7 => assert_eq!(result.expect_err("it is refused").kind, FailureKind::Compilation),
                _ => assert_eq!(result, Ok(index * index)),
            }
        }
        assert!(all(0, 4, Duration::from_secs(60), |_| Ok(())).results.is_empty());
    }

    #[test]
    fn what_is_late_is_given_up_and_the_others_go_on() {
        // On one thread the first would keep all others waiting.
        for threads in [1, 4] {
            let start = Instant::now();
            let compiled = all(6, threads, Duration::from_millis(300), |index| {
                if index == 0 || index == 3 {
                    thread::sleep(Duration::from_secs(60));
                }
                Ok(index)
            });
            assert!(compiled.is_busy);
            assert!(start.elapsed() < Duration::from_secs(30), "nobody waits for them");
            for (index, result) in compiled.results.into_iter().enumerate() {
                match (index, result) {
                    (0 | 3, Err(failure)) => {
                        assert_eq!(failure.kind, FailureKind::Resources);
                        assert!(failure.what.contains("after 0.3 s"), "{}", failure.what);
                    }
                    (1 | 2 | 4 | 5, Ok(own)) => assert_eq!(own, index),
                    (_, other) => panic!("{index}: {other:?}"),
                }
            }
        }
    }
}
