//! Structs and vectors: as values, in memory, as parameters.

use headstart::device::{Device, TypedBuffer};
use headstart::prelude::*;

use crate::agree::{devices, lowers, noise};
use crate::conformance::Feature;

/// Fields of several sizes, with holes between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Data)]
struct Body {
    alive: bool,
    mass: f64,
    place: [f32; 4],
    spin: Spin,
    small: i8,
    half: f16,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Data)]
struct Spin {
    axis: [f32; 3],
    turns: u32,
}

/// All of one type: four values, one access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Data)]
struct Colour {
    red: f32,
    green: f32,
    blue: f32,
    alpha: f32,
}

const REST: Spin = Spin {
    axis: [0.0, 0.0, 1.0],
    turns: 3,
};

#[device_fn]
fn turned(body: Body, by: u32) -> Body {
    if by == 0 {
        return Body { spin: REST, ..body };
    }
    let Spin {
        axis: [x, y, mut z],
        turns,
    } = body.spin;
    z += 1.0;
    let spin = Spin {
        axis: [y, z, x],
        turns: turns.wrapping_add(by),
    };
    Body { spin, ..body }
}

#[device_fn]
fn brighten(colour: &mut Colour, by: f32) {
    colour_of(by);
    *colour = Colour { red: by, ..*colour };
}

#[device_fn]
fn colour_of(grey: f32) -> Colour {
    Colour {
        red: grey,
        green: grey,
        blue: grey,
        alpha: 1.0,
    }
}

#[device_fn]
fn length(of: [f32; 2]) -> f32 {
    let [x, y] = of;
    (x * x + y * y).sqrt()
}

/// Values of structs: variables, parts of parts, branches, loops, functions.
#[kernel]
fn change_bodies(bodies: &mut [Body], wind: [f32; 4], change: Spin, colours: &mut [Colour]) {
    let i = global_id();
    let mut body = turned(bodies[i], bodies[i].spin.turns % 3);
    body.place[1] += wind[i % 4];
    body.place[i % 4] = wind[0] * 2.0;
    body.spin.axis[(i + 1) % 3] -= change.axis[2];
    for k in 0..4 {
        body.mass += body.place[k] as f64;
    }
    let kept = if body.alive {
        body
    } else {
        Body { mass: -1.0, ..body }
    };
    bodies[i] = kept;
    bodies[i].spin.axis[0] = wind[3];
    bodies[i].place[i % 2] += 0.5;
    bodies[i].small = bodies[i].small.wrapping_mul(3);
    bodies[i].alive = !kept.alive;

    let mut colour = colours[i];
    brighten(&mut colour, kept.place[2]);
    let Colour { red, .. } = colour_of(colour.green);
    (colour.blue, colour.alpha) = (red, length([red, 1.0]));
    colours[i] = colour;
}

/// Arrays of structs and vectors, private and shared.
#[kernel(work_group = 32)]
fn arrays(colours: &mut [Colour], pairs: &mut [[f32; 2]]) {
    let mut tile = shared::<Colour, 32>();
    let mut rows: [[f32; 2]; 32] = shared();
    let i = local_id();
    tile[i] = colours[global_id()];
    rows[i] = [tile[i].red, 2.0];
    rows[i][1] += 1.0;
    barrier();
    let other = tile[31 - i];
    let [first, second] = rows[(i + 1) % 32];
    let mut own = [Spin {
        axis: [0.0; 3],
        turns: 7,
    }; 3];
    own[i % 3].turns = i as u32;
    own[1].axis[i % 3] = first;
    let mut some = [[1.0f32, 2.0], [3.0, 4.0]];
    some[i % 2] = [second, other.blue];
    let taken = own[1];
    let before = some;
    some = [before[1], before[0]];
    some = [some[1], some[0]];
    pairs[global_id()] = [
        taken.axis[0] + taken.axis[2] + some[0][0],
        (taken.turns + own[i % 3].turns) as f32 + some[1][1],
    ];
    barrier();
    colours[global_id()] = Colour {
        alpha: other.red,
        ..other
    };
}

fn some_bodies(count: usize) -> (Vec<Body>, Vec<Colour>) {
    let noise = noise(count * 8);
    let number = |index: usize| noise[index] as f32 / 1e9;
    let body = |i: usize| Body {
        alive: noise[i] % 2 == 0,
        mass: f64::from(number(i + 1)),
        place: [number(i + 2), number(i + 3), 1.5, -2.0],
        spin: Spin {
            axis: [number(i + 4), -1.0, 2.0],
            turns: noise[i + 5] % 5,
        },
        small: noise[i + 6] as i8,
        half: f16::from_f32(number(i + 7)),
    };
    let colour = |i: usize| Colour {
        red: number(i),
        green: number(i + 1),
        blue: number(i + 2),
        alpha: number(i + 3),
    };
    let starts = || (0..count).map(|i| i * 8 % (count * 8 - 8));
    (starts().map(body).collect(), starts().map(colour).collect())
}

