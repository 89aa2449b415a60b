-- Schema 9. Exposed communication is a row per axis that has some, of predictions and of runs: axes come by their names.

CREATE TABLE prediction_exposed (
    content_hash TEXT NOT NULL REFERENCES predictions (content_hash) ON DELETE CASCADE,
    axis         TEXT NOT NULL,                       -- as --mesh calls it
    seconds      REAL NOT NULL,
    PRIMARY KEY (content_hash, axis)
) WITHOUT ROWID;

INSERT INTO prediction_exposed
SELECT content_hash, 'dp_replicate', exposed_dp_replicate_s FROM predictions WHERE exposed_dp_replicate_s <> 0
UNION ALL SELECT content_hash, 'dp_shard', exposed_dp_shard_s FROM predictions WHERE exposed_dp_shard_s <> 0
UNION ALL SELECT content_hash, 'cp', exposed_cp_s FROM predictions WHERE exposed_cp_s <> 0
UNION ALL SELECT content_hash, 'tp', exposed_tp_s FROM predictions WHERE exposed_tp_s <> 0;

ALTER TABLE predictions DROP COLUMN exposed_dp_replicate_s;
ALTER TABLE predictions DROP COLUMN exposed_dp_shard_s;
ALTER TABLE predictions DROP COLUMN exposed_cp_s;
ALTER TABLE predictions DROP COLUMN exposed_tp_s;

CREATE TABLE run_exposed (
    run_id  INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    axis    TEXT NOT NULL,
    seconds REAL NOT NULL,
    PRIMARY KEY (run_id, axis)
) WITHOUT ROWID;

INSERT INTO run_exposed
SELECT id, 'dp_replicate', exposed_dp_replicate_s FROM runs WHERE exposed_dp_replicate_s <> 0
UNION ALL SELECT id, 'dp_shard', exposed_dp_shard_s FROM runs WHERE exposed_dp_shard_s <> 0
UNION ALL SELECT id, 'cp', exposed_cp_s FROM runs WHERE exposed_cp_s <> 0
UNION ALL SELECT id, 'tp', exposed_tp_s FROM runs WHERE exposed_tp_s <> 0;

ALTER TABLE runs DROP COLUMN exposed_dp_replicate_s;
ALTER TABLE runs DROP COLUMN exposed_dp_shard_s;
ALTER TABLE runs DROP COLUMN exposed_cp_s;
ALTER TABLE runs DROP COLUMN exposed_tp_s;
