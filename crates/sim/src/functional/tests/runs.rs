//! Whole runs: contents of memory, identity of work-items, threads, generic pointers, snapshots of
//! sub-groups of every size.

use super::Case;
use crate::device::{Fill, Pattern};
use crate::functional::Options;
use crate::ir::Type;

#[test]
fn every_question_about_the_work_item_is_answered() {
    let questions = [
        "local.x",
        "local.y",
        "local.z",
        "group.x",
        "group.y",
        "group.z",
        "group_size.y",
        "group_count.z",
        "lane",
        "sub_group",
        "sub_group_size",
        "max_sub_group_size",
        "sub_group_count",
    ];
    let asked: String = (0..)
        .zip(questions)
        .map(|(number, question)| {
            format!(
                "%q{number} = id.{question}
                 %p{number} = address %row + {number}:i64 * 4
                 store %p{number}, %q{number}\n"
            )
        })
        .collect();
    // The row of each work-item is its linear number in the launch.
    let text = format!(
        "hsir 1
         kernel @k(%out: ptr.global i32[] align 4) {{
           %lx = id.local.x
           %ly = id.local.y
           %lz = id.local.z
           %gx = id.group.x
           %gy = id.group.y
           %gz = id.group.z
           %l0 = mul %lz, 3:i32
           %l1 = add %l0, %ly
           %l2 = mul %l1, 5:i32
           %l = add %l2, %lx
           %g0 = mul %gz, 2:i32
           %g1 = add %g0, %gy
           %g2 = mul %g1, 4:i32
           %g = add %g2, %gx
           %r0 = mul %g, 30:i32
           %r1 = add %r0, %l
           %r = extend.u %r1 to i64
           %row = address %out + %r * 52
           {asked}
           return
         }}"
    );
    let items = 4 * 2 * 3 * 30;
    let mut case = Case::new(&text, 1, 1).output::<i32>(items * 13);
    case.launch.groups = [4, 2, 3];
    case.launch.group = [5, 3, 2];
    case.sub_group_size = 8;
    case.run().unwrap_or_else(|error| panic!("{error}"));
    let rows = case.read::<i32>(0);
    for (number, row) in (0..).zip(rows.chunks(13)) {
        let (group, local) = (number / 30, number % 30);
        let expected = [
            local % 5,
            local / 5 % 3,
            local / 15,
            group % 4,
            group / 4 % 2,
            group / 8,
            3,
            3,
            local % 8,
            local / 8,
            if local < 24 { 8 } else { 6 },
            8,
            4,
        ];
        assert_eq!(row, expected, "work-item {local} of work-group {group}");
    }
}

/// A sum over a table of a gigabyte, through indices that are never stored anywhere.
const SUM: &str = "hsir 1
    kernel @sum(
      %indices: ptr.global i32[] align 4 readonly unaliased,
      %values: ptr.global f32[] align 4 readonly unaliased,
      %result: ptr.global f32[] align 4 unaliased,
      %items: i64,
    ) {
      load @indices
      load @values
      %local32 = id.local.x
      %local = extend.u %local32 to i64
      %group32 = id.group.x
      %group = extend.u %group32 to i64
      %size32 = id.group_size.x
      %size = extend.u %size32 to i64
      %before = mul %group, %size
      %item = add %before, %local
      %first = mul %item, %items
      %sum = loop 'items (%j = 0:i64, %acc = 0.0:f32) -> f32 {
        %more = lt.s %j, %items
        if %more { yield } else { break %acc }
        %at = add %first, %j
        %index_ptr = address %indices + %at * 4
        %index32 = load i32 %index_ptr, @indices
        %index = extend.u %index32 to i64
        %value_ptr = address %values + %index * 4
        %value = load f32 %value_ptr, @values
        %root = sqrt %value
        %acc1 = fadd %acc, %root
        %next = add.nw %j, 1:i64
        continue %next, %acc1
      }
      %result_ptr = address %result + %item * 4
      store %result_ptr, %sum
      return
    }";

fn sum(groups: u32, group: u32, items: u64) -> Case {
    let elements = u64::from(groups * group);
    let below = Pattern::below(1 << 28, 7);
    Case::new(SUM, groups, group)
        .fill(Type::I32, elements * items, Fill::Pattern(below))
        .fill(Type::F32, 1 << 28, Fill::Pattern(Pattern::Fractions { low: 1.0 }))
        .output::<f32>(elements)
        .scalar(items)
}

