//! Conditions between the numbers of a model, beyond each one's own range.

use super::numbers::Blamed;
use super::{Card, DeviceModel, L1, Registers};
use crate::Error;

/// Finds the first contradiction: the dotted key to blame, and the error.
pub(super) fn check(model: &DeviceModel) -> Result<(), Blamed> {
    let fail = |key: &str, what: String| Err((key.to_owned(), Error::input(what)));
    model.core.check()?;
    match &model.registers {
        Registers::Pooled(registers) => registers.check()?,
        Registers::Fixed(registers) => registers.check()?,
    }
    model.shared.check()?;
    model.l1.iter().try_for_each(L1::check)?;
    model.l2.check()?;
    model.dram.check()?;
    model.tlb.check()?;
    model.instruction_cache.check()?;
    model.matrix.check()?;
    model.prefetch.check()?;
    model.card.iter().try_for_each(Card::check)?;
    if !model.core.sub_group_sizes.contains(&model.core.sub_group_size) {
        return fail(
            "core.sub-group-size",
            "this is not one of `core.sub-group-sizes`".into(),
        );
    }
    // Masks of lanes have 64 bits.
    if let Some(size) = model
        .core
        .sub_group_sizes
        .iter()
        .find(|size| !size.is_power_of_two() || **size > 64)
    {
        return fail(
            "core.sub-group-sizes",
            format!("sub-groups of {size} work-items are not modelled"),
        );
    }
    if !(*model.core.sub_groups).is_multiple_of(*model.core.schedulers) {
        return fail(
            "core.sub-groups",
            "this is not a multiple of `core.schedulers`".into(),
        );
    }
    if model.shared.sizes.is_empty() || !model.shared.sizes.is_sorted() {
        return fail(
            "shared.sizes",
            "the sizes must be there, in ascending order".into(),
        );
    }
    sectors(
        model.l2.size.min(*model.l2.effective_size),
        *model.l2.line,
        *model.l2.sector,
        *model.l2.ways,
    )
    .or_else(|what| fail("l2.line", what))?;
    if *model.l2.effective_size > *model.l2.size {
        return fail("l2.effective-size", "this is more than `l2.size`".into());
    }
    if let Some(l1) = &model.l1 {
        if *l1.ways == 0 || *l1.outstanding == 0 {
            return fail("l1.ways", "`l1.ways` and `l1.outstanding` must not be 0".into());
        }
        sectors(*l1.size, *l1.line, *l1.sector, *l1.ways).or_else(|what| fail("l1.line", what))?;
        if *l1.line != *model.l2.line || *l1.sector != *model.l2.sector {
            return fail("l1.line", "lines and sectors of L1 must be those of L2".into());
        }
        if *l1.most > *l1.size {
            return fail("l1.most", "this is more than `l1.size`".into());
        }
        let shared = model.shared.sizes.last().copied().unwrap_or(0);
        if l1.holds_shared && shared > *l1.size {
            return fail(
                "l1.size",
                "this is less than the largest of `shared.sizes`".into(),
            );
        }
    }
    if *model.prefetch.fetch > *model.l2.line {
        return fail("prefetch.fetch", "this is more than `l2.line`".into());
    }
    if *model.dram.granule > *model.l2.line || *model.dram.granule < *model.l2.sector {
        return fail(
            "dram.granule",
            "this is not between `l2.sector` and `l2.line`".into(),
        );
    }
    if *model.dram.refresh_interval > 0 && *model.dram.refresh >= *model.dram.refresh_interval {
        return fail(
            "dram.refresh",
            "this is not less than `dram.refresh-interval`".into(),
        );
    }
    if *model.instruction_cache.near > *model.instruction_cache.size {
        return fail(
            "instruction-cache.near",
            "this is more than `instruction-cache.size`".into(),
        );
    }
    Ok(())
}

/// Lines of a set at most: the simulator keeps their order in one number of 64 bits.
#[doc(hidden)]
pub const MOST_WAYS: u32 = 16;

/// A cache of whole sets, whose lines are at most 8 whole sectors.
fn sectors(size: u64, line: u64, sector: u64, ways: u32) -> Result<(), String> {
    if !line.is_power_of_two() || !sector.is_power_of_two() || sector > line || line / sector > 8 {
        return Err(format!("a line of {line} bytes cannot have sectors of {sector}"));
    }
    if ways > MOST_WAYS {
        return Err(format!(
            "sets of {ways} lines are not modelled, {MOST_WAYS} at most"
        ));
    }
    if size < line * u64::from(ways) {
        return Err(format!("{size} bytes are less than a set of {ways} lines"));
    }
    Ok(())
}
