//! Refusals: the message, and the source that it points at.

use super::*;

/// The source that the first message points at, up to the end of its line, and the message.
fn refusal(source: &str, is_kernel: bool) -> (String, String) {
    let function: ItemFn = syn::parse_str(source).expect("the test's source is Rust");
    let result = match is_kernel {
        true => match repaired(&function.sig).1 {
            Some(error) => Err(error),
            None => recorded_kernel(&KernelArguments::default(), &function),
        },
        false => recorded_device_function(&function),
    };
    let error = match result {
        Ok((_, Some(error))) | Err(error) => error,
        Ok((_, None)) => panic!("accepted: {source}"),
    };
    let start = error.span().start();
    let line = source
        .lines()
        .nth(start.line - 1)
        .expect("the span lies in the source");
    (line.chars().skip(start.column).collect(), error.to_string())
}

/// A kernel with this body is refused with a message that contains `expected`, and that points at the text
/// after `«` in the body.
fn refused(body: &str, expected: &str) {
    let marked = format!("fn k(a: &[f32], out: &mut [f32], n: u32) {{\n{body}\n}}");
    let source = marked.replace('«', "");
    let (pointed, message) = refusal(&source, true);
    assert!(message.contains(expected), "{body}\n{message}");
    let (_, after) = marked.split_once('«').expect("the test marks a place");
    let wanted = after.lines().next().expect("split gives a line");
    assert_eq!(pointed, wanted, "{body}\n{message}");
}

#[test]
fn expressions_outside_the_language() {
    refused("let x = «match n { _ => 1 };", "write `if … else if … else`");
    refused("let f = «|x: u32| x;", "write a `#[device_fn]`");
    refused("«vec![n];", "the macro `vec!` is not accepted");
    refused("println!(«\"{n:e}\");", "cannot print `{n:e}`");
    refused("print!(«\"a}\");", "out of place");
    refused("let s = «\"text\";", "integers, floats and truth values only");
    refused("out[0] = a.«iter().sum();", "no method `iter`");
    refused("let x = n.«to_radians();", "accepted: abs, abs_diff, acos");
    refused("let x = n.«min();", "takes 1 arguments");
    refused("let x = a.«first();", "accepted: `len()`, `is_empty()`");
    refused("let x = «a;", "`a` is memory, not a value");
    refused("let x = «&n;", "a reference is accepted only");
    refused("let x = n as «&u32;", "cast to integers");
    refused("if «let x = n { }", "`if let`");
    refused("while «let x = n { }", "`while let`");
    refused("«unsafe { }", "`unsafe` is not accepted");
    refused("let x = n«?;", "no error to pass on");
    refused(
        "let x = «N[0];",
        "only slice parameters, local arrays and vectors",
    );
    refused("«f(n)(n);", "by their names");
}

#[test]
fn statements_outside_the_language() {
    refused("let Some(x) = n «else { return };", "`let … else`");
    refused("let «&x = n;", "plain names");
    refused("«struct S;", "a kernel cannot declare this");
    refused("«#[cfg(test)]\nlet x = 1;", "only lint attributes");
    refused("«#[unroll]\nlet x = 1;", "belongs on a loop");
    refused("«n + 1 = 2;", "accepted on the left");
    refused("let x: «&[u32] = 1;", "cannot compute with values of this type");
}

#[test]
fn loops_run_over_ranges() {
    for range in [
        "«a",
        "«a.iter()",
        "«(0..n).map(f)",
        "«(0..n).step_by(2).rev()",
        "«0..",
        "«(0..n).rev().rev()",
    ] {
        refused(&format!("for i in {range} {{ }}"), "`(a..b).step_by(s)`");
    }
    refused("for «(i, j) in 0..n { }", "a plain name or `_`");
    refused("#[unroll(4)]\n«#[unroll]\nloop { }", "given twice");
    refused("#[prefetch(«4)]\nloop { }", "a plan is a string");
}

#[test]
fn hints_name_an_element_and_a_level() {
    refused("«prefetch();", "`prefetch(&values[i], L1)`");
    refused(
        "«joint_prefetch(sub_group());",
        "`joint_prefetch(sub_group(), &values[i..i + n], L2)`",
    );
    refused("prefetch(«a[n], L1);", "`&values[i]`");
    refused("prefetch(«&x, L1);", "`&values[i]`");
    refused("let p = «global_ptr(a);", "`global_ptr(&values[i])`");
    refused("let x = «shared::<f32, 4>() + 1;", "a shared array needs a name");
    refused("let x = shared::<f32, 4>(«1);", "takes no arguments");
}

#[test]
fn every_message_of_a_body_is_given() {
    let function = syn::parse_str("fn k() { match 1 { _ => {} } let f = || 1; }").expect("Rust");
    let recorded = recorded_kernel(&KernelArguments::default(), &function);
    let (items, error) = recorded.expect("what others name is there");
    assert!(items.to_string().contains("fn kernel"));
    assert_eq!(error.map(|error| error.into_iter().count()), Some(2));
}

#[test]
fn signatures() {
    for (source, pointed, expected) in [
        ("fn k() -> u32 { 1 }", "u32 { 1 }", "a kernel returns nothing"),
        (
            "fn k(x: &u32) { }",
            "&u32) { }",
            "a parameter cannot have this type",
        ),
        (
            "fn k(x: &[u32; 4]) { }",
            "&[u32; 4]) { }",
            "accepted: `&[T]`, `&mut [T]`, `&[Atomic<T>]`, a scalar",
        ),
        (
            "fn k((x, y): (u32, u32)) { }",
            "(x, y): (u32, u32)) { }",
            "a plain name, not a pattern",
        ),
        ("async fn k() { }", "async fn k() { }", "cannot be async"),
        ("unsafe fn k() { }", "unsafe fn k() { }", "cannot be unsafe"),
        (
            "fn k(#[inline] x: u32) { }",
            "#[inline] x: u32) { }",
            "`#[constant]`",
        ),
    ] {
        let (found, message) = refusal(source, true);
        assert_eq!(found, pointed, "{message}");
        assert!(message.contains(expected), "{message}");
    }
    for (source, pointed, expected) in [
        (
            "fn f(#[constant] x: u32) { }",
            "#[constant] x: u32) { }",
            "has const generics",
        ),
        ("fn f(x: &u32) { }", "&u32) { }", "`&mut T`, a scalar"),
        (
            "fn f() -> &u32 { }",
            "&u32 { }",
            "cannot compute with values of this type",
        ),
        ("fn f(x: &mut u32) -> u32 { x }", "x }", "write `*x`"),
        ("fn f(x: u32) -> u32 { *x }", "x }", "only a `&mut` parameter"),
        ("fn f(x: u32) -> u32 { f(&x) }", "&x) }", "scalars go by value"),
    ] {
        let (found, message) = refusal(source, false);
        assert_eq!(found, pointed, "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn arguments_of_the_attribute() {
    for (source, expected) in [
        (
            "work_gruop = 1",
            "accepted: `work_group = SIZE`, `sub_group = SIZE`",
        ),
        ("work_group = 1, work_group = 2", "given twice"),
        ("work_group = (1, 2, 3, 4)", "one, two or three dimensions"),
        ("sub_group", "expected `=`"),
    ] {
        let message = syn::parse_str::<KernelArguments>(source)
            .err()
            .expect(source)
            .to_string();
        assert!(message.contains(expected), "{source}: {message}");
    }
}
