//! What the simulator's checks of a plan find, each by a kernel that is wrong on purpose in a way that only it notices.

use std::sync::Arc;

use headstart::device::sim::Simulator;
use headstart::device::{Fill, Pattern};
use headstart::ir::{Kernel, Type};
use headstart::prefetch::Plan;
use headstart::prelude::{Atomic, Ordering, global_id, kernel};
use headstart::report::Outputs;
use headstart::tune::check::{AtFullSize, Checks};
use headstart::tune::sample::Sample;
use headstart::tune::{ArgumentSpec, Compare, Subject, Workload};
use headstart::{Error, Result};

const GROUP: u32 = 32;

/// Rows of 64.
#[kernel(work_group = 32)]
fn sums(data: &[u32], result: &mut [u32], count: u32) {
    let i = global_id();
    let mut sum = 0;
    for n in 0..count as usize {
        sum += data[i * 64 + n];
    }
    result[i] = sum;
}

/// As one that fetches the first element before the loop asks whether there is one.
#[kernel(work_group = 32)]
fn without_iterations(data: &[u32], result: &mut [u32], count: u32) {
    let i = global_id();
    let mut sum = data[i * 64];
    for n in 1..count as usize {
        sum += data[i * 64 + n];
    }
    result[i] = sum;
}

/// As one whose addresses are cut off: right in the first work-groups only.
#[kernel(work_group = 32)]
fn cut_off(data: &[u32], result: &mut [u32], count: u32) {
    let i = global_id();
    let mut sum = 0;
    for n in 0..count as usize {
        sum += data[(i * 64 + n) & 0xfff];
    }
    result[i] = sum;
}

/// As one that fetches one element too many.
#[kernel(work_group = 32)]
fn one_too_many(data: &[u32], result: &mut [u32], count: u32) {
    let i = global_id();
    let mut sum = 0;
    let mut next = data[i * 64];
    for n in 0..count as usize {
        sum += next;
        next = data[i * 64 + n + 1];
    }
    result[i] = sum;
}

/// Does not end.
#[kernel(work_group = 32)]
fn endless(data: &[u32], result: &mut [u32], count: u32) {
    let i = global_id();
    let mut x = data[i * 64] | 1;
    while x != 0 {
        x = (x ^ count) | 1;
    }
    result[i] = x;
}

/// Adds a result of an earlier launch.
#[kernel(work_group = 32)]
fn reads_results(data: &[u32], result: &mut [u32], count: u32) {
    let i = global_id();
    let mut sum = data[i * 64] + count;
    if i & 63 == 0 {
        sum += result[i];
    }
    result[i] = sum;
}

/// Work-groups that see what others did.
#[kernel(work_group = 32)]
fn takes_places(counter: &[Atomic<u32>], result: &mut [u32]) {
    let place = counter[0].fetch_add(1, Ordering::Relaxed);
    result[place as usize] = 1;
}

/// `sums`, or another kernel in its place, in this many work-groups; small with as many iterations as are asked for.
struct Sums {
    kernel: Arc<Kernel>,
    groups: u32,
    count: u32,
}

impl Sums {
    fn new(groups: u32) -> Sums {
        Sums {
            kernel: Arc::new(sums::kernel().expect("right")),
            groups,
            count: 64,
        }
    }
}

impl Subject for Sums {
    fn name(&self) -> &str {
        "sums"
    }

    fn workload(&self) -> Result<Workload> {
        let items = u64::from(self.groups * GROUP);
        let data = ArgumentSpec::Input {
            element: Type::I32,
            length: items * 64,
            fill: Fill::Pattern(Pattern::Below { bound: 1000, seed: 5 }),
        };
        let result = ArgumentSpec::Output {
            element: Type::I32,
            length: items,
            fill: Fill::Pattern(Pattern::Constant(0)),
            compare: Compare::Bits,
        };
        Workload::new(Arc::clone(&self.kernel), self.groups, GROUP)
            .with("data", data)?
            .with("result", result)?
            .with("count", ArgumentSpec::Scalar(Type::I32, self.count.into()))
    }

    fn small(&self, iterations: u64) -> Result<Option<Workload>> {
        let small = Sums {
            kernel: Arc::clone(&self.kernel),
            groups: 2,
            count: iterations as u32,
        };
        small.workload().map(Some)
    }
}

fn plan() -> Plan {
    "unroll:2".parse().expect("a plan")
}

