-- Stream-stream joins of many histories in one statement: which records found each other, and which none.
--
-- Reads the relation `arrivals`, a row an arrival, with the number of its definition:
--   history, position (order of arrival, over all histories), batch, heartbeat (whether it is one), input ('left',
--   'right'), key (an integer that no two histories share; null for a null key), timestamp (ms) and has_value.
-- Reads the relation `definitions`, a row a definition: its number, clock ('stream_time', 'batch') and options (JSON,
--   as in a history file; what is left out has its default here).
-- Returns a row a result: history, key, the positions of its left and right record (null for none), and its timestamp.
WITH

-- The options of each definition.
given AS (
    SELECT definition, clock AS clock_kind,
        coalesce(options->>'join', 'inner') AS join_type, -- or 'left', 'outer'
        (options->>'before_ms')::BIGINT AS before_ms,
        (options->>'after_ms')::BIGINT AS after_ms,
        coalesce((options->>'grace_ms')::BIGINT, 0) AS grace_ms,
        -- 'arrival', 'eager' or 'close'
        coalesce(options->>'emit', CASE WHEN join_type = 'outer' THEN 'eager' ELSE 'arrival' END) AS emit,
        coalesce(options->>'null_key', 'drop') AS null_key -- or 'keep'
    FROM definitions
),

-- The clock, which heartbeats move, and null keys if not dropped.
clocked AS (
    SELECT *,
        heartbeat OR key IS NOT NULL OR null_key = 'keep' AS moves_clock,
        clock_at(clock_kind, timestamp, moves_clock, history, position, batch) AS clock
    FROM arrivals JOIN given USING (definition)
),

-- At the end of a history both clocks say the largest timestamp.
ended AS (
    SELECT history, max(timestamp) AS last_clock FROM clocked WHERE moves_clock GROUP BY history
),

-- Until when the clock leaves a record open, and whether its side is emitted without a partner.
reaching AS (
    SELECT *,
        timestamp + CASE input WHEN 'left' THEN after_ms ELSE before_ms END + grace_ms AS open_until,
        join_type = 'outer' OR (join_type = 'left' AND input = 'left') AS is_emitted_alone
    FROM clocked WHERE NOT heartbeat
),

-- A record is dropped if it has no value or is late, and without a key unless it is to be emitted alone.
accepted AS (
    SELECT * FROM reaching
    WHERE has_value AND open_until >= clock AND (key IS NOT NULL OR (null_key = 'keep' AND is_emitted_alone))
),

-- The later of a pair finds the earlier, if that one is still open and both lie within the bounds.
found AS (
    SELECT later.history, later.key, earlier.position AS earlier, later.position AS later, later.input,
        later.join_type, later.emit,
        greatest(earlier.timestamp, later.timestamp) AS timestamp
    FROM accepted AS later JOIN accepted AS earlier
        ON earlier.key = later.key AND earlier.input <> later.input AND earlier.position < later.position
        AND earlier.open_until >= later.clock
        AND CASE later.input
            WHEN 'left' THEN earlier.timestamp
                BETWEEN later.timestamp - later.before_ms AND later.timestamp + later.after_ms
            WHEN 'right' THEN later.timestamp
                BETWEEN earlier.timestamp - later.before_ms AND earlier.timestamp + later.after_ms
        END
)

-- A pair is emitted when its later record arrives; a left join that answers at arrival is driven by left records alone.
SELECT history, key, timestamp,
    CASE input WHEN 'left' THEN later ELSE earlier END AS left_record,
    CASE input WHEN 'left' THEN earlier ELSE later END AS right_record
FROM found WHERE input = 'left' OR NOT (join_type = 'left' AND emit = 'arrival')
UNION ALL
-- A record is emitted alone if it finds no partner; with emit = 'close' once it is closed, if none has found it either.
SELECT history, key, timestamp,
    CASE input WHEN 'left' THEN position END,
    CASE input WHEN 'right' THEN position END
FROM accepted JOIN ended USING (history)
WHERE is_emitted_alone
    AND position NOT IN (SELECT later FROM found)
    AND (
        key IS NULL
        OR emit <> 'close'
        OR (open_until < last_clock AND position NOT IN (SELECT earlier FROM found))
    )
