-- A store as ndtune of 2026-11-20 (commit f1e9cf6, schema 2) wrote it: one request, runs that ended well and badly; most spans and task totals left out.
BEGIN TRANSACTION;
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
INSERT INTO "candidates" VALUES(1,1,'dp_replicate=1,dp_shard=1,cp=1,tp=1','dp_replicate=1,dp_shard=1,cp=1,tp=1 seq=128 mb=1 ga=1 zero=0 reshard=always recompute=none cp_rotate=ring precision=fp32 attention=flash fused=fused','68156a1e5e4a0c71','simulated',1,NULL,NULL,0.0064603207,1.98132578774301400699e+04,65217792.0,65217792.0);
INSERT INTO "candidates" VALUES(2,1,'dp_replicate=1,dp_shard=1,cp=1,tp=1','dp_replicate=1,dp_shard=1,cp=1,tp=1 seq=128 mb=1 ga=1 zero=0 reshard=always recompute=full cp_rotate=ring precision=fp32 attention=flash fused=fused','23cda13ce6159d37','simulated',1,NULL,NULL,0.007879401288,1.62448890875679444441e+04,60733696.0,60733696.0);
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
, recomputed_flop_per_token REAL) WITHOUT ROWID;
INSERT INTO "predictions" VALUES('23cda13ce6159d37','2026-11-20T08:20:09Z','0.1.0+23b100dc8c5d','tiny','local-cpu','4705d2faeabe3de3','ndtune@1','dp_replicate=1,dp_shard=1,cp=1,tp=1 seq=128 mb=1 ga=1 zero=0 reshard=always recompute=full cp_rotate=ring precision=fp32 attention=flash fused=fused',0.007879401288,6.08271220405429222793e-03,1.21288549660147678549e-02,1.62448890875679444441e+04,1.25592486513805301484e+00,0.007199385631,0.0,0.0,0.0,0.0,0.000671894567,8.12109e-06,14689280.0,13640704.0,29378560.0,3023872.0,0.0,0.0,0.0,1280.0,60733696.0,60733696.0,'backward','layer weights',12591104.0,5242880.0);
INSERT INTO "predictions" VALUES('68156a1e5e4a0c71','2026-11-20T08:20:09Z','0.1.0+23b100dc8c5d','tiny','local-cpu','4705d2faeabe3de3','ndtune@1','dp_replicate=1,dp_shard=1,cp=1,tp=1 seq=128 mb=1 ga=1 zero=0 reshard=always recompute=none cp_rotate=ring precision=fp32 attention=flash fused=fused',0.0064603207,4.98721541493782685727e-03,9.94444754623379466307e-03,1.98132578774301400699e+04,1.53180259301987908848e+00,0.005780305043,0.0,0.0,0.0,0.0,0.000671894567,8.12109e-06,14689280.0,13640704.0,29378560.0,3023872.0,0.0,0.0,0.0,4485376.0,65217792.0,65217792.0,'backward','layer weights',12591104.0,0.0);
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
, objective TEXT NOT NULL DEFAULT 'throughput');
INSERT INTO "requests" VALUES(1,'3684bc948ba6b3a2','ndtune --world 1 --model tiny --cluster local-cpu --target ndtune --seq 128 --global-batch 1 --top 1','2026-11-20T08:20:09Z','2026-11-20T08:20:09Z',1,1,'tiny','8a67ad140ac9afd4','local-cpu','4705d2faeabe3de3','ndtune@1',128,1,3000000000.0,'0.1.0+23b100dc8c5d',1,2,0,2,2,1.30250199981674086302e-03,'throughput');
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
INSERT INTO "runs" VALUES(1,'2026-11-20T08:20:09Z','vm','ndtune run --mesh dp_shard=1 --model tiny --layers 1 --steps 4','tiny','dp_replicate=1,dp_shard=1,cp=1,tp=1 seq=128 mb=1 ga=1 zero=0 reshard=always recompute=none cp_rotate=ring precision=fp32 attention=flash fused=fused','ad57b55f06985670','ndtune@1','local-cpu','cpu','shm','serial',1,4,'ok',NULL,'[7.0120606422424316,6.4490795135498047,5.8283562660217285,5.6731414794921875]','[6.5058536529541016,7.794072151184082,5.7492680549621582,6.4117283821105957]','[0.011384399607777596,0.0027120648883283138,0.0025946900714188814,0.0030313620809465647]',23091456,23091456,0.002003801278);
INSERT INTO "runs" VALUES(2,'2026-11-20T08:20:09Z','vm','ndtune run --mesh dp_shard=2 --model tiny --layers 1 --steps 2 --timeout 0','tiny','dp_replicate=1,dp_shard=2,cp=1,tp=1 seq=128 mb=1 ga=1 zero=3 reshard=always recompute=none cp_rotate=ring precision=fp32 attention=flash fused=fused','3eef1c2d97d10913','ndtune@1','local-cpu','cpu','shm','serial',1,0,'failed','rank 0: lane run, between steps: waited 0.0 s for rank 1 (last seen in between steps)','[]','[]','[]',0,0,0.004073687518);
CREATE TABLE spans (
    run_id      INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    rank        INTEGER NOT NULL,
    task        TEXT NOT NULL,
    layer       INTEGER NOT NULL,
    micro_batch INTEGER NOT NULL,
    start_s     REAL NOT NULL,
    end_s       REAL NOT NULL
);
INSERT INTO "spans" VALUES(1,0,'load tokens',0,0,5.10000973008573055267e-07,3.37500023306347429752e-06);
INSERT INTO "spans" VALUES(1,0,'embed',0,0,3.41499981004744768142e-06,1.24880007206229493021e-05);
INSERT INTO "spans" VALUES(1,0,'norm',0,0,1.26480008475482463836e-05,1.70149996847612783312e-05);
INSERT INTO "spans" VALUES(1,0,'qkv',0,0,1.7065000065485946834e-05,1.10274000689969398081e-04);
INSERT INTO "spans" VALUES(1,0,'rope',0,0,1.10454000605386681854e-04,1.20549000712344422936e-04);
CREATE TABLE task_totals (
    run_id      INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    task        TEXT NOT NULL,
    kind        TEXT NOT NULL,
    lane        TEXT NOT NULL,
    count       INTEGER NOT NULL,
    measured_s  REAL NOT NULL,
    predicted_s REAL NOT NULL
);
INSERT INTO "task_totals" VALUES(1,'load tokens','load_tokens','compute',1,2.80433353812744234224e-06,2.99999999999999668797e-07);
INSERT INTO "task_totals" VALUES(1,'embed','embed','compute',1,6.88000000081956386566e-06,1.78945499999999894629e-06);
INSERT INTO "task_totals" VALUES(1,'norm','rmsnorm','compute',1,4.12999906984623521566e-06,1.78945499999999894629e-06);
INSERT INTO "task_totals" VALUES(1,'qkv','gemm','compute',1,8.91060002080242414754e-05,6.55335600000000095734e-05);
INSERT INTO "task_totals" VALUES(1,'rope','rope','compute',1,9.70433393376879394054e-06,2.5341819999999908421e-06);
CREATE INDEX candidates_of_request ON candidates (request_id, tokens_per_s DESC);
CREATE INDEX spans_of_run ON spans (run_id);
CREATE INDEX task_totals_of_run ON task_totals (run_id);
CREATE VIEW v_ranking AS
SELECT r.id AS request_id, r.model, r.cluster, r.target, r.world, r.seq, r.global_batch,
       row_number() OVER (PARTITION BY r.id ORDER BY c.tokens_per_s DESC, c.reserved_bytes, c.plan) AS place,
       c.shape, c.plan, c.state, c.step_s, p.step_low_s, p.step_high_s, c.tokens_per_s, p.mfu, c.peak_bytes, c.reserved_bytes
FROM requests r
JOIN candidates c ON c.request_id = r.id AND c.feasible = 1
LEFT JOIN predictions p ON p.content_hash = c.content_hash;
CREATE VIEW v_best AS
SELECT * FROM (
    SELECT r.id AS request_id, r.last_asked_at, r.model, r.cluster, r.target, r.world, c.shape, c.plan, p.step_s, p.step_low_s,
           p.step_high_s, p.tokens_per_s, p.mfu, p.peak_bytes, p.reserved_bytes,
           row_number() OVER (PARTITION BY r.id ORDER BY CASE r.objective WHEN 'memory' THEN p.reserved_bytes END,
                              p.tokens_per_s DESC, p.reserved_bytes, c.plan) AS place
    FROM requests r
    JOIN candidates c ON c.request_id = r.id AND c.state = 'simulated'
    JOIN predictions p ON p.content_hash = c.content_hash
) WHERE place = 1;
COMMIT;
PRAGMA user_version = 2;
PRAGMA application_id = 1852077173;
