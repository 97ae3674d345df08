//! Texts, and what they are read as.

use super::*;
use crate::ir::{MemoryOrder, Opaque, Type};

fn read(text: &str, results: usize) -> Carried {
    *Opaque::unknown(text.to_owned(), vec![Type::I32; results]).does
}

fn at(value: usize, offset: i64, space: Space) -> Reference {
    Reference { value, offset, space }
}

#[test]
fn moves_of_matrices_are_read() {
    let rows = read(
        "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {=0, =1}, [@0+-32]",
        2,
    );
    let form = RowsForm {
        count: 2,
        transposed: true,
        at: at(0, -32, Space::Shared),
    };
    let expected = Rows {
        writes: false,
        space: Space::Shared,
        form: Some(form),
    };
    assert_eq!(rows, Carried::Rows(expected));
    let other = read(
        "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {=0, =1}, [@0]",
        2,
    );
    assert!(matches!(other, Carried::Rows(Rows { form: None, .. })));
    let whole = |text: &str, results| match read(text, results) {
        Carried::Whole(whole) => whole,
        other => panic!("{text}: {other:?}"),
    };
    let load = whole(
        "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {=0, =1, =2, =3, =4, =5, =6, =7}, [@0], @1",
        8,
    );
    assert_eq!((load.part, load.element), (Part::A, Element::F16));
    assert_eq!(
        (load.stride, load.by_rows, load.writes),
        (Stride::Operand(1), true, false)
    );
    let store = whole(
        "wmma.store.d.sync.aligned.col.m16n16k16.shared.f32 [@0], {@1, @2, @3, @4, @5, @6, @7, @8}, 24",
        0,
    );
    assert_eq!(
        (store.stride, store.by_rows, store.writes),
        (Stride::Fixed(24), false, true)
    );
    assert_eq!((store.part, store.at), (Part::C, at(0, 0, Space::Shared)));
    let dense = whole("wmma.store.d.sync.aligned.row.m8n8k4.f64 [@0], {@1, @2}", 0);
    assert_eq!((dense.stride, dense.at.space), (Stride::Dense, Space::Generic));
}

#[test]
fn products_are_read() {
    let product = |name: &str| match read(&format!("{name} {{=0}}, {{@0}}, {{@1}}, {{@2}}"), 1) {
        Carried::Product(product) => product,
        other => panic!("{name}: {other:?}"),
    };
    let plain = product("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32");
    assert_eq!(
        (plain.sizes, plain.saturates, plain.is_plain),
        ((16, 8, 32), true, true)
    );
    assert_eq!(
        plain.elements,
        [Element::I32, Element::S8, Element::U8, Element::I32]
    );
    for other in [
        "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc",
        "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16",
        "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1",
    ] {
        assert!(!product(other).is_plain, "{other}");
    }
    assert!(product("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc").is_plain);
}

#[test]
fn factors_of_warp_groups_lie_in_memory_or_registers() {
    let operands = |text: &str| match read(text, 4) {
        Carried::Product(product) => product.operands,
        other => panic!("{text}: {other:?}"),
    };
    let both = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {=0, =1, =2, =3}, @0, @1, !@2, 1, -1, 0, 1";
    let expected = GroupOperands {
        left: Factor::Descriptor(0),
        right: 1,
        adds: Adds::If(2, false),
        negated: [false, true],
        turned: [false, true],
        first_summand: 3,
    };
    assert_eq!(operands(both), Some(expected));
    let one = "wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 {=0, =1, =2, =3}, {@0, @1, @2, @3}, @4, 0, -1, 1, 1";
    let expected = GroupOperands {
        left: Factor::Registers(0, 4),
        right: 4,
        adds: Adds::Known(false),
        negated: [true, false],
        turned: [false, true],
        first_summand: 5,
    };
    assert_eq!(operands(one), Some(expected));
    // A constant is missing.
    let short = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {=0, =1, =2, =3}, @0, @1, 1, 1, 1";
    assert_eq!(operands(short), None);
    for (text, expected) in [
        ("wgmma.fence.sync.aligned", GroupStep::Fence),
        ("wgmma.commit_group.sync.aligned", GroupStep::Commit),
        ("wgmma.wait_group.sync.aligned 3", GroupStep::Wait(3)),
    ] {
        assert_eq!(read(text, 0), Carried::Group(expected));
    }
}

