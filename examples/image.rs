//! A photograph's way through the device: 1080p, four bytes a pixel. Blur, Sobel edges, a histogram, automatic
//! contrast, and back to bytes. All of it is one recording, and the bounds of the contrast never leave the device.
//!
//! cargo run --release --example image [--json] [PNG]
//!
//! It writes a picture: the photograph with its new contrast on the left, its edges on the right. Every byte is
//! compared with that of a loop on the CPU's threads; one that is off by more than a level is an error of the program.

use std::io::Write;
use std::time::Instant;

use tidemill::{Accelerator, Conv2d, DType, Plan, Recording, Result, Tensor, Value};

const WIDTH: usize = 1920;
const HEIGHT: usize = 1080;
const PIXELS: usize = WIDTH * HEIGHT;
/// Of the pixels, this share may become black, and as many white.
const CLIPPED: usize = PIXELS / 100;
const BLUR: [f32; 5] = [1.0, 4.0, 6.0, 4.0, 1.0];
const SOBEL: [f32; 9] = [-1.0, 0.0, 1.0, -2.0, 0.0, 2.0, -1.0, 0.0, 1.0];

/// A dim scene: a sky, some discs, noise.
fn photograph() -> Vec<u8> {
    let pixel = |i: usize| {
        let (x, y) = ((i % WIDTH) as i32, (i / WIDTH) as i32);
        let disc = [(500, 400, 220), (1300, 600, 330), (900, 850, 120)]
            .iter()
            .position(|(cx, cy, r)| (x - cx).pow(2) + (y - cy).pow(2) < r * r);
        let noise = (i as u32).wrapping_mul(0x9e37_79b9) >> 29;
        let base = match disc {
            Some(k) => [[150, 90, 70], [80, 140, 90], [160, 150, 110]][k],
            None => [60 + y as u32 / 24, 70 + y as u32 / 18, 110 - y as u32 / 30],
        };
        [base[0] + noise, base[1] + noise, base[2] + noise, 255].map(|c| c as u8)
    };
    (0..PIXELS).flat_map(pixel).collect()
}

/// The recording: the photograph with its new contrast, and its edges.
fn record(
    r: &Recording,
    photo: &Tensor,
    blur: &Tensor,
    sobel: &Tensor,
    shares: &Tensor,
) -> Result<[Value; 2]> {
    // Brightness in integers below 2^16 over 256: exact as f32, whatever the order.
    let channel = |k: usize, weight: f32| -> Result<Value> {
        let bytes = r.slice(photo, (.., .., k..=k))?;
        r.scale(r.cast(bytes, DType::F32)?, weight / 256.0)
    };
    let brightness = r.add(r.add(channel(0, 77.0)?, channel(1, 150.0)?)?, channel(2, 29.0)?)?;
    let image = r.reshape(brightness, [1, 1, HEIGHT, WIDTH])?;
    let blurred = r.cast(r.conv2d_with(image, blur, Conv2d::new().padding([2, 2]))?, DType::U8)?;

    let smooth = r.cast(blurred, DType::F32)?;
    let slopes = r.conv2d_with(smooth, sobel, Conv2d::new().padding([1, 1]))?;
    let edges = r.cast(r.scale(r.sum(r.abs(slopes)?, 1)?, 2.0f32)?, DType::U8)?;

    // The levels between which all but the clipped pixels lie.
    let histogram = r.bincount(blurred, 256)?;
    let below = r.cumsum(histogram, 0)?;
    let levels = r.cast(r.searchsorted(below, shares, true)?, DType::F32)?;
    let (low, high) = (r.slice(levels, 0..1)?, r.slice(levels, 1..2)?);
    let factor = r.div(255.0, r.max(r.sub(high, low)?, 1.0)?)?;

    let colours = r.cast(r.slice(photo, (.., .., ..3))?, DType::F32)?;
    let stretched = r.cast(r.mul(r.sub(colours, low)?, factor)?, DType::U8)?;
    let opacity = r.slice(photo, (.., .., 3..))?;
    Ok([r.concat([stretched, opacity], 2)?, r.reshape(edges, [HEIGHT, WIDTH])?])
}

