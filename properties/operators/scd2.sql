-- Dimensions of type 2, after change_events.sql: every version of each row, with its interval.
--
-- Returns a row a version: its key, the sequence of its start, that of its end (of a current one the last millisecond of
--   the year 9999), the position of the last event within it (record), whose row it has, and its start as the timestamp.
, -- Of the events of a key with equal sequence one counts.
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

SELECT key, start AS window_start,
    coalesce(lead(start) OVER (PARTITION BY key ORDER BY version), 253402300799999) AS window_end,
    record, start AS timestamp
FROM versions
QUALIFY NOT deleted
