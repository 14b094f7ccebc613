//! With the feature `tracing`, the host application's subscriber sees what the engine does.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary exports nothing")]

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span;

/// Writes down the text of every span and event.
#[derive(Clone, Default)]
struct Listener {
    heard: Arc<Mutex<Vec<String>>>,
    next: Arc<AtomicU64>,
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() != "message" {
            self.0 += &format!("{value:?}");
        }
    }

    fn record_str(&mut self, _: &Field, value: &str) {
        self.0 += value;
    }
}

impl tracing::Subscriber for Listener {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "tidemill"
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let mut text = Text(String::new());
        attributes.record(&mut text);
        self.heard.lock().unwrap().push(text.0);
        span::Id::from_u64(self.next.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.heard.lock().unwrap().push(text.0);
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[test]
fn a_subscriber_sees_every_activity_and_every_dispatch() {
    let listener = Listener::default();
    tracing::subscriber::with_default(listener.clone(), || -> tidemill::Result<()> {
        let config = tidemill::Config::new().no_cache().prewarm(tidemill::Prewarm::Off);
        let gpu = tidemill::Accelerator::new(&config)?;
        let a = gpu.upload(&[1.0f32; 8], [8])?;
        assert_eq!(gpu.run(|r| r.add(&a, &a))?.read::<f32>()?, [2.0; 8]);
        Ok(())
    })
    .unwrap();
    let heard = listener.heard.lock().unwrap();
    for expected in ["upload", "encode", "add 8 f32", "submit", "read", "wait"] {
        assert!(heard.iter().any(|text| text == expected), "{expected} in {heard:?}");
    }
}
