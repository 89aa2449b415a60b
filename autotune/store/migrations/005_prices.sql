-- What work costs on a chip, and the library's way that was chosen for it: found out once, handed to later runs.

CREATE TABLE chip_prices (
    chip TEXT NOT NULL,    -- with what the choice hangs on: driver, version of the library
    what TEXT NOT NULL,    -- "4096x4096x14336 nt bf16>bf16 set plain align 256 sms 0"
    choice TEXT NOT NULL,
    seconds REAL NOT NULL,
    measured_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    PRIMARY KEY (chip, what)
) WITHOUT ROWID;

ALTER TABLE runs ADD COLUMN chip TEXT;             -- NULL: a device without a chip of its own
ALTER TABLE runs ADD COLUMN device_bytes INTEGER;  -- that the largest rank took of its memory
