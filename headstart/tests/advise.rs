//! Kernels whose advice is known: whether prefetching helps, with the right reason among several.

use std::sync::Arc;

use headstart::advise::{self, Advice, Answer, advise};
use headstart::device::model;
use headstart::report::Verdict;
use headstart::report::columns::Columns;
use headstart::tune::{FileSubject, LaunchFile, SimulatedBench};

/// Sums a column of `count` elements; `work` stands for what is done with each.
fn column_sum(work: &str) -> String {
    format!(
        "hsir 1
kernel @column_sum(%data: ptr.global f32[%len] align 4 readonly unaliased, %len: i64,
                   %out: ptr.global f32[%out_len] align 4 unaliased, %out_len: i64, %count: i64) group 128,1,1 {{
  load @data
  %group = id.group.x
  %before = mul.nuw %group, 128:i32
  %local = id.local.x
  %item32 = add.nuw %before, %local
  %item = extend.u %item32 to i64
  %groups32 = id.group_count.x
  %groups = extend.u %groups32 to i64
  %width = mul.nuw %groups, 128:i64
  %sum = loop 'rows (%j = 0:i64, %acc = 0.0:f32) -> f32 {{
    %more = lt.s %j, %count
    if %more {{ yield }} else {{ break %acc }}
    %row = mul.nuw %j, %width
    %at = add.nuw %row, %item
    %ptr = address %data + %at * 4
    %x0 = load f32 %ptr, @data
    {work}
    %after = fadd %acc, %x
    %next = add.nw %j, 1:i64
    continue %next, %after
  }}
  %to = address %out + %item * 4
  store %to, %sum
  return
}}
"
    )
}

fn advised(text: &str, launch: &str) -> Advice {
    let kernel = headstart::ir::read(text, "kernel.hsir").unwrap_or_else(|error| panic!("{error}\n{text}"));
    headstart::ir::verify(&kernel).expect("a kernel");
    let launch = LaunchFile::parse(launch, "launch.toml").expect("a launch file");
    let subject = FileSubject::new(Arc::new(kernel), launch);
    let bench = SimulatedBench::new(model::built_in("h200", &[]).expect("a model"));
    advise(&subject, &bench, &()).expect("advice")
}

fn launch(groups: u32, count: u32) -> String {
    let items = u64::from(groups) * 128;
    format!(
        "groups = {groups}\n[parameters.data]\nlength = {}\nfill = \"fractions\"\n[parameters.out]\nlength = {items}\n\
         output = \"bits\"\n[parameters.count]\nvalue = {count}\n",
        items * u64::from(count)
    )
}

/// The answer to the question that contains this.
fn answer(advice: &Advice, question: &str) -> Answer {
    let step = advice.steps.iter().find(|step| step.question.contains(question));
    step.expect("a question of the procedure").answer
}

const FORWARD: &str = "%x = fadd %x0, 0.0:f32";

#[test]
fn a_starved_stream_is_to_be_fetched_early() {
    let advice = advised(&column_sum(FORWARD), &launch(132, 128));
    assert!(
        matches!(advice.verdict, Verdict::Prefetch | Verdict::Unroll),
        "{}",
        advise::text(&advice, Columns::UNLIMITED)
    );
    for question in [
        "bandwidth",
        "mostly wait",
        "sizeable loop",
        "independent",
        "too few",
    ] {
        assert_eq!(
            answer(&advice, question),
            Answer::Yes,
            "{question}\n{}",
            advise::text(&advice, Columns::UNLIMITED)
        );
    }
    let chosen = advice
        .choices
        .iter()
        .find(|choice| choice.chosen)
        .expect("one is chosen");
    assert!(chosen.speedup > 1.5, "{chosen:?}");
    let bounds = advice.bounds.as_ref().expect("a simulated run has bounds");
    assert!(chosen.speedup <= 1.05 * bounds.best_speedup, "{bounds:?}");
    let split = advice
        .first
        .iter()
        .find(|remedy| remedy.finding.contains("split-K"));
    let split = &split.expect("a sum can be split").finding;
    assert!(
        split.contains("its 128 iterations can be split over up to 16 times"),
        "{split}"
    );
    assert!(split.contains("not measured"), "{split}");
    // Every statement about the source points at a line of it.
    let places: Vec<&str> = advice
        .steps
        .iter()
        .filter_map(|step| step.place.as_deref())
        .collect();
    assert!(
        places.iter().all(|place| place.starts_with("kernel.hsir:")),
        "{places:?}"
    );
    assert!(places.len() >= 3);
}

#[test]
fn a_stream_at_full_occupancy_has_used_up_the_bandwidth() {
    // 4 bytes a work-item would not keep memory busy, 8 do.
    let wide = column_sum(FORWARD)
        .replace("f32", "f64")
        .replace("align 4", "align 8")
        .replace("* 4", "* 8");
    let advice = advised(&wide, &launch(132 * 16, 96));
    let text = advise::text(&advice, Columns::UNLIMITED);
    assert_eq!(answer(&advice, "bandwidth"), Answer::No, "{text}");
    assert_eq!(answer(&advice, "too few"), Answer::No, "{text}");
    assert_ne!(advice.verdict, Verdict::Prefetch, "{text}");
    let bounds = advice.bounds.as_ref().expect("a simulated run has bounds");
    assert_eq!(bounds.roofs[0].name, "bandwidth of device memory", "{text}");
}

