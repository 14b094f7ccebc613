//! Operations have an order, so two threads do not record at once.

pub fn share(r: &tidemill::Recording, x: &tidemill::Tensor) {
    std::thread::scope(|s| {
        s.spawn(|| r.relu(x));
        //~ cannot be shared between threads safely
    });
}
