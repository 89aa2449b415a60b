-- Schema 1. Bytes and seconds are plain numbers. Rows are never dropped by a later migration.

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
    elapsed_s          REAL NOT NULL
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
    exposed_dp_replicate_s REAL NOT NULL,
    exposed_dp_shard_s  REAL NOT NULL,
    exposed_cp_s        REAL NOT NULL,
    exposed_tp_s        REAL NOT NULL,
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
    top_bytes           REAL NOT NULL
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
    predicted_step_s   REAL
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
       c.shape, c.plan, c.state, c.step_s, p.step_low_s, p.step_high_s, c.tokens_per_s, p.mfu, c.peak_bytes, c.reserved_bytes
FROM requests r
JOIN candidates c ON c.request_id = r.id AND c.feasible = 1
LEFT JOIN predictions p ON p.content_hash = c.content_hash;

-- The winner of each request among what the engine simulated.
CREATE VIEW v_best AS
SELECT * FROM (
    SELECT r.id AS request_id, r.last_asked_at, r.model, r.cluster, r.target, r.world, c.shape, c.plan, p.step_s, p.step_low_s,
           p.step_high_s, p.tokens_per_s, p.mfu, p.peak_bytes, p.reserved_bytes,
           row_number() OVER (PARTITION BY r.id ORDER BY p.tokens_per_s DESC, p.reserved_bytes, c.plan) AS place
    FROM requests r
    JOIN candidates c ON c.request_id = r.id AND c.state = 'simulated'
    JOIN predictions p ON p.content_hash = c.content_hash
) WHERE place = 1;
