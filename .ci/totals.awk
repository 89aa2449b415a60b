# Counts test cases in ctest's LastTest.log: what each Criterion binary says of itself, and one failure for a binary
# that died, ran out of time or could not be started without naming a failed case.

function close_binary() {
    if (!open) return
    if (!synthesis) { passing = passes; failing = fails }
    if (ok && !synthesis && passes + fails + skips == 0) skips = 1   # skipped as a whole (exit code 77)
    if (!ok && failing == 0) failing = 1                             # leaked, timed out, or was not built
    passed += passing
    failed += failing
    skipped += skips
    open = 0
}

/^[0-9]+\/[0-9]+ Testing: / {
    close_binary()
    open = 1
    ok = synthesis = passing = failing = passes = fails = skips = not_built = 0
}
/^Command: ""/ { not_built = 1 }
/^\[PASS\]/ { passes++ }
/^\[FAIL\]/ { fails++ }
/^\[SKIP\]/ { skips++ }
/^\[====\] Synthesis: / {
    synthesis = 1
    for (i = 1; i < NF; i++) {
        if ($i == "Tested:") tested = $(i + 1)
        if ($i == "Passing:") passing = $(i + 1)
    }
    failing = tested - passing
}
/^Test (Passed|Skipped)\.$/ { ok = !not_built }
END { close_binary(); printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }
