-- What the migrations up to store_schema_version make of an empty file: a store that is made anew begins here. A later
-- migration needs no line here: it runs on top.

CREATE TABLE requests (
    id                 INTEGER PRIMARY KEY,
    content_hash       TEXT NOT NULL UNIQUE,          -- of everything that was asked, and of the engine version
    command            TEXT NOT NULL,                 -- as last typed
    asked_at           TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
    last_asked_at      TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
    times_asked        INTEGER NOT NULL DEFAULT 1,
    world              INTEGER NOT NULL,
    model              TEXT NOT NULL,
    model_hash         TEXT NOT NULL,
    cluster            TEXT NOT NULL,
    profile_hash       TEXT NOT NULL,
    target             TEXT NOT NULL,
    seq                INTEGER NOT NULL,
    global_batch       INTEGER NOT NULL,              -- sequences; 0 = not given
    memory_limit_bytes REAL NOT NULL,
    engine_version     TEXT NOT NULL,
    shapes             INTEGER NOT NULL,
    candidate_count    INTEGER NOT NULL,
    pruned             INTEGER NOT NULL,
    estimated          INTEGER NOT NULL,
    simulated          INTEGER NOT NULL,
    elapsed_s          REAL NOT NULL,
    objective          TEXT NOT NULL DEFAULT 'throughput'
);

-- What a plan was predicted to do: keyed by everything that the numbers depend on.
CREATE TABLE predictions (
    content_hash        TEXT PRIMARY KEY,
    created_at          TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
    engine_version      TEXT NOT NULL,
    model               TEXT NOT NULL,
    cluster             TEXT NOT NULL,
    profile_hash        TEXT NOT NULL,
    target              TEXT NOT NULL,
    plan                TEXT NOT NULL,
    step_s              REAL NOT NULL,
    step_low_s          REAL NOT NULL,
    step_high_s         REAL NOT NULL,
    tokens_per_s        REAL NOT NULL,
    mfu                 REAL NOT NULL,
    compute_s           REAL NOT NULL,
    optimizer_s         REAL NOT NULL,
    overhead_s          REAL NOT NULL,
    parameters_bytes    REAL NOT NULL,
    gradients_bytes     REAL NOT NULL,
    optimizer_bytes     REAL NOT NULL,
    activations_bytes   REAL NOT NULL,
    logits_bytes        REAL NOT NULL,
    gathered_parameters_bytes REAL NOT NULL,
    communication_bytes REAL NOT NULL,
    runtime_bytes       REAL NOT NULL,
    peak_bytes          REAL NOT NULL,
    reserved_bytes      REAL NOT NULL,
    peak_phase          TEXT NOT NULL,
    top_name            TEXT NOT NULL,
    top_bytes           REAL NOT NULL,
    recomputed_flop_per_token REAL
) WITHOUT ROWID;

-- Every choice of every shape of a request.
CREATE TABLE candidates (
    id              INTEGER PRIMARY KEY,
    request_id      INTEGER NOT NULL REFERENCES requests (id) ON DELETE CASCADE,
    shape           TEXT NOT NULL,                    -- the mesh
    plan            TEXT NOT NULL,
    content_hash    TEXT NOT NULL,                    -- of the prediction, where there is one
    state           TEXT NOT NULL CHECK (state IN ('rejected', 'estimated', 'simulated')),
    feasible        INTEGER NOT NULL,
    rule            TEXT,
    reason          TEXT,
    step_s          REAL,
    tokens_per_s    REAL,
    peak_bytes      REAL,
    reserved_bytes  REAL,
    CHECK ((state = 'rejected') = (reason IS NOT NULL))
);
CREATE INDEX candidates_of_request ON candidates (request_id, tokens_per_s DESC);

