use super::*;

/// A run of 25 work-groups on each core, which do evenly so much until a time.
fn run(cores: u32, cycles: f64, uses: f64) -> Course {
    let part = |part: u32| f64::from(part) / 10.0;
    Course {
        cores,
        groups: 25 * u64::from(cores),
        few: None,
        uses: Vec::new(),
        points: (1..=10).map(|at| (cycles * part(at), uses * part(at))).collect(),
    }
}

fn pace() -> Pace {
    let mut pace = Pace::new(Vec::new());
    pace.ended(&run(4, 2e6, 1000.0), 1.0);
    pace.ended(&run(4, 1e6, 1000.0), 2.0);
    pace
}

#[test]
fn a_slow_run_is_given_up_early_and_a_similar_one_is_not() {
    let pace = pace();
    // Half as fast, when a tenth of the leader is done.
    let behind = pace.behind(&run(4, 1e5, 51.0)).unwrap();
    assert!((behind.after - 0.1).abs() < 1e-9 && (behind.estimate - 1.02).abs() < 1e-9);
    assert!(behind.at_most > behind.estimate && behind.at_most < 1.5);
    for uses in [92.0, 100.0, 150.0] {
        assert_eq!(pace.behind(&run(4, 1e5, uses)), None, "{uses}");
    }
    // Far behind is certain earlier.
    assert!(pace.behind(&run(4, 4e4, 31.0)).is_some());
    assert_eq!(pace.behind(&run(4, 4e4, 33.0)), None);
    // Nor what has hardly begun.
    assert_eq!(pace.behind(&run(4, 1e5, 10.0)), None);
    assert_eq!(pace.behind(&run(4, 3e4, 12.0)), None);
}

#[test]
fn who_goes_on_as_the_leader_does_is_given_up_once_that_is_settled() {
    let pace = pace();
    assert_eq!(pace.behind(&run(4, 1.4e5, 140.0)), None);
    for uses in [196.0, 200.0, 202.0] {
        let behind = pace.behind(&run(4, 2e5, uses)).expect("settled");
        assert!(behind.at_most <= 2.0 * WORTH, "{behind:?}");
    }
    // What is worth its end, and what does not come evenly.
    assert_eq!(pace.behind(&run(4, 2e5, 204.0)), None);
    let mut uneven = run(4, 2e5, 200.0);
    for point in &mut uneven.points[..7] {
        point.1 *= 0.94;
    }
    assert_eq!(pace.behind(&uneven), None);
}

#[test]
fn who_began_slowly_is_not_given_up() {
    let mut late = run(4, 2e5, 150.0);
    // Nothing until half of the time.
    for (at, (_, uses)) in late.points.iter_mut().enumerate() {
        *uses = if at < 5 { 0.0 } else { (at - 4) as f64 * 30.0 };
    }
    assert_eq!(pace().behind(&late), None);
    assert!(pace().behind(&run(4, 2e5, 150.0)).is_some());
}

#[test]
fn samples_of_other_sizes_are_compared_by_core() {
    assert_eq!(Pace::new(Vec::new()).behind(&run(4, 1e5, 0.0)), None);
    assert!(pace().behind(&run(16, 4e5, 200.0)).is_some());
    assert_eq!(pace().behind(&run(16, 4e5, 420.0)), None);
}

/// A leader that has done this part of its work after half of its time.
fn uneven(in_half: f64) -> Pace {
    let mut leader = run(4, 1e6, 1000.0);
    for (at, (_, uses)) in leader.points.iter_mut().enumerate() {
        let (first, second) = (at.min(4) + 1, at.saturating_sub(4));
        *uses = 200.0 * (in_half * first as f64 + (1.0 - in_half) * second as f64);
    }
    let mut plain = run(4, 2e6, 1000.0);
    plain.points[8].1 = 0.0;
    let mut pace = Pace::new(Vec::new());
    pace.ended(&plain, 1.0);
    pace.ended(&leader, 2.0);
    pace
}

#[test]
fn who_is_held_against_an_uneven_leader_may_still_be_faster_in_the_rest() {
    let pace = uneven(0.7);
    // Half as fast for what the leader did in a seventh of its time.
    let behind = pace.behind(&run(4, 2.9e5, 200.0)).expect("behind");
    assert!(
        (behind.estimate - 0.985).abs() < 0.01 && behind.at_most < 2.0,
        "{behind:?}"
    );
    // A tenth slower: the rest may take that much less, until there is little of it.
    assert_eq!(pace.behind(&run(4, 1.6e5, 200.0)), None);
    assert!(pace.behind(&run(4, 7.8e5, 790.0)).is_some());
    // As fast, and what has hardly begun.
    assert_eq!(pace.behind(&run(4, 5e5, 700.0)), None);
    assert_eq!(pace.behind(&run(4, 1e5, 40.0)), None);
}

#[test]
fn a_run_that_a_small_sample_shows_far_behind_is_given_up() {
    let mut pace = Pace::new(vec![LoadId::from_u32(0)]);
    assert!(pace.wants_few() && pace.behind_from_few(1e5).is_none());
    pace.ended(&run(4, 2e6, 1000.0).after_few(Some(5e5)), 1.0);
    assert!(!pace.wants_few());
    pace.ended(&run(4, 1e6, 1000.0), 2.0);
    assert!(pace.wants_few());
    // As fast as the kernel without a plan, when the leader is twice as fast.
    let behind = pace.behind_from_few(5e5).expect("behind");
    assert_eq!((behind.after, behind.estimate, behind.at_most), (FEW, 1.0, SAID));
    assert!(pace.behind_from_few(3.95e5).is_some());
    assert_eq!(pace.behind_from_few(3.9e5), None);
    // There is nothing to compare with.
    let mut pace = Pace::new(vec![LoadId::from_u32(0)]);
    pace.ended(&run(4, 2e6, 1000.0), 1.0);
    pace.ended(&run(4, 1e6, 1000.0), 2.0);
    assert!(!pace.wants_few() && pace.behind_from_few(5e5).is_none());
    // No run may be dropped, or only when its time has passed.
    for mut pace in [Pace::new(Vec::new()), Pace::within(1e9)] {
        assert!(!pace.wants_few());
        pace.ended(&run(4, 2e6, 1000.0).after_few(Some(5e5)), 1.0);
        pace.ended(&run(4, 1e6, 1000.0), 2.0);
        assert!(!pace.wants_few());
    }
}

#[test]
fn nothing_is_held_against_who_ends_with_a_few_long_work_groups_or_does_something_else() {
    assert_eq!(uneven(0.9).behind(&run(4, 2e5, 20.0)), None);
    let mut pace = Pace::new(Vec::new());
    pace.ended(&run(4, 2e6, 1000.0), 1.0);
    pace.steady = None;
    pace.ended(&run(4, 1e6, 900.0), 2.0);
    assert_eq!(pace.behind(&run(4, 2e5, 20.0)), None);
    // Where no progress is counted no run leads.
    let mut pace = Pace::new(Vec::new());
    pace.ended(&run(4, 2e6, 0.0), 1.0);
    pace.ended(&run(4, 1e6, 0.0), 2.0);
    assert!(!pace.has_leader() && pace.behind(&run(4, 3e6, 0.0)).is_none());
}
