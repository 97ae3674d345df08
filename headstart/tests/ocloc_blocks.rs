//! Block loads and stores in the machine code of Intel's GPUs: messages for the whole sub-group, and the sizes that do not
//! work refused by us, as their compiler refuses them. `scripts/tools` sets up the compilers; without one its tests are
//! skipped, and say so.

use headstart::back::spirv::{self, BlockAccess, Options, Spirv, SpirvTarget};
use headstart::ir::Kernel;
use headstart::prelude::*;
use headstart_testing::ocloc::{Assembly, Ocloc};

#[kernel(work_group = 64, sub_group = S)]
fn one<T: Number, const S: usize>(input: &[T], output: &mut [T]) {
    let first = global_id() / S * S;
    sub_group_store(&mut output[first..], sub_group_load(&input[first..]));
}

#[kernel(work_group = 64, sub_group = S)]
fn two<T: Number, const S: usize>(input: &[T], output: &mut [T]) {
    let first = global_id() / S * S * 2;
    let [a, b] = sub_group_load_block(&input[first..]);
    sub_group_store_block(&mut output[first..], [b, a]);
}

#[kernel(work_group = 64, sub_group = S)]
fn four<T: Number, const S: usize>(input: &[T], output: &mut [T]) {
    let first = global_id() / S * S * 4;
    let [a, b, c, d] = sub_group_load_block(&input[first..]);
    sub_group_store_block(&mut output[first..], [d, c, b, a]);
}

#[kernel(work_group = 64, sub_group = S)]
fn eight<T: Number, const S: usize>(input: &[T], output: &mut [T]) {
    let first = global_id() / S * S * 8;
    let [a, b, c, d, e, f, g, h] = sub_group_load_block(&input[first..]);
    sub_group_store_block(&mut output[first..], [h, g, f, e, d, c, b, a]);
}

/// The kernels that move blocks of a type, by the elements of each work-item.
fn moves<T: Number, const S: usize>() -> [(u32, Kernel); 4] {
    let made = |kernel: headstart::Result<Kernel>| kernel.expect("it is right");
    [
        (1, made(one::kernel::<T, S>())),
        (2, made(two::kernel::<T, S>())),
        (4, made(four::kernel::<T, S>())),
        (8, made(eight::kernel::<T, S>())),
    ]
}

fn emit(kernel: &Kernel, block_access: BlockAccess) -> headstart::Result<Spirv> {
    let options = Options {
        block_access,
        ..Options::new(SpirvTarget::IntelLsc)
    };
    spirv::emit(kernel, &options)
}

fn compile(ocloc: &Ocloc, device: &str, kernel: &Kernel, block_access: BlockAccess) -> Assembly {
    let spirv = emit(kernel, block_access).unwrap_or_else(|error| panic!("{error}"));
    let compiled = ocloc.compile(&spirv, device);
    compiled.unwrap_or_else(|said| panic!("{device}: {said}\n{}", spirv.text))
}

/// Messages to and from global memory: those of the whole sub-group, and those of each work-item. The kernel's arguments
/// come by others.
fn messages(assembly: &Assembly) -> (u32, u32) {
    let (mut whole, mut each) = (0, 0);
    for line in assembly.text.lines() {
        let word = |name: &str| line.rsplit_once(name).map(|(_, rest)| rest);
        let Some(message) = word("load.ugm.").or(word("store.ugm.")) else {
            continue;
        };
        let mut parts = message.split('.');
        let (data, address) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        match (data.ends_with('t'), address.starts_with("a64")) {
            (_, false) => {}
            (true, true) => whole += 1,
            (false, true) => each += 1,
        }
    }
    (whole, each)
}

/// Every type and number of elements arrives as messages of the sub-group.
fn check<const S: usize>(ocloc: &Ocloc, device: &str) {
    let mut wrong = Vec::new();
    let mut of_type = |name: &str, kernels: [(u32, Kernel); 4]| {
        for (elements, kernel) in kernels {
            let what = format!("{device}, {elements} of {name} in sub-groups of {S}");
            let blocks = messages(&compile(ocloc, device, &kernel, BlockAccess::ALL));
            if blocks.0 < 2 || blocks.1 > 0 {
                wrong.push(format!("{what}: {blocks:?} with blocks"));
            }
            // That the check can fail is seen once for each type.
            if elements == 1 {
                let plain = messages(&compile(ocloc, device, &kernel, BlockAccess::default()));
                if plain.0 > 0 || plain.1 < 2 {
                    wrong.push(format!("{what}: {plain:?} without blocks"));
                }
            }
        }
    };
    of_type("u8", moves::<u8, S>());
    of_type("u16", moves::<u16, S>());
    of_type("bf16", moves::<bf16, S>());
    of_type("f32", moves::<f32, S>());
    of_type("u64", moves::<u64, S>());
    of_type("f64", moves::<f64, S>());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn blocks_arrive_at_pvc() {
    let Some(ocloc) = Ocloc::find() else { return };
    check::<16>(&ocloc, "pvc");
    check::<32>(&ocloc, "pvc");
}

#[test]
fn blocks_arrive_by_the_newest_compiler() {
    let Some(ocloc) = Ocloc::newest() else { return };
    check::<16>(&ocloc, "pvc");
    check::<32>(&ocloc, "bmg");
}

/// On GPUs that have sub-groups of 8 those of 32 have no blocks. Where we say so the compiler says so, too, and nowhere
/// else.
#[test]
fn what_does_not_work_is_refused() {
    let Some(ocloc) = Ocloc::find() else { return };
    let large = four::kernel::<u32, 32>().expect("it is right");
    let small = [
        four::kernel::<u32, 8>().expect("it is right"),
        four::kernel::<f32, 16>().expect("it is right"),
    ];
    for device in ["tgllp", "dg2"] {
        let error = emit(&large, BlockAccess::UP_TO_16).expect_err("it does not work");
        assert!(
            error.to_string().contains("this GPU has blocks for 16 and fewer"),
            "{error}"
        );
        let asked = emit(&large, BlockAccess::ALL).expect("a module");
        let said = ocloc.compile(&asked, device).expect_err("it does not work");
        assert!(said.contains("Block reads not supported in SIMD32"), "{said}");
        for kernel in &small {
            compile(&ocloc, device, kernel, BlockAccess::UP_TO_16);
        }
        // As accesses of each work-item it works everywhere.
        compile(&ocloc, device, &large, BlockAccess::default());
    }
}
