//! What comes before any plan: lanes without work-items, accesses that are not coalesced, narrow loads, uneven work; and that a
//! launch file is believed about other geometries.

use std::sync::Arc;

use headstart::device::model;
use headstart::report::columns::Columns;
use headstart::report::{Report, Verdict, table};
use headstart::tune::{FileSubject, LaunchFile, SearchSettings, SimulatedBench, search};

/// A kernel whose work-items sum what `body` makes of their numbers.
fn kernel(body: &str) -> String {
    format!(
        "hsir 1
kernel @sums(%data: ptr.global f32[%len] align 16 readonly unaliased, %len: i64,
             %out: ptr.global f32[%out_len] align 4 unaliased, %out_len: i64, %count: i64) {{
  file #1 \"sums.rs\"
  load @data #1:5:9
  load @second #1:6:9
  load @third #1:7:9
  load @fourth #1:8:9
  %group = id.group.x
  %size = id.group_size.x
  %before = mul.nuw %group, %size
  %local = id.local.x
  %item32 = add.nuw %before, %local
  %item = extend.u %item32 to i64
{body}
  %to = address %out + %item * 4
  store %to, %sum
  return
}}
"
    )
}

fn tuned(body: &str, launch: &str) -> Report {
    let text = kernel(body);
    let kernel = headstart::ir::read(&text, "sums.hsir").unwrap_or_else(|error| panic!("{error}\n{text}"));
    headstart::ir::verify(&kernel).unwrap_or_else(|error| panic!("{error}"));
    let launch = LaunchFile::parse(launch, "launch.toml").unwrap_or_else(|error| panic!("{error}"));
    let subject = FileSubject::new(Arc::new(kernel), launch);
    let bench = SimulatedBench::new(model::built_in("h200", &[]).expect("a model"));
    let settings = SearchSettings {
        plans: Some(&[]),
        ..SearchSettings::default()
    };
    search(&subject, &bench, &settings, &())
        .unwrap_or_else(|error| panic!("{error}"))
        .report
}

fn launch(groups: u32, group: u32, length: u64, count: u32) -> String {
    let items = u64::from(groups) * u64::from(group);
    format!(
        "groups = {groups}\ngroup = {group}\n[parameters.data]\nlength = {length}\nfill = \"fractions\"\n[parameters.out]\n\
         length = {items}\noutput = \"bits\"\n[parameters.count]\nvalue = {count}\n"
    )
}

/// What comes first, a line each.
fn first(report: &Report) -> String {
    report
        .first
        .iter()
        .map(|remedy| format!("{}\n", remedy.finding))
        .collect()
}

const ONE_LOAD: &str = "  %at = address %data + %item * 4\n  %sum = load f32 %at, @data";

#[test]
fn work_groups_of_one_are_told_and_the_launch_file_is_believed() {
    let alone = launch(1 << 16, 1, 1 << 16, 1);
    let named = format!("{alone}[[geometries]]\ngroups = 256\ngroup = 256\n");
    let report = tuned(ONE_LOAD, &named);
    assert!(
        first(&report).contains("1 of the 32 work-items of a sub-group exists"),
        "{}",
        first(&report)
    );
    let text = table::text(&report, Columns::UNLIMITED);
    assert_eq!(report.verdict, Verdict::OtherWorkGroups, "{text}");
    assert!(text.contains("Before any plan\n  - 1 of the 32"), "{text}");
    assert!(
        !text.contains("more work-groups") && !text.contains("combine"),
        "{text}"
    );
    // Without the statement the report says what to do, and does not advise it.
    let report = tuned(ONE_LOAD, &alone);
    assert!(!report.verdict.is_of_geometry());
    assert!(
        first(&report).contains("leave 97 % of the lanes idle"),
        "{}",
        first(&report)
    );
}

/// A work-item adds a row of 32 elements of its own, or every item-th element.
fn rows(at: &str) -> String {
    format!(
        "  %items = mul.nuw %size, 512:i32\n  %all = extend.u %items to i64\n  \
         %sum = loop 'rows (%j = 0:i64, %acc = 0.0:f32) -> f32 {{\n    %more = lt.s %j, %count\n    \
         if %more {{ yield }} else {{ break %acc }}\n{at}\n    %ptr = address %data + %e * 4\n    \
         %x = load f32 %ptr, @data\n    %after = fadd %acc, %x\n    %next = add.nw %j, 1:i64\n    \
         continue %next, %after\n  }}"
    )
}

