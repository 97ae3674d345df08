use super::*;
use crate::device::{Command, Pattern, TypedBuffer};
use crate::ir::parse;

const INCREMENT: &str = "hsir 1
    kernel @increment(%data: ptr.global i32[] align 4, %by: i32) {
      load @data
      %i32 = id.local.x
      %i = extend.u %i32 to i64
      %ptr = address %data + %i * 4
      %x = load i32 %ptr, @data
      %y = add %x, %by
      store %ptr, %y
      return
    }";

fn program(device: &Simulator, text: &str) -> Program {
    let kernel = parse(text, "test.hsir").expect("the kernel is right");
    device.compile(&kernel.into()).expect("compiles")
}

#[test]
fn commands_run_in_order_and_across_queues_as_events_say() {
    let device = Simulator::untimed();
    let program = program(&device, INCREMENT);
    let data = TypedBuffer::from_slice(&device, &[10i32, 20, 30]).expect("fits");
    let launch = |by: u64| {
        let data = Argument::Buffer(data.buffer().clone());
        let launch = Launch::new(1, 3, vec![data, Argument::Scalar(Type::I32, by)]);
        Command::Launch(program.clone(), launch)
    };
    let [one, other] = [(), ()].map(|()| device.queue().expect("a thread"));
    let first = one.submit(launch(1), &[]);
    let second = one.submit(launch(1), &[]);
    let third = other.submit(launch(100), &[second]);
    assert!(third.wait().is_ok() && first.has_ended());
    assert_eq!(data.read(other.as_ref()).expect("written"), [112, 122, 132]);
}

#[test]
fn a_parameter_may_point_into_a_buffer() {
    const COPY: &str = "hsir 1
        kernel @copy(%from: ptr.global i32[] align 4, %to: ptr.global i32[] align 4, %back: i64) {
          load @from
          %i32 = id.local.x
          %i = extend.u %i32 to i64
          %fp = address %from + %i * 4
          %x = load i32 %fp, @from
          %at = sub %i, %back
          %tp = address %to + %at * 4
          store %tp, %x
          return
        }";
    let device = Simulator::untimed();
    let program = program(&device, COPY);
    let queue = device.queue().expect("a thread");
    let ran = |start: u64, back: u64| -> Result<Vec<i32>> {
        let data = TypedBuffer::from_slice(&device, &[10i32, 20, 30, 40, 50])?;
        let (from, to) = (
            Argument::Buffer(data.buffer().clone()),
            Argument::Part(data.buffer().clone(), start),
        );
        let launch = Launch::new(1, 2, vec![from, to, Argument::Scalar(Type::I64, back)]);
        queue
            .submit(Command::Launch(program.clone(), launch), &[])
            .wait()?;
        data.read(queue.as_ref())
    };
    assert_eq!(ran(2, 0).expect("right"), [10, 20, 10, 20, 50]);
    // What is before the parameter is in its buffer still.
    assert_eq!(ran(3, 1).expect("right"), [10, 20, 10, 20, 50]);
    let error = |start, back| ran(start, back).expect_err("wrong").to_string();
    assert!(
        ran(1, 0).is_err(),
        "one work-item reads what the other one writes"
    );
    assert!(error(4, 0).contains("out of bounds"), "{}", error(4, 0));
    assert!(error(0, 1).contains("out of bounds"), "{}", error(0, 1));
    assert!(
        error(6, 0).contains("6 elements into a buffer of 5"),
        "{}",
        error(6, 0)
    );
}

#[test]
fn of_a_launch_its_first_work_groups_can_be_run_alone() {
    let device = Simulator::untimed();
    let program = program(&device, &INCREMENT.replace("id.local.x", "id.group.x"));
    let queue = device.queue().expect("a thread");
    for (first, expected) in [(0, [1, 1, 1]), (2, [2, 2, 1]), (9, [2, 2, 2])] {
        let data = TypedBuffer::from_slice(&device, &[1i32, 1, 1]).expect("fits");
        let arguments = vec![
            Argument::Buffer(data.buffer().clone()),
            Argument::Scalar(Type::I32, 1),
        ];
        let launch = Launch {
            first_groups: Some(first),
            ..Launch::new(3, 1, arguments)
        };
        assert!(launch.check_whole().is_err(), "a device runs all or nothing");
        let ran = queue.submit(Command::Launch(program.clone(), launch), &[]).wait();
        assert!(ran.is_ok(), "{ran:?}");
        assert_eq!(data.read(queue.as_ref()).expect("written"), expected);
    }
}

#[test]
fn an_error_belongs_to_its_command_and_to_those_after_it() {
    let device = Simulator::untimed();
    let program = program(&device, INCREMENT);
    let queue = device.queue().expect("a thread");
    let data = TypedBuffer::from_slice(&device, &[1i32]).expect("fits");
    let launch = |group: u32| {
        let data = Argument::Buffer(data.buffer().clone());
        let launch = Launch::new(1, group, vec![data, Argument::Scalar(Type::I32, 1)]);
        Command::Launch(program.clone(), launch)
    };
    let bad = queue.submit(launch(2), &[]);
    let after = queue.submit(launch(1), std::slice::from_ref(&bad));
    let independent = queue.submit(launch(1), &[]);
    let error = bad.wait().expect_err("one element for two work-items");
    assert!(error.to_string().contains("out of bounds"), "{error}");
    assert_eq!(after.wait().expect_err("its event failed"), error);
    assert!(independent.wait().is_ok());
}

