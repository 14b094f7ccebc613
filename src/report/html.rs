//! A page that shows runs: self-contained, nothing is loaded from anywhere.

use super::json::{Number, Text, list};
use crate::runtime::measure::run::{Clock, Run};
use crate::runtime::profile::guard::Figure;
use crate::runtime::profile::row::Row;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Runs one below the other on one page, for a browser: timelines, rooflines, tables and graphs
/// ([`Session::graph`](crate::profile::Session::graph)), in light and dark. The page holds everything it needs.
///
/// ```
/// # fn main() -> tidemill::Result<()> {
/// use tidemill::profile::Profiling;
/// let gpu = tidemill::Accelerator::global()?;
/// let session = gpu.begin_profiling("a sum", Profiling::Timeline)?;
/// let a = gpu.upload(&[1.0f32; 1000], [1000])?;
/// let b = gpu.run(|r| r.add(&a, &a))?;
/// let run = session.finish()?;
/// let page = tidemill::profile::html_report("My report", &[&run]);
/// assert!(page.starts_with("<!doctype html>"));
/// assert_eq!(b.read::<f32>()?, [2.0; 1000]);
/// # Ok(()) }
/// ```
pub fn html_report(title: &str, runs: &[&Run]) -> String {
    let data = list(runs.iter().map(|run| data(run)));
    // In this order, so that nothing that comes from a run is taken for a placeholder.
    let page =
        PAGE.replace("{{style}}", STYLE).replace("{{script}}", SCRIPT).replace("{{title}}", &escape(title));
    page.replace("{{data}}", &data)
}

impl Run {
    /// The run as a self-contained page; see [`html_report`].
    pub fn html(&self) -> String {
        html_report(&self.name, &[self])
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('{', "&#123;")
}

fn row(row: &Row, offset: f64) -> String {
    let (figures, error) = match &row.figure {
        Figure::Measured(figures) => (Some(figures), None),
        Figure::Impossible(error) => (None, Some(error.to_string())),
        Figure::None => (None, None),
    };
    let number = |x: Option<u64>| Number(x.map(|x| x as f64));
    list([
        Text(&row.label).to_string(),
        Text(&row.kernel).to_string(),
        list(row.groups),
        Number::from(offset + row.start_ns as f64).to_string(),
        Number::from(offset + row.end_ns as f64).to_string(),
        row.overlaps.to_string(),
        number(row.bytes).to_string(),
        number(row.flops).to_string(),
        Number(figures.and_then(|f| f.gbytes_per_s)).to_string(),
        Number(figures.and_then(|f| f.gflops)).to_string(),
        Number(figures.and_then(|f| f.roofline)).to_string(),
        error.map_or("null".to_owned(), |error| Text(&error).to_string()),
    ])
}

fn data(run: &Run) -> String {
    let rows = run.profiles.iter().flat_map(|profile| {
        let offset = run.offset_ns(profile);
        profile.rows.iter().map(move |r| row(r, offset))
    });
    let spans = run.spans.iter().map(|span| {
        list([
            Text(&span.track).to_string(),
            Text(&span.name).to_string(),
            span.begin_ns.to_string(),
            span.end_ns.to_string(),
        ])
    });
    let graphs = run
        .graphs
        .iter()
        .map(|graph| list([Text(&graph.name).to_string(), Text(&graph.explanation.to_svg()).to_string()]));
    let peaks = run.peaks.as_ref().map_or("null".to_owned(), |peaks| {
        let bandwidths = peaks
            .bandwidths
            .iter()
            .map(|b| list([b.working_set_bytes as f64, b.gbytes_per_s].map(Number::from)));
        format!(
            r#"{{"gflops":{},"bandwidths":{},"floor":{}}}"#,
            Number::from(peaks.gflops),
            list(bandwidths),
            Number::from(peaks.dispatch_floor_ns)
        )
    });
    let gpu = match &run.gpu {
        None => "null".to_owned(),
        Some(Err(error)) => format!(r#"{{"error":{}}}"#, Text(&error.to_string())),
        Some(Ok(gpu)) => format!(
            r#"{{"busy":{},"idle":{},"utilisation":{}}}"#,
            gpu.busy_ns,
            Number(gpu.idle_ns.map(|ns| ns as f64)),
            Number(gpu.utilisation)
        ),
    };
    let host = &run.host;
    let strings = [
        ("name", run.name.clone()),
        ("mode", run.mode.to_string()),
        ("device", run.device.clone()),
        ("driver", run.driver.clone()),
        ("clock", run.clock.to_string()),
    ];
    let numbers = [
        ("wall", run.wall_ns),
        ("record", host.record_ns),
        ("encode", host.encode_ns),
        ("submit", host.submit_ns),
        ("wait", host.wait_ns),
        ("submissions", run.submissions),
        ("dispatches", run.dispatches),
        ("barriers", run.barriers),
        ("up", run.bytes_up),
        ("down", run.bytes_down),
        ("hits", run.pool_hits),
        ("misses", run.pool_misses),
        ("pipelines", run.pipelines_made),
    ];
    let mut fields: Vec<String> =
        strings.iter().map(|(key, text)| format!(r#""{key}":{}"#, Text(text))).collect();
    fields.extend(numbers.iter().map(|(key, n)| format!(r#""{key}":{n}"#)));
    fields.push(format!(r#""aligned":{}"#, matches!(run.clock, Clock::Calibrated { .. })));
    fields.push(format!(r#""gpu":{gpu}"#));
    fields.push(format!(r#""peaks":{peaks}"#));
    fields.push(format!(r#""spans":{}"#, list(spans)));
    fields.push(format!(r#""rows":{}"#, list(rows)));
    fields.push(format!(r#""graphs":{}"#, list(graphs)));
    format!("{{{}}}", fields.join(","))
}