#[test]
fn structs_agree() {
    const COUNT: usize = 64;
    let (wind, change) = ([1.0, -2.0, 0.25, 8.0], REST);
    let (before, colours_before) = some_bodies(COUNT);
    let (mut expected, mut colours_expected) = (before.clone(), colours_before.clone());
    let geometry = Geometry::new(2, 32);
    change_bodies::reference(geometry, &mut expected, wind, change, &mut colours_expected)
        .expect("the ordinary function runs");
    assert_ne!(expected, before);
    for device in devices() {
        let queue = device.queue().expect("a queue");
        let mut found = TypedBuffer::from_slice(&*device, &before).expect("fits");
        let mut colours = TypedBuffer::from_slice(&*device, &colours_before).expect("fits");
        assert_eq!(found.length(), COUNT as u64);
        let arguments = change_bodies::arguments(&mut found, wind, change, &mut colours);
        let event = change_bodies::compile(&*device)
            .expect("compiles")
            .launch(&*queue, geometry, arguments);
        event.wait().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(found.read(&*queue).expect("written"), expected);
        assert_eq!(colours.read(&*queue).expect("written"), colours_expected);
    }
    let kernel = change_bodies::kernel().expect("the kernel is right");
    let names: Vec<&str> = kernel.params.iter().map(|param| param.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "bodies",
            "bodies_length",
            "wind_0",
            "wind_1",
            "wind_2",
            "wind_3",
            "change_axis_0",
            "change_axis_1",
            "change_axis_2",
            "change_turns",
            "colours",
            "colours_length"
        ]
    );
    let text = lowers(Ok(kernel));
    assert!(
        text.contains("ld.global.v4.f32") && text.contains("st.global.v4.f32"),
        "{text}"
    );
}

/// What `arrays` should leave: its work-items share, so they are run together here.
fn arrays_expected(colours: &mut [Colour], pairs: &mut [[f32; 2]]) {
    let before = colours.to_vec();
    for (item, (colour, pair)) in colours.iter_mut().zip(pairs).enumerate() {
        let (group, i) = (item / 32 * 32, item % 32);
        let other = before[group + 31 - i];
        let (first, second) = (before[group + (i + 1) % 32].red, 3.0);
        let mut axis = [0.0; 3];
        axis[i % 3] = first;
        let taken = if i % 3 == 1 { i as u32 } else { 7 };
        let mut some = [[1.0f32, 2.0], [3.0, 4.0]];
        some[i % 2] = [second, other.blue];
        *pair = [
            axis[0] + axis[2] + some[0][0],
            (taken + i as u32) as f32 + some[1][1],
        ];
        *colour = Colour {
            alpha: other.red,
            ..other
        };
    }
}

#[test]
fn arrays_of_structs_agree() {
    const COUNT: usize = 64;
    let (_, before) = some_bodies(COUNT);
    let (mut expected, mut pairs_expected) = (before.clone(), vec![[0.0; 2]; COUNT]);
    arrays_expected(&mut expected, &mut pairs_expected);
    for device in devices() {
        let queue = device.queue().expect("a queue");
        let mut found = TypedBuffer::from_slice(&*device, &before).expect("fits");
        let mut pairs = TypedBuffer::<f32>::uninitialized(&*device, COUNT as u64 * 2).expect("fits");
        let arguments = arrays::arguments(&mut found, &mut pairs);
        let event =
            arrays::compile(&*device)
                .expect("compiles")
                .launch(&*queue, Geometry::new(2, 32), arguments);
        event.wait().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(found.read(&*queue).expect("written"), expected);
        assert_eq!(pairs.read(&*queue).expect("written"), pairs_expected.concat());
    }
    lowers(arrays::kernel());
}

/// A field is read by itself: no work-item touches what belongs to another.
#[kernel]
fn one_field(bodies: &mut [Body]) {
    let i = global_id() / 2;
    if global_id() % 2 == 0 {
        bodies[i].mass = 1.0;
    } else {
        bodies[i].small = 2;
    }
}

#[test]
fn fields_are_written_by_themselves() {
    let device = headstart::device::sim::Simulator::untimed();
    let queue = device.queue().expect("a queue");
    let mut bodies = TypedBuffer::from_slice(&device, &[Body::default(); 4]).expect("fits");
    let arguments = one_field::arguments(&mut bodies);
    let compiled = one_field::compile(&device).expect("compiles");
    let event = compiled.launch(&*queue, Geometry::new(1, 8), arguments);
    // Races of bytes would be reported here.
    event.wait().unwrap_or_else(|error| panic!("{error}"));
    let expected = Body {
        mass: 1.0,
        small: 2,
        ..Body::default()
    };
    assert_eq!(bodies.read(&*queue).expect("written"), [expected; 4]);
    lowers(one_field::kernel());
}

/// What this module shows of the language.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "structs",
        spelled: "`#[derive(Data)] struct P { x: f32 }`, `p.x`, `P { x, ..p }`, `&[P]`",
        kernel: change_bodies::kernel,
        test: structs_agree,
    },
    Feature {
        name: "arrays of structs and vectors",
        spelled: "`shared::<P, 32>()`, `a[i].x[k] = y;`",
        kernel: arrays::kernel,
        test: arrays_of_structs_agree,
    },
];
