//! An application with a Vulkan device of its own, made with ash and nothing else, under validation. A message, or
//! anything left behind on its device, fails the test.

use std::ffi::{CStr, c_void};
use std::sync::{Arc, Mutex};

use ash::vk;
use tidemill::interop::{
    DeviceNeeds, HostBuffer, HostDevice, HostHandles, QueueLock, SemaphorePoint, alone_at_the_loader,
};
use tidemill::{Accelerator, Config, Prewarm};

/// What a device is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// With all that Tidemill can use.
    Full,
    /// With what Tidemill can't do without.
    Needed,
    /// With nothing for Tidemill.
    Bare,
}

/// Messages of the validation layer.
type Messages = Mutex<Vec<String>>;

/// The application.
pub struct Host {
    pub device: ash::Device,
    pub queue: vk::Queue,
    pub lock: Arc<Mutex<()>>,
    pub family: u32,
    pub debug_utils: bool,
    made: Made,
    physical: vk::PhysicalDevice,
    pool: vk::CommandPool,
    /// For waiting for its own work.
    timeline: vk::Semaphore,
    reached: Mutex<u64>,
    messages: Box<Messages>,
    messenger: Option<(ash::ext::debug_utils::Instance, vk::DebugUtilsMessengerEXT)>,
    instance: ash::Instance,
    entry: ash::Entry,
}

unsafe extern "system" fn on_message(
    _: vk::DebugUtilsMessageSeverityFlagsEXT,
    _: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    messages: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: the host's messages outlive the messenger, and the layer gives a valid text.
    let (messages, text) = unsafe { (&*messages.cast::<Messages>(), CStr::from_ptr((*data).p_message)) };
    messages.lock().unwrap().push(text.to_string_lossy().into_owned());
    vk::FALSE
}

impl Host {
    pub fn new(made: Made) -> Host {
        Host::with(made, true)
    }

    /// Without debug utils no message is heard, so only for what other tests do under validation.
    pub fn with(made: Made, debug_utils: bool) -> Host {
        // SAFETY: plain Vulkan with valid handles throughout; structs point to locals.
        unsafe {
            let entry = ash::Entry::load().expect("the tests need a Vulkan loader");
            let app = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
            let layers = [c"VK_LAYER_KHRONOS_validation".as_ptr()];
            let extensions = [ash::ext::debug_utils::NAME.as_ptr()];
            let messages: Box<Messages> = Box::default();
            let enabled = [vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION];
            let mut features = vk::ValidationFeaturesEXT::default().enabled_validation_features(&enabled);
            let mut messenger = vk::DebugUtilsMessengerCreateInfoEXT::default()
                .message_severity(
                    vk::DebugUtilsMessageSeverityFlagsEXT::WARNING
                        | vk::DebugUtilsMessageSeverityFlagsEXT::ERROR,
                )
                .message_type(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION)
                .pfn_user_callback(Some(on_message))
                .user_data((&raw const *messages).cast_mut().cast());
            let mut info = vk::InstanceCreateInfo::default().application_info(&app);
            if debug_utils {
                info = info.enabled_layer_names(&layers).enabled_extension_names(&extensions);
                info = info.push_next(&mut features).push_next(&mut messenger);
            }
            // Other tests name objects meanwhile.
            let instance = alone_at_the_loader(|| entry.create_instance(&info, None));
            let instance = instance.expect("an instance with validation");
            let messenger = debug_utils.then(|| {
                let utils = ash::ext::debug_utils::Instance::new(&entry, &instance);
                messenger.p_next = std::ptr::null();
                let messenger = utils.create_debug_utils_messenger(&messenger, None).unwrap();
                (utils, messenger)
            });
            let physical = alone_at_the_loader(|| instance.enumerate_physical_devices()).unwrap()[0];
            let families = instance.get_physical_device_queue_family_properties(physical);
            let family = families.iter().position(|f| f.queue_flags.contains(vk::QueueFlags::COMPUTE));
            let family = family.unwrap() as u32;
            let device = make_device(&instance, physical, family, made, |info| {
                alone_at_the_loader(|| instance.create_device(physical, info, None)).unwrap()
            });
            let queue = device.get_device_queue(family, 0);
            let pool = vk::CommandPoolCreateInfo::default().queue_family_index(family);
            let pool = device.create_command_pool(&pool, None).unwrap();
            let timeline = if made == Made::Bare { vk::Semaphore::null() } else { new_timeline(&device) };
            Host {
                queue,
                lock: Arc::default(),
                family,
                debug_utils,
                made,
                physical,
                pool,
                timeline,
                reached: Mutex::new(0),
                device,
                messages,
                messenger,
                instance,
                entry,
            }
        }
    }