#[test]
fn a_kernel_that_computes_is_bound_by_its_units() {
    let mut work = String::new();
    for step in 0..48 {
        work.push_str(&format!("%x{} = sqrt %x{step}\n", step + 1));
    }
    work.push_str("%x = fadd %x48, 0.0:f32");
    let advice = advised(&column_sum(&work), &launch(132 * 16, 8));
    let text = advise::text(&advice, Columns::UNLIMITED);
    assert_eq!(answer(&advice, "mostly wait"), Answer::No, "{text}");
    assert_ne!(advice.verdict, Verdict::Prefetch, "{text}");
    let remedies: Vec<&str> = advice
        .instead
        .iter()
        .map(|remedy| remedy.finding.as_str())
        .collect();
    assert!(
        remedies.join("\n").contains("only less work for them helps"),
        "{text}"
    );
}

#[test]
fn a_pointer_chase_may_not_start_earlier() {
    let chase = "hsir 1
kernel @chase(%table: ptr.global i64[%len] align 8 readonly unaliased, %len: i64,
              %out: ptr.global i64[%out_len] align 8 unaliased, %out_len: i64, %count: i64) group 128,1,1 {
  load @table
  %local = id.local.x
  %item = extend.u %local to i64
  %last = loop 'hops (%j = 0:i64, %at = %item) -> i64 {
    %more = lt.s %j, %count
    if %more { yield } else { break %at }
    %ptr = address %table + %at * 8
    %next = load i64 %ptr, @table
    %after = add.nw %j, 1:i64
    continue %after, %next
  }
  %to = address %out + %item * 8
  store %to, %last
  return
}
";
    let launch = "groups = 1\n[parameters.table]\nlength = 16777216\nfill = \"indices\"\nbelow = 16777216\n\
                  [parameters.out]\nlength = 128\noutput = \"bits\"\n[parameters.count]\nvalue = 200\n";
    let advice = advised(chase, launch);
    let text = advise::text(&advice, Columns::UNLIMITED);
    assert_eq!(advice.verdict, Verdict::LeaveIt, "{text}");
    assert_eq!(answer(&advice, "independent"), Answer::No, "{text}");
    let findings: Vec<&str> = advice.steps.iter().map(|step| step.finding.as_str()).collect();
    let remedies = advice.instead.iter().map(|remedy| remedy.finding.as_str());
    let said = findings
        .into_iter()
        .chain(remedies)
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        said.contains("which each iteration makes from the one before"),
        "{said}"
    );
    assert!(said.contains("several independent chains"), "{said}");
    let bounds = advice.bounds.as_ref().expect("a simulated run has bounds");
    assert!(bounds.best_speedup < 1.2, "{bounds:?}");
}

#[test]
fn a_program_gains_what_its_share_allows() {
    let advice = advised(&column_sum(FORWARD), &launch(4, 16));
    let gained = advice.clone().within_program(0.5).expect("a share");
    let program = gained.program.expect("asked for");
    // The other half takes as long as before.
    assert!(program.speedup < 2.0 && program.at_most < 2.0, "{program:?}");
    assert!(program.at_most >= program.speedup, "{program:?}");
    for share in [0.0, -1.0, 1.5, f64::NAN] {
        assert!(advice.clone().within_program(share).is_err(), "{share}");
    }
}

/// A column sum that nvcc unrolled by four, of this many rows.
fn unrolled(rows: u32) -> Advice {
    let launch = format!(
        "groups = 132\ngroup = 128\nreadonly = [\"param_0\"]\nunaliased = [\"param_1\"]\nno_overflow = true\n[parameters.param_0]\n\
         length = {}\nfill = \"fractions\"\n[parameters.param_1]\nlength = 16896\n[parameters.param_2]\nvalue = {rows}\n\
         [parameters.param_3]\nvalue = 16896\n",
        16896 * rows.max(1)
    );
    let launch = LaunchFile::parse(&launch, "launch.toml").expect("a launch file");
    let text = include_str!("../../corpus/strided.ptx");
    let imported = headstart::front::ptx::import(text, "strided.ptx", Some("column_sum"), &launch.facts());
    let subject = FileSubject::of_module(imported.expect("an entry"), launch);
    let bench = SimulatedBench::new(model::built_in("h200", &[]).expect("a model"));
    advise(&subject, &bench, &()).expect("advice")
}

