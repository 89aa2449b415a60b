-- Schema 10. Runs say which core OpenBLAS ran its kernels for: the same processor may be five times slower with another.
-- NULL = before schema 10, on a chip of its own, or somebody else's command.

ALTER TABLE runs ADD COLUMN core_type TEXT;