    pub fn needs(&self) -> DeviceNeeds {
        // SAFETY: the handles are valid.
        unsafe { DeviceNeeds::of(&self.instance, self.physical) }
    }

    /// What the validation layer has said so far; for a test that provokes it.
    pub fn take_messages(&self) -> Vec<String> {
        std::mem::take(&mut *self.messages.lock().unwrap())
    }

    pub fn handles(&self) -> HostHandles {
        HostHandles {
            entry: self.entry.clone(),
            instance: self.instance.clone(),
            api_version: vk::API_VERSION_1_3,
            physical_device: self.physical,
            device: self.device.clone(),
            queue_family: self.family,
            queue: self.queue,
        }
    }

    /// What `Accelerator::from_raw` takes.
    pub fn offer(&self, handles: HostHandles, lock: Arc<dyn QueueLock>) -> HostDevice {
        // SAFETY: hosts make and destroy what is theirs alone at the loader.
        unsafe { self.offer_unquiet(handles, lock).quiet() }
    }

    /// The same, without a word about what else happens at the loader.
    pub fn offer_unquiet(&self, handles: HostHandles, lock: Arc<dyn QueueLock>) -> HostDevice {
        let (instance, physical) = (&self.instance, self.physical);
        make_device(instance, physical, self.family, self.made, |info| {
            // SAFETY: the device was made with just that; the host keeps it until it is dropped, and takes the lock.
            unsafe { HostDevice::new(handles, info, lock) }.debug_utils(self.debug_utils)
        })
    }

    pub fn accelerator(&self) -> Accelerator {
        self.accelerator_with(&config())
    }

    pub fn accelerator_with(&self, config: &Config) -> Accelerator {
        Accelerator::from_raw(self.offer(self.handles(), self.lock.clone()), config).unwrap()
    }

    /// A point on a semaphore of the host's.
    pub fn point(&self, semaphore: vk::Semaphore, value: u64) -> SemaphorePoint {
        // SAFETY: the tests keep to it.
        unsafe { SemaphorePoint::new(semaphore, value) }
    }

    pub fn semaphore(&self) -> vk::Semaphore {
        new_timeline(&self.device)
    }

    pub fn destroy_semaphore(&self, semaphore: vk::Semaphore) {
        let _turn = self.lock.lock().unwrap();
        // lavapipe (Mesa 22.3) touches a semaphore that a submission has waited for once more after that submission has
        // completed, and crashes if it is gone.
        // SAFETY: a valid queue, under its lock.
        unsafe { self.device.queue_wait_idle(self.queue) }.unwrap();
        // SAFETY: nothing pending uses it.
        unsafe { self.device.destroy_semaphore(semaphore, None) };
    }

    pub fn signal(&self, semaphore: vk::Semaphore, value: u64) {
        let info = vk::SemaphoreSignalInfo::default().semaphore(semaphore).value(value);
        // SAFETY: a valid timeline semaphore.
        unsafe { self.device.signal_semaphore(&info) }.unwrap();
    }

    pub fn value(&self, semaphore: vk::Semaphore) -> u64 {
        // SAFETY: a valid timeline semaphore.
        unsafe { self.device.get_semaphore_counter_value(semaphore) }.unwrap()
    }

