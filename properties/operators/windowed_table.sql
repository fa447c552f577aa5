-- Windowed tables of many histories in one statement, and their joins: what each window has emitted, and what was there to
-- join it.
--
-- Reads the relation `arrivals`, a row an arrival, with the number of its definition:
--   history, position (order of arrival, over all histories), batch, heartbeat (whether it is one), input ('events',
--   'right'), key (an integer that no two histories share; null for a null key), timestamp (ms), has_value, value (see
--   aggregates.sql) and, for look-ups, looks_up (the start of the window that the value looks up, null for none).
-- Reads the relation `definitions`, a row a definition: its number, clock ('stream_time', 'batch') and options (JSON,
--   as in a history file; what is left out has its default here).
-- Returns a row a result: key, the bounds of its window (null for a look-up), what the values of its window come to,
--   and of the other table's window that joins it (aggregates.sql; null where there is none), the position of the
--   record that joins it or looks it up (null for none), and its timestamp.
WITH

-- The options of each definition.
given AS (
    SELECT definition, clock AS clock_kind,
        (options->>'size_ms')::BIGINT AS size_ms,
        coalesce((options->>'step_ms')::BIGINT, size_ms) AS step_ms,
        coalesce((options->>'grace_ms')::BIGINT, 0) AS grace_ms,
        coalesce(options->>'emit', 'update') AS emit, -- or 'close'
        options->>'with' AS joined_with, -- 'table', 'windowed_table', 'stream_lookup', 'table_lookup' or null
        -- 'inner', 'left' or 'outer'
        coalesce(options->>'join', CASE joined_with WHEN 'windowed_table' THEN 'inner' ELSE 'left' END) AS join_type,
        coalesce((options->>'shift_ms')::BIGINT, 0) AS shift_ms,
        options->>'to_stream' AS to_stream -- 'window_in_key', 'window_in_value' or null
    FROM definitions
),

-- The clock, which heartbeats move and records with a null key don't.
clocked AS (
    SELECT *,
        heartbeat OR key IS NOT NULL AS moves_clock,
        clock_at(clock_kind, timestamp, moves_clock, history, position, batch) AS clock
    FROM arrivals JOIN given USING (definition)
),

-- At the end of a history both clocks say the largest timestamp.
ended AS (
    SELECT history, max(timestamp) AS last_clock FROM clocked WHERE moves_clock GROUP BY history
),

-- Window number n begins at n * step, and takes the records that lie less than the size after that,
numbered AS (
    SELECT *, unnest(range(
        CASE WHEN timestamp < size_ms THEN 0 ELSE (timestamp - size_ms) // step_ms + 1 END,
        timestamp // step_ms + 1
    )) AS number
    FROM clocked WHERE key IS NOT NULL AND (input = 'events' OR joined_with = 'windowed_table')
),

-- until it is closed: until its end <= clock - grace.
taken AS (
    SELECT definition, history, input, key, number * step_ms AS window_start,
        number * step_ms + size_ms AS window_end, emit, joined_with, to_stream, position, value, timestamp
    FROM numbered WHERE number * step_ms + size_ms > clock - grace_ms
),

-- With emit = 'close' a window is emitted once, by the arrival that closes it or at the end; of several, by their ends.
closed AS (
    SELECT filled.definition, filled.input, filled.key, window_start, window_end,
        coalesce(min(position), 9223372036854775807) AS emitted_at, window_end AS emitted_after
    FROM (
            SELECT DISTINCT definition, history, input, key, window_start, window_end FROM taken WHERE emit = 'close'
        ) AS filled
        JOIN given ON given.definition = filled.definition
        JOIN ended ON ended.history = filled.history AND window_end <= last_clock - given.grace_ms
        LEFT JOIN clocked ON clocked.history = filled.history AND window_end <= clock - given.grace_ms
    GROUP BY filled.definition, filled.input, filled.key, window_start, window_end
),

-- With emit = 'update' it is emitted at each of its records; where no other emission is seen, the last one will do.
updated AS (
    SELECT definition, input, key, window_start, window_end,
        position AS emitted_at, 9223372036854775807 AS emitted_after
    FROM taken WHERE emit = 'update'
    QUALIFY to_stream = 'window_in_value' OR joined_with = 'stream_lookup'
        OR position = max(position) OVER (PARTITION BY input, key, window_start)
),

