-- Table-table joins of many histories in one statement: both tables as they are at the end, joined by key.
--
-- Reads the relation `arrivals`, a row an arrival, with the number of its definition:
--   position (order of arrival, over all histories), input ('left', 'right'), key (an integer that no two histories
--   share; null for a null key or a heartbeat), timestamp (ms) and has_value.
-- Reads the relation `definitions`, a row a definition: its number, clock ('stream_time', 'batch') and options (JSON,
--   as in a history file; what is left out has its default here).
-- The clock plays no part, for arrival order decides.
-- Returns a row a row of the joined table: key, the positions of its left and right record (null for none), and its
--   timestamp.
WITH

-- The options of each definition.
given AS (
    SELECT definition, coalesce(options->>'join', 'inner') AS join_type -- or 'left', 'outer'
    FROM definitions
),

-- The last change of each row, whatever its timestamp; a tombstone has no value.
latest AS (
    SELECT * FROM arrivals WHERE key IS NOT NULL
    QUALIFY position = max(position) OVER (PARTITION BY input, key)
),

-- Both sides of a key, present or not, and which of them changed last.
sides AS (
    SELECT definition, key,
        any_value(position) FILTER (input = 'left' AND has_value) AS left_record,
        any_value(position) FILTER (input = 'right' AND has_value) AS right_record,
        max(timestamp) FILTER (has_value) AS timestamp_of_present,
        arg_max(timestamp, position) AS timestamp_of_last
    FROM latest GROUP BY definition, key
)

-- A row is stamped by the change that came last, tombstones too, and by the sides that are present.
SELECT key, left_record, right_record, greatest(timestamp_of_last, timestamp_of_present) AS timestamp
FROM sides JOIN given USING (definition)
WHERE CASE join_type
    WHEN 'inner' THEN left_record IS NOT NULL AND right_record IS NOT NULL
    WHEN 'left' THEN left_record IS NOT NULL
    WHEN 'outer' THEN left_record IS NOT NULL OR right_record IS NOT NULL
END
