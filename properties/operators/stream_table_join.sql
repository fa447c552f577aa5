-- Stream-table joins of many histories in one statement: each stream record looks up the table as it is at that moment.
--
-- Reads the relation `arrivals`, a row an arrival, with the number of its definition:
--   history, position (order of arrival, over all histories), heartbeat (whether it is one), input ('left', the stream;
--   'right', the table), key (an integer that no two histories share; null for a null key), timestamp (ms) and
--   has_value.
-- Reads the relation `definitions`, a row a definition: its number, clock ('stream_time', 'batch') and options (JSON,
--   as in a history file; what is left out has its default here).
-- The clock plays no part, for nothing is late.
-- Returns a row a result: history, key, the positions of its left and right record (null for none), and its timestamp.
WITH

-- The options of each definition.
given AS (
    SELECT definition,
        coalesce(options->>'join', 'left') AS join_type, -- or 'inner'
        coalesce(options->>'null_key', 'drop') AS null_key -- or 'keep'
    FROM definitions
),

-- The last change of the key's row before each record. A record without a key that isn't dropped sees none.
looking AS (
    SELECT *, max(position) FILTER (input = 'right') OVER (PARTITION BY key ORDER BY position) AS last_change
    FROM arrivals JOIN given USING (definition)
    WHERE NOT heartbeat
        AND (key IS NOT NULL OR (input = 'left' AND null_key = 'keep' AND join_type = 'left'))
)

-- The stream alone is answered; its records without a value are dropped. A tombstone is no row.
SELECT stream.history, stream.key, stream.timestamp, stream.position AS left_record, change.position AS right_record
FROM looking AS stream LEFT JOIN arrivals AS change ON change.position = stream.last_change AND change.has_value
WHERE stream.input = 'left' AND stream.has_value AND (change.position IS NOT NULL OR join_type = 'left')
