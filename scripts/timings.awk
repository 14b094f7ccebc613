# Makes the table of `./dev test --timings`: awk -f scripts/timings.awk cargo-timing.html... test.log
# Compiling and linking a target are one figure, as cargo reports them; two targets compile at a time.

# cargo's reports: an object a unit, a field a line.
/^ *"name": / { name = value($0) }
/^ *"target": / { target = value($0) }
/^ *"duration": / {
    gsub(/[^0-9.]/, "", $2)
    if (name ~ /^tidemill/) {
        what = target == "" ? name " (library)" : name ": " target
        note(what, "compile", $2)
    } else {
        note("everything else that is depended on", "compile", $2)
    }
}

# What `cargo test` says.
/^ *Running / { running = $2 == "unittests" ? "unit tests, " $3 : $2 }
/^ *Doc-tests / { running = "doctests, " $2 }
/^test result: / {
    seconds = $NF
    sub(/s$/, "", seconds)
    note(running, "run", seconds)
    tests[running] += $4
}

function value(line) {
    sub(/^[^:]*: "/, "", line)
    sub(/",?$/, "", line)
    gsub(/\\"/, "", line)
    sub(/^ +/, "", line)
    return line
}

function note(what, kind, seconds) {
    if (!(what in known)) {
        known[what] = 1
        order[++count] = what
    }
    spent[kind, what] += seconds
    total[kind] += seconds
}

END {
    print "| compiled | seconds of a job |"
    print "|---|---:|"
    for (i = 1; i <= count; i++) {
        if (spent["compile", order[i]] >= 1) printf "| %s | %.0f |\n", order[i], spent["compile", order[i]]
    }
    printf "| all | %.0f |\n\n", total["compile"]
    print "| run | tests | seconds |"
    print "|---|---:|---:|"
    for (i = 1; i <= count; i++) {
        if (order[i] in tests) printf "| %s | %d | %.1f |\n", order[i], tests[order[i]], spent["run", order[i]]
    }
    printf "| all | | %.0f |\n", total["run"]
}
