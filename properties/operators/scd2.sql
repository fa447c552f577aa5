-- Dimensions of type 2 of many histories in one statement: every version of each row, with its interval.
--
-- Reads the relation `events`, a row a change event:
--   position (of its arrival, over all histories), key (an integer that no two histories share), sequence and tie
--   (integers; the larger is newer), deleted (whether it deletes its row), tracked (a text: what makes a new version).
-- Returns a row a version: its key, the sequence of its start, that of its end (null: it is current), and the position
--   of the last event within it (record), whose row it has.
WITH

-- Of the events of a key with equal sequence one counts.
decided AS (
    SELECT * FROM events
    QUALIFY row_number() OVER (PARTITION BY key, sequence ORDER BY tie DESC, position) = 1
),

-- A version begins where the tracked part is another than before, or after a delete; each delete is for itself.
marked AS (
    SELECT *, deleted OR coalesce(lag(deleted) OVER of_key OR lag(tracked) OVER of_key <> tracked, true) AS begins
    FROM decided
    WINDOW of_key AS (PARTITION BY key ORDER BY sequence)
),

numbered AS (
    SELECT *, count(*) FILTER (begins) OVER (PARTITION BY key ORDER BY sequence) AS version
    FROM marked
),

versions AS (
    SELECT key, version, min(sequence) AS start, arg_max(position, sequence) AS record, bool_or(deleted) AS deleted
    FROM numbered GROUP BY key, version
)

SELECT key, start, lead(start) OVER (PARTITION BY key ORDER BY version) AS "end", record
FROM versions
QUALIFY NOT deleted
