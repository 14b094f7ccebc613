# Makes the table of `./dev test --timings`: awk -f scripts/timings.awk cargo-timing.html... test.log
# Compiling and linking a target are one figure, as cargo reports them; two targets compile at a time.

# cargo's reports: an object a unit, a field a line.
/^ *"name": / { name = value($0) }
/^ *"target": / { target = value($0) }
/^ *"duration": / {
    gsub(/[^0-9.]/, "", $2)
    what = "everything else that is depended on"
    if (name ~ /^(tidemill.*|host_side|embed_window)$/) what = target == "" ? name " (library)" : name ": " target
    if (!(what in compile)) compiled[++units] = what
    compile[what] += $2
    all_compiled += $2
}

# What `cargo test` says. Several packages have a src/lib.rs and two binaries are called tidemill: a row has both names.
/^ *Running / {
    binary = $NF
    gsub(/^\(.*\/|-[0-9a-f]+\)$/, "", binary)
    running = $2 == "unittests" ? binary ", unit tests of " $3 : binary
}
/^ *Doc-tests / { running = $2 ", doctests" }
# The last line counts: those before it are from programs that the test starts. Doctests are several programs, and all count.
/^test result: / {
    seconds = $NF
    sub(/s$/, "", seconds)
    if (!(running in run)) ran[++runs] = running
    if (running !~ /, doctests$/) run[running] = tests[running] = 0
    run[running] += seconds
    tests[running] += $4 + $6
}
/^all doctests ran in / { run[running] = $5 + 0 }

function value(line) {
    sub(/^[^:]*: "/, "", line)
    sub(/",?$/, "", line)
    gsub(/\\"/, "", line)
    sub(/^ +/, "", line)
    return line
}

END {
    print "| compiled | seconds of a job |"
    print "|---|---:|"
    for (i = 1; i <= units; i++) {
        if (compile[compiled[i]] >= 1) printf "| %s | %.0f |\n", compiled[i], compile[compiled[i]]
    }
    printf "| all | %.0f |\n\n", all_compiled
    print "| run | tests | seconds |"
    print "|---|---:|---:|"
    for (i = 1; i <= runs; i++) {
        printf "| %s | %d | %.1f |\n", ran[i], tests[ran[i]], run[ran[i]]
        all_tests += tests[ran[i]]
        all_run += run[ran[i]]
    }
    printf "| all | %d | %.0f |\n", all_tests, all_run
}
