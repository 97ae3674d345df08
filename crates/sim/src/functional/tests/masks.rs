//! Operations with masks: who takes part, who is waited for, and the values kept by work-items that wait.

use super::Case;
use super::faults::kernel;
use crate::functional::Options;

/// The values of `%r` after a body, for each of 8 work-items.
fn run(body: &str) -> Vec<i32> {
    let text = kernel("", &format!("{body}\n%p = address %out + %i * 4\nstore %p, %r"));
    let mut outputs = [Options::CHECKING, Options::FAST].map(|options| {
        let mut case = Case::new(&text, 1, 8).output::<i32>(8);
        case.options = options;
        case.run().unwrap_or_else(|error| panic!("{error}\n{body}"));
        case.read::<i32>(0)
    });
    assert_eq!(outputs[0], outputs[1], "{body}");
    std::mem::take(&mut outputs[0])
}

fn error(body: &str) -> String {
    let text = kernel("", &format!("{body}\n%p = address %out + %i * 4\nstore %p, %i32"));
    Case::new(&text, 1, 8).output::<i32>(8).error()
}

const LOW: &str = "%low = lt.u %i32, 3:i32\n";

#[test]
fn each_party_has_its_own_answer() {
    let body = format!(
        "{LOW}%m = select %low, 7:i32, 248:i32\n%odd = and %i32, 1:i32\n%is = ne %odd, 0:i32\n\
         %r = vote ballot %is among %m"
    );
    assert_eq!(run(&body), [2, 2, 2, 168, 168, 168, 168, 168]);
    let body = format!(
        "{LOW}%m = select %low, 7:i32, 248:i32\n%f = select %low, 1:i32, 6:i32\n\
         %r = shuffle index %i32, %f among %m"
    );
    assert_eq!(run(&body), [1, 1, 1, 6, 6, 6, 6, 6]);
    assert_eq!(
        run("%m = shl 1:i32, %i32\n%all = vote all true among %m\n%r = select %all, 1:i32, 0:i32"),
        [1; 8]
    );
}

