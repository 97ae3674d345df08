//! Trials on several threads.
//!
//! Not on rayon's: a trial waits for a device, the simulated device runs its work-groups on rayon's threads, and a pool
//! whose threads all wait for it never serves any of them.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use crate::error::{Error, Result};

/// Runs one trial's work. A panic in it is a bug of ours, and costs this trial only.
pub(crate) fn shielded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let said = payload.downcast_ref::<String>().map(String::as_str);
        let said = said
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("it stopped without a word");
        Err(Error::bug(said.replace('\n', " ")))
    })
}

/// Threads for this many items.
pub(crate) fn for_items(items: usize) -> usize {
    thread::available_parallelism().map_or(1, NonZero::get).min(items)
}

/// `work` of each item, on as many threads as the machine runs at once, in the order of the items.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let all_at_once = |_| items.len();
    in_turn(
        items,
        (),
        all_at_once,
        |_| (),
        |(), item, ()| work(item),
        |(), _, _| {},
    )
}

/// Does both at once.
pub(crate) fn both<A, B: Send>(one: impl FnOnce() -> A, other: impl FnOnce() -> B + Send) -> (A, B) {
    thread::scope(|scope| {
        let other = scope.spawn(other);
        let one = one();
        (one, other.join().unwrap_or_else(|payload| resume_unwind(payload)))
    })
}

/// What is known when an item's turn comes.
struct Turns<S, P, R> {
    /// The next item.
    next: usize,
    /// The state after this many items, from none on.
    states: Vec<Arc<S>>,
    prepared: Vec<Prepared<P>>,
    results: Vec<Option<R>>,
    /// Whether some thread has panicked.
    has_failed: bool,
}

/// How far an item is prepared.
enum Prepared<P> {
    NotYet,
    /// A thread is at it.
    Soon,
    Done(P),
}

/// What a thread does next.
enum Turn<S, P> {
    Prepare(usize),
    Work(usize, Arc<S>, Option<P>),
}

/// `work` of each item, on as many threads as the machine runs at once, started in the order of the items. It sees the state
/// that `take` has made of the results before, in order, but for the last few: `abreast(position)` items may be under way at
/// once, this one included, whatever the number of threads. A thread that would have to wait for that state does what `prepare`
/// does for later items.
pub(crate) fn in_turn<T: Sync, S: Clone + Send + Sync, P: Send, R: Send>(
    items: &[T],
    state: S,
    abreast: impl Fn(usize) -> usize + Sync,
    prepare: impl Fn(&T) -> P + Sync,
    work: impl Fn(&S, &T, P) -> R + Sync,
    take: impl Fn(&mut S, &T, &R) + Sync,
) -> Vec<R> {
    let turns = Mutex::new(Turns {
        next: 0,
        states: vec![Arc::new(state)],
        prepared: items.iter().map(|_| Prepared::NotYet).collect(),
        results: items.iter().map(|_| None).collect(),
        has_failed: false,
    });
    let has_changed = Condvar::new();
    let lock = || turns.lock().unwrap_or_else(PoisonError::into_inner);
    let next = || {
        let mut now = lock();
        loop {
            let position = now.next;
            if position == items.len() || now.has_failed {
                return None;
            }
            let before = (position + 1).saturating_sub(abreast(position).max(1));
            if let Some(state) = now.states.get(before).map(Arc::clone)
                && !matches!(now.prepared[position], Prepared::Soon)
            {
                now.next += 1;
                let prepared = match std::mem::replace(&mut now.prepared[position], Prepared::Soon) {
                    Prepared::Done(prepared) => Some(prepared),
                    Prepared::NotYet | Prepared::Soon => None,
                };
                return Some(Turn::Work(position, state, prepared));
            }
            let is_open = |prepared: &Prepared<P>| matches!(prepared, Prepared::NotYet);
            if let Some(later) = now.prepared[position..].iter().position(is_open) {
                now.prepared[position + later] = Prepared::Soon;
                return Some(Turn::Prepare(position + later));
            }
            now = has_changed.wait(now).unwrap_or_else(PoisonError::into_inner);
        }
    };
    let ended = |position: usize, result: R| {
        let mut now = lock();
        now.results[position] = Some(result);
        let Turns { states, results, .. } = &mut *now;
        while let Some(last) = states.last()
            && let Some(Some(result)) = results.get(states.len() - 1)
        {
            let mut state = S::clone(last);
            take(&mut state, &items[states.len() - 1], result);
            states.push(Arc::new(state));
        }
    };
    let run = || {
        while let Some(turn) = next() {
            let done = catch_unwind(AssertUnwindSafe(|| match turn {
                Turn::Prepare(position) => {
                    let prepared = prepare(&items[position]);
                    lock().prepared[position] = Prepared::Done(prepared);
                }
                Turn::Work(position, state, prepared) => {
                    let item = &items[position];
                    let prepared = prepared.unwrap_or_else(|| prepare(item));
                    ended(position, work(&state, item, prepared));
                }
            }));
            // A panicked thread is not waited for.
            lock().has_failed |= done.is_err();
            has_changed.notify_all();
            if let Err(payload) = done {
                resume_unwind(payload);
            }
        }
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..for_items(items.len())).map(|_| scope.spawn(run)).collect();
        run();
        // The other thread's own message is what the caller gets.
        others
            .into_iter()
            .try_for_each(|other| other.join())
            .unwrap_or_else(|payload| resume_unwind(payload));
    });
    let turns = turns.into_inner().unwrap_or_else(PoisonError::into_inner);
    turns.results.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Each item is held against what came before, and how long one takes changes nothing.
    #[test]
    fn an_item_sees_the_results_of_all_but_the_last_few_before_it() {
        let items: Vec<usize> = (0..60).collect();
        for round in 0..3 {
            let seen = in_turn(
                &items,
                Vec::new(),
                |position| if position < 10 { 1 } else { 4 },
                |&item| item * 3,
                |before: &Vec<usize>, &item, prepared| {
                    assert_eq!(prepared, item * 3);
                    thread::sleep(Duration::from_micros((item * 7919 + round * 31) as u64 % 300));
                    (item, before.clone())
                },
                |state, &item, result| {
                    assert_eq!(item, result.0);
                    state.push(item);
                },
            );
            for (position, (item, before)) in seen.into_iter().enumerate() {
                let abreast = if position < 10 { 1 } else { 4 };
                assert_eq!(item, position);
                assert_eq!(
                    before,
                    (0..(position + 1).saturating_sub(abreast)).collect::<Vec<_>>()
                );
            }
        }
    }

    #[test]
    #[should_panic(expected = "the other")]
    fn two_at_once_give_what_each_gives() {
        assert_eq!(both(|| 1, || "two"), (1, "two"));
        both(|| (), || panic!("the other"));
    }

    #[test]
    #[should_panic(expected = "the seventh")]
    fn a_panic_leaves_nobody_waiting() {
        let items: Vec<usize> = (0..40).collect();
        let work = |(): &(), &item: &usize, ()| assert!(item != 7, "the seventh");
        in_turn(&items, (), |_| 2, |_| (), work, |(), _, ()| {});
    }

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u32> = (0..1000).collect();
        assert_eq!(
            map(&items, |item| item * 2),
            items.iter().map(|item| item * 2).collect::<Vec<_>>()
        );
        assert!(map(&[], |item: &u32| *item).is_empty());
    }
}
