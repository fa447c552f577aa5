-- What the joins by foreign key have in common, of many histories in one statement: the rows of both tables at the end.
--
-- Reads the relation `arrivals`, a row an arrival, with the number of its definition:
--   position (order of arrival, over all histories), input ('left', 'right'), key (an integer that no two histories
--   share; null for a null key or a heartbeat), foreign_key (the right key that a left value names, null for none),
--   timestamp (ms) and has_value.
-- Reads the relation `definitions`, a row a definition: its number, clock ('stream_time', 'batch') and options (JSON,
--   as in a history file; what is left out has its default here).
-- Gives the left rows (`referring`), and the right ones with their tombstones (`referred`).
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
referring AS (
    SELECT * FROM latest JOIN given USING (definition)
    WHERE input = 'left' AND has_value
        AND (foreign_key IS NOT NULL OR (join_type = 'left' AND null_foreign_key = 'keep'))
),

-- The right rows, and their tombstones.
referred AS (
    SELECT * FROM latest WHERE input = 'right'
)
