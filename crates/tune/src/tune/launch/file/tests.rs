//! Launch files: their statements, the arguments that kernels get, and the mistakes that are reported.

use std::sync::Arc;

use super::{DEFAULT_LENGTH, LaunchFile};
use crate::device::{Fill, Pattern};
use crate::error::Result;
use crate::ir::{Races, Type};
use crate::tune::check::compare::Compare;
use crate::tune::launch::scalars::DEFAULT_VALUE;
use crate::tune::subject::workload::{ArgumentSpec, Workload};

const KERNEL: &str = "hsir 1\nkernel @scale(\n  %from: ptr.global f32[%from_len] align 4 readonly unaliased,\n  \
                      %from_len: i64,\n  %to: ptr.global f32[%to_len] align 4 unaliased,\n  %to_len: i64,\n  \
                      %count: i32,\n) group 64,1,1 {\n  return\n}\n";

fn workload(text: &str) -> Result<Workload> {
    let kernel = Arc::new(crate::ir::parse(KERNEL, "scale.hsir").expect("a kernel"));
    LaunchFile::parse(text, "launch.toml")?.workload(&kernel)
}

#[test]
fn what_is_not_said_has_defaults() {
    let workload = workload("").expect("defaults");
    assert_eq!((workload.groups, workload.group), ([4, 1, 1], [64, 1, 1]));
    assert!(matches!(
        workload.given[0],
        ArgumentSpec::Input {
            length: DEFAULT_LENGTH,
            ..
        }
    ));
    assert!(matches!(
        workload.given[1],
        ArgumentSpec::Scalar(Type::I64, DEFAULT_LENGTH)
    ));
    assert!(matches!(
        workload.given[2],
        ArgumentSpec::Output {
            fill: Fill::Pattern(Pattern::Constant(0)),
            ..
        }
    ));
    assert!(matches!(
        workload.given[4],
        ArgumentSpec::Scalar(Type::I32, DEFAULT_VALUE)
    ));
}

#[test]
fn what_is_said_is_taken() {
    let text = "groups = [2, 3, 1]\n[parameters.from]\nlength = 8\nfill = \"sequence\"\n[parameters.to]\nlength = 9\n\
                output = 1e-6\n[parameters.count]\nvalue = -1\n";
    let workload = workload(text).expect("a launch file");
    assert_eq!(workload.geometry().groups, 6);
    assert!(
        matches!(workload.given[1], ArgumentSpec::Scalar(_, 8)),
        "a length follows its buffer"
    );
    assert!(matches!(
        workload.given[2],
        ArgumentSpec::Output {
            length: 9,
            compare: Compare::Relative(_),
            ..
        }
    ));
    assert!(matches!(
        workload.given[4],
        ArgumentSpec::Scalar(Type::I32, 0xffff_ffff)
    ));
}

#[test]
fn pointers_need_no_buffer_of_their_own() {
    let kernel = "hsir 1\nkernel @k(\n  %first: ptr.global f32[] align 4,\n  %last: ptr.global i8[] align 1,\n  \
                  %half: ptr.global f32[] align 4,\n  %mask: ptr.global i8[] align 1,\n  %scale: i16,\n) {\n  return\n}\n";
    let kernel = Arc::new(crate::ir::parse(kernel, "k.hsir").expect("a kernel"));
    let given = |text: &str| LaunchFile::parse(text, "launch.toml")?.workload(&kernel);
    let text = "[parameters]\nfirst = { length = 64 }\nlast = { end_of = \"first\" }\n\
                half = { buffer = \"first\", offset = 32 }\nmask = { null = true }\nscale = { value = 1.0, type = \"f16\" }\n";
    let workload = given(text).unwrap_or_else(|error| panic!("{error}"));
    assert!(matches!(
        workload.given[1],
        ArgumentSpec::Part { of: 0, start: 64 }
    ));
    assert!(matches!(
        workload.given[2],
        ArgumentSpec::Part { of: 0, start: 32 }
    ));
    assert!(matches!(workload.given[3], ArgumentSpec::Scalar(ty, 0) if ty.is_pointer()));
    assert!(matches!(
        workload.given[4],
        ArgumentSpec::Scalar(Type::I16, 0x3c00)
    ));
    for (from, to, expected) in [
        ("offset = 32", "offset = 65", "an offset of at most 64"),
        (
            "end_of = \"first\"",
            "end_of = \"frist\"",
            "did you mean `first`?",
        ),
        ("end_of = \"first\"", "end_of = \"half\"", "has no memory"),
        ("null = true", "null = true, fill = \"zero\"", "several places"),
        (", type = \"f16\"", "", "1 is not a `i16`; an integer, or `type"),
        ("type = \"f16\"", "type = \"f32\"", "not a 2-byte type"),
    ] {
        let error = given(&text.replace(from, to)).expect_err(to).to_string();
        assert!(error.contains(expected), "{to}: {error}");
    }
}

