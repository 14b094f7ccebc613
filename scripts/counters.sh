# shellcheck shell=bash
# `./dev counters`: what programs make the device do, how large things are, and the instructions of the host's side. Sourced by
# ./dev after setup.sh and package.sh.

COUNTERS=tests/counters.txt
INSTRUCTIONS=tests/instructions.txt
# The most that crates.io should have to take.
MOST_CRATE_BYTES=8000000
# How far instructions may be from those in the file, in percent.
TOLERANCE=3

counters() {
    local check= cold_build= argument
    for argument in "$@"; do
        case $argument in
            --check) check=--check ;;
            --cold-build) cold_build=1 ;;
            *) die "usage: ./dev counters [--check] [--cold-build]" ;;
        esac
    done
    need_cargo
    setup
    count_programs $check
    crate_bytes
    count_instructions $check
    if [[ $cold_build ]]; then cold_build; fi
}

# Nothing that was kept from earlier runs, by us or by the driver, takes part.
count_programs() {
    local empty status=0
    empty=$(mktemp -d)
    XDG_CACHE_HOME=$empty LP_NUM_THREADS=2 tested_command_line counters --file "$COUNTERS" "$@" || status=$?
    rm -r "$empty"
    return $status
}

crate_bytes() {
    local dir bytes
    dir=$(mktemp -d)
    bytes=$(package "$dir")
    rm -r "$dir"
    ((bytes <= MOST_CRATE_BYTES)) || die "the package has $bytes bytes; $MOST_CRATE_BYTES is the most that it may have"
    echo "counters: the package has $bytes bytes, of $MOST_CRATE_BYTES that it may have"
}

# --- Instructions of the host's side ---------------------------------------------------------------------------------

# The name alone says little: virtual machines call CPUs of several generations "AMD EPYC", and what memchr and others choose at
# run time differs between them.
cpu_model() {
    awk -F ': *' '
        /^(cpu family|model|model name|stepping)[ \t]*:/ { key = $1; sub(/[ \t]+$/, "", key); is[key] = $2 }
        /^$/ { exit }
        END { printf "%s, family %s, model %s, stepping %s\n", is["model name"], is["cpu family"], is["model"], is["stepping"] }
    ' "${1:-/proc/cpuinfo}"
}

# Prints what is counted and how many instructions that takes, a line each. The environment is a fixed one; the driver does
# nothing, and nothing is random. Every failure is said, since a caller that tests the status turns errexit off.
instructions() {
    local mock=$CHROMIUM_CACHE/mock/mock_icd.json program dir name names
    cargo build --quiet --profile bench -p host_side || die "host_side does not build"
    program=${CARGO_TARGET_DIR:-target}/release/host_side
    names=$("$program") || die "$program does not say what it counts"
    dir=$(mktemp -d)
    for name in $names; do
        env -i PATH="$PATH" HOME="$dir" VK_DRIVER_FILES="$mock" VK_ICD_FILENAMES="$mock" \
            valgrind --tool=callgrind --callgrind-out-file="$dir/out" --toggle-collect='host_side::counted*' \
            "$program" "$name" >"$dir/log" 2>&1 || die "callgrind, $name: $(cat "$dir/log")"
        printf '%-14s %12d\n' "$name" "$(sed -n 's/^totals: //p' "$dir/out")"
    done
    rm -r "$dir"
}

# count_instructions [--check]
count_instructions() {
    local made counted
    if ! setup_callgrind; then
        echo "counters: instructions NOT COMPARED, for want of what is named above"
        return
    fi
    # Not in the text below: there a failure would be lost.
    counted=$(instructions) || die "no instructions were counted"
    made=$(
        cat <<TEXT
# Instructions of the host's side: 1000 operations recorded; their recording ended; that of a small network, fused; 100
# submissions of a plan of 100 dispatches; 1000 blocks from the pool. With a driver that does nothing, under callgrind. Made by
# \`./dev counters\`; \`./dev counters --check\` compares within $TOLERANCE %, where compiler and CPU are the same.

rustc          $(rustc --version)
cpu            $(cpu_model)

$counted
TEXT
    )
    if [[ ${1:-} != --check ]]; then
        printf '%s\n' "$made" >"$INSTRUCTIONS"
        echo "counters: $INSTRUCTIONS written"
    elif [[ $(grep -E '^(rustc|cpu) ' "$INSTRUCTIONS") != $(grep -E '^(rustc|cpu) ' <<<"$made") ]]; then
        printf 'counters: instructions NOT COMPARED, since compiler or CPU are others:\n'
        diff <(grep -E '^(rustc|cpu) ' "$INSTRUCTIONS") <(grep -E '^(rustc|cpu) ' <<<"$made") || true
    else
        compare_instructions <<<"$made"
    fi
}

# What was made is read from stdin.
compare_instructions() {
    awk -v most="$TOLERANCE" '
        /^#/ || NF != 2 { next }
        NR == FNR { kept[$1] = $2; next }
        !($1 in kept) { printf "%-14s %12d, not in the file\n", $1, $2; bad = 1; next }
        {
            change = 100 * ($2 - kept[$1]) / kept[$1]
            far = change > most || change < -most
            if ($2 != kept[$1]) printf "%s %-14s %12d -> %12d  %+.2f %%\n", far ? "!" : " ", $1, kept[$1], $2, change
            if (far) bad = 1
            delete kept[$1]
        }
        END { for (name in kept) { printf "%s is in the file alone\n", name; bad = 1 } exit bad }
    ' "$INSTRUCTIONS" - || die "instructions changed by more than $TOLERANCE %: if that is meant, run ./dev counters and commit $INSTRUCTIONS"
    echo "counters: instructions as in $INSTRUCTIONS, within $TOLERANCE %"
}

# --- Seconds that a dependent waits ----------------------------------------------------------------------------------

# Printed only: it is the machine's time.
cold_build() {
    local dir begun
    dir=$(mktemp -d)
    dependent "$dir"
    (cd "$dir/app" && cargo fetch --quiet)
    begun=$SECONDS
    (cd "$dir/app" && CARGO_TARGET_DIR=$dir/target cargo build --quiet --release)
    echo "counters: a dependent builds in $((SECONDS - begun)) s, from nothing, in release, on $(nproc) cores"
    rm -r "$dir"
}