-- Real runs through the executor.
CREATE TABLE runs (
    id                 INTEGER PRIMARY KEY,
    started_at         TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
    host               TEXT NOT NULL,
    command            TEXT NOT NULL,
    model              TEXT NOT NULL,
    plan               TEXT NOT NULL,
    content_hash       TEXT NOT NULL,
    target             TEXT NOT NULL,
    cluster            TEXT NOT NULL,
    device             TEXT NOT NULL,
    transport          TEXT NOT NULL,
    lanes              TEXT NOT NULL,
    seed               INTEGER NOT NULL,
    steps              INTEGER NOT NULL,
    state              TEXT NOT NULL CHECK (state IN ('ok', 'diverged', 'failed')),
    failure            TEXT,
    losses             TEXT NOT NULL,                 -- JSON arrays, one number per step
    grad_norms         TEXT NOT NULL,
    step_times_s       TEXT NOT NULL,
    peak_bytes         INTEGER,
    planned_peak_bytes INTEGER,
    predicted_step_s   REAL,
    source             TEXT NOT NULL DEFAULT 'executor' CHECK (source IN ('executor', 'command')),
    measurement_hash   TEXT,                          -- equal for repeats; NULL = before schema 3
    warm_up            INTEGER NOT NULL DEFAULT 1,
    tokens_per_step    INTEGER,
    measured_step_s    REAL,                          -- median after the warm-up; NULL = no step was done
    predicted_low_s    REAL,
    predicted_high_s   REAL,
    compute_s          REAL,                          -- these sum to the recorded step; NULL = no spans
    optimizer_s        REAL,
    overhead_s         REAL,
    chip               TEXT,                          -- NULL: a device without a chip of its own
    device_bytes       INTEGER,                       -- that the largest rank took of its memory
    executor           TEXT,                          -- the version that measured; NULL = before schema 8
    core_type          TEXT                           -- that OpenBLAS ran its kernels for; NULL = before schema 10
);

-- Per run: the measured spans of its last step, and totals per task beside the prediction.
CREATE TABLE spans (
    run_id      INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    rank        INTEGER NOT NULL,
    task        TEXT NOT NULL,
    layer       INTEGER NOT NULL,
    micro_batch INTEGER NOT NULL,
    start_s     REAL NOT NULL,
    end_s       REAL NOT NULL
);
CREATE INDEX spans_of_run ON spans (run_id);

CREATE TABLE task_totals (
    run_id      INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    task        TEXT NOT NULL,
    kind        TEXT NOT NULL,
    lane        TEXT NOT NULL,
    count       INTEGER NOT NULL,
    measured_s  REAL NOT NULL,
    predicted_s REAL NOT NULL
);
CREATE INDEX task_totals_of_run ON task_totals (run_id);

-- Ranking of each request: its feasible choices, best first.
CREATE VIEW v_ranking AS
SELECT r.id AS request_id, r.model, r.cluster, r.target, r.world, r.seq, r.global_batch,
       row_number() OVER (PARTITION BY r.id ORDER BY c.tokens_per_s DESC, c.reserved_bytes, c.plan) AS place,
       c.shape, c.plan, c.state, c.step_s, p.step_low_s, p.step_high_s, c.tokens_per_s, p.mfu, c.peak_bytes,
       c.reserved_bytes
FROM requests r
JOIN candidates c ON c.request_id = r.id AND c.feasible = 1
LEFT JOIN predictions p ON p.content_hash = c.content_hash;
CREATE INDEX runs_of_measurement ON runs (measurement_hash);
CREATE INDEX runs_of_prediction ON runs (content_hash);

-- Every run that ended well beside its prediction.
CREATE VIEW v_accuracy AS
SELECT id AS run_id, started_at, source, host, model, cluster, target, device, transport,
       substr(plan, 1, instr(plan, ' ') - 1) AS shape, plan, predicted_step_s, predicted_low_s, predicted_high_s,
       measured_step_s, predicted_step_s / measured_step_s - 1 AS step_error,
       measured_step_s BETWEEN predicted_low_s AND predicted_high_s AS in_interval, planned_peak_bytes, peak_bytes
FROM runs WHERE state = 'ok' AND measured_step_s > 0 AND predicted_step_s > 0;

-- What runs say of a prediction: the mean of their middles.
CREATE VIEW v_measured AS
SELECT content_hash, count(*) AS runs, avg(measured_step_s) AS measured_step_s
FROM runs WHERE state = 'ok' AND measured_step_s > 0 GROUP BY content_hash;

-- The winner of each request among what the engine simulated, by what the request wanted most, and among what ran.
CREATE VIEW v_best AS
SELECT * FROM (
    SELECT r.id AS request_id, r.last_asked_at, r.model, r.cluster, r.target, r.world, c.shape, c.plan, p.step_s,
           p.step_low_s, p.step_high_s, p.tokens_per_s, p.mfu, p.peak_bytes, p.reserved_bytes,
           m.measured_step_s, coalesce(m.runs, 0) AS runs,
           first_value(CASE WHEN m.runs > 0 THEN c.plan END) OVER measured AS best_measured_plan,
           first_value(m.measured_step_s) OVER measured AS best_measured_step_s,
           row_number() OVER (PARTITION BY r.id ORDER BY CASE r.objective WHEN 'memory' THEN p.reserved_bytes END,
                              p.tokens_per_s DESC, p.reserved_bytes, c.plan) AS place
    FROM requests r
    JOIN candidates c ON c.request_id = r.id AND c.state = 'simulated'
    JOIN predictions p ON p.content_hash = c.content_hash
    LEFT JOIN v_measured m ON m.content_hash = c.content_hash
    -- tokens_per_s * step_s are the tokens of a step: measured time per token decides, what did not run comes last
    WINDOW measured AS (PARTITION BY r.id ORDER BY m.measured_step_s IS NULL,
                        m.measured_step_s / (p.tokens_per_s * p.step_s), c.plan)
) WHERE place = 1;

