-- Schema 2. What recomputation adds per token (HFU of a cached prediction), and what a search is best in.

ALTER TABLE predictions ADD COLUMN recomputed_flop_per_token REAL;
ALTER TABLE requests ADD COLUMN objective TEXT NOT NULL DEFAULT 'throughput';

-- The winner of each request among what the engine simulated, by what the request wanted most.
DROP VIEW v_best;
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
