-- Dimensions of type 1 of many histories in one statement: the newest version of each row.
--
-- Reads the relation `events`, a row a change event:
--   position (of its arrival, over all histories), key (an integer that no two histories share), sequence and tie
--   (integers; the larger is newer), deleted (whether it deletes its row).
-- Returns a row a key whose newest event doesn't delete it: the key, and the position of that event (record).
SELECT key, position AS record
FROM events
QUALIFY row_number() OVER (PARTITION BY key ORDER BY sequence DESC, tie DESC, position) = 1 AND NOT deleted
