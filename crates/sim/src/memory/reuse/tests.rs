use super::*;
use crate::model::built_in;

/// What a launch of this many work-groups finds on an H200, each of which asks 512 times for the line that `line` says of it
/// and the time.
fn reuse(groups: u64, lines: u64, one_in: u64, line: impl Fn(u64, u64) -> u64) -> Reuse {
    let model = built_in("h200", &[]).expect("a model");
    let noted = noted(&model, one_in);
    let of_group = |group: u64| -> Vec<Request> {
        (0..512)
            .map(|at| Request::new(at as u32, line(group, at), 1, false))
            .filter(|request| (noted.is_noted)(request.line(), one_in))
            .collect()
    };
    let requests = Requests {
        groups: (0..groups).map(|group| vec![of_group(group)]).collect(),
        one_in,
        buffers: vec![0..lines * noted.line],
        cores: 132,
        places: 4,
        l1_bytes: 1 << 17,
    };
    Reuse::of(&model, &requests, false)
}

/// The hit rate of the first buffer when this part of this many requests has been made, on average over its regions.
fn hit_rate(reuse: &Reuse, requests: f64, part: f64) -> f64 {
    let buffer = reuse
        .buffers()
        .next()
        .expect("a buffer of which something is found");
    let regions = buffer.regions() as f64;
    let of_region = |region| buffer.hit_rate(region, part * requests / regions, part * requests);
    (0..buffer.regions()).map(of_region).sum::<f64>() / regions
}

#[test]
fn it_is_of_buffers_as_long_as_those_of_which_something_is_found() {
    let line = *built_in("h200", &[]).expect("a model").l2.line;
    let found = reuse(3168, 200_000, 4, |group, at| spread(group * 512 + at) % 200_000);
    let of = |lines: u64| found.is_of(&[1 << 40..(1 << 40) + line, 0..lines * line], line);
    assert!(of(200_000) && !of(200_001) && !of(199_999));
    // Nothing is found of a buffer whose lines are asked for once.
    let nothing = reuse(4, 4 * 512, 1, |group, at| group * 512 + at);
    assert!(nothing.is_of(&[], line));
}

#[test]
fn what_all_ask_for_is_there_once_it_was_brought() {
    // A table of 25 MiB that is read eight times over.
    let lines = 200_000;
    let random = |group: u64, at: u64| spread(group * 512 + at) % lines;
    let asked = (3168 * 512) as f64;
    let all = reuse(3168, lines, 1, random);
    assert!(hit_rate(&all, asked, 0.01) < 0.3);
    assert!(hit_rate(&all, asked, 0.99) > 0.95);
    // A part of the lines says the same.
    let some = reuse(3168, lines, 4, random);
    for part in [0.2, 0.5, 0.99] {
        let (all, some) = (hit_rate(&all, asked, part), hit_rate(&some, asked, part));
        assert!((all - some).abs() < 0.06, "{part}: {all} {some}");
    }
}

#[test]
fn l2_holds_its_part_of_a_larger_table() {
    let model = built_in("h200", &[]).expect("a model");
    // Each line lies in one half, and is copied to the other one sooner or later.
    let held = *model.l2.effective_size / *model.l2.line;
    let lines = 4 * held;
    let reuse = reuse(8448, lines, 8, |group, at| spread(group * 512 + at) % lines);
    let last = hit_rate(&reuse, (8448 * 512) as f64, 0.99);
    assert!((0.2..0.45).contains(&last), "{last}");
}

#[test]
fn nobody_finds_what_each_has_for_itself() {
    let own = reuse(1056, 1056 * 64, 1, |group, at| group * 64 + at % 64);
    assert_eq!(own.buffers().count(), 0);
}

#[test]
fn lines_that_go_are_not_found() {
    // All read the same lines, one after the other, some far behind the others: 128 MiB between them.
    let lines = 1 << 20;
    let behind = |group: u64, at: u64| (group % 2 * (lines / 2) + group / 2 * 512 + at) % lines;
    let reuse = reuse(4096, lines, 4, behind);
    let found = reuse.buffers().count();
    assert_eq!(found, 0);
}
