# From a callgrind profile to the parts of a search: calls and instructions, what a part calls included. Names are
# written out once, "(12) step_lower", and are "(12)" afterwards.

function name_of(text, id, at) {
    at = index(text, ")")
    id = substr(text, 1, at)
    if (length(text) > at + 1) {
        names[id] = substr(text, at + 2)
    }
    return names[id]
}

BEGIN {
    count = split("screen_piece settle_piece step_lower overlap_add overlap_contention_make cost_program " \
                  "live_traces_find engine_run_stages store_transaction", functions, " ")
    split("screen,settle,  lowering (of both),  stretches of compute,  contention,  pricing," \
          "  who is alive (of both),  engine runs,store", parts, ",")
}

/^fn=/ { caller = name_of(substr($0, 4)) }
/^cfn=/ { callee = name_of(substr($0, 5)) }
/^calls=/ { split(substr($1, 7), number, " "); made = number[1]; called = 1; next }
/^[-+*0-9]/ {
    if (called && callee != caller) {
        calls[callee] += made
        cost[callee] += $2
    }
    called = 0
}
/^(summary|totals):/ { total = $2 }

END {
    printf "| `%s` | all | | %.2f |\n", search, total / 1e9
    for (i = 1; i <= count; i++) {
        printf "| | %s | %d | %.2f |\n", parts[i], calls[functions[i]], cost[functions[i]] / 1e9
    }
}
