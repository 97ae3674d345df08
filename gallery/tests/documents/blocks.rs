//! "Block load/store does not work with sub-group size 32 on current Intel hardware": Gen11 and Xe-LP have blocks for 16 work-items.

use headstart::back::spirv::{self, BlockAccess, Options, SpirvTarget};
use headstart::device::sim::Simulator;
use headstart::device::{Command, Device as _};
use headstart::tune::kinds;

use super::{model, workload};

/// What running a kernel of the gallery, in blocks of 32 work-items, gives on a device.
fn ran(device: &str) -> headstart::Result<()> {
    let workload = workload("blocks-of-eight", "groups=4 group=64");
    let simulator = Simulator::of(std::sync::Arc::new(model(device, &[])));
    let bound = workload.bind(&simulator)?;
    let launch = bound.prepare(&simulator)?.launch;
    let program = simulator.compile(&workload.kernel)?;
    simulator
        .queue()?
        .submit(Command::Launch(program, launch), &[])
        .wait()?;
    Ok(())
}

#[test]
fn a_kernel_with_blocks_of_32_work_items_is_refused_where_there_are_none() {
    for device in ["xe-lp", "gen11"] {
        let error = ran(device).expect_err("there are none");
        let message = error.to_string();
        for expected in [
            "blocks with sub-groups of 32",
            "blocks for 16 and fewer",
            "sub_group = 16",
            "blocks.rs",
        ] {
            assert!(message.contains(expected), "{device}: {message}");
        }
        assert_eq!(error.fault(), headstart::Fault::Device);
    }
    ran("pvc-1550").expect("it has blocks for 32");
}

/// What is emitted for a model follows it.
#[test]
fn no_block_of_32_work_items_is_emitted_where_there_are_none() {
    let workload = workload("blocks-of-eight", "groups=4 group=64");
    let emitted = |device: &str, target: SpirvTarget| {
        let device = kinds::find(device, &[]).expect("a device");
        let options = Options {
            block_access: device.block_access(),
            ..Options::new(target)
        };
        spirv::emit(&workload.kernel, &options)
    };
    emitted("sim:xe-lp", SpirvTarget::IntelOlder).expect_err("it has none");
    let text = emitted("sim:pvc-1550", SpirvTarget::IntelLsc)
        .expect("it has them")
        .text;
    assert!(text.contains("OpSubgroupBlockReadINTEL"), "{text}");
    assert_eq!(
        kinds::find("sim:h200", &[]).expect("a device").block_access(),
        BlockAccess::default()
    );
}

/// A kernel that requires no size gets the largest that has blocks.
#[test]
fn a_kernel_that_requires_no_size_gets_one_that_has_blocks() {
    let workload = workload("blocks-of-eight", "groups=4 group=64");
    let mut kernel = (*workload.kernel).clone();
    kernel.sub_group_size = None;
    for (device, size) in [("xe-lp", 16), ("gen11", 16), ("pvc-1550", 32)] {
        let description = model(device, &[]).description();
        assert_eq!(description.sub_group_size(&kernel), size, "{device}");
    }
}