-- What a window emits: what the values of its records have come to by then, and their largest timestamp.
emitted AS (
    SELECT emission.*, aggregated(value, position) AS aggregate, max(timestamp) AS timestamp
    FROM (SELECT * FROM closed UNION ALL SELECT * FROM updated) AS emission JOIN taken
        ON taken.input = emission.input AND taken.key = emission.key AND taken.window_start = emission.window_start
        AND position <= emitted_at
    GROUP BY ALL
),

-- The changes of either side, by the row of the result that they touch: windows of the first table; those of the other
-- table, where they begin after the shift and not before 0;
changes AS (
    SELECT definition, key, window_start, emitted_at, emitted_after, true AS is_left, true AS is_present, timestamp,
        aggregate, NULL::BIGINT AS record
    FROM emitted WHERE input = 'events'
    UNION ALL
    SELECT definition, key, window_start - shift_ms, emitted_at, emitted_after, false, true, timestamp, aggregate, NULL
    FROM emitted JOIN given USING (definition) WHERE input = 'right' AND window_start >= shift_ms
    UNION ALL
    -- changes of the joined table's row, which touch all windows of its key.
    SELECT changed.definition, changed.key, window_start, position, 9223372036854775807, false, has_value,
        changed.timestamp, NULL, CASE WHEN has_value THEN position END
    FROM arrivals AS changed JOIN given ON given.definition = changed.definition
        JOIN (SELECT DISTINCT key, window_start FROM emitted WHERE input = 'events') AS window_of_key
        ON window_of_key.key = changed.key
    WHERE changed.input = 'right' AND joined_with = 'table'
),

-- At each moment at which a row is touched: both sides as they are then, and whether the right one has just changed.
moments AS (
    SELECT DISTINCT definition, key, window_start, emitted_at, emitted_after,
        last_value(CASE WHEN is_left THEN {aggregate: aggregate, timestamp: timestamp} END IGNORE NULLS)
            OVER so_far AS one,
        last_value(CASE WHEN NOT is_left
            THEN {aggregate: aggregate, timestamp: timestamp, record: record, is_present: is_present} END IGNORE NULLS)
            OVER so_far AS other,
        bool_or(NOT is_left) OVER at_once AS other_changed
    FROM changes
    WINDOW so_far AS (PARTITION BY key, window_start ORDER BY emitted_at, emitted_after
            RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
        at_once AS (PARTITION BY key, window_start, emitted_at, emitted_after)
),

-- The join of the sides, at each moment or at the last one; stamped by the sides that are present, and a tombstone too
-- if it has just come.
joined AS (
    SELECT key, window_start, window_start + size_ms AS window_end, one.aggregate AS aggregate,
        other.aggregate AS other_aggregate, other.record AS record,
        greatest(one.timestamp, CASE WHEN other.is_present OR other_changed THEN other.timestamp END) AS timestamp
    FROM moments JOIN given USING (definition)
    WHERE (joined_with IS NULL OR joined_with IN ('table', 'windowed_table'))
        AND (join_type = 'outer' OR one IS NOT NULL) AND (join_type <> 'inner' OR other.is_present)
    QUALIFY to_stream = 'window_in_value'
        OR row_number() OVER (PARTITION BY key, window_start ORDER BY emitted_at DESC, emitted_after DESC) = 1
),

-- Look-ups: each record of a stream sees the window as it was emitted last by then, the last row of a table at the end.
looking AS (
    SELECT * FROM arrivals JOIN given USING (definition) WHERE input = 'right' AND key IS NOT NULL
    QUALIFY has_value AND (joined_with = 'stream_lookup'
        OR (joined_with = 'table_lookup' AND position = max(position) OVER (PARTITION BY key)))
),

looked_up AS (
    SELECT looking.key, NULL::BIGINT, NULL::BIGINT, emitted.aggregate, NULL, looking.position,
        CASE joined_with
            WHEN 'table_lookup' THEN greatest(looking.timestamp, emitted.timestamp)
            ELSE looking.timestamp
        END
    FROM looking LEFT JOIN emitted
        ON emitted.input = 'events' AND emitted.key = looking.key AND emitted.window_start = looking.looks_up
        AND (emitted_at <= position OR joined_with = 'table_lookup')
    QUALIFY row_number() OVER (PARTITION BY position ORDER BY emitted_at DESC) = 1
)

SELECT * FROM joined UNION ALL SELECT * FROM looked_up