#[test]
fn operations_on_16_bytes_are_read() {
    let cas = "atom.acq_rel.gpu.global.cas.b128 {=0, =1}, [@0+-16], {@1, @2}, {@3, @4}";
    let Carried::Quad(quad) = read(cas, 2) else {
        panic!("not read")
    };
    assert_eq!(
        (quad.change, quad.order, quad.offset),
        (Change::CompareExchange, MemoryOrder::AcquireRelease, -16)
    );
    assert!(quad.releases() && quad.directions() == (true, true));
    let Carried::Quad(quad) = read("st.release.cta.shared.b128 [@0], {@1, @2}", 0) else {
        panic!("not read")
    };
    assert_eq!((quad.change, quad.space), (Change::Store, Space::Shared));
    assert!(!quad.releases() && quad.directions() == (false, true));
    for other in [
        "atom.acq_rel.gpu.global.cas.b128 {=0, =1}, [@0], {@1, @2}, {@3}",
        "atom.global.add.b128 {=0, =1}, [@0], {@1, @2}",
        "atom.global.add.u64 =0, [@0], @1",
    ] {
        assert_eq!(read(other, 2), Carried::Unknown, "{other}");
    }
}

#[test]
fn steps_of_barriers_with_phases_are_read() {
    let step = |text: &str| match read(text, 1) {
        Carried::Phase(step) => Some(step),
        _ => None,
    };
    let arrives = step("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 =0, [@0+8], 512");
    let arrives = arrives.expect("an instruction");
    assert_eq!(
        arrives.kind,
        PhaseOperation::Arrive {
            count: Operand::Number(1),
            bytes: Some(Operand::Number(512)),
            drops: false,
            stays: false
        }
    );
    assert_eq!(
        (arrives.order, arrives.barrier),
        (MemoryOrder::Release, Some(at(0, 8, Space::Shared)))
    );
    let asks = step("mbarrier.try_wait.parity.shared.b64 =0, [@0], @1, 1000").expect("an instruction");
    let phase = Operand::Value(1);
    assert_eq!(
        asks.kind,
        PhaseOperation::Test {
            phase,
            is_parity: true
        }
    );
    let pending = step("mbarrier.pending_count.b64 =0, @0").expect("an instruction");
    assert_eq!(
        (pending.kind, pending.barrier),
        (PhaseOperation::Pending(0), None)
    );
    let copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [@0], [@1], @2, [@3+8]";
    let is_copy = |step: PhaseStep| matches!(step.kind, PhaseOperation::Copy { .. });
    assert!(step(copy).is_some_and(is_copy));
    // Of several dimensions, to other work-groups, out of shared memory.
    for other in [
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [@0], [@1, {@2}], [@3]",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [@0], [@1], 16, [@2], @3",
        "cp.async.bulk.global.shared::cta.bulk_group [@0], [@1], 16",
        "cp.async.mbarrier.arrive.shared.b64 [@0]",
    ] {
        assert_eq!(step(other), None, "{other}");
    }
}

#[test]
fn others_are_known_by_name() {
    for (text, expected) in [
        ("nanosleep.u32 @0", Carried::Nothing),
        ("mov.u64 =0, %clock64", Carried::Clock),
        ("mov.u32 =0, %total_smem_size", Carried::SharedSize),
        ("isspacep.shared =0, @0", Carried::Leads(Space::Shared)),
        (
            "{ .param .b32 r; call (r), vprintf, (a, b); ld.param.b32 =0, [r]; }",
            Carried::Print,
        ),
        ("fence.proxy.async.shared::cta", Carried::ProxyFence),
        ("fence.proxy.alias", Carried::Nothing),
        ("frob.nicate =0, @0", Carried::Unknown),
        ("<copy> 3", Carried::Unknown),
    ] {
        assert_eq!(read(text, 1), expected, "{text}");
    }
    assert_eq!(*Opaque::copy(3).does, Carried::Copy(3));
    assert_eq!(operands("st.b128 [@0+8], {@11, @2}; @%p"), 12);
}
