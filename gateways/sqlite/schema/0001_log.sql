-- One row: what this log is.
CREATE TABLE log (
  one         INTEGER PRIMARY KEY CHECK (one = 1),
  id          BLOB NOT NULL,
  incarnation INTEGER NOT NULL
);

-- A partition's counters and its last tenure. token is the highest fence ever seen, tenure that of the last owner.
CREATE TABLE partitions (
  part     INTEGER PRIMARY KEY,
  position INTEGER NOT NULL DEFAULT 0,
  token    INTEGER NOT NULL DEFAULT 0,
  tenure   INTEGER NOT NULL DEFAULT 0,
  owner    TEXT    NOT NULL DEFAULT '',
  until    INTEGER NOT NULL DEFAULT 0
);

-- Heads, keyed by number: what is written for every append is half as much as with keys by name.
-- The snapshot stands here while it is small (snapshot_at > 0), else in snapshots (apart = 1).
CREATE TABLE streams (
  sid         INTEGER PRIMARY KEY,
  name        TEXT    NOT NULL UNIQUE,
  part        INTEGER NOT NULL,
  version     INTEGER NOT NULL,
  open        INTEGER NOT NULL,
  due         INTEGER NOT NULL,
  snapshot_at INTEGER NOT NULL,
  apart       INTEGER NOT NULL,
  hash        BLOB    NOT NULL,
  snapshot    BLOB
);
CREATE INDEX streams_open ON streams (part, name) WHERE open = 1;
CREATE INDEX streams_due ON streams (part, due) WHERE due > 0;

CREATE TABLE snapshots (
  sid      INTEGER PRIMARY KEY,
  snapshot BLOB NOT NULL
);

-- Commits stand in one table a partition: see partition.sql.

CREATE TABLE seals (
  part        INTEGER NOT NULL,
  upto        INTEGER NOT NULL,
  incarnation INTEGER NOT NULL,
  since       INTEGER NOT NULL,
  commits     INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  digest      BLOB    NOT NULL,
  key         BLOB    NOT NULL,
  signature   BLOB    NOT NULL,
  PRIMARY KEY (part, upto)
) WITHOUT ROWID;
