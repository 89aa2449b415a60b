-- Schema 7. Preflights: what ndtune preflight found, group by group, and what it said of them.

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
