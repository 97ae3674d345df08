//! What the borrow checker finds in a kernel and at its launch.

use headstart::device::{Device, TypedBuffer};
use headstart::prelude::*;

#[kernel]
fn writes_what_it_may_only_read(values: &[f32], out: &mut [f32]) {
    let x = 5;
    values[0] = 1.0; //~ E0594 5
    x = 6; //~ E0384 5
    let late;
    if values[1] > 0.0 {
        late = 1;
    }
    out[x] = late as f32; //~ E0381 14
}

fn aliases(device: &dyn Device) -> headstart::Result<()> {
    let mut floats = TypedBuffer::<f32>::uninitialized(device, 5)?;
    let _ = writes_what_it_may_only_read::arguments(&floats, &mut floats); //~ E0502 62
    Ok(())
}
