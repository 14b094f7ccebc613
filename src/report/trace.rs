//! Traces for Perfetto and `chrome://tracing`.

use std::fmt::Write as _;

use super::json::{Number, Text, list};
use crate::runtime::measure::run::{Clock, Run};
use crate::runtime::profile::row::{Profile, Row};

const HOST: u32 = 1;
const DEVICE: u32 = 2;

/// Rows that overlap need lanes of their own: a track can't show two at once.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    ends: Vec<f64>,
}

impl Lanes {
    /// The first lane that is free at `begin`.
    pub(crate) fn place(&mut self, begin: f64, end: f64) -> usize {
        let free = self.ends.iter().position(|&last| last <= begin);
        let lane = free.unwrap_or(self.ends.len());
        if lane == self.ends.len() {
            self.ends.push(end);
        } else {
            self.ends[lane] = end;
        }
        lane
    }
}

fn name(kind: &str, process: u32, thread: usize, name: &str) -> String {
    format!(r#"{{"ph":"M","name":"{kind}","pid":{process},"tid":{thread},"args":{{"name":{}}}}}"#, Text(name))
}

fn slice(what: &str, place: (u32, usize), begin_ns: f64, end_ns: f64, arguments: &str) -> String {
    let (process, thread) = place;
    let (at, length) = (Number::from(begin_ns / 1e3), Number::from((end_ns - begin_ns) / 1e3));
    let what = Text(what);
    format!(
        r#"{{"ph":"X","name":{what},"pid":{process},"tid":{thread},"ts":{at},"dur":{length},"args":{{{arguments}}}}}"#
    )
}

fn arguments(profile: &Profile, row: &Row) -> String {
    let mut out = format!(
        r#""kernel":{},"groups":{},"submission":{},"barrier":{},"may_overlap":{}"#,
        Text(&row.kernel),
        list(row.groups),
        profile.submission,
        row.barrier,
        row.overlaps
    );
    for (key, value) in [("bytes", row.bytes), ("flops", row.flops)] {
        if let Some(value) = value {
            let _ = write!(out, r#","{key}":{value}"#);
        }
    }
    if let Some(figures) = row.figure.throughput() {
        for (key, value) in
            [("GB/s", figures.gbytes_per_s), ("GFLOP/s", figures.gflops), ("roofline", figures.roofline)]
        {
            if value.is_some() {
                let _ = write!(out, r#","{key}":{}"#, Number(value));
            }
        }
    }
    out
}

impl Run {
    /// A trace in Chrome's JSON format, for <https://ui.perfetto.dev> (which opens it locally) or `chrome://tracing`:
    /// the host's threads and the device's queue on one time axis. Where the clocks can't be compared there is no such
    /// axis, and the trace has the device's track alone.
    pub fn trace_json(&self) -> String {
        let mut events = Vec::new();
        let title = match self.clock {
            Clock::Calibrated { .. } => format!("GPU: {}", self.device),
            _ => format!("GPU: {} (its own clock)", self.device),
        };
        events.push(name("process_name", DEVICE, 0, &title));
        if matches!(self.clock, Clock::Calibrated { .. } | Clock::NoTimestamps) {
            self.host_events(&mut events);
        }
        let mut lanes = Lanes::default();
        for profile in &self.profiles {
            let offset = self.offset_ns(profile);
            for row in &profile.rows {
                let (begin, end) = (offset + row.start_ns as f64, offset + row.end_ns as f64);
                let lane = lanes.place(begin, end);
                events.push(slice(&row.label, (DEVICE, lane), begin, end, &arguments(profile, row)));
            }
        }
        for lane in 0..lanes.ends.len() {
            events.push(name(
                "thread_name",
                DEVICE,
                lane,
                if lane == 0 { "queue" } else { "queue, side by side" },
            ));
        }
        format!(
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"run\":{},\"device\":{},\"driver\":{},\"mode\":{},\"clock\":{}}},\n\"traceEvents\":[\n{}\n]}}\n",
            Text(&self.name),
            Text(&self.device),
            Text(&self.driver),
            Text(&self.mode.to_string()),
            Text(&self.clock.to_string()),
            events.join(",\n")
        )
    }

    fn host_events(&self, events: &mut Vec<String>) {
        events.push(name("process_name", HOST, 0, "CPU"));
        let mut tracks: Vec<&str> = Vec::new();
        for span in &self.spans {
            let track = tracks.iter().position(|track| *track == span.track).unwrap_or_else(|| {
                tracks.push(&span.track);
                tracks.len() - 1
            });
            events.push(slice(&span.name, (HOST, track), span.begin_ns as f64, span.end_ns as f64, ""));
        }
        for (i, track) in tracks.iter().enumerate() {
            events.push(name("thread_name", HOST, i, track));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_overlap_get_lanes_of_their_own() {
        let mut lanes = Lanes::default();
        let placed: Vec<_> = [(0.0, 4.0), (1.0, 2.0), (2.0, 3.0), (4.0, 5.0)]
            .iter()
            .map(|&(b, e)| lanes.place(b, e))
            .collect();
        assert_eq!(placed, [0, 1, 1, 0]);
    }
}