#[test]
fn races_are_meant_where_that_is_said() {
    let facts = |text: &str| {
        LaunchFile::parse(text, "launch.toml")
            .expect("a launch file")
            .facts()
    };
    assert_eq!(facts("races = true").races, Races::Reads);
    let named = facts("races = [\"changed\"]");
    assert_eq!(
        (named.races, named.parameters["changed"].races),
        (Races::Reads, Races::Any)
    );
    assert_eq!(facts("races = false").races, Races::None);
}

#[test]
fn mistakes_say_where_and_what_would_be_accepted() {
    for (text, expected) in [
        ("gruops = 1", "line 1: not a launch file: unknown field `gruops`"),
        ("groups = 4\ngroup = \"x\"", "line 2"),
        ("[parameters.form]\nlength = 1", "did you mean `from`?"),
        ("[parameters.from]\nvalue = 1", "parameter `from`: it is a buffer"),
        (
            "[parameters.count]\nlength = 1",
            "parameter `count`: it is a scalar `i32`",
        ),
        (
            "[parameters.count]\nvalue = 4294967296",
            "4294967296 is not a `i32`",
        ),
        ("[parameters.count]\nvalue = 1.5", "1.5 is not a `i32`"),
        ("[parameters.to]\noutput = 2.0", "2 is not a tolerance"),
        ("[parameters.from]\nfill = \"indices\"\nbelow = 0", "at least 1"),
        ("[parameters.from]\nfill = \"nonsense\"", "unknown variant"),
    ] {
        let message = workload(text).expect_err(text).to_string();
        assert!(message.contains(expected), "{text}: {message}");
        assert!(!message.contains('\n'), "{text}: {message}");
    }
}