    /// Waits for a value of a timeline semaphore.
    pub fn wait(&self, semaphore: vk::Semaphore, value: u64) {
        let (semaphores, values) = ([semaphore], [value]);
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        // SAFETY: a valid timeline semaphore.
        unsafe { self.device.wait_semaphores(&info, 20_000_000_000) }.expect("signalled within 20 s");
    }

    /// A command buffer that is being recorded.
    pub fn begin(&self) -> vk::CommandBuffer {
        let info = vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(1);
        // SAFETY: one thread uses the pool at a time.
        let commands = unsafe { self.device.allocate_command_buffers(&info) }.unwrap()[0];
        let info = vk::CommandBufferBeginInfo::default();
        // SAFETY: a fresh command buffer.
        unsafe { self.device.begin_command_buffer(commands, &info) }.unwrap();
        commands
    }

    /// Ends and submits a command buffer, under the lock.
    pub fn submit(
        &self,
        commands: vk::CommandBuffer,
        waits: &[(vk::Semaphore, u64)],
        signals: &[(vk::Semaphore, u64)],
    ) {
        let points = |points: &[(vk::Semaphore, u64)]| -> Vec<_> {
            let point = |&(semaphore, value): &(vk::Semaphore, u64)| {
                vk::SemaphoreSubmitInfo::default()
                    .semaphore(semaphore)
                    .value(value)
                    .stage_mask(vk::PipelineStageFlags2::ALL_COMMANDS)
            };
            points.iter().map(point).collect()
        };
        let (waits, signals) = (points(waits), points(signals));
        let buffers = [vk::CommandBufferSubmitInfo::default().command_buffer(commands)];
        let info = vk::SubmitInfo2::default()
            .wait_semaphore_infos(&waits)
            .command_buffer_infos(&buffers)
            .signal_semaphore_infos(&signals);
        // SAFETY: a command buffer that is being recorded.
        unsafe { self.device.end_command_buffer(commands) }.unwrap();
        let _guard = self.lock.lock().unwrap();
        // SAFETY: valid handles; the lock is held.
        unsafe { self.device.queue_submit2(self.queue, &[info], vk::Fence::null()) }.unwrap();
    }

    /// Records, submits and waits.
    pub fn run(&self, waits: &[(vk::Semaphore, u64)], record: impl FnOnce(vk::CommandBuffer)) {
        let commands = self.begin();
        record(commands);
        let value = {
            let mut reached = self.reached.lock().unwrap();
            *reached += 1;
            *reached
        };
        self.submit(commands, waits, &[(self.timeline, value)]);
        self.wait(self.timeline, value);
    }

    /// A buffer in memory that the host sees.
    pub fn buffer(&self, bytes: u64, usage: vk::BufferUsageFlags) -> Shared<'_> {
        let info = vk::BufferCreateInfo::default().size(bytes).usage(usage);
        // SAFETY: plain Vulkan with valid handles throughout.
        unsafe {
            let buffer = self.device.create_buffer(&info, None).unwrap();
            let requirements = self.device.get_buffer_memory_requirements(buffer);
            let types = self.instance.get_physical_device_memory_properties(self.physical);
            let wanted = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
            let fits = |i: &u32| {
                requirements.memory_type_bits & (1 << i) != 0
                    && types.memory_types[*i as usize].property_flags.contains(wanted)
            };
            let index = (0..types.memory_type_count).find(fits).unwrap();
            let info =
                vk::MemoryAllocateInfo::default().allocation_size(requirements.size).memory_type_index(index);
            let memory = self.device.allocate_memory(&info, None).unwrap();
            self.device.bind_buffer_memory(buffer, memory, 0).unwrap();
            let mapped =
                self.device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()).unwrap();
            Shared { host: self, raw: buffer, memory, mapped: mapped.cast(), bytes, usage }
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: nothing of the accelerator's is left, and nothing is pending.
        unsafe {
            if !std::thread::panicking() {
                self.device.device_wait_idle().unwrap();
            }
            if self.made != Made::Bare {
                self.device.destroy_semaphore(self.timeline, None);
            }
            self.device.destroy_command_pool(self.pool, None);
            // The layer names every object that is left.
            alone_at_the_loader(|| self.device.destroy_device(None));
            if let Some((utils, messenger)) = self.messenger.take() {
                utils.destroy_debug_utils_messenger(messenger, None);
            }
            alone_at_the_loader(|| self.instance.destroy_instance(None));
        }
        let messages = self.messages.lock().unwrap();
        if !std::thread::panicking() {
            assert!(messages.is_empty(), "validation says:\n{}", messages.join("\n\n"));
        }
    }
}

