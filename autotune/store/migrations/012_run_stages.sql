-- Schema 12. A run of a pipeline keeps a row per stage: how long its compute waited and what it held, measured beside
-- simulated.

CREATE TABLE run_stages (
    run_id                 INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    stage                  INTEGER NOT NULL,
    layers                 INTEGER NOT NULL,
    bubble_share           REAL,                      -- of the recorded step; NULL = no spans
    predicted_bubble_share REAL,
    peak_bytes             INTEGER NOT NULL,
    planned_peak_bytes     INTEGER NOT NULL,
    PRIMARY KEY (run_id, stage)
) WITHOUT ROWID;
