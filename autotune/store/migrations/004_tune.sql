-- Schema 4. Sessions of ndtune tune: which runs, in which order. The same question (key) goes on with its session.

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
