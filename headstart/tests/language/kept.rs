//! One OpenCL device for all tests, which compiles each kernel once: the conformance list runs every test a second time,
//! and the runtime's compiler takes longer than all the rest.

use std::sync::{Arc, OnceLock};

use headstart::Result;
use headstart::device::opencl::device::OpenClDevice;
use headstart::device::{
    Allocation, Buffer, Cache, Description, Device, Fill, Image, Images, Program, Queue,
};
use headstart::ir::{Kernel, Type};

/// The first OpenCL device, opened once.
///
/// # Errors
/// There is none.
pub fn opencl() -> Result<Box<dyn Device>> {
    static DEVICE: OnceLock<Result<Kept>> = OnceLock::new();
    let open = || {
        let (device, cache) = (Arc::new(OpenClDevice::open(0)?), Arc::new(Cache::new()));
        Ok(Kept { device, cache })
    };
    Ok(Box::new(DEVICE.get_or_init(open).clone()?))
}

/// A device with what it has compiled.
#[derive(Clone)]
struct Kept {
    device: Arc<OpenClDevice>,
    cache: Arc<Cache>,
}

impl Device for Kept {
    fn description(&self) -> &Description {
        self.device.description()
    }

    fn allocate(&self, element: Type, length: u64, fill: Fill) -> Result<Buffer> {
        self.device.allocate(element, length, fill)
    }

    fn allocate_as(&self, allocation: Allocation, element: Type, length: u64, fill: Fill) -> Result<Buffer> {
        self.device.allocate_as(allocation, element, length, fill)
    }

    fn sub_devices(&self) -> Result<Vec<Box<dyn Device>>> {
        self.device.sub_devices()
    }

    fn compile(&self, kernel: &Arc<Kernel>) -> Result<Program> {
        self.cache.compile(&*self.device, kernel)
    }

    fn image(&self, program: &Program) -> Result<Option<Image>> {
        self.device.image(program)
    }

    fn load(&self, kernel: &Arc<Kernel>, images: &Images) -> Result<Program> {
        self.device.load(kernel, images)
    }

    fn queue(&self) -> Result<Box<dyn Queue>> {
        self.device.queue()
    }
}
