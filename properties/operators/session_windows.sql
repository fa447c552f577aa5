-- Session windows of many histories in one statement, by definition: no state but the session that each record is in.
--
-- Reads the relation `arrivals`, a row an arrival, with the number of its definition:
--   history, position (order of arrival, over all histories), batch, heartbeat (whether it is one), key (an integer
--   that no two histories share; null for a null key), timestamp (ms) and value (see aggregates.sql).
-- Reads the relation `definitions`, a row a definition: its number, clock ('stream_time', 'batch') and options (JSON,
--   as in a history file; what is left out has its default here).
-- Returns a row a session: its key and bounds, what its values come to (aggregates.sql), and its timestamp.
WITH RECURSIVE

-- The options of each definition.
given AS (
    SELECT definition, clock AS clock_kind,
        (options->>'gap_ms')::BIGINT AS gap_ms,
        coalesce((options->>'grace_ms')::BIGINT, 0) AS grace_ms,
        coalesce(options->>'late', 'merged') AS late, -- or 'own'
        coalesce(options->>'emit', 'update') AS emit -- or 'close'
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
    SELECT history, emit, max(timestamp) - gap_ms - grace_ms AS last_edge
    FROM clocked WHERE moves_clock GROUP BY history, emit, gap_ms, grace_ms
),

-- A session is closed iff its end lies before the edge: clock - gap - grace.
edged AS (
    SELECT *, clock - gap_ms - grace_ms AS edge FROM clocked WHERE key IS NOT NULL
),

-- The n-th record of a key is its n-th step. With late = 'own' a record is late iff it lies before the edge itself.
steps AS (
    SELECT key, position, timestamp, gap_ms, edge,
        row_number() OVER arrived AS step, lead(edge) OVER arrived AS next_edge
    FROM edged WHERE NOT (late = 'own' AND timestamp < edge)
    WINDOW arrived AS (PARTITION BY key ORDER BY position)
),

-- After each step of a key: the sessions that were open at that step, the new record among them. Step 0 starts it off.
sessions AS (
    SELECT 0::BIGINT AS step, NULL::BIGINT AS key, NULL::BIGINT AS session_start, NULL::BIGINT AS session_end,
        NULL::BIGINT[] AS positions, NULL::BIGINT AS next_edge, false AS is_late
    UNION ALL
    SELECT step, key, min(session_start), max(session_end),
        -- The order at a merge: sessions by end, each in its own order, the new record last.
        flatten(list(positions ORDER BY is_new, session_end)),
        next_edge,
        -- With late = 'merged' the new record is late iff the session that it would be in is closed.
        max(session_end) < edge
    FROM (
        SELECT *, count(*) FILTER (starts_island) OVER (PARTITION BY key ORDER BY session_start) AS island
        FROM (
            SELECT *, coalesce(session_start - max(session_end) OVER before_it > gap_ms, true) AS starts_island
            FROM (
                -- The sessions that are still open,
                SELECT new.step, new.key, session_start, session_end, positions,
                    new.gap_ms, new.edge, new.next_edge, false AS is_new
                FROM sessions AS old JOIN steps AS new ON new.key = old.key AND new.step = old.step + 1
                WHERE session_end >= new.edge
                UNION ALL
                -- with the new record, fall into islands.
                SELECT step, key, timestamp, timestamp, [position], gap_ms, edge, next_edge, true
                FROM steps WHERE step = (SELECT max(step) + 1 FROM sessions)
            )
            WINDOW before_it AS (PARTITION BY key ORDER BY session_start
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
        )
    )
    GROUP BY step, key, island, edge, next_edge
),

-- A session is final when it is closed at the next step, or there is no next step.
final AS (
    SELECT key, session_start, session_end, unnest(positions) AS position, generate_subscripts(positions, 1) AS place
    FROM sessions WHERE step > 0 AND NOT is_late AND (next_edge IS NULL OR session_end < next_edge)
)

SELECT final.key, session_start AS window_start, session_end AS window_end,
    aggregated(value, place) AS value, session_end AS timestamp
FROM final JOIN arrivals USING (position) JOIN ended USING (history)
WHERE emit = 'update' OR session_end < last_edge
GROUP BY final.key, session_start, session_end
