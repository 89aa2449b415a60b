-- Schema 6. Calibrations: a profile fitted to runs, with its parent's hash, the runs, and errors before and after.

CREATE TABLE calibrations (
    id              INTEGER PRIMARY KEY,
    made_at         TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
    command         TEXT NOT NULL,
    parent          TEXT NOT NULL,
    parent_hash     TEXT NOT NULL,
    profile         TEXT NOT NULL,
    profile_hash    TEXT NOT NULL,
    profile_json    TEXT NOT NULL,                    -- parameters and covariance are in its "calibration"
    run_ids         TEXT NOT NULL,                    -- JSON array of texts; "run 12" is runs.id 12
    runs            INTEGER NOT NULL,
    plans           INTEGER NOT NULL,
    misfit_sd       REAL NOT NULL,                    -- of the log step time of a plan, of a repeat
    noise_sd        REAL NOT NULL,
    fit_before      REAL NOT NULL,                    -- median |predicted / measured - 1| of the plans that taught
    fit_after       REAL NOT NULL,
    held_out_plans  INTEGER NOT NULL,                 -- each predicted by the fit without it; 0 = too few
    held_out_before REAL,
    held_out_after  REAL
);