/// Fills lines of a result on all threads.
fn lines<T: Send>(out: &mut [T], length: usize, fill: impl Fn(usize, &mut [T]) + Sync) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let rows = (out.len() / length).div_ceil(threads);
    std::thread::scope(|scope| {
        for (k, part) in out.chunks_mut(rows * length).enumerate() {
            let fill = &fill;
            scope.spawn(move || {
                part.chunks_mut(length).enumerate().for_each(|(row, line)| fill(k * rows + row, line))
            });
        }
    });
}

/// What weights make of the neighbours of a pixel; outside of the image is black.
fn neighbours(
    image: &[f32],
    (x, y): (usize, usize),
    side: usize,
    weight: impl Fn(usize, usize) -> f32,
) -> f32 {
    let mut sum = 0.0;
    for dy in 0..side {
        for dx in 0..side {
            let (from_x, from_y) = ((x + dx).wrapping_sub(side / 2), (y + dy).wrapping_sub(side / 2));
            if from_x < WIDTH && from_y < HEIGHT {
                sum += weight(dx, dy) * image[from_y * WIDTH + from_x];
            }
        }
    }
    sum
}

/// The same by loops, on all threads.
fn by_hand(photo: &[u8]) -> [Vec<u8>; 2] {
    let mut brightness = vec![0f32; PIXELS];
    lines(&mut brightness, WIDTH, |y, line| {
        for (out, pixel) in line.iter_mut().zip(photo[4 * y * WIDTH..].chunks(4)) {
            let [r, g, b] = [0, 1, 2].map(|k| f32::from(pixel[k]));
            *out = r * (77.0 / 256.0) + g * (150.0 / 256.0) + b * (29.0 / 256.0);
        }
    });
    let mut smooth = vec![0f32; PIXELS];
    lines(&mut smooth, WIDTH, |y, line| {
        for (x, out) in line.iter_mut().enumerate() {
            let sum = neighbours(&brightness, (x, y), 5, |dx, dy| BLUR[dx] * BLUR[dy] / 256.0);
            *out = f32::from(sum as u8);
        }
    });
    let mut edges = vec![0u8; PIXELS];
    lines(&mut edges, WIDTH, |y, line| {
        for (x, out) in line.iter_mut().enumerate() {
            let across = neighbours(&smooth, (x, y), 3, |dx, dy| SOBEL[3 * dy + dx]);
            let down = neighbours(&smooth, (x, y), 3, |dx, dy| SOBEL[3 * dx + dy]);
            *out = ((across.abs() + down.abs()) * 2.0) as u8;
        }
    });
    let mut histogram = [0usize; 256];
    smooth.iter().for_each(|level| histogram[*level as usize] += 1);
    let level = |share: usize| {
        let mut below = 0;
        histogram.iter().take_while(|count| (below += **count, below <= share).1).count() as f32
    };
    let (low, high) = (level(CLIPPED), level(PIXELS - CLIPPED));
    let factor = 255.0 / (high - low).max(1.0);
    let mut stretched = vec![0u8; 4 * PIXELS];
    lines(&mut stretched, 4 * WIDTH, |y, line| {
        for (i, (out, from)) in line.iter_mut().zip(&photo[4 * y * WIDTH..]).enumerate() {
            *out = if i % 4 == 3 { *from } else { ((f32::from(*from) - low) * factor) as u8 };
        }
    });
    [stretched, edges]
}