#[test]
fn a_gather_from_a_gigabyte_that_does_not_exist() {
    let case = sum(3, 50, 9);
    let counters = case.run().unwrap_or_else(|error| panic!("{error}"));
    let index = Pattern::below(1 << 28, 7);
    let value = Pattern::Fractions { low: 1.0 };
    let expected: Vec<f32> = (0..150u64)
        .map(|item| {
            (0..9).fold(0.0, |sum: f32, j| {
                let index = index.bits(Type::I32, item * 9 + j);
                sum + f32::from_bits(value.bits(Type::F32, index) as u32).sqrt()
            })
        })
        .collect();
    assert_eq!(case.read::<f32>(2), expected);
    assert_eq!(counters.get("loaded bytes"), Some(150 * 9 * 8));
    assert_eq!(counters.get("stored bytes"), Some(150 * 4));
}

#[test]
fn any_number_of_threads_gives_the_same() {
    let on = |threads: usize, case: &Case| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.expect("a pool of threads");
        let counters = pool.install(|| case.run());
        counters.map(|counters| (counters, case.read::<u32>(2)))
    };
    for options in [Options::CHECKING, Options::FAST] {
        let results = [1, 2, 5].map(|threads| {
            let mut case = sum(40, 64, 5);
            case.options = options;
            on(threads, &case).unwrap_or_else(|error| panic!("{error}"))
        });
        assert_eq!(results[0], results[1]);
        assert_eq!(results[0], results[2]);
    }
    // Errors, too: of all the work-groups at fault, the first one is named.
    let errors = [1, 2, 5].map(|threads| {
        let mut case = sum(40, 64, 5);
        case.launch.arguments.remove(2);
        case = case.output::<f32>(64 * 17 + 3);
        let last = case.launch.arguments.len() - 1;
        case.launch.arguments.swap(last - 1, last);
        on(threads, &case).expect_err("the output is too small")
    });
    assert!(
        errors[0].to_string().contains("work-item 3 of work-group 17"),
        "{}",
        errors[0]
    );
    assert_eq!(errors[0], errors[1]);
    assert_eq!(errors[0], errors[2]);
}

#[test]
fn generic_pointers_reach_every_space() {
    let text = "hsir 1
        kernel @k(%out: ptr.global i32[] align 4) {
          shared @tile: i32[4] align 16
          private @own: i32[4] align 16
          load @any
          %g0 = to_generic %out to ptr.generic
          %s = array @tile
          %g1 = to_generic %s to ptr.generic
          %p = array @own
          %g2 = to_generic %p to ptr.generic
          store %g1, 11:i32
          store %g2, 22:i32
          %x1 = load i32 %s, @any
          %x2 = load i32 %p, @any
          %back = from_generic %g2 to ptr.private
          %x3 = load i32 %back, @any
          %sum = add %x1, %x2
          %all = add %sum, %x3
          store %g0, %all
          return
        }";
    let case = Case::new(text, 1, 1).output::<i32>(1);
    case.run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(case.read::<i32>(0), [55]);
}

#[test]
fn a_group_starts_with_memory_of_its_own() {
    // Work-group 0 writes its shared and private arrays; work-group 1 must not find that there.
    for space in ["shared", "private"] {
        let text = format!(
            "hsir 1
             kernel @k(%out: ptr.global i32[] align 4) {{
               {space} @tile: i32[1] align 16
               load @tile
               %group = id.group.x
               %a = array @tile
               %first = eq %group, 0:i32
               if %first {{ store %a, 1:i32 yield }} else {{ %x = load i32 %a, @tile yield }}
               return
             }}"
        );
        let message = Case::new(&text, 2, 1).output::<i32>(1).error();
        assert!(
            message.contains("reads `tile[0]`, which was never written"),
            "{message}"
        );
    }
}

#[test]
fn vectors_of_values_move_together() {
    let text = "hsir 1
        kernel @k(%data: ptr.global i32[] align 16, %out: ptr.global i32[] align 16) {
          load @data
          %a, %b, %c, %d = load i32 %data, @data
          store %out, %d, %c, %b, %a
          return
        }";
    let case = Case::new(text, 1, 1).buffer(&[1i32, 2, 3, 4]).output::<i32>(4);
    case.run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(case.read::<i32>(1), [4, 3, 2, 1]);
}
