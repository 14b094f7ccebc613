# Which test binaries hold the tests of a name: awk -v name=NAME -f scripts/tests.awk FILE.rs..., paths below the repository.
# NAME is a test binary, or else a part of the path that the binary prints for a test. Prints a line for each binary: its package
# and what cargo takes to choose it. Functions count that stand below #[test]; those of the same name elsewhere are none.

FNR == 1 {
    module = modules(FILENAME)
    inline = ""
    below = 0
    file_target = target(FILENAME)
    if (FILENAME ~ /tests\/[^\/]*(\.rs|\/main\.rs)$/) exists[file_target] = 1
}
/^mod [a-z0-9_]+ \{/ { inline = $2 "::" }
/^ *#\[test\]/ { below = 1 }
below && match($0, /fn [a-z0-9_]+\(/) {
    below = 0
    found = module inline substr($0, RSTART + 3, RLENGTH - 4)
    if (index(found, name)) holds[file_target] = 1
}

END {
    for (it in exists) {
        if (it ~ (" --test " name "$")) {
            print it
            exit
        }
    }
    # A folder in tests/ that is no binary is what binaries share, and cargo knows no target of its name.
    for (it in holds) if (it !~ / --test / || it in exists) print it
}

function target(file, test) {
    if (file ~ /^src\//) return "tidemill --lib"
    if (file ~ /^cases\/src\//) return "tidemill-cases --lib"
    if (file ~ /^capi\/src\//) return "tidemill-capi --lib"
    if (file ~ /^cli\/src\//) return "tidemill-cli --bin tidemill"
    if (file ~ /^cli\/host_side\/src\//) return "host_side --bin host_side"
    if (file ~ /^mutants\/src\//) return "tidemill-mutants --bin tidemill-mutants"
    if (file ~ /^examples\/embed_window\/src\//) return "embed_window --bin embed_window"
    if (file !~ /(^|\/)tests\//) return ""
    test = file
    sub(/^(.*\/)?tests\//, "", test)
    sub(/(\.rs|\/.*)$/, "", test)
    if (file ~ /^examples\/embed_window\//) return "embed_window --test " test
    if (file ~ /^scripts\//) return "tidemill-scripts --test " test
    if (file ~ /^capi\//) return "tidemill-capi --test " test
    if (file ~ /^cli\//) return "tidemill-cli --test " test
    return "tidemill --test " test
}

# The modules that a file stands for, each with its `::`.
function modules(file, path) {
    path = file
    sub(/^(.*\/)?(src|tests)\//, "", path)
    sub(/\.rs$/, "", path)
    if (file ~ /(^|\/)tests\//) sub(/^[^\/]*(\/|$)/, "", path)
    sub(/(^|\/)(main|lib|mod)$/, "", path)
    gsub(/\//, "::", path)
    return path == "" ? "" : path "::"
}