#[test]
fn a_part_shuffles_while_the_rest_is_elsewhere() {
    let body = format!(
        "{LOW}%r = if %low -> i32 {{ %s = shuffle down %i32, 1:i32 among 7:i32\nyield %s }} else {{ yield %i32 }}"
    );
    // The last of the party would read one who is not in it.
    assert!(
        error(&body.replace("%r =", "%unused ="))
            .contains("work-item 2 of work-group 0 (global 2) shuffles from lane 3")
    );
    let body = format!(
        "{LOW}%r = if %low -> i32 {{ %s = shuffle index %i32, 2:i32 among 7:i32\nyield %s }} else {{ yield %i32 }}"
    );
    assert_eq!(run(&body), [2, 2, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn two_sides_of_a_branch_work_together() {
    // Each side has values that the other's would overwrite, and uses them behind its wait.
    let side = |name: &str, factor: u32, by: u32| {
        format!(
            "%{name}a = mul %i32, {factor}:i32\n%{name}b = add %{name}a, {by}:i32\n%{name}c = mul %{name}b, %{name}a\n\
             %{name}s = shuffle xor %{name}a, 4:i32 among -1:i32\nmeet subgroup among 255:i32\n\
             %{name}v = lt.u %{name}a, 20:i32\n%{name}w = vote ballot %{name}v among 255:i32\n\
             %{name}d = add %{name}c, %{name}s\n%{name}e = mul %{name}d, 256:i32\n%{name}f = or %{name}e, %{name}w\n\
             %{name}g = sub %{name}f, %{name}b\nyield %{name}g"
        )
    };
    let (low, high) = (side("l", 3, 5), side("h", 7, 11));
    let own = |lane: i32| if lane < 3 { (3, 5) } else { (7, 11) };
    let given = |lane: i32| lane * own(lane).0;
    let votes = (0..8)
        .filter(|&lane| given(lane) < 20)
        .fold(0, |votes, lane| votes | 1 << lane);
    let expected: Vec<i32> = (0..8)
        .map(|lane| {
            let (a, b) = (given(lane), given(lane) + own(lane).1);
            (((b * a + given(lane ^ 4)) * 256) | votes) - b
        })
        .collect();
    assert_eq!(
        run(&format!("{LOW}%r = if %low -> i32 {{ {low} }} else {{ {high} }}")),
        expected
    );
}

#[test]
fn two_sides_of_a_branch_reduce_together() {
    let side = |name: &str| format!("%{name} = reduce add %i32 among 255:i32\nyield %{name}");
    let (low, high) = (side("l"), side("h"));
    assert_eq!(
        run(&format!("{LOW}%r = if %low -> i32 {{ {low} }} else {{ {high} }}")),
        [28; 8]
    );
    // Another kind of reduction is another operation.
    let high = high.replace("add", "or");
    let error = error(&format!("{LOW}%r = if %low -> i32 {{ {low} }} else {{ {high} }}"));
    assert!(error.contains("reduction"), "{error}");
}

#[test]
fn those_who_come_again_are_waited_for() {
    // Work-item i runs i iterations and tells before each who goes on.
    let body = "%some = ne %i32, 0:i32\n%first = vote ballot %some among 255:i32\n\
         %r = loop 'l (%k = 0:i32, %m = %first, %s = 0:i32) -> i32 {\n\
         %more = lt.u %k, %i32\nif %more { yield } else { break 'l %s }\n\
         %n = add %k, 1:i32\n%again = lt.u %n, %i32\n%next = vote ballot %again among %m\n\
         %t = add %s, %m\ncontinue %n, %next, %t\n}";
    let rest = |k: i32| (k + 1..8).fold(0, |mask, lane| mask | 1 << lane);
    let expected: Vec<i32> = (0..8).map(|lane| (0..lane).map(rest).sum()).collect();
    assert_eq!(run(body), expected);
    // Iterations of a loop vote with those of another one: each runs both, in other numbers.
    let part = |from: &str, to: &str, name: &str| {
        format!(
            "%{name} = loop '{name} (%{name}k = {from}, %{name}s = 0:i32) -> i32 {{\n%{name}m = lt.u %{name}k, {to}\n\
             if %{name}m {{ yield }} else {{ break '{name} %{name}s }}\n%{name}b = vote any true among 255:i32\n\
             %{name}1 = select %{name}b, 1:i32, 0:i32\n%{name}t = add %{name}s, %{name}1\n%{name}n = add %{name}k, 1:i32\n\
             continue %{name}n, %{name}t\n}}\n"
        )
    };
    let body = format!(
        "{}{}%r = add %x, %y",
        part("0:i32", "%i32", "x"),
        part("%i32", "7:i32", "y")
    );
    assert_eq!(run(&body), [7; 8]);
}

#[test]
fn who_has_ended_is_not_waited_for() {
    let body =
        "%low = lt.u %i32, 3:i32\nif %low { return } else { yield }\n%v = vote ballot true among -1:i32";
    let text = kernel("", &format!("{body}\n%p = address %out + %i * 4\nstore %p, %v"));
    let case = Case::new(&text, 1, 8).buffer(&[0i32; 8]);
    case.run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(case.read::<i32>(0), [0, 0, 0, 248, 248, 248, 248, 248]);
    let read = "%low = lt.u %i32, 3:i32\nif %low { return } else { yield }\n%v = shuffle index %i32, 1:i32 among -1:i32";
    assert_eq!(
        error(read).split_once(": ").unwrap().1,
        "work-item 3 of work-group 0 (global 3) shuffles from lane 1, which has ended or is not in its mask; the number of one \
         that its mask names and that runs the shuffle with it"
    );
    // Nor at a barrier, whatever the ending work-items do first.
    let text = kernel(
        "",
        "%low = lt.u %i32, 3:i32\n%p = address %out + %i * 4\nif %low { barrier\nyield } else { store %p, 5:i32\nreturn }\n\
         store %p, 6:i32",
    );
    let case = Case::new(&text, 1, 8).output::<i32>(8);
    case.run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(case.read::<i32>(0), [6, 6, 6, 5, 5, 5, 5, 5]);
    // Without a mask all must be there.
    let strict = body.replace(" among -1:i32", "");
    assert!(error(&strict).contains("runs a vote of its sub-group without work-item 0"));
}

#[test]
fn who_runs_together_is_told() {
    let body = format!(
        "{LOW}%r = if %low -> i32 {{ %m = active\nyield %m }} else {{ %m2 = active\n%o = vote all true among %m2\n\
         %w = select %o, %m2, 0:i32\nyield %w }}"
    );
    assert_eq!(run(&body), [7, 7, 7, 248, 248, 248, 248, 248]);
}

#[test]
fn who_is_missing_is_named() {
    for (low, high, expected) in [
        (
            "%a = vote any true among 15:i32 #1:3:5",
            "%b = vote any true among 255:i32 #1:4:5",
            "k.rs:3:5: work-item 0 of work-group 0 (global 0) runs a vote with the mask 0x0000000f, which names work-item 3, \
             and that one waits at k.rs:4:5 with the mask 0x000000ff",
        ),
        (
            "%a = vote any true among 255:i32 #1:3:5",
            "%b = vote all true among 255:i32 #1:4:5",
            "and that one waits at k.rs:4:5 with the mask 0x000000ff",
        ),
        (
            "%a = shuffle xor %i32, 1:i32 among 255:i32 #1:3:5",
            "barrier #1:4:5",
            "runs a shuffle with the mask 0x000000ff, which names work-item 3, and that one waits at k.rs:4:5; all work-items",
        ),
        (
            "%a = shuffle xor %i32, 1:i32 among 254:i32 #1:3:5",
            "yield",
            "k.rs:3:5: work-item 0 of work-group 0 (global 0) runs a shuffle with the mask 0x000000fe, which does not name it",
        ),
        (
            "barrier #1:3:5",
            "barrier #1:4:5",
            "k.rs:3:5: work-item 0 of work-group 0 (global 0) reaches a barrier that work-item 3 does not reach with it",
        ),
    ] {
        let high = if high == "yield" { "" } else { high };
        let said = error(&format!(
            "{LOW}if %low {{ {low}\nyield }} else {{ {high}\nyield }}"
        ));
        assert!(said.contains(expected), "{said}\n{expected}");
    }
}
