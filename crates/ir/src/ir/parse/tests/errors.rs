//! Everything wrong is said where it is.

use super::*;

/// A kernel with these operations.
fn around(operations: &str) -> String {
    format!(
        "hsir 1\nkernel @k(%p: ptr.global f32[] align 4, %n: i64, %c: bool) {{\nload @p\nshared @ring: f32[4] align 16\n\
         {operations}\nreturn\n}}\n"
    )
}

#[track_caller]
pub(super) fn error_of(text: &str) -> String {
    match parse(text, "k.hsir").and_then(|kernel| verify(&kernel)) {
        Err(error) => {
            let message = error.to_string();
            assert!(message.lines().count() == 1, "{message}");
            message
        }
        Ok(()) => panic!("it is accepted: {text}"),
    }
}

/// The operations, on line 5 of a kernel, are refused at this column with this message.
#[track_caller]
fn refused(operations: &str, column: usize, what: &str) {
    let message = error_of(&around(operations));
    let expected = format!("k.hsir:5:{column}: {what}");
    assert!(
        message.starts_with(&expected),
        "expected {expected}\n   found {message}"
    );
}

#[test]
fn errors_say_what_and_where() {
    refused(
        "%x = frob %n, %n",
        6,
        "there is no operation `frob`; operations: array, ",
    );
    refused("%x = lt %n, %n", 6, "there is no operation `lt`; did you mean `");
    refused(
        "%x = add %n, %N",
        14,
        "`%N` is not defined before this; did you mean `%n`?",
    );
    refused(
        "%x = add %n, 1:i32",
        6,
        "`add` takes operands of one type, not i64 and i32",
    );
    refused(
        "%x = add %n, 1",
        14,
        "a constant is written with its type, as in `1:i32`",
    );
    refused("%x = fadd %n, %n", 6, "`fadd` takes floats, not i64");
    refused("%x = load f32 %p, @q", 19, "there is no load `@q`; declare it");
    refused(
        "%x = load f33 %p, @p",
        11,
        "a type is expected, not `f33`; types: bool, ",
    );
    refused("%x = array @rong", 12, "there is no array `@rong`");
    refused("%n = neg %n", 1, "the name `%n` is taken");
    refused("%x, %y = neg %n", 10, "the operation has 1 results, not 2");
    refused("neg %n", 1, "the operation has 1 results, not 0");
    refused("%x = store %p, 1.0:f32", 6, "the operation has 0 results, not 1");
    refused("yield", 1, "`yield` belongs directly in a block or `if`");
    refused("break", 1, "there is no loop around this");
    refused("loop 'a { break 'b }", 17, "no label `'b` is around this");
    refused(
        "if %c { %x = neg %n yield } %y = neg %x",
        38,
        "`%x` is defined in a region that has ended",
    );
    refused(
        "block 'a { yield } block 'a { yield }",
        26,
        "the name `'a` is taken",
    );
    refused(
        "%x = add %n, 99999999999999999999:i64",
        14,
        "this is not a number of type i64",
    );
    refused(
        "%x = add %n, 18446744073709551615:i64 %y = extend.u 256:i8 to i32",
        53,
        "the number does not fit i8",
    );
    refused("%x = neg -129:i8", 10, "the number does not fit i8");
    refused(
        "%x = fneg 1e39:f32",
        11,
        "the number does not fit f32; infinity is written `inf`",
    );
    refused(
        "%x = fneg infinity:f32",
        11,
        "an operand is expected, not `infinity`",
    );
    refused("%x = not 1:bool", 10, "a `bool` is written `true` or `false`");
    refused("%x = neg ~", 10, "`~` has no meaning here");
    refused("wait %n", 1, "`wait` takes tokens, not i64");
    refused(
        "prefetch L5 4 at %p",
        10,
        "a cache level is expected, not `L5`; levels: L1, L2, L3, L4; cache controls: LSC_DEFAULT, L1UC_L3UC, L1UC_L3C, \
         L1C_L3UC, L1C_L3C, L1S_L3UC, L1S_L3C, L1IAR_L3C",
    );
    refused(
        "loop unroll 0 { break }",
        13,
        "`keep`, `auto`, `full` or a number of iterations cannot be `0`; from 1 to",
    );
    refused("barrier #1:2:3", 10, "there is no source file #1");
    refused("} }", 3, "the end of the file is expected, not `}`");
    refused(
        "%x = address %p + %n * 4294967296",
        24,
        "a scale in bytes cannot be `4294967296`; from 0 to",
    );
}

