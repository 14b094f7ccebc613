//! Profiles of machines: what the cells of the crossover table take there. Each file says how it was made.
//!
//! A profile is what `tidemill calibrate --json` and `tidemill crossover --json` print, one after the other. What it is
//! calibrated with are other measurements than the cells: of one operation of each class, at a few amounts.

use tidemill::hybrid::{Calibration, Class, Curve, DeviceTimes, Op, Work};

use tidemill_cases::crossover as cells;

const FILES: [(&str, &str); 3] = [
    ("an RTX 4090", include_str!("rtx4090.jsonl")),
    ("an integrated GPU", include_str!("integrated.jsonl")),
    ("lavapipe", include_str!("lavapipe.jsonl")),
];

/// A machine.
pub struct Profile {
    pub name: &'static str,
    pub calibration: Calibration,
    pub cells: Vec<Cell>,
    download: Curve,
}

/// One operation at one size, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub op: Op,
    pub n: usize,
    cpu_us: f64,
    gpu_us: f64,
    resident_us: f64,
}

/// Every profile there is; the RTX 4090 is the first.
pub fn all() -> [Profile; 3] {
    FILES.map(|(name, text)| Profile::read(name, text))
}

/// A field of an object that stands on one line.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.split_once(&format!("\"{name}\":"))?.1;
    Some(rest.split([',', '}']).next()?.trim_matches('"'))
}

fn number(line: &str, name: &str) -> Option<f64> {
    field(line, name).map(|text| text.parse().unwrap())
}

impl Profile {
    fn read(name: &'static str, text: &str) -> Profile {
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let find = |name: &str| lines.iter().find_map(|line| number(line, name));
        let slowed = find("cpu_slowed").unwrap_or(1.0);
        let curve = |side: &str, class: &str| {
            let of = |line: &&&str| field(line, "side") == Some(side) && field(line, "class") == Some(class);
            let factor = if side == "CPU" { slowed } else { 1.0 };
            let points = lines.iter().filter(of);
            let point = |line: &&str| (number(line, "amount").unwrap(), factor * number(line, "us").unwrap());
            Curve::new(points.map(point).collect()).unwrap_or_else(|| panic!("{name}: no {side} {class}"))
        };
        let classes =
            |side: &str| -> [Curve; Class::ALL.len()] { Class::ALL.map(|class| curve(side, class.name())) };
        let gpu = DeviceTimes {
            ops: classes("device"),
            upload: curve("to the device", "bytes"),
            download: curve("from the device", "bytes"),
            submission_us: find("submission_us").unwrap_or(0.0),
            dispatch_us: find("dispatch_us").unwrap_or(0.0),
        };
        let cells = lines.iter().filter_map(|line| {
            let op = field(line, "op")?;
            Some(Cell {
                op: *cells::OPS.iter().find(|known| known.name() == op).unwrap(),
                n: number(line, "n")? as usize,
                cpu_us: slowed * number(line, "cpu_us")?,
                gpu_us: number(line, "gpu_us")?,
                resident_us: number(line, "gpu_resident_us")?,
            })
        });
        Profile {
            name,
            cells: cells.collect(),
            download: gpu.download.clone(),
            calibration: Calibration { cpu: classes("CPU"), gpu: Some(gpu) },
        }
    }

    pub fn cell(&self, op: Op, n: usize) -> Cell {
        *self.cells.iter().find(|cell| (cell.op, cell.n) == (op, n)).unwrap()
    }

    /// What a cell takes on the CPU and on the device, with its operands in the host's memory or on the device. The
    /// result goes to the host in any case.
    pub fn times(&self, cell: &Cell, resident: bool) -> [f64; 2] {
        if !resident {
            return [cell.cpu_us, cell.gpu_us];
        }
        let work = cell.work(false);
        let down = |bytes: usize| self.download.at(bytes as f64);
        [cell.cpu_us + down(work.host_bytes), cell.resident_us + down(work.result_bytes)]
    }
}

impl Cell {
    /// In the terms in which it is priced.
    pub fn work(&self, resident: bool) -> Work {
        let n = self.n;
        let (inputs, output) = match self.op {
            Op::Add | Op::Matmul => (2 * n, n),
            Op::Dot => (2 * n, 1),
            Op::Conv2d => (n + cells::WEIGHTS.len(), n),
            _ => (n, n),
        };
        let multiply_adds = match self.op {
            Op::Matmul => (n as f64).powf(1.5),
            // Nine taps of each of the channels.
            _ => (n * cells::KERNEL[1] * 9) as f64,
        };
        let work = Work::on_host(self.op, inputs, output, multiply_adds);
        if resident { Work { host_bytes: 0, device_bytes: work.host_bytes, ..work } } else { work }
    }
}

/// What disturbs calls: a little always, and some three in a hundred a lot.
pub struct Noise(pub u64);

impl Noise {
    /// From 0 to 1.
    pub fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// How many times as long the next call takes.
    pub fn factor(&mut self) -> f64 {
        let (disturbed, much) = (self.unit() < 0.03, self.unit());
        if disturbed { 1.0 + 3.0 * much } else { 0.95 + 0.13 * much }
    }
}
