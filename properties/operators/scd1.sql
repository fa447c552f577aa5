-- Dimensions of type 1, after change_events.sql: the newest version of each row.
--
-- Returns a row a key whose newest event doesn't delete it: the key, the position of that event (record), and its
--   sequence as the timestamp.
SELECT key, position AS record, sequence AS timestamp
FROM events
QUALIFY row_number() OVER (PARTITION BY key ORDER BY sequence DESC, tie DESC, position) = 1 AND NOT deleted
