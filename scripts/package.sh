# shellcheck shell=bash
# What is published, and an application that takes it. Sourced by ./dev and .ci/run.

# package DIR: makes the package and unpacks it below DIR. Prints how many bytes it has.
package() {
    local dir=$1 archives=${CARGO_TARGET_DIR:-target}/package
    rm -f "$archives"/tidemill-*.crate
    cargo package --quiet --no-verify --allow-dirty 2> >(grep -v 'is not included in the published package' >&2)
    mkdir -p "$dir"
    tar xzf "$archives"/tidemill-*.crate -C "$dir"
    wc -c <"$(compgen -G "$archives/tidemill-*.crate")"
}

# dependent DIR: the package below DIR, and in DIR/app an application that takes it from there.
dependent() {
    local dir=$1
    rm -rf "$dir/app" "$dir"/tidemill-*
    package "$dir" >/dev/null
    mkdir -p "$dir/app/src"
    cp Cargo.lock "$dir/app/"
    cat >"$dir/app/Cargo.toml" <<TOML
[workspace]
[package]
name = "app"
default-run = "app"
edition = "2024"
[dependencies]
tidemill = { path = "$(compgen -G "$dir/tidemill-*")" }
[features]
shaderc = ["tidemill/shaderc"]
[[bin]]
name = "custom_kernel"
required-features = ["shaderc"]
TOML
    mkdir -p "$dir/app/src/bin" "$dir/app/examples"
    cp examples/one_off.rs "$dir/app/src/main.rs"
    cp examples/custom_kernel.rs "$dir/app/src/bin/"
    cp examples/custom_kernel.comp "$dir/app/examples/"
}