/// With memory checks, and without files or background work.
pub fn config() -> Config {
    Config::new().memory_checks(true).no_cache().prewarm(Prewarm::Off)
}

fn new_timeline(device: &ash::Device) -> vk::Semaphore {
    let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
    let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
    // SAFETY: the device has timeline semaphores enabled.
    unsafe { device.create_semaphore(&info, None) }.unwrap()
}

/// What the device is made with, given to the code that makes it or describes it.
fn make_device<T>(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
    family: u32,
    made: Made,
    use_it: impl FnOnce(&vk::DeviceCreateInfo<'_>) -> T,
) -> T {
    // SAFETY: the handles are valid.
    let needs = unsafe { DeviceNeeds::of(instance, physical) };
    assert!(needs.missing().is_empty(), "{:?}", needs.missing());
    let priorities = [1.0];
    let queues =
        [vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&priorities)];
    let mut core = vk::PhysicalDeviceFeatures::default();
    let (mut v11, mut v12, mut v13) = Default::default();
    let mut extensions = Vec::new();
    match made {
        Made::Full => {
            needs.enable(&mut core, &mut v11, &mut v12, &mut v13);
            extensions.extend(needs.extensions().iter().map(|name| name.as_ptr()));
        }
        Made::Needed => {
            v12.timeline_semaphore = vk::TRUE;
            v13.synchronization2 = vk::TRUE;
            v13.maintenance4 = vk::TRUE;
        }
        Made::Bare => {}
    }
    let info = vk::DeviceCreateInfo::default()
        .queue_create_infos(&queues)
        .enabled_extension_names(&extensions)
        .enabled_features(&core)
        .push_next(&mut v11)
        .push_next(&mut v12)
        .push_next(&mut v13);
    use_it(&info)
}

/// A buffer of the host's with its memory.
pub struct Shared<'h> {
    host: &'h Host,
    pub raw: vk::Buffer,
    memory: vk::DeviceMemory,
    mapped: *mut f32,
    bytes: u64,
    usage: vk::BufferUsageFlags,
}

impl Shared<'_> {
    /// Contents as the host sees them; nothing pending may use the buffer.
    pub fn read(&self) -> Vec<f32> {
        // SAFETY: the mapping spans the buffer, and nothing pending writes it.
        unsafe { std::slice::from_raw_parts(self.mapped, self.bytes as usize / 4) }.to_vec()
    }

    /// Writes the contents; nothing pending may use the buffer.
    pub fn write(&self, data: &[f32]) {
        assert!(data.len() * 4 <= self.bytes as usize);
        // SAFETY: the mapping spans the buffer, and nothing pending uses it.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), self.mapped, data.len()) };
    }

    /// A range of it, for Tidemill.
    pub fn range(&self, offset_bytes: u64, size_bytes: u64) -> HostBuffer {
        // SAFETY: the tests keep to it.
        unsafe { HostBuffer::new(self.raw, self.usage, offset_bytes, size_bytes) }
    }
}

impl Drop for Shared<'_> {
    fn drop(&mut self) {
        // SAFETY: nothing pending uses them.
        unsafe {
            self.host.device.destroy_buffer(self.raw, None);
            self.host.device.free_memory(self.memory, None);
        }
    }
}
