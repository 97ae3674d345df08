//! A lock that a fork may not tear.
//!
//! A program may fork while another of its threads is in here. The child has that thread's locks, locked, and not the thread.
//! Before a fork all locks are taken and afterwards given back, in both processes; the standard library's mutex has no way to do
//! that.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A value that one thread at a time may use, briefly.
pub struct Lock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time has the value, and `taken` orders one after the other.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The value, until this is dropped.
pub struct Taken<'l, T>(&'l Lock<T>);

impl<T> Lock<T> {
    /// A value that is not in use.
    pub const fn new(value: T) -> Lock<T> {
        Lock {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits until the value is not in use.
    pub fn take(&self) -> Taken<'_, T> {
        self.hold();
        Taken(self)
    }

    /// Whether the value is free, now or soon. It never is where a signal's handler ends the program while its own thread uses it.
    pub fn comes_free(&self) -> bool {
        (0..1000).any(|turn| {
            if turn > 0 {
                thread::sleep(Duration::from_micros(100));
            }
            !self.taken.load(Ordering::Acquire)
        })
    }

    /// The same without a guard, for the time of a fork.
    pub fn hold(&self) {
        let mut turns = 0u32;
        while self
            .taken
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            turns += 1;
            match turns {
                0..64 => std::hint::spin_loop(),
                _ => thread::yield_now(),
            }
        }
    }

    /// Ends [`Lock::hold`].
    pub fn release(&self) {
        self.taken.store(false, Ordering::Release);
    }
}

impl<T> Deref for Taken<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Taken<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_has_the_value() {
        let lock = Lock::new(0u64);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        *lock.take() += 1;
                    }
                });
            }
        });
        assert_eq!(*lock.take(), 40_000);
    }
}
