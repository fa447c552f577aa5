-- One-to-many joins of many histories in one statement: both tables as they are at the end, each left row under both
-- its foreign key and its own, joined with the right row of that foreign key.
--
-- Reads the relation `arrivals`, a row an arrival, with the number of its definition:
--   position (order of arrival, over all histories), input ('left', 'right'), key (an integer that no two histories
--   share; null for a null key or a heartbeat), foreign_key (the right key that a left value names, null for none),
--   timestamp (ms) and has_value.
-- Reads the relation `definitions`, a row a definition: its number, clock ('stream_time', 'batch') and options (JSON,
--   as in a history file; what is left out has its default here).
-- Returns a row a row of the joined table: foreign_key and key, the positions of its left and right record (null for
--   none), and its timestamp.
WITH

-- The options of each definition.
given AS (
    SELECT definition,
        coalesce(options->>'join', 'inner') AS join_type, -- or 'left'
        coalesce(options->>'null_foreign_key', 'ignore') AS null_foreign_key -- or 'keep'
    FROM definitions
),

-- The last change of each row, whatever its timestamp; a tombstone has no value.
latest AS (
    SELECT * FROM arrivals WHERE key IS NOT NULL
    QUALIFY position = max(position) OVER (PARTITION BY input, key)
),

-- The left rows; one without a foreign key is there for the left join that keeps it, and joins nothing.
many AS (
    SELECT * FROM latest JOIN given USING (definition)
    WHERE input = 'left' AND has_value
        AND (foreign_key IS NOT NULL OR (join_type = 'left' AND null_foreign_key = 'keep'))
),

-- The right rows, and their tombstones.
one AS (
    SELECT * FROM latest WHERE input = 'right'
)

SELECT many.foreign_key, many.key, many.position AS left_record,
    CASE WHEN one.has_value THEN one.position END AS right_record,
    CASE
        -- The later of both rows; a right row that has gone counts if it went after the left change.
        WHEN one.has_value OR one.position > many.position THEN greatest(many.timestamp, one.timestamp)
        ELSE many.timestamp
    END AS timestamp
FROM many LEFT JOIN one ON one.key = many.foreign_key
WHERE join_type = 'left' OR one.has_value
