//! A window in which two chemicals react and diffuse (Gray-Scott): Tidemill computes on the application's own device,
//! and the application draws from the tensor's memory. No pixel passes through the CPU.
//!
//! cargo run --release -p embed_window [-- --frames N]
//!
//! With `--frames N` it ends by itself after N frames and says whether the picture has moved.

#![allow(unsafe_code, reason = "the host's side is plain Vulkan")]
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "the host's side is plain Vulkan")]

mod screen;

use std::error::Error;

use screen::Screen;
use tidemill::interop::TensorBuffer;
use tidemill::{Accelerator, Config, Conv2d, DType, PreparedWeights, Recording, Tensor, Value};
use winit::application::ApplicationHandler;
use winit::dpi::LogicalSize;
use winit::event::WindowEvent;
use winit::event_loop::{ActiveEventLoop, ControlFlow, EventLoop};
use winit::window::{Window, WindowId};

/// Width and height of the picture.
const SIDE: usize = 160;
/// Steps of the simulation per frame.
const STEPS: usize = 12;
const FEED: f32 = 0.037;
const KILL: f32 = 0.06;

/// The simulation: two concentrations, and the picture of them.
struct Simulation {
    gpu: Accelerator,
    laplace: PreparedWeights,
    u: Tensor,
    v: Tensor,
}

impl Simulation {
    fn new(gpu: Accelerator) -> tidemill::Result<Simulation> {
        let stencil = [0.05f32, 0.2, 0.05, 0.2, -1.0, 0.2, 0.05, 0.2, 0.05];
        let laplace = gpu.prepare_weights(&gpu.upload(&stencil, [1, 1, 3, 3])?, 1)?;
        // Full of one chemical, with a few drops of the other.
        let drops = [(0.3, 0.3), (0.65, 0.4), (0.45, 0.7), (0.8, 0.8), (0.2, 0.75)];
        let in_drop = |i: usize| {
            let (x, y) = ((i % SIDE) as f32 / SIDE as f32, (i / SIDE) as f32 / SIDE as f32);
            drops.iter().any(|(a, b)| (x - a).powi(2) + (y - b).powi(2) < 0.002)
        };
        let shape = [1, 1, SIDE, SIDE];
        let pixels = 0..SIDE * SIDE;
        let u =
            gpu.upload_with(shape, |f| f.extend(pixels.clone().map(|i| if in_drop(i) { 0.5 } else { 1.0 })))?;
        let v =
            gpu.upload_with(shape, |f| f.extend(pixels.map(|i| if in_drop(i) { 0.25f32 } else { 0.0 })))?;
        Ok(Simulation { gpu, laplace, u, v })
    }

    /// One frame in one submission: some steps, and the picture of where they lead. Waits for nothing.
    fn advance(&mut self) -> tidemill::Result<Tensor> {
        let r = self.gpu.begin_recording()?;
        let (mut u, mut v) = (r.reshape(&self.u, self.u.shape())?, r.reshape(&self.v, self.v.shape())?);
        for _ in 0..STEPS {
            (u, v) = self.step(&r, u, v)?;
        }
        let picture = picture(&r, u, v)?;
        (self.u, self.v) = (r.keep(u)?, r.keep(v)?);
        let picture = r.keep(picture)?;
        drop(r.end_recording()?);
        Ok(picture)
    }

    fn step(&self, r: &Recording, u: Value, v: Value) -> tidemill::Result<(Value, Value)> {
        let same_size = || Conv2d::new().padding([1, 1]);
        let (spread_u, spread_v) =
            (r.conv2d_with(u, &self.laplace, same_size())?, r.conv2d_with(v, &self.laplace, same_size())?);
        let reaction = r.mul(u, v)?;
        let reaction = r.mul(reaction, v)?;
        // u + lap u - u v v + feed (1 - u)
        let fed = r.scale(u, 1.0 - FEED)?;
        let fed = r.add_scalar(fed, FEED)?;
        let next_u = r.add(fed, spread_u)?;
        let next_u = r.sub(next_u, reaction)?;
        // v + lap v / 2 + u v v - (feed + kill) v
        let left = r.scale(v, 1.0 - FEED - KILL)?;
        let spread_v = r.scale(spread_v, 0.5)?;
        let next_v = r.add(left, spread_v)?;
        let next_v = r.add(next_v, reaction)?;
        Ok((next_u, next_v))
    }
}