/// What the checks of `sums` say of another kernel in its place.
fn said(subject: &dyn Subject, other: Result<Kernel>, at_full_size: AtFullSize) -> Result<Outputs> {
    let plain = Arc::new(sums::kernel().expect("right"));
    let simulator = Simulator::untimed();
    let checks = Checks::with(subject, &plain, &simulator, [&plan()], at_full_size)?;
    checks.check(&plan(), &Arc::new(other.expect("it is a kernel")))
}

fn wrong(result: Result<Outputs>) -> String {
    match result {
        Err(error) => error.to_string(),
        Ok(outputs) => panic!("nothing was found: {outputs:?}"),
    }
}

#[test]
fn loops_of_none_or_one_iteration_are_run() {
    let text = wrong(said(
        &Sums::new(3),
        without_iterations::kernel(),
        AtFullSize::First,
    ));
    assert!(
        text.contains("output `result`") && text.contains("checked at 0 iterations"),
        "{text}"
    );
    assert!(said(&Sums::new(3), sums::kernel(), AtFullSize::First).is_ok());
}

#[test]
fn what_goes_wrong_in_late_work_groups_is_found_by_the_sample() {
    // Of the first two work-groups of 32 rows of 64 all indices are below 4096.
    let subject = Sums::new(3000);
    let first = said(&subject, cut_off::kernel(), AtFullSize::First);
    assert!(matches!(first, Ok(Outputs::Identical)), "{first:?}");
    let text = wrong(said(&subject, cut_off::kernel(), AtFullSize::Sample { seed: 1 }));
    assert!(
        text.contains("output `result`: element") && text.contains("checked at full size"),
        "{text}"
    );
    let right = said(&subject, sums::kernel(), AtFullSize::Sample { seed: 1 });
    assert!(matches!(right, Ok(Outputs::Identical)), "{right:?}");
}

#[test]
fn what_leaves_the_buffers_in_the_last_work_group_is_found_by_the_sample() {
    let subject = Sums::new(3000);
    let first = said(&subject, one_too_many::kernel(), AtFullSize::First);
    // At small sizes the rows are as long, and less of each is read.
    assert!(first.is_ok(), "{first:?}");
    let text = wrong(said(
        &subject,
        one_too_many::kernel(),
        AtFullSize::Sample { seed: 1 },
    ));
    assert!(text.contains("data[6144000]"), "{text}");
}

/// The sample of a kernel in the place of `sums`.
fn sample(workload: &Workload, seed: u64) -> Option<Arc<Sample>> {
    let simulator = Simulator::untimed();
    let at_full_size = AtFullSize::Sample { seed };
    let checks = Checks::with(workload, &workload.kernel, &simulator, [], at_full_size);
    checks.expect("the plain kernel is right").sample().cloned()
}

#[test]
fn a_sample_has_the_first_and_the_last() {
    let workload = Sums::new(3000).workload().expect("a workload");
    let one = sample(&workload, 1).expect("no work-group sees another");
    let groups = one.groups();
    assert_eq!((groups[0], groups.last()), (0, Some(&2999)));
    assert!(groups.len() > 2 && groups.len() < 3000);
    let again = sample(&workload, 1).expect("the same");
    assert_eq!(again.groups(), groups);
    assert_ne!(sample(&workload, 2).expect("another").groups(), groups);
}

#[test]
fn kernels_whose_work_groups_see_each_other_have_no_sample() -> Result<()> {
    let counter = ArgumentSpec::output(Type::I32, 1, Fill::Pattern(Pattern::Constant(0)), Compare::Bits);
    let result = ArgumentSpec::Output {
        element: Type::I32,
        length: 3000 * 32,
        fill: Fill::Pattern(Pattern::Constant(0)),
        compare: Compare::Bits,
    };
    let kernel = Arc::new(takes_places::kernel()?);
    let workload = Workload::new(kernel, 3000, 32)
        .with("counter", counter)?
        .with("result", result)?;
    match sample(&workload, 1) {
        None => Ok(()),
        Some(sample) => Err(Error::bug(format!("{sample:?}"))),
    }
}

#[test]
fn work_groups_that_take_too_long_are_not_sampled() {
    let subject = Sums {
        kernel: Arc::new(endless::kernel().expect("it is a kernel")),
        ..Sums::new(3000)
    };
    let sample = sample(&subject.workload().expect("a workload"), 1).expect("none sees another");
    assert!(sample.groups().is_empty());
}