#[test]
fn errors_in_the_head() {
    let begins = |text: &str, expected: &str| {
        let message = error_of(text);
        assert!(message.starts_with(expected), "{message}");
    };
    begins(
        "",
        "k.hsir:1:1: `hsir` is expected, not the end of the file; the first line",
    );
    begins(
        "hsir 2",
        "k.hsir:1:6: version `2` of the text form is not known; the first line",
    );
    begins(
        "hsir 1\nkernel @k(%n: i64, %n: i64) { return }",
        "k.hsir:2:20: the name `%n` is taken",
    );
    begins(
        "hsir 1\nkernel @k(%p: ptr.global f32[%n] align 4) { return }",
        "k.hsir:2:30: the length `%n` is not a parameter",
    );
    begins(
        "hsir 1\nkernel @k() sub_group 8 group 8,1,1 { return }",
        "k.hsir:2:25: `{` is expected, not `group`",
    );
    begins(
        "hsir 1\nkernel @k() { return ",
        "k.hsir:2:22: an operation or `}` is expected, not the end",
    );
}

#[test]
fn hostile_text_ends_soon() {
    let nested = |open: &str, count: usize| around(&open.repeat(count));
    assert!(error_of(&nested("block {", 1 << 20)).contains("more than 200 regions"));
    assert!(error_of(&nested("if %c { yield } else {", 1 << 20)).contains("more than 200 regions"));
    let name = "x".repeat(limits::NAME_BYTES + 1);
    assert!(error_of(&around(&format!("%{name} = neg %n"))).contains("a name is longer than 1024 bytes"));
    assert!(error_of(&around(&format!("%\"{name}\" = neg %n"))).contains("longer than 1024 bytes"));
    assert!(
        error_of(&around("shared @big: f64[4294967295] align 8"))
            .contains("shared arrays take 34359738376 bytes")
    );
    let arrays = (0..limits::ARRAYS + 1).map(|number| format!("shared @a{number}: f32[1] align 4\n"));
    let text = around("").replace(
        "shared @ring",
        &format!("{}shared @ring", arrays.collect::<String>()),
    );
    assert!(error_of(&text).contains(&format!("more than {} arrays", limits::ARRAYS)));
    assert!(error_of(&around("barrier\n").repeat(1 << 20)).contains("the text has"));
    let calls = format!("barrier #0:1:1{}", " in #0:1:1".repeat(1000));
    assert!(error_of(&around(&calls)).contains("inlined through more than 64 calls"));
    assert!(
        error_of(&around(&"barrier ".repeat(limits::OPERATIONS + 1)))
            .contains("more than 1048576 operations")
    );
}

#[test]
fn reading_fills_in_places() {
    let text = around("%x = load f32 %p, @p\nstore %p, %x");
    let kernel = read(&text, "k.hsir").expect("it is a good kernel");
    let place = |index: usize| kernel.describe_place(kernel.body.ops[index].place);
    assert_eq!(
        (place(0).as_str(), place(1).as_str()),
        ("k.hsir:5:1", "k.hsir:6:1")
    );
    let load = kernel.loads.values().next().expect("there is a load");
    assert_eq!(kernel.describe_place(load.place), "k.hsir:5:1");
    // An operation's error is reported at its line.
    let error = read(&around("if %c { }"), "k.hsir").expect_err("an empty region");
    assert!(error.to_string().starts_with("k.hsir:5:1: "), "{error}");
    let nowhere = parse(&text, "k.hsir").expect("it is a good kernel");
    assert_eq!(nowhere.body.ops[0].place, Kernel::NOWHERE);
}

#[test]
fn a_block_behind_an_access_is_no_use_of_caches() {
    let text = "hsir 1\nkernel @k(%p: ptr.global i32[] align 4) {\nload @p\nstore %p, 1:i32\nblock 'a {\n%x = load i32 %p, @p\n\
                block {\nyield\n}\nstore %p, %x block\nyield\n}\nreturn\n}\n";
    let kernel = parse(text, "k.hsir").unwrap_or_else(|error| panic!("{error}"));
    round_trip(&kernel);
}