/// The plans that were considered and the one that is recommended.
fn plans(advice: &Advice) -> String {
    let plans = advice.choices.iter().filter_map(|choice| choice.plan.as_ref());
    plans.map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

#[test]
fn advice_is_about_the_loop_in_which_the_time_is() {
    let place = |advice: &Advice, question: &str| {
        let step = advice.steps.iter().find(|step| step.question.contains(question));
        step.and_then(|step| step.place.clone()).expect("a place")
    };
    let many = unrolled(32);
    // Eight iterations, each four of the source's.
    assert_eq!(answer(&many, "sizeable loop"), Answer::Yes, "{many:?}");
    assert_eq!(answer(&many, "independent"), Answer::Yes, "{many:?}");
    assert!(
        plans(&many).contains("param_0=") && !plans(&many).contains('@'),
        "{}",
        plans(&many)
    );
    assert!(
        many.notes.iter().all(|note| !note.contains("remainder")),
        "{:?}",
        many.notes
    );

    let few = unrolled(3);
    assert_eq!(answer(&few, "sizeable loop"), Answer::No, "{few:?}");
    assert!(plans(&few).contains("param_0@"), "{}", plans(&few));
    assert!(
        few.notes.iter().any(|note| note.contains("remainder")),
        "{:?}",
        few.notes
    );
    assert_ne!(place(&many, "sizeable loop"), place(&few, "sizeable loop"));

    // Both run: the plan for the main loop is for both.
    let both = unrolled(7);
    assert!(
        plans(&both).contains("param_0=") && !plans(&both).contains('@'),
        "{}",
        plans(&both)
    );
}

/// Each element counts in one of `bins`.
const COUNTED: &str = "hsir 1
kernel @counted(%data: ptr.global i32[%len] align 4 readonly unaliased, %len: i64,
                %bins: ptr.global i32[%bins_len] align 4 unaliased, %bins_len: i64) group 128,1,1 {
  load @data
  %group = id.group.x
  %before = mul.nuw %group, 128:i32
  %local = id.local.x
  %item32 = add.nuw %before, %local
  %item = extend.u %item32 to i64
  %from = address %data + %item * 4
  %bin32 = load i32 %from, @data
  %bin = extend.u %bin32 to i64
  %to = address %bins + %bin * 4
  %old = atomic add relaxed device %to, 1:i32
  return
}
";

/// Each work-item adds the elements of a row.
const ROWS: &str = "hsir 1
kernel @rows(%rows: ptr.global i32[%rows_len] align 4 readonly unaliased, %rows_len: i64,
             %data: ptr.global f32[%len] align 4 readonly unaliased, %len: i64,
             %out: ptr.global f32[%out_len] align 4 unaliased, %out_len: i64) group 128,1,1 {
  load @first
  load @last
  load @data
  %group = id.group.x
  %before = mul.nuw %group, 128:i32
  %local = id.local.x
  %item32 = add.nuw %before, %local
  %item = extend.u %item32 to i64
  %row = address %rows + %item * 4
  %first = load i32 %row, @first
  %next_row = address %row + 1:i64 * 4
  %last = load i32 %next_row, @last
  %sum = loop 'row (%j = %first, %acc = 0.0:f32) -> f32 {
    %more = lt.s %j, %last
    if %more { yield } else { break %acc }
    %at = extend.u %j to i64
    %ptr = address %data + %at * 4
    %x = load f32 %ptr, @data
    %after = fadd %acc, %x
    %next = add.nw %j, 1:i32
    continue %next, %after
  }
  %to = address %out + %item * 4
  store %to, %sum
  return
}
";

#[test]
fn a_known_better_algorithm_is_named_where_the_launch_shows_that_it_would_help() {
    let first = |text: &str, launch: &str| {
        let advice = advised(text, launch);
        let found = advice.first.iter().map(|remedy| format!("{}\n", remedy.finding));
        found.collect::<String>()
    };
    let bins = |length: u32| {
        let launch = format!(
            "groups = 256\n[parameters.data]\nlength = 32768\nfill = \"indices\"\nbelow = {length}\n\
             [parameters.bins]\nlength = {length}\noutput = \"bits\"\n"
        );
        first(COUNTED, &launch)
    };
    assert!(
        bins(256).contains("32,768 work-items change the 256 elements of `bins`"),
        "{}",
        bins(256)
    );
    assert!(!bins(4096).contains("privatisation"), "{}", bins(4096));
    let rows = |kind: &str| {
        let launch = format!(
            "groups = 16\n[graphs.g]\nvertices = 2048\ndegree = 16\nkind = \"{kind}\"\n\
             [parameters.rows]\nlength = 2049\nfill = \"rows\"\ngraph = \"g\"\n\
             [parameters.data]\nlength = \"edges of g\"\nfill = \"fractions\"\n\
             [parameters.out]\nlength = 2048\noutput = \"bits\"\n"
        );
        first(ROWS, &launch)
    };
    let skewed = rows("skewed");
    assert!(
        skewed.contains("merge-based") && skewed.contains("a sub-group for each row"),
        "{skewed}"
    );
    assert!(!rows("uniform").contains("merge-based"), "{}", rows("uniform"));
}
