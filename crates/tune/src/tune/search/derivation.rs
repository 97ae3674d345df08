//! The plans of a search, each derived when it is first asked for: by the search itself, or by a thread that works ahead of it.
//!
//! A device that runs kernels answers in milliseconds, and a space has a hundred plans. What is measured is derived first; the
//! others are derived while the device measures, and not at all once it is done.

use std::sync::OnceLock;

use super::trying::Pair;
use crate::error::{Error, Result};
use crate::prefetch::Plan;
use crate::tune::derived::Derived;
use crate::tune::threads;

/// Plans, and what became of them.
pub(crate) struct Derivation<'a> {
    plans: &'a [Plan],
    derive: Box<dyn Fn(&Plan) -> Result<Derived> + Sync + 'a>,
    derived: Vec<OnceLock<Result<Derived>>>,
}

impl<'a> Derivation<'a> {
    /// None of them is derived yet.
    pub(crate) fn new(
        plans: &'a [Plan],
        derive: impl Fn(&Plan) -> Result<Derived> + Sync + 'a,
    ) -> Derivation<'a> {
        Derivation {
            plans,
            derive: Box::new(derive),
            derived: plans.iter().map(|_| OnceLock::new()).collect(),
        }
    }

    /// The plans.
    pub(crate) fn plans(&self) -> &'a [Plan] {
        self.plans
    }

    /// A plan with its outcome.
    pub(crate) fn pair(&self, index: usize) -> Pair<'_> {
        let plan = &self.plans[index];
        (plan, self.derived[index].get_or_init(|| (self.derive)(plan)))
    }

    /// What became of a plan, if it was derived.
    pub(crate) fn known(&self, index: usize) -> Option<&Result<Derived>> {
        self.derived[index].get()
    }

    /// Derives these, on all threads.
    pub(crate) fn derive(&self, plans: &[usize]) {
        threads::map(plans, |&index| {
            self.pair(index);
        });
    }

    /// Derives all of them, on all threads.
    pub(crate) fn all(&self) {
        self.derive(&(0..self.plans.len()).collect::<Vec<_>>());
    }

    /// Derives them in their order until that is no longer wanted, on this thread: the others may compile what is measured next.
    pub(crate) fn ahead(&self, is_over: impl Fn() -> bool) {
        for index in 0..self.plans.len() {
            if is_over() {
                break;
            }
            self.pair(index);
        }
    }

    /// The outcome of each plan. One that was not derived has none to speak of: it was not tried.
    pub(crate) fn ended(self) -> Vec<Result<Derived>> {
        let not_tried = || Err(Error::device("the search ended before it was derived"));
        let derived = self.derived.into_iter();
        derived
            .map(|derived| derived.into_inner().unwrap_or_else(not_tried))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn each_plan_is_derived_once_and_only_if_it_is_wanted() {
        let plans: Vec<Plan> = (2..40)
            .map(|group| format!("unroll:{group}").parse().expect("a plan"))
            .collect();
        let count = AtomicUsize::new(0);
        let derivation = Derivation::new(&plans, |plan| {
            count.fetch_add(1, Ordering::Relaxed);
            Err(Error::usage(plan.to_string()))
        });
        derivation.derive(&[3, 5]);
        assert_eq!(count.load(Ordering::Relaxed), 2);
        threads::both(|| derivation.ahead(|| false), || derivation.all());
        assert_eq!(count.load(Ordering::Relaxed), plans.len());
        let refusal = |derived: &Result<Derived>| derived.as_ref().expect_err("refused").to_string();
        assert!(refusal(derivation.pair(5).1).contains("unroll:7"));

        let unwanted = Derivation::new(&plans, |_| Err(Error::usage("nobody asked")));
        unwanted.ahead(|| true);
        assert!(refusal(&unwanted.ended()[0]).contains("before it was derived"));
    }
}