/// A PNG of RGBA pixels, stored without compression.
fn write_png(path: &str, pixels: &[u8]) -> std::io::Result<()> {
    let mut table = [0u32; 256];
    for (n, entry) in (0..).zip(&mut table) {
        *entry = (0..8).fold(n, |c, _| if c & 1 == 1 { 0xedb8_8320 ^ c >> 1 } else { c >> 1 });
    }
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    file.write_all(b"\x89PNG\r\n\x1a\n")?;
    let mut chunk = |name: &[u8; 4], data: &[u8]| {
        let named = [name, data].concat();
        let step = |crc: u32, byte: &u8| table[((crc ^ u32::from(*byte)) & 0xff) as usize] ^ crc >> 8;
        let sum = !named.iter().fold(u32::MAX, step);
        file.write_all(&(data.len() as u32).to_be_bytes())?;
        file.write_all(&named)?;
        file.write_all(&sum.to_be_bytes())
    };
    let size = [(WIDTH as u32).to_be_bytes(), (HEIGHT as u32).to_be_bytes()].concat();
    chunk(b"IHDR", &[&size[..], &[8, 6, 0, 0, 0]].concat())?;
    // Each line begins with the filter that it went through: none.
    let raw: Vec<u8> = pixels.chunks(4 * WIDTH).flat_map(|line| [&[0], line].concat()).collect();
    let mut stored = vec![0x78, 1];
    let blocks = raw.chunks(65_535);
    let last = blocks.len() - 1;
    for (i, block) in blocks.enumerate() {
        let length = block.len() as u16;
        stored.push(u8::from(i == last));
        stored.extend(length.to_le_bytes());
        stored.extend((!length).to_le_bytes());
        stored.extend(block);
    }
    let sums = raw.iter().fold((1u32, 0u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (a + b) % 65_521)
    });
    stored.extend((sums.1 << 16 | sums.0).to_be_bytes());
    chunk(b"IDAT", &stored)?;
    chunk(b"IEND", &[])
}

/// The shortest of a few runs, in microseconds.
fn shortest(mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let begun = Instant::now();
        run()?;
        best = best.min(begun.elapsed().as_secs_f64() * 1e6);
    }
    Ok(best)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let json = arguments.iter().any(|argument| argument == "--json");
    let in_temp = std::env::temp_dir().join("tidemill-image.png").display().to_string();
    let path = arguments.iter().find(|argument| !argument.starts_with("--")).unwrap_or(&in_temp);

    let gpu = Accelerator::global()?;
    let pixels = photograph();
    let photo = gpu.upload(&pixels, [HEIGHT, WIDTH, 4])?;
    let blur: Vec<f32> = (0..25).map(|i| BLUR[i / 5] * BLUR[i % 5] / 256.0).collect();
    let blur = gpu.upload(&blur, [1, 1, 5, 5])?;
    let down = [0, 1, 2].map(|y| [0, 1, 2].map(|x| SOBEL[3 * x + y]));
    let sobel = gpu.upload(&[&SOBEL[..], down.as_flattened()].concat(), [2, 1, 3, 3])?;
    let shares = gpu.upload(&[CLIPPED as u32, (PIXELS - CLIPPED) as u32], [2])?;

    let r = gpu.begin_recording()?;
    let [stretched, edges] = record(&r, &photo, &blur, &sobel, &shares)?;
    let (stretched, edges) = (r.keep(stretched)?, r.keep(edges)?);
    let dispatches = r.explain()?.run.len();
    let mut plan: Plan = r.into_plan()?;
    let device_us = shortest(|| plan.submit()?.wait())?;

    let mut expected = [Vec::new(), Vec::new()];
    let loop_us = shortest(|| {
        expected = by_hand(&pixels);
        Ok(())
    })?;
    let (mut picture, edges) = (stretched.read::<u8>()?, edges.read::<u8>()?);
    let off = |got: &[u8], expected: &[u8]| {
        got.iter().zip(expected).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0)
    };
    let error = off(&picture, &expected[0]).max(off(&edges, &expected[1]));
    if error > 1 {
        return Err(format!("a byte is off by {error} levels").into());
    }

    for (i, pixel) in picture.chunks_mut(4).enumerate().filter(|(i, _)| i % WIDTH >= WIDTH / 2) {
        pixel[..3].fill(edges[i]);
    }
    write_png(path, &picture)?;
    let ratio = loop_us / device_us;
    if json {
        println!(
            "{{\"dispatches\": {dispatches}, \"device_us\": {device_us:.0}, \"loop_us\": {loop_us:.0}, \
             \"ratio_to_loop\": {ratio:.3}, \"largest_error\": {error}}}"
        );
    } else {
        println!(
            "{WIDTH} x {HEIGHT} in {dispatches} dispatches: {device_us:.0} us, a parallel loop {loop_us:.0} us"
        );
        println!("largest error {error} levels; the picture is {path}");
    }
    Ok(())
}
