//! "LSC_LDCC": what each of the page's eight controls leaves in the caches.

use super::{model, net};

/// Cycles of a chain of 128 KiB whose loads have a control, or that runs beside loads with it.
fn cycles(device: &str, loads: &str, control: &str) -> f64 {
    net(
        "micro/controls",
        &format!("loads={loads} control={control} footprint=131072"),
        &model(device, &[]),
    )
}

/// A chain that comes again is found where its loads left it: the second column of `LSC_LDCC`'s names is L3.
#[test]
fn a_load_is_found_again_where_its_control_left_it() {
    let device = "pvc-1550";
    let of = |control: &str| cycles(device, "again", control);
    let near = of("L1C_L3C");
    let model = model(device, &[]);
    let latency = |cycles: u32| f64::from(cycles) - f64::from(*model.l1.as_ref().expect("an L1").latency);
    let l3 = near + latency(*model.l2.near_latency);
    let memory = near + latency(*model.dram.latency);
    for (control, expected) in [
        ("DEFAULT", near),
        ("L1C_L3C", near),
        ("L1C_L3UC", near),
        ("L1UC_L3C", l3),
        ("L1IAR_L3C", l3),
        ("L1UC_L3UC", memory),
    ] {
        let found = of(control);
        println!("{control}: {found:.0} cycles, {expected:.0} by the latencies");
        assert!(
            (found / expected - 1.0).abs() < 0.08,
            "{control}: {found} and {expected} cycles"
        );
    }
}

/// Loads of data that come once push the chain out of L1, unless their control says that they do not stay.
#[test]
fn a_stream_leaves_the_rest_of_l1_alone() {
    let of = |control: &str| cycles("pvc-1550", "beside", control);
    let (cached, streamed, read_once, past) = (of("L1C_L3C"), of("L1S_L3C"), of("L1IAR_L3C"), of("L1UC_L3C"));
    println!("cached {cached:.0}, streaming {streamed:.0}, invalidated {read_once:.0}, uncached {past:.0}");
    for kept in [streamed, read_once, past] {
        assert!(kept < 0.8 * cached, "{kept} and {cached} cycles");
    }
}

/// Hints for data that come once push the chain out of L1 as well, unless they stream; those past L1 leave it alone.
#[test]
fn streaming_hints_leave_the_rest_of_l1_alone() {
    let of = |control: &str| cycles("pvc-1550", "hinted", control);
    let (cached, streamed, past) = (of("L1C_L3C"), of("L1S_L3C"), of("L1UC_L3C"));
    println!("cached {cached:.0}, streaming {streamed:.0}, uncached {past:.0}");
    for kept in [streamed, past] {
        assert!(kept < 0.8 * cached, "{kept} and {cached} cycles");
    }
}

/// Where loads have no controls, nothing changes.
#[test]
fn a_device_without_controls_times_all_alike() {
    let of = |control: &str| cycles("xe-lp", "again", control);
    assert_eq!(of("L1UC_L3UC"), of("L1C_L3C"));
}
