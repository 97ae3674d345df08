//! `results/functions.md` is made from `results/functions-h200.json`, what `headstart-lab bench --suite functions` measured on an
//! H200, and from the instructions in `results/math-instructions.json`. `HEADSTART_BLESS=1` rewrites it.

use std::fmt::Write;

use serde_json::Value;

use crate::{compare, results_of};

fn list<'v>(of: &'v Value, name: &str) -> &'v [Value] {
    of[name].as_array().expect("a list")
}

/// How many times CUDA's time a function takes.
fn ratio(function: &Value) -> f64 {
    function["ours_to_cuda"].as_f64().expect("it was measured")
}

fn row(function: &Value, instructions: &[Value]) -> String {
    let name = function["function"].as_str().expect("a name");
    let counted = instructions.iter().find(|counted| counted["function"] == name);
    let count = |whose: &str| counted.map_or("–".to_owned(), |counted| counted[whose].to_string());
    let micros = |name: &str| function[name].as_f64().unwrap_or(f64::NAN) / 1e3;
    format!(
        "| {name} | {:.0} | {:.0} | {:.0} | {:.2} | {} | {} | {} |",
        micros("ours_ns"),
        micros("cuda_ns"),
        micros("loop_ns"),
        ratio(function),
        count("ours"),
        count("cuda"),
        function["bits"].as_str().expect("bits were compared"),
    )
}

fn page(times: &Value, instructions: &Value) -> String {
    let text = |name: &str| times[name].as_str().unwrap_or("?");
    let functions = list(times, "functions");
    let slower: Vec<String> = functions
        .iter()
        .filter(|function| ratio(function) > 1.0)
        .map(|function| {
            format!(
                "`{}` {:.2}",
                function["function"].as_str().unwrap_or("?"),
                ratio(function)
            )
        })
        .collect();
    let others = match slower.as_slice() {
        [] => String::new(),
        some => format!(" The others, in multiples of CUDA's time: {}.", some.join(", ")),
    };
    let mut page = format!(
        "# Mathematical functions compared with CUDA's\n\n\
         `{}` on an {}, driver {}, {}; CUDA's are compiled by nvcc ({}). A loop of {} evaluations in single precision, \
         all cores full, medians in µs; the ratio excludes the loop's own time. Instructions are counted in the machine code \
         for sm_90 on the common path. The documentation of `headstart::math` lists the errors. This page is generated \
         from `results/functions-h200.json` and `results/math-instructions.json`.\n\n\
         Of {} functions, {} are at least as fast as CUDA's.{}\n\n\
         Ours have the same bits on every device and on the host. NVIDIA's GPUs compute powers and logarithms of two and \
         reciprocals from tables, in one instruction; ours use these instructions as CUDA's do (`exp`, `exp2`, `tanh`, `sinh`, \
         `cosh`, `cbrt`, `atan`). The tables' bits were reconstructed from an H200's results and compared with them \
         (`ir::eval::table`). The host computes them with integers, and so do GPUs on which they were not compared: an A100, and \
         other vendors' GPUs.\n\n\
         | function | ours | CUDA's | the loop | ours / CUDA's | instructions, ours | CUDA's | bits |\n\
         |---|---|---|---|---|---|---|---|\n",
        text("command"),
        text("device"),
        text("driver"),
        text("date"),
        text("nvcc"),
        times["evaluations"],
        functions.len(),
        functions.len() - slower.len(),
        others,
    );
    for function in functions {
        let _ = writeln!(page, "{}", row(function, list(instructions, "functions")));
    }
    page
}

#[test]
fn the_page_of_the_functions_is_made_from_the_results() {
    let page = page(
        &results_of("functions-h200.json"),
        &results_of("math-instructions.json"),
    );
    compare("results/functions.md", &page);
}

#[test]
fn bits_are_those_of_the_host() {
    for function in list(&results_of("functions-h200.json"), "functions") {
        assert_eq!(function["bits"], "those of the host", "{}", function["function"]);
    }
}
