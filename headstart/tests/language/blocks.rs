//! Block loads and stores of sub-groups.

use headstart::back::spirv::{self, BlockAccess, Options, SpirvTarget};
use headstart::device::opencl::device::OpenClDevice;
use headstart::device::opencl::platform;
use headstart::device::sim::Simulator;
use headstart::device::{Device, TypedBuffer};
use headstart::ir::{CacheUse, Kernel, OpKind};
use headstart::prefetch::{self, Plan};
use headstart::prelude::*;
use headstart::runtime::launch::Compiled;
use headstart_testing::spirv_val::SpirvVal;

use crate::agree::{agree, devices, lowers, noise, taken};
use crate::conformance::Feature;

/// One element for each work-item.
#[kernel(work_group = 64, sub_group = S)]
fn single<T: Number, const S: usize>(input: &[T], output: &mut [T]) {
    let first = global_id() / S * S;
    let own = sub_group_load(&input[first..]);
    sub_group_store(&mut output[first..], own);
}

/// Two, four and eight, by one loop.
#[kernel(work_group = 64, sub_group = S)]
fn several<T: Number, const S: usize>(input: &[T], output: &mut [T]) {
    for block in (global_id() / S..input.len() / (8 * S)).step_by(global_size() / S) {
        let first = block * 8 * S;
        let [a, b] = sub_group_load_block(&input[first..]);
        let [c, d, e, f] = sub_group_load_block(&input[first + 2 * S..]);
        let [g] = sub_group_load_block(&input[first + 6 * S..]);
        let h = sub_group_load(&input[first + 7 * S..]);
        sub_group_store_block(&mut output[first..], [h, g, f, e, d, c, b, a]);
    }
}

/// Sizes that the device chooses.
#[kernel]
fn any_size(input: &[u32], output: &mut [u32]) {
    let first = 2 * (global_id() - sub_group_local_id());
    let [a, b] = sub_group_load_block(&input[first..]);
    sub_group_store_block(&mut output[first..], [b, a]);
}

/// Rows of views.
#[kernel(work_group = 64, sub_group = 16)]
fn rows(input: View2<u32, ReadOnly>, mut output: View2<u32, WriteOnly>) {
    let first = global_id() / 16 * input.size(1);
    let [a, b] = sub_group_load_block(&input[first..first + 32]);
    sub_group_store_block(&mut output[first..], [b, a]);
}

#[test]
fn blocks_of_views_agree() {
    let input = noise(8 * 48);
    let mut expected = vec![7u32; 8 * 48];
    let geometry = Geometry::new(2, 64).sub_group_size(16);
    rows::reference(
        geometry,
        View2::new(&input[..], [8, 48]),
        View2::new(&mut expected[..], [8, 48]),
    )
    .expect("the ordinary function runs");
    for device in devices() {
        let queue = device.queue().expect("a queue");
        let Some(compiled) = taken(&*device, rows::compile(&*device)) else {
            continue;
        };
        let source = TypedBuffer::from_slice(&*device, &input).expect("fits");
        let mut target = TypedBuffer::from_slice(&*device, &[7u32; 8 * 48]).expect("fits");
        let arguments = rows::arguments(
            source.view([8, 48]).expect("as many"),
            target.view_mut([8, 48]).expect("as many"),
        );
        let ran = compiled.launch(&*queue, geometry, arguments).wait();
        if taken(&*device, ran).is_some() {
            assert_eq!(target.read(&*queue).expect("written"), expected);
        }
    }
}

fn sized<T: Number, const S: usize>(input: &[T]) {
    let geometry = |groups| Geometry::new(groups, 64).sub_group_size(S as u32);
    agree!(single::<T, S>, geometry(32), input.to_vec(), vec![T::ZERO; 2048]);
    agree!(several::<T, S>, geometry(2), input.to_vec(), vec![T::ZERO; 2048]);
    // NVIDIA's GPUs have sub-groups of 32.
    if S == 32 {
        lowers(single::kernel::<T, S>());
        lowers(several::kernel::<T, S>());
    }
}

fn agree_for<T: Number>(of: fn(u32) -> T) {
    let input: Vec<T> = noise(2048).into_iter().map(of).collect();
    // A block that is stored begins at a multiple of 16 bytes.
    if T::TYPE.bytes() > 1 {
        sized::<T, 8>(&input);
    }
    sized::<T, 16>(&input);
    sized::<T, 32>(&input);
}

#[test]
fn blocks_of_every_type_agree() {
    agree_for(|x| x as u8);
    agree_for(|x| x as i16);
    agree_for(|x| x);
    agree_for(|x| u64::from(x) * 0x1_0000_0007);
    agree_for(|x| bf16::from_bits(x as u16 & 0x7fff));
    agree_for(f32::from_bits);
    agree_for(|x| f64::from(x) / 7.0);
    for size in [8, 16, 32] {
        let geometry = Geometry::new(4, 64).sub_group_size(size);
        agree!(any_size, geometry, noise(512), vec![0u32; 512]);
    }
    lowers(any_size::kernel());
}

