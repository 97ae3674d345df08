//! The launches that a search starts from.

use super::launch::{self, Variant};
use crate::error::Result;
use crate::ir::Kernel;
use crate::tune::subject::Subject;
use crate::tune::subject::workload::Workload;

/// Work-groups of a launch to start from, along its first dimension.
const GROUPS: u32 = 2;
/// Numbers of iterations of small launches to start from.
const SMALL: [u64; 2] = [9, 2];
/// Integers are at most as large in a launch that is made small by hand.
const SMALL_SCALARS: [u64; 2] = [40, 5];

/// Launches to start from.
pub(super) fn bases(subject: &dyn Subject, workload: &Workload, plain: &Kernel) -> Result<Vec<Variant>> {
    let mut bases = Vec::new();
    for iterations in SMALL {
        if let Some(small) = subject.small(iterations)? {
            bases.push(Variant::of(&small, &format!("{iterations} iterations"), GROUPS));
        }
    }
    let own = Variant::of(workload, "", GROUPS);
    if bases.is_empty() {
        bases.push(own.clone());
        // Where the launch as it is takes too long, one with smaller numbers may not.
        let roles = launch::roles(plain);
        for most in SMALL_SCALARS {
            let mut small = own.clone();
            let mut any = false;
            for (position, role) in roles.iter().enumerate() {
                if let (launch::Role::Scalar, Some((ty, bits))) = (role, small.scalar(position))
                    && ty.is_integer()
                    && crate::ir::eval::signed(ty, bits) > most as i64
                {
                    small.set(position, most);
                    any = true;
                }
            }
            if any {
                small.also(format!("numbers of at most {most}"));
                bases.push(small);
            }
        }
    } else {
        bases.push(own);
    }
    Ok(bases)
}
