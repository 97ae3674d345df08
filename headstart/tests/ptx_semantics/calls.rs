//! Parameters of calls: the bits of a register that they take, and what of them is read.

use super::{REGISTERS, output};

#[test]
fn members_take_the_low_bits_of_registers_and_are_extended_as_loads_are() {
    // As nvcc passes structures of small members: from 16-bit registers, several at once.
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .func (.param .align 4 .b8 back[12]) pack(.param .b32 number)\n{{\n\
         .reg .b16 %s<3>;\n.reg .b32 %n;\n.reg .b64 %w;\n\
         ld.param.u16 %s1, [number];\nld.param.u32 %n, [number];\nshr.u16 %s2, %s1, 3;\n\
         cvt.u64.u32 %w, %n;\nadd.u64 %w, %w, 0x4000000000;\n\
         st.param.v2.b8 [back+0], {{%s1, %s2}};\nst.param.b16 [back+2], %n;\nst.param.b32 [back+4], %w;\n\
         st.param.b32 [back+8], %n;\nret;\n}}\n\
         .visible .entry k(.param .u64 k_param_0)\n{{\n{REGISTERS}\n\
         mov.u32 %i0, %tid.x;\nmul.lo.u32 %x, %i0, 0x9e3779b1;\n\
         {{\n.param .b32 param0;\nst.param.b32 [param0+0], %x;\n.param .align 4 .b8 retval0[12];\n\
         call.uni (retval0), pack, (param0);\n\
         ld.param.v2.s8 {{%h1, %h2}}, [retval0+0];\nld.param.b8 %h3, [retval0+1];\nld.param.s16 %t0, [retval0+2];\n\
         ld.param.u32 %wx, [retval0+4];\nld.param.s16 %t3, [retval0+8];\n}}\n\
         ld.param.u64 %a2, [k_param_0];\ncvta.to.global.u64 %a2, %a2;\nmul.wide.u32 %off, %i0, 24;\nadd.s64 %a2, %a2, %off;\n\
         cvt.s32.s16 %t1, %h1;\ncvt.s32.s16 %t2, %h2;\nst.global.u32 [%a2], %t1;\nst.global.u32 [%a2+4], %t2;\n\
         cvt.u32.u16 %t1, %h3;\nst.global.u32 [%a2+8], %t1;\nst.global.u32 [%a2+12], %t0;\n\
         shr.u64 %wy, %wx, 4;\ncvt.u32.u64 %t2, %wy;\nst.global.u32 [%a2+16], %t2;\nst.global.u32 [%a2+20], %t3;\n\
         ret;\n}}\n"
    );
    let found = output(
        &text,
        "groups = 1\ngroup = 64\n[parameters.param_0]\nlength = 384\n",
    );
    let expected: Vec<u32> = (0..64u32)
        .map(|item| item.wrapping_mul(0x9e37_79b1))
        .flat_map(|x| {
            let third = (x as u16 >> 3) as u8;
            [
                i32::from(x as i8) as u32,
                i32::from(third as i8) as u32,
                u32::from(third),
                i32::from(x as i16) as u32,
                x >> 4,
                i32::from(x as i16) as u32,
            ]
        })
        .collect();
    assert_eq!(found, expected, "{text}");
}
