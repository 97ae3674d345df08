//! Mathematical functions: their results, and their cost where a device has no instruction for them.

use super::*;
use crate::ir::OpKind;
use headstart_ir::math::Function;

/// The first 128 floats of a buffer.
fn floats(buffer: &Argument) -> impl Iterator<Item = f32> {
    let Argument::Buffer(buffer) = buffer else {
        panic!("a number is no buffer")
    };
    let memory: Arc<crate::functional::BufferMemory> = buffer.implementation().expect("ours");
    let mut bytes = [0; 512];
    memory.copy_out(0, &mut bytes).expect("written");
    (0..128).map(move |at| f32::from_le_bytes(std::array::from_fn(|byte| bytes[4 * at + byte])))
}

/// Each work-item computes an exponential. Its bits must be those of the host.
fn exponentials(name: &str) -> LaunchTime {
    let bench = Bench::new(name, &[]);
    let text = "hsir 1
    kernel @exponentials(%data: ptr.global f32[%len] align 4 readonly unaliased, %len: i64,
                         %out: ptr.global f32[%out_len] align 4 unaliased, %out_len: i64) {
      load @data
      %local = id.local.x
      %item = extend.u %local to i64
      %from = address %data + %item * 4
      %x = load f32 %from, @data
      %to = address %out + %item * 4
      store %to, %x
      return
    }";
    let mut kernel = ir::read(text, "test.hsir").expect("a kernel");
    let at = kernel.body.ops.len() - 2;
    let OpKind::Store { values, .. } = &kernel.body.ops[at].kind else {
        panic!("the last operation but one stores")
    };
    let x = values[0];
    let mut builder = ir::Builder::new(&mut kernel, Kernel::NOWHERE);
    let result = Function::Exp.emit(&mut builder, &[x]);
    let made = builder.finish().ops;
    if let OpKind::Store { values, .. } = &mut kernel.body.ops[at].kind {
        *values = vec![result];
    }
    kernel.body.ops.splice(at..at, made);
    ir::verify(&kernel).expect("it is in order");
    let data = bench.buffer(Type::F32, 128, Pattern::Fractions { low: -4.0 });
    let out = bench.buffer(Type::F32, 128, Pattern::Constant(0));
    let arguments = vec![data.clone(), index(128), out.clone(), index(128)];
    let launch = Launch::new(1, 128, arguments);
    let code = bench.timer.compile(&kernel, &launch).expect("compiles");
    let time = bench.timer.run(&code, &launch).expect("runs");
    for (x, found) in floats(&data).zip(floats(&out)) {
        assert_eq!(
            found.to_bits(),
            Function::Exp.f32(&[x]).to_bits(),
            "{name}: exp({x})"
        );
    }
    time
}

#[test]
fn functions_by_tables_are_written_out_where_they_are_no_instructions() {
    let time = exponentials("h200").work_item_instructions;
    for name in ["a100", "xe-lp"] {
        let written_out = exponentials(name).work_item_instructions;
        assert!(
            written_out > 2.0 * time,
            "{name}: {written_out} instructions, {time} of an H200"
        );
    }
}