/// A pixel is 0xRRGGBB in 32 bits: red where they react, blue where nothing is left of the first one.
fn picture(r: &Recording, u: Value, v: Value) -> tidemill::Result<Value> {
    let channel = |r: &Recording, of: Value, scale: f32, shift: f32| -> tidemill::Result<Value> {
        let x = r.scale(of, scale)?;
        let x = r.clip(x, 0.0, 255.0)?;
        let x = r.floor(x)?;
        r.scale(x, shift)
    };
    let red = channel(r, v, 900.0, 65536.0)?;
    let green = channel(r, u, 200.0, 256.0)?;
    let blue = channel(r, v, 400.0, 1.0)?;
    // Below 2^24, so whole numbers are exact.
    let pixel = r.add(red, green)?;
    let pixel = r.add(pixel, blue)?;
    let pixel = r.reshape(pixel, [SIDE, SIDE])?;
    r.cast(pixel, DType::U32)
}

/// The application.
#[derive(Default)]
struct App {
    /// Ends after this many.
    frames: Option<u64>,
    drawn: u64,
    first: Option<Tensor>,
    last: Option<Tensor>,
    // Dropped in this order: the tensors' memory before the accelerator, that before the device, that before the
    // window.
    simulation: Option<Simulation>,
    screen: Option<Screen>,
    window: Option<Window>,
    failure: Option<Box<dyn Error>>,
}

impl App {
    fn start(&mut self, events: &ActiveEventLoop) -> Result<(), Box<dyn Error>> {
        let size = LogicalSize::new(3 * SIDE as u32, 3 * SIDE as u32);
        let window = events
            .create_window(Window::default_attributes().with_title("tidemill").with_inner_size(size))?;
        let (screen, host) = Screen::new(&window, SIDE as u32)?;
        let gpu = Accelerator::from_raw(host, &Config::new())?;
        println!("drawing on {}", gpu.device().name);
        self.simulation = Some(Simulation::new(gpu)?);
        self.screen = Some(screen);
        self.window = Some(window);
        Ok(())
    }

    fn draw(&mut self) -> Result<(), Box<dyn Error>> {
        let (Some(simulation), Some(screen), Some(window)) =
            (&mut self.simulation, &mut self.screen, &self.window)
        else {
            return Ok(());
        };
        let picture = simulation.advance()?;
        // The screen holds the memory until it has drawn from it; the next frame's picture is put elsewhere.
        let memory: TensorBuffer = picture.raw_buffer()?;
        let size = window.inner_size();
        screen.draw(memory, [size.width, size.height])?;
        self.drawn += 1;
        self.first.get_or_insert_with(|| picture.clone());
        self.last = Some(picture);
        Ok(())
    }

    /// Puts everything away, and says what the run has shown.
    fn finish(mut self) -> Result<(), Box<dyn Error>> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let (Some(first), Some(last)) = (self.first.take(), self.last.take()) else { return Ok(()) };
        let (before, after) = (first.read::<u32>()?, last.read::<u32>()?);
        // By the red of a pixel: less than that is the flicker of a last digit.
        let red = |pixel: &u32| pixel >> 16;
        let moved = before.iter().zip(&after).filter(|(a, b)| red(a).abs_diff(red(b)) > 16).count();
        drop((first, last));
        if let Some(screen) = &mut self.screen {
            screen.let_go()?;
        }
        if let Some(Simulation { gpu, laplace, u, v }) = self.simulation.take() {
            drop((laplace, u, v));
            // Nothing of ours is left on the device after this.
            gpu.close()?;
        }
        println!("{} frames, {moved} of {} pixels have moved", self.drawn, SIDE * SIDE);
        if self.frames.is_some_and(|frames| frames > 1) && moved < SIDE * SIDE / 100 {
            return Err("the picture stands still".into());
        }
        Ok(())
    }
}

impl ApplicationHandler for App {
    fn resumed(&mut self, events: &ActiveEventLoop) {
        if self.window.is_none()
            && let Err(error) = self.start(events)
        {
            self.failure = Some(error);
            events.exit();
        }
    }

    fn window_event(&mut self, events: &ActiveEventLoop, _: WindowId, event: WindowEvent) {
        match event {
            WindowEvent::CloseRequested => events.exit(),
            WindowEvent::RedrawRequested => {
                if let Err(error) = self.draw() {
                    self.failure = Some(error);
                    events.exit();
                }
                if self.frames.is_some_and(|frames| self.drawn >= frames) {
                    events.exit();
                }
            }
            _ => {}
        }
    }

    fn about_to_wait(&mut self, _: &ActiveEventLoop) {
        if let Some(window) = &self.window {
            window.request_redraw();
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let frames = match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => None,
        (Some("--frames"), Some(n)) => Some(n.parse()?),
        _ => return Err("usage: embed_window [--frames N]".into()),
    };
    let events = EventLoop::new()?;
    events.set_control_flow(ControlFlow::Poll);
    let mut app = App { frames, ..App::default() };
    events.run_app(&mut app)?;
    app.finish()
}