#[test]
fn memory_is_limited_and_given_back() {
    let device = Simulator::untimed();
    let huge = |length| TypedBuffer::<u8>::from_pattern(&device, length, Pattern::Constant(0));
    let first = huge((1 << 38) - 10).expect("fits exactly, with room for ten bytes");
    let error = huge(11).expect_err("eleven are too many");
    assert_eq!(error.exit_status(), 3);
    drop(first);
    assert!(huge(11).is_ok());
    // A checker of its own kind holds the data of several launches.
    let device = Simulator::custom(device.description().clone(), Options::CHECKING, None);
    let huge = |length| TypedBuffer::<u8>::from_pattern(&device, length, Pattern::Constant(0));
    let _several = [1 << 38, 1 << 38].map(|length| huge(length).expect("each fits"));
    let error = huge((1 << 38) + 1).expect_err("more than there is");
    assert_eq!(error.exit_status(), 3);
}

#[test]
fn a_checker_of_its_own_kind_has_run_what_was_submitted() {
    let device = Simulator::custom(
        Simulator::untimed().description().clone(),
        Options::CHECKING,
        None,
    );
    let program = program(&device, INCREMENT);
    let queue = device.queue().expect("a queue");
    let data = TypedBuffer::from_slice(&device, &[1i32; 8]).expect("fits");
    let add = |by: u64| {
        let arguments = vec![
            Argument::Buffer(data.buffer().clone()),
            Argument::Scalar(Type::I32, by),
        ];
        queue.submit(
            Command::Launch(program.clone(), Launch::new(1, 8, arguments)),
            &[],
        )
    };
    let events = [add(2), add(3)];
    assert!(events.iter().all(crate::device::Event::has_ended));
    assert_eq!(data.read(queue.as_ref()).expect("read"), [6; 8]);
}

#[test]
fn launches_are_checked_before_they_run() {
    let device = Simulator::untimed();
    let program = program(&device, INCREMENT);
    let queue = device.queue().expect("a thread");
    let data = TypedBuffer::from_slice(&device, &[1i32; 8]).expect("fits");
    let buffer = || Argument::Buffer(data.buffer().clone());
    let number = || Argument::Scalar(Type::I32, 1);
    let error = |launch: Launch| {
        let event = queue.submit(Command::Launch(program.clone(), launch), &[]);
        event.wait().expect_err("not a launch").to_string()
    };
    assert_eq!(
        error(Launch::new(1, 8, vec![buffer()])),
        "`increment` was given 1 arguments; it takes 2"
    );
    assert_eq!(
        error(Launch::new(1, 8, vec![number(), number()])),
        "parameter `data` was given `i32`; it takes a buffer of `i32`"
    );
    assert_eq!(
        error(Launch::new(1, 8, vec![buffer(), Argument::Scalar(Type::I64, 1)])),
        "parameter `by` was given `i64`; it takes `i32`"
    );
    assert_eq!(
        error(Launch::new(1, 2048, vec![buffer(), number()])),
        "a work-group of 2048 work-items is too large for sim; at most 1024 work-items, 1024×1024×64 along the dimensions"
    );
    assert_eq!(
        error(Launch::new(0, 8, vec![buffer(), number()])),
        "a launch of 0 work-groups of 8 work-items is empty; every dimension is at least 1"
    );
    let mut launch = Launch::new(1, 8, vec![buffer(), number()]);
    launch.sub_group_size = Some(64);
    assert_eq!(
        error(launch),
        "sim has no sub-groups of 64 work-items; it has 8, 16, 32"
    );
}

/// Says that each launch takes as long as its first argument's first element, and spoils that.
struct Spoiling;

impl Clock for Spoiling {
    fn compile(&self, kernel: &Arc<Kernel>) -> Result<Arc<dyn Any + Send + Sync>> {
        Ok(Arc::new(kernel.name.clone()))
    }

    fn time(
        &self,
        _kernel: &Arc<Kernel>,
        compiled: &Arc<dyn Any + Send + Sync>,
        launch: &Launch,
        _stack: u32,
    ) -> Result<Timing> {
        assert!(compiled.downcast_ref::<String>().is_some());
        let Some(Argument::Buffer(buffer)) = launch.arguments.first() else {
            return Err(Error::bug("the launch has a buffer"));
        };
        let memory: Arc<BufferMemory> = buffer.implementation()?;
        let mut bytes = [0; 4];
        memory.copy_out(0, &mut bytes)?;
        memory.copy_in(0, &[0xff; 4]);
        Ok(Timing {
            elapsed_ns: f64::from(i32::from_le_bytes(bytes)),
            ..Timing::default()
        })
    }
}

#[test]
fn the_clock_sees_the_inputs_and_changes_nothing() {
    let description = Simulator::untimed().description().clone();
    let device = Simulator::custom(description, Options::FAST, Some(Arc::new(Spoiling)));
    let program = program(&device, INCREMENT);
    let queue = device.queue().expect("a thread");
    let data = TypedBuffer::from_slice(&device, &[5i32]).expect("fits");
    let mut ends = Vec::new();
    for _ in 0..2 {
        let arguments = vec![
            Argument::Buffer(data.buffer().clone()),
            Argument::Scalar(Type::I32, 2),
        ];
        let event = queue.submit(
            Command::Launch(program.clone(), Launch::new(1, 1, arguments)),
            &[],
        );
        ends.push(event.wait().expect("runs").times.ended_ns);
    }
    assert_eq!(ends, [5.0, 12.0]);
    assert_eq!(data.read(queue.as_ref()).expect("written"), [9]);
}