fn emit(kernel: headstart::Result<Kernel>, block_access: BlockAccess) -> headstart::Result<spirv::Spirv> {
    let options = Options {
        block_access,
        ..Options::new(SpirvTarget::Portable)
    };
    spirv::emit(&kernel?, &options)
}

/// How often a word stands in the text of a module.
fn count(kernel: headstart::Result<Kernel>, block_access: BlockAccess, word: &str) -> usize {
    let text = emit(kernel, block_access).expect("OpenCL can say it").text;
    text.matches(word).count()
}

const READ: &str = "OpSubgroupBlockReadINTEL";
const WRITE: &str = "OpSubgroupBlockWriteINTEL";

#[test]
fn what_lies_behind_each_other_is_one_block() {
    let all = BlockAccess::ALL;
    assert_eq!(count(single::kernel::<u32, 16>(), all, READ), 1);
    assert_eq!(count(single::kernel::<u32, 16>(), all, WRITE), 1);
    // Four loads of the source become one of eight elements, as the store is.
    let several = || several::kernel::<f32, 16>();
    assert_eq!(count(several(), all, READ), 1);
    assert_eq!(count(several(), all, WRITE), 1);
    assert!(
        emit(several(), all)
            .expect("a module")
            .text
            .contains("OpCapability Vector16")
    );
    // Nothing is a block where the compiler knows none, or none of this width, or a sub-group may be partial.
    let words = BlockAccess { elements: 4, ..all };
    assert_eq!(count(several(), BlockAccess::default(), READ), 0);
    assert_eq!(count(several(), words, READ), 1);
    assert_eq!(count(several::kernel::<f64, 16>(), words, READ), 0);
    assert_eq!(count(any_size::kernel(), all, READ), 0);
    if let Some(validator) = SpirvVal::find() {
        for kernel in [
            several(),
            single::kernel::<u8, 32>(),
            several::kernel::<bf16, 8>(),
            several::kernel::<u64, 16>(),
        ] {
            let module = emit(kernel, all).expect("a module");
            validator
                .check(&module)
                .unwrap_or_else(|said| panic!("{said}\n{}", module.text));
        }
    }
}

/// Intel's runtime for CPUs knows blocks of every type, so that what agrees above agrees as blocks.
#[test]
fn blocks_run_on_intels_cpus() {
    match OpenClDevice::open(0) {
        Ok(device) if device.facts().kind == platform::DeviceType::Cpu => {
            assert_eq!(device.facts().block_access, BlockAccess::ALL);
        }
        Ok(_) => {}
        Err(error) => headstart_testing::tools::skip("opencl", &error.to_string()),
    }
}

/// Sub-groups of 32 have no blocks on Intel's GPUs that have sub-groups of 8.
#[test]
fn a_sub_group_that_is_too_large_is_refused() {
    emit(several::kernel::<f32, 16>(), BlockAccess::UP_TO_16).expect("16 is not too large");
    let error = emit(several::kernel::<f32, 32>(), BlockAccess::UP_TO_16).expect_err("32 is");
    let said = error.to_string();
    assert!(
        said.contains("blocks.rs:")
            && said.contains("with sub-groups of 32 work-items; this GPU has blocks for 16 and fewer")
            && said.contains("`sub_group = 16`"),
        "{said}"
    );
    assert_eq!(error.exit_status(), 3);
    emit(several::kernel::<f32, 32>(), BlockAccess::default()).expect("accesses of each work-item");
}

/// Not all of a sub-group are there.
#[kernel(work_group = 32, sub_group = 32)]
fn some(input: &[u32], output: &mut [u32]) {
    if local_id() > 1 {
        output[local_id()] = sub_group_load(&input[0..]);
    }
}

/// Each work-item names another block.
#[kernel(work_group = 32, sub_group = 32)]
fn scattered(input: &[u32], output: &mut [u32]) {
    output[local_id()] = sub_group_load(&input[local_id()..]);
}

/// A block of bytes that begins in a word, and one of words that begins between two blocks of 16 bytes.
#[kernel(work_group = 32, sub_group = 32)]
fn misaligned_load(input: &[u32], output: &mut [u32], bytes: &[u8]) {
    output[local_id()] = input[0] + sub_group_load(&bytes[2..]) as u32;
}

#[kernel(work_group = 32, sub_group = 32)]
fn misaligned_store(input: &[u32], output: &mut [u32]) {
    sub_group_store(&mut output[2..], input[local_id()]);
}

#[kernel(work_group = 32, sub_group = 32)]
fn of_shared_memory(input: &[u32], output: &mut [u32]) {
    let mut tile = shared::<u32, 32>();
    tile[local_id()] = input[local_id()];
    barrier();
    output[local_id()] = sub_group_load(&tile[0..]);
}