#[test]
fn rows_of_work_items_are_uncoalesced_and_columns_are_not() {
    let launch = launch(512, 128, 512 * 128 * 32, 32);
    let by_rows = tuned(&rows("    %r = mul %item, 32:i64\n    %e = add %r, %j"), &launch);
    assert!(
        first(&by_rows).contains("touches 32 cache lines, 128 bytes apart"),
        "{}",
        first(&by_rows)
    );
    assert_eq!(by_rows.first[0].place.as_deref(), Some("sums.rs:5:9"));
    let by_columns = tuned(&rows("    %r = mul %j, %all\n    %e = add %r, %item"), &launch);
    assert!(
        !first(&by_columns).contains("cache lines"),
        "{}",
        first(&by_columns)
    );
}

#[test]
fn four_loads_of_a_row_are_narrow() {
    let narrow = "  %row = mul %item, 4:i64\n  %p = address %data + %row * 4\n  %a = load f32 %p, @data\n  \
                  %q = address %data + %row * 4 + 4\n  %b = load f32 %q, @second\n  \
                  %r = address %data + %row * 4 + 8\n  %c = load f32 %r, @third\n  \
                  %s = address %data + %row * 4 + 12\n  %d = load f32 %s, @fourth\n  \
                  %ab = fadd %a, %b\n  %cd = fadd %c, %d\n  %sum = fadd %ab, %cd";
    let launch = launch(4096, 128, 4096 * 128 * 4, 1);
    let told = first(&tuned(narrow, &launch));
    assert!(
        told.contains("one load of 16 bytes asks for the same with a quarter"),
        "{told}"
    );
    let wide = "  %p = address %data + %item * 16\n  %a, %b, %c, %d = load f32 %p, @data\n  \
                %ab = fadd %a, %b\n  %cd = fadd %c, %d\n  %sum = fadd %ab, %cd";
    let told = first(&tuned(wide, &launch));
    assert!(!told.contains("of 16 bytes"), "{told}");
}

/// Rows of this many elements, one in 1,024 of them `long`.
fn skewed(long: u32, short: u32) -> String {
    let at = "    %r = mul %j, %all\n    %f = add %r, %item\n    %e = and %f, 1048575:i64";
    let own = format!(
        "  %which = and %item, 1023:i64\n  %is_long = eq %which, 0:i64\n  \
         %own = select %is_long, {long}:i64, {short}:i64\n"
    );
    own + &rows(at).replace("lt.s %j, %count", "lt.s %j, %own")
}

#[test]
fn a_few_long_rows_are_named_with_what_an_even_split_takes() {
    let launch = launch(264, 256, 1 << 20, 1);
    let even = tuned(&skewed(32, 32), &launch);
    assert!(!first(&even).contains("unevenly"), "{}", first(&even));
    let uneven = tuned(&skewed(1055, 31), &launch);
    let told = first(&uneven);
    assert!(
        told.contains("The work is spread unevenly: the longest work-item takes"),
        "{told}"
    );
    assert!(
        uneven.baseline_ns > 4.0 * even.baseline_ns,
        "{} {}",
        uneven.baseline_ns,
        even.baseline_ns
    );
    // 1,055 of 32 in the mean.
    let factor = told
        .split("longest work-item takes ")
        .nth(1)
        .and_then(|rest| rest.split('×').next());
    let factor: f64 = factor.and_then(|factor| factor.parse().ok()).expect("a factor");
    assert!((25.0..45.0).contains(&factor), "{told}");
    // What it says of an even split is about what one takes.
    let micros = told
        .split("would take about ")
        .nth(1)
        .and_then(|rest| rest.split(" µs").next());
    let micros: f64 = micros.and_then(|micros| micros.parse().ok()).expect("a time");
    let ratio = 1e3 * micros / even.baseline_ns;
    assert!((0.5..2.0).contains(&ratio), "{told} {}", even.baseline_ns);
    let text = table::text(&uneven, Columns::UNLIMITED);
    assert!(!text.contains("starved"), "{text}");
    assert!(
        text.contains("would be if none ended long before the others"),
        "{text}"
    );
}

#[test]
fn a_tail_is_named_with_its_round() {
    // 33 work-groups more than are resident at once.
    let resident = 132 * 16;
    let launch = launch(resident + 33, 128, 1 << 20, 1);
    let body = rows("    %r = mul %j, %all\n    %f = add %r, %item\n    %e = and %f, 1048575:i64")
        .replace("lt.s %j, %count", "lt.s %j, 200:i64");
    let told = first(&tuned(&body, &launch));
    assert!(
        told.contains("The launch ends with a tail") && told.contains("the last round has 33"),
        "{told}"
    );
}
