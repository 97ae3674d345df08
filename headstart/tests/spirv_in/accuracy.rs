//! Quotients and roots of an entry are as accurate as its module says, and stay so in an entry that is written anew.

use headstart::back::spirv::{Options, SpirvTarget, emit};
use headstart::front::ptx::Facts;
use headstart::front::spirv::{Imported, Module};
use headstart::ir::{self, Accuracy};
use rspirv::spirv::{Decoration, Op};

/// The words of a module with a quotient and a root, whose kernel has this accuracy.
fn words(accuracy: &str) -> Vec<u32> {
    let text = format!(
        "hsir 1\nkernel @k(%p: ptr.global f32[] align 4, %x: f32, %y: f32) {accuracy}{{\n%q = fdiv %x, %y\n%r = sqrt %q\nstore %p, %r\n\
         return\n}}\n"
    );
    let kernel = ir::parse(&text, "k.hsir").unwrap_or_else(|error| panic!("{error}\n{text}"));
    emit(&kernel, &Options::new(SpirvTarget::Portable))
        .expect("it is written")
        .words
}

fn read(words: &[u32]) -> Imported {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let module = Module::new(&bytes, "k.spv").expect("a module");
    module.import(None, &Facts::default()).expect("an entry")
}

/// The module whose quotient has a bound, in units in the last place, as DPC++ writes it.
fn bounded(mut words: Vec<u32>, bound: f32) -> Vec<u32> {
    let (mut at, mut quotient, mut types) = (5, 0, 0);
    while at < words.len() {
        let op = words[at] & 0xffff;
        if op == Op::FDiv as u32 {
            quotient = words[at + 2];
        }
        if op == Op::TypeVoid as u32 {
            types = at;
        }
        at += (words[at] >> 16) as usize;
    }
    let decoration = Decoration::FPMaxErrorDecorationINTEL as u32;
    words.splice(
        types..types,
        [
            4 << 16 | Op::Decorate as u32,
            quotient,
            decoration,
            bound.to_bits(),
        ],
    );
    words
}

#[test]
fn an_entry_has_the_accuracy_of_its_decorations() {
    for (accuracy, read_as) in [
        // The option that rounds is the program's, and not in the module.
        ("", Accuracy::OpenCl),
        ("accuracy opencl ", Accuracy::OpenCl),
        ("accuracy fast ", Accuracy::Fast),
    ] {
        let found = read(&words(accuracy));
        assert_eq!(found.kernel.float_mode.accuracy, read_as, "{accuracy}");
        assert!(found.original.undecided.is_none(), "{accuracy}");
    }
    for (bound, read_as) in [(0.5, Accuracy::Rounded), (2.5, Accuracy::OpenCl)] {
        let found = read(&bounded(words(""), bound));
        assert_eq!(found.kernel.float_mode.accuracy, read_as, "{bound}");
        assert!(found.original.undecided.is_some(), "the bound would be lost");
    }
}
