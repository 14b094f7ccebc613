//! A process may end while the background thread is inside the driver's compiler. Its own `main`, so that it is the
//! main thread that leaves: it starts itself again and again, each time to leave at another moment.

#![allow(clippy::expect_used, reason = "a test with a main of its own")]

use std::process::{Command, ExitCode};
use std::time::Duration;

use tidemill::Accelerator;

/// One result, so that the compiler has been at work.
fn add() {
    let gpu = Accelerator::global().expect("the tests need a Vulkan device");
    let a = gpu.upload(&[1.0f32; 1024], [1024]).expect("room for a tensor");
    let sum = gpu.run(|r| r.add(&a, &a)).expect("an add");
    assert_eq!(sum.read::<f32>().expect("a result")[0], 2.0);
}

fn child(how: &str, linger: Duration) {
    match how {
        "before-any-work" => drop(Accelerator::global().expect("the tests need a Vulkan device")),
        "after-a-result" => add(),
        _ => std::thread::spawn(add).join().expect("the thread ends well"),
    }
    std::thread::sleep(linger);
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, how, linger] = arguments.as_slice()
        && flag == "--leave"
    {
        child(how, Duration::from_millis(linger.parse().expect("a number")));
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for how in ["before-any-work", "after-a-result", "from-a-thread"] {
        for linger in (26..80).step_by(6) {
            let status = Command::new(std::env::current_exe().expect("our own path"))
                .args(["--leave", how, &linger.to_string()])
                // Compile for real each time: a hit in the driver's cache is over too soon.
                .env("MESA_SHADER_CACHE_DISABLE", "true")
                .status()
                .expect("we can start ourselves");
            if !status.success() {
                println!("leaving {linger} ms {how}: {status}");
                failed += 1;
            }
        }
    }
    println!("exit: {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