/// A kernel reads words, and its launch says what lies in them.
#[test]
fn elements_are_those_that_the_launch_file_names() {
    let kernel = "hsir 1\nkernel @k(%pairs: ptr.global i32[] align 4 readonly, %bytes: ptr.global i8[] align 1 readonly, \
                  %behind: ptr.global i32[] align 4) {\n  return\n}\n";
    let kernel = Arc::new(crate::ir::parse(kernel, "k.hsir").expect("a kernel"));
    let given = |text: &str| LaunchFile::parse(text, "launch.toml")?.workload(&kernel);
    let text = "[parameters]\npairs = { length = 64, as = \"f16\", fill = \"sequence\" }\n\
                bytes = { length = 2, as = \"f32\", fill = \"sequence\" }\nbehind = { buffer = \"pairs\", offset = 8 }\n";
    let workload = given(text).unwrap_or_else(|error| panic!("{error}"));
    let bits = |number: usize, index: u64| match &workload.given[number] {
        ArgumentSpec::Input {
            element,
            fill: Fill::Pattern(pattern),
            ..
        } => pattern.bits(*element, index),
        other => panic!("{other:?}"),
    };
    // 2.0 and 3.0 as halves, and the bytes of 1.0f32.
    assert_eq!(bits(0, 1), 0x4200_4000);
    assert_eq!(
        [4, 5, 6, 7].map(|index| bits(1, index) & 0xff),
        [0, 0, 0x80, 0x3f]
    );
    assert!(matches!(
        workload.given[0],
        ArgumentSpec::Input { length: 32, .. }
    ));
    assert!(matches!(workload.given[1], ArgumentSpec::Input { length: 8, .. }));
    assert!(matches!(
        workload.given[2],
        ArgumentSpec::Part { of: 0, start: 4 }
    ));
    let facts = LaunchFile::parse(text, "launch.toml")
        .expect("a launch file")
        .facts();
    assert_eq!(facts.parameters["pairs"].unit, Some(2));
    // As CUDA C calls them.
    assert_eq!(
        given(&text.replace("f16", "half"))
            .map(|given| given.bytes())
            .ok(),
        Some(workload.bytes())
    );
    assert!(given(&text.replace("f16", "u16")).is_ok());
    for (from, to, expected) in [
        (
            "length = 64",
            "length = 63",
            "63 elements `f16` are no whole number of `i32`",
        ),
        (
            "\"f16\"",
            "\"half2\"",
            "of packed ones the parts, `f16` for half2",
        ),
    ] {
        let error = given(&text.replace(from, to)).expect_err(to).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn numbers_of_a_launch_file_are_set_by_name() {
    let text =
        "groups = 4\n[parameters.n]\nvalue = 8\n[parameters.x]\nvalue = 1.5\n[parameters.to]\nlength = 16\n";
    let mut launch = LaunchFile::parse(text, "launch.toml").expect("a launch file");
    for setting in ["groups=2", "n=16", "x=2.5"] {
        launch.set(setting).unwrap_or_else(|error| panic!("{error}"));
    }
    let expected = text
        .replace("= 4", "= 2")
        .replace("= 8", "= 16")
        .replace("1.5", "2.5");
    assert_eq!(
        launch,
        LaunchFile::parse(&expected, "launch.toml").expect("a launch file")
    );
    for (setting, expected) in [
        ("groups=few", "`few` is not a value for `groups`"),
        ("n=many", "`many` is not a value for `n`"),
        ("to=3", "`to` is a buffer"),
    ] {
        let error = launch.set(setting).expect_err(setting).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// A kernel that takes a pointer and does not follow it has a number there.
#[test]
fn a_parameter_that_is_not_used_may_be_described_as_a_buffer() {
    let text = "hsir 1\nkernel @k(%unused: i64, %used: i64, %to: ptr.global i64[] align 8) {\n  %at = address %to + %used * 8\n  \
                store %at, %used\n  return\n}\n";
    let kernel = Arc::new(crate::ir::parse(text, "k.hsir").expect("a kernel"));
    let given = |name: &str| {
        LaunchFile::parse(
            &format!("[parameters.{name}]\nlength = 16\nfill = \"zero\"\n"),
            "launch.toml",
        )?
        .workload(&kernel)
    };
    let workload = given("unused").unwrap_or_else(|error| panic!("{error}"));
    assert!(matches!(workload.given[0], ArgumentSpec::Scalar(Type::I64, 0)));
    let error = given("used").expect_err("a number").to_string();
    assert!(error.contains("it is a scalar `i64`"), "{error}");
}

#[test]
fn lengths_follow_from_graphs_and_tables() {
    let text = "[graphs.g]\nvertices = 10\ndegree = 3\n[tables.t]\nslots = 8\nload = 0.5\nstride = 2\n\
                [parameters.weights]\nlength = \"edges of g\"\n[parameters.values]\nlength = \"slots of t\"\n";
    let launch = LaunchFile::parse(text, "launch.toml").expect("a launch file");
    let facts = launch.facts();
    let lengths = ["weights", "values"].map(|name| facts.parameters[name].length);
    assert_eq!(lengths, [Some(30), Some(16)]);
    let odd = text.replace("edges of g", "edge of g");
    let error = LaunchFile::parse(&odd, "launch.toml")
        .expect_err("no length")
        .to_string();
    assert!(error.contains("`edges of NAME`"), "{error}");
}

#[test]
fn tables_of_pointers_lead_into_memory_of_their_own_or_of_another_parameter() {
    let text = "hsir 1\nkernel @k(%rows: ptr.global i64[] align 8, %own: ptr.global i64[] align 8, %out: ptr.global f32[] align 4) \
                group 4,1,1 {\nload @row\nload @x\nload @y\n%i32 = id.local.x\n%i = extend.u %i32 to i64\n\
                %at = address %rows + %i * 8\n%row = load i64 %at, @row\n%p = bits %row to ptr.global\n\
                %x = load f32 %p, @x\n%to_own = address %own + %i * 8\n%its = load i64 %to_own, @row\n\
                %q = bits %its to ptr.global\nstore %q, %x\nreturn\n}\n";
    let kernel = Arc::new(crate::ir::parse(text, "k.hsir").unwrap_or_else(|error| panic!("{error}")));
    let run = |rows: &str| {
        let launch = format!(
            "groups = 1\n[buffers.data]\nlength = 12\nas = \"f32\"\nfill = \"sequence\"\n[parameters.rows]\nlength = 4\n\
             fill = \"pointers\"\n{rows}\n[parameters.own]\nlength = 4\nfill = \"pointers\"\nof = \"out\"\n\
             [parameters.out]\nlength = 4\nfill = \"zero\"\n"
        );
        let workload = LaunchFile::parse(&launch, "launch.toml")?.workload(&kernel)?;
        let simulator = crate::device::sim::Simulator::new("h200")?;
        let names: Vec<String> = workload.output_names().collect();
        let (_, outputs) = workload.bind(&simulator)?.run(&simulator, &kernel)?;
        let out = names.iter().position(|name| name == "out").expect("an output");
        let floats = outputs[out]
            .as_chunks()
            .0
            .iter()
            .map(|&bits| f32::from_le_bytes(bits));
        Ok::<_, crate::error::Error>(floats.collect::<Vec<f32>>())
    };
    assert_eq!(
        run("of = \"data\"").unwrap_or_else(|error| panic!("{error}")),
        [0.0, 3.0, 6.0, 9.0]
    );
    assert_eq!(
        run("of = \"data\"\nstride = 2").expect("it runs"),
        [0.0, 2.0, 4.0, 6.0]
    );
    for (rows, said) in [
        ("of = \"data\"\nstride = 4", "lead beyond `data`, which has 12"),
        ("of = \"dat\"", "did you mean `data`?"),
        ("", "the pointers lead nowhere"),
    ] {
        let error = run(rows).expect_err(rows).to_string();
        assert!(error.contains(said), "{error}");
    }
}
