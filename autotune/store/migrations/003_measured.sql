-- Schema 3. Runs know what they measured: who ran, the middle of the steps after the warm-up, which runs repeat each
-- other, where the step went. v_accuracy holds them against their predictions, v_best shows them beside the winner.

ALTER TABLE runs ADD COLUMN source TEXT NOT NULL DEFAULT 'executor' CHECK (source IN ('executor', 'command'));
ALTER TABLE runs ADD COLUMN measurement_hash TEXT;       -- equal for repeats; NULL = before schema 3
ALTER TABLE runs ADD COLUMN warm_up INTEGER NOT NULL DEFAULT 1;
ALTER TABLE runs ADD COLUMN tokens_per_step INTEGER;
ALTER TABLE runs ADD COLUMN measured_step_s REAL;        -- median after the warm-up; NULL = no step was done
ALTER TABLE runs ADD COLUMN predicted_low_s REAL;
ALTER TABLE runs ADD COLUMN predicted_high_s REAL;
ALTER TABLE runs ADD COLUMN compute_s REAL;              -- these sum to the recorded step; NULL = no spans
ALTER TABLE runs ADD COLUMN exposed_dp_replicate_s REAL;
ALTER TABLE runs ADD COLUMN exposed_dp_shard_s REAL;
ALTER TABLE runs ADD COLUMN exposed_cp_s REAL;
ALTER TABLE runs ADD COLUMN exposed_tp_s REAL;
ALTER TABLE runs ADD COLUMN optimizer_s REAL;
ALTER TABLE runs ADD COLUMN overhead_s REAL;
CREATE INDEX runs_of_measurement ON runs (measurement_hash);
CREATE INDEX runs_of_prediction ON runs (content_hash);

UPDATE runs SET measured_step_s =
    (SELECT avg(value) FROM (SELECT value, row_number() OVER (ORDER BY value) AS n, count(*) OVER () AS c
                             FROM json_each(runs.step_times_s)
                             WHERE value IS NOT NULL AND (key > 0 OR json_array_length(runs.step_times_s) = 1))
     WHERE n IN ((c + 1) / 2, (c + 2) / 2));

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

-- The winner of each request among what the engine simulated, what runs of it took, and the winner among what ran.
DROP VIEW v_best;
CREATE VIEW v_best AS
SELECT * FROM (
    SELECT r.id AS request_id, r.last_asked_at, r.model, r.cluster, r.target, r.world, c.shape, c.plan, p.step_s, p.step_low_s,
           p.step_high_s, p.tokens_per_s, p.mfu, p.peak_bytes, p.reserved_bytes,
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