CREATE TABLE tune_sessions (
    id         INTEGER PRIMARY KEY,
    started_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
    key        TEXT NOT NULL,                         -- of request, candidates, executor options and seed
    command    TEXT NOT NULL
);
CREATE INDEX tune_sessions_of_key ON tune_sessions (key);

CREATE TABLE tune_runs (
    session_id INTEGER NOT NULL REFERENCES tune_sessions (id) ON DELETE CASCADE,
    place      INTEGER NOT NULL,                      -- from 1
    run_id     INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    known      INTEGER NOT NULL,                      -- measured before the session
    wall_s     REAL NOT NULL,                         -- that it took; 0 where known
    PRIMARY KEY (session_id, place)
) WITHOUT ROWID;

-- Sessions run by run.
CREATE VIEW v_tune AS
SELECT t.session_id, t.place, t.run_id, t.known, substr(r.plan, 1, instr(r.plan, ' ') - 1) AS shape, r.plan,
       r.measured_step_s, r.predicted_step_s, r.state, r.failure, t.wall_s, s.command
FROM tune_runs t JOIN runs r ON r.id = t.run_id JOIN tune_sessions s ON s.id = t.session_id;

CREATE TABLE chip_prices (
    chip TEXT NOT NULL,    -- with what the choice hangs on: driver, version of the library
    what TEXT NOT NULL,    -- "4096x4096x14336 nt bf16>bf16 set plain align 256 sms 0"
    choice TEXT NOT NULL,
    seconds REAL NOT NULL,
    measured_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    PRIMARY KEY (chip, what)
) WITHOUT ROWID;

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

CREATE TABLE preflights (
    id         INTEGER PRIMARY KEY,
    checked_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
    command    TEXT NOT NULL,
    cluster    TEXT NOT NULL,
    hosts      TEXT NOT NULL,                         -- each once, in the order of their ranks
    device     TEXT NOT NULL,
    transport  TEXT NOT NULL,
    mesh       TEXT NOT NULL,
    world      INTEGER NOT NULL,
    ready      INTEGER NOT NULL
);
CREATE INDEX preflights_of_world ON preflights (cluster, world);

CREATE TABLE preflight_findings (
    preflight_id INTEGER NOT NULL REFERENCES preflights (id) ON DELETE CASCADE,
    place        INTEGER NOT NULL,                    -- from 1
    bad          INTEGER NOT NULL,                    -- else worth a word
    sentence     TEXT NOT NULL,
    PRIMARY KEY (preflight_id, place)
) WITHOUT ROWID;

-- One collective over all groups of a set of axes at once.
CREATE TABLE preflight_groups (
    preflight_id  INTEGER NOT NULL REFERENCES preflights (id) ON DELETE CASCADE,
    place         INTEGER NOT NULL,
    axes          TEXT NOT NULL,
    collective    TEXT NOT NULL,
    ranks         INTEGER NOT NULL,                   -- of a group
    payload_bytes REAL NOT NULL,
    measured_s    REAL NOT NULL,                      -- of the slowest rank
    predicted_s   REAL,                               -- by the profile; NULL where it says nothing
    wrong         REAL NOT NULL,                      -- elements that are not what arithmetic says
    PRIMARY KEY (preflight_id, place)
) WITHOUT ROWID;

CREATE TABLE prediction_exposed (
    content_hash TEXT NOT NULL REFERENCES predictions (content_hash) ON DELETE CASCADE,
    axis         TEXT NOT NULL,                       -- as --mesh calls it
    seconds      REAL NOT NULL,
    PRIMARY KEY (content_hash, axis)
) WITHOUT ROWID;

CREATE TABLE run_exposed (
    run_id  INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    axis    TEXT NOT NULL,
    seconds REAL NOT NULL,
    PRIMARY KEY (run_id, axis)
) WITHOUT ROWID;