#[test]
fn what_is_no_block_is_reported() {
    let device = Simulator::untimed();
    let queue = device.queue().expect("a queue");
    let input = TypedBuffer::from_slice(&device, &[1u32; 64]).expect("fits");
    let mut output = TypedBuffer::from_slice(&device, &[0u32; 64]).expect("fits");
    let mut said = |compiled: headstart::Result<Compiled<fn(&[u32], &mut [u32])>>| {
        let arguments = some::arguments(&input, &mut output);
        let geometry = Geometry::new(1, 32);
        let event = compiled.expect("compiles").launch(&*queue, geometry, arguments);
        event.wait().expect_err("reported").to_string()
    };
    let who = |lane: u32| format!("work-item {lane} of work-group 0 (global {lane})");
    let mut reported = |compiled, expected: String| {
        let error = said(compiled);
        assert!(
            error.contains("blocks.rs:") && error.contains(&expected),
            "{error}"
        );
    };
    reported(
        some::compile(&device),
        format!(
            "{} runs a block load of its sub-group without work-item 0",
            who(2)
        ),
    );
    reported(
        scattered::compile(&device),
        format!(
            "{} takes `input[2]` in a block load of its sub-group that begins at `input[0]`",
            who(1)
        ),
    );
    reported(
        misaligned_store::compile(&device),
        format!(
            "{} begins a block store of its sub-group at byte 8 of `output`, which is not a multiple of 16",
            who(0)
        ),
    );
    let bytes = TypedBuffer::from_slice(&device, &[1u8; 64]).expect("fits");
    let arguments = misaligned_load::arguments(&input, &mut output, &bytes);
    let compiled = misaligned_load::compile(&device).expect("compiles");
    let event = compiled.launch(&*queue, Geometry::new(1, 32), arguments);
    let error = event.wait().expect_err("reported").to_string();
    assert!(
        error.contains("begins a block load of its sub-group at byte 2 of `bytes`"),
        "{error}"
    );
    let error = of_shared_memory::kernel()
        .expect_err("no global memory")
        .to_string();
    assert!(
        error.contains("blocks.rs:") && error.contains("are for global memory"),
        "{error}"
    );
}

/// Sums of what a sub-group has side by side.
#[kernel(work_group = 32, sub_group = 32)]
fn sums(values: &[u32], output: &mut [u32], items: u32) {
    let mut sum = 0u32;
    for j in 0..items as usize {
        let [a, b] = sub_group_load_block(&values[j * 64..]);
        sum = sum.wrapping_add(a ^ (b >> 1));
    }
    output[global_id()] = sum;
}

fn blocks(kernel: &Kernel) -> usize {
    let mut blocks = 0;
    kernel.body.walk(&mut |op| {
        blocks += usize::from(matches!(
            op.kind,
            OpKind::Load {
                cache: CacheUse::Block,
                ..
            }
        ));
    });
    blocks
}

/// A load of a block is one like any other to a plan; what a plan derives from it promises nothing.
#[test]
fn plans_fetch_blocks() {
    let plain = sums::kernel().expect("it is right");
    let device = Simulator::untimed();
    let queue = device.queue().expect("a queue");
    let run = |kernel: &Kernel| {
        let values = TypedBuffer::from_slice(&device, &noise(64 * 9)).expect("fits");
        let mut output = TypedBuffer::<u32>::uninitialized(&device, 32).expect("fits");
        let compiled =
            Compiled::<fn(&[u32], &mut [u32], u32)>::new(&device, kernel.clone()).expect("compiles");
        let arguments = sums::arguments(&values, &mut output, 9);
        let ran = compiled.launch(&*queue, Geometry::new(1, 32), arguments).wait();
        ran.unwrap_or_else(|error| panic!("{error}\n{}", headstart::ir::print(kernel)));
        output.read(&*queue).expect("written")
    };
    let expected = run(&plain);
    for (text, kept) in [
        ("none", 2),
        ("unroll:4", 2),
        ("values=rolling-registers:2", 0),
        ("values=batched-registers:3", 0),
        ("values=rolling-async:4", 0),
        ("values=cache:L2:2", 2),
        ("unroll:2,values=rolling-registers:4", 2),
    ] {
        let plan: Plan = text.parse().expect("a plan");
        let derived = prefetch::apply(&plain, &plan, &prefetch::PlanTarget::default())
            .unwrap_or_else(|error| panic!("{text}: {error}"))
            .kernel;
        assert_eq!(run(&derived), expected, "{text}");
        assert_eq!(
            blocks(&derived),
            kept,
            "{text}\n{}",
            headstart::ir::print(&derived)
        );
        lowers(Ok(derived));
    }
}

/// What this module shows of the language.
pub const FEATURES: &[Feature] = &[Feature {
    name: "block loads and stores of sub-groups",
    spelled: "`let [a, b] = sub_group_load_block(&v[i..]);`, `sub_group_store(&mut v[i..], x)`",
    kernel: several::kernel::<f32, 32>,
    test: blocks_of_every_type_agree,
}];
