-- Samza's windows of many histories in one statement: which messages each window has emitted by the end.
--
-- Reads the relation `arrivals`, a row an arrival, with the number of its definition:
--   history, position (order of arrival, over all histories), batch, heartbeat (whether it is one), key (an integer
--   that no two histories share; null for a null key), timestamp (ms), has_value and value (see aggregates.sql).
-- Reads the relation `definitions`, a row a definition: its number, clock ('stream_time', 'batch') and options (JSON,
--   as in a history file; what is left out has its default here).
-- Returns a row a window, or with storage = 'full' a row a message emitted by a window: key and bounds, what the
--   values come to (aggregates.sql), and its timestamp.
WITH RECURSIVE

-- The options of each definition; of the policies of early emission at most one is there.
given AS (
    SELECT definition, clock AS clock_kind,
        coalesce(options->>'type', 'fixed') AS type, -- or 'session'
        coalesce(options->>'unit', 'ms') AS unit, -- or 'tuple'
        (options->>'size')::BIGINT AS size,
        coalesce((options->>'step')::BIGINT, size) AS step,
        coalesce((options->>'retention_ms')::BIGINT, 0) AS retention_ms,
        coalesce(options->>'storage', 'aggregate') AS storage, -- or 'full'
        coalesce(options->>'late', 'drop') AS late, -- or 'update'
        (options->'early'->>'every_tuples')::BIGINT AS every_tuples,
        (options->'early'->>'every_ms')::BIGINT AS every_ms
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

-- The messages of each key, counted from 0; one without a value can't be emitted by itself, and is dropped. A complete
-- window takes messages for as long as it is kept, if late ones are to update it.
messages AS (
    SELECT key, position, timestamp, clock, last_clock, type, unit, size, step, storage, every_tuples, every_ms,
        clock - CASE late WHEN 'update' THEN retention_ms ELSE 0 END AS late_edge,
        row_number() OVER arrived - 1 AS nth_of_key,
        coalesce(lead(clock) OVER arrived, last_clock) AS next_clock
    FROM clocked JOIN ended USING (history)
    WHERE key IS NOT NULL AND (storage = 'aggregate' OR has_value)
    WINDOW arrived AS (PARTITION BY key ORDER BY position)
),

-- Fixed windows: number n begins at n * step, and takes what lies less than the size after that.
numbered AS (
    SELECT *, unnest(range(
        CASE WHEN distance < size THEN 0 ELSE (distance - size) // step + 1 END, distance // step + 1
    )) AS number
    FROM (SELECT *, CASE unit WHEN 'ms' THEN timestamp WHEN 'tuple' THEN nth_of_key END AS distance FROM messages)
    WHERE type = 'fixed'
),

-- A message goes into those that are open: windows of tuples always, windows of time until their end, or longer.
fixed AS (
    SELECT *, number * step AS window_start, number * step + size AS window_end,
        row_number() OVER (PARTITION BY key, number ORDER BY position) AS nth_of_window,
        count(*) OVER (PARTITION BY key, number) AS members
    FROM numbered WHERE unit = 'tuple' OR number * step + size > late_edge
),

-- A window emits all its messages once it is complete; before that each so many messages, or at each tick of the clock.
emitted_by_fixed AS (
    SELECT key, window_start, window_end, position, position AS place FROM fixed
    WHERE CASE unit WHEN 'ms' THEN window_end <= last_clock WHEN 'tuple' THEN members = size END
        OR nth_of_window <= members // every_tuples * every_tuples
        OR last_clock // every_ms > clock // every_ms
),

-- After each message of a key: the sessions that were open then, the new message among them. Of each: its messages, how
-- many of them wait to be emitted, what the clock said at the oldest of these, and whether it emits them before the key's
-- next message. A session is complete when its end lies more than the gap before the clock. Number -1 starts it off.
sessions AS (
    SELECT -1::BIGINT AS nth, NULL::BIGINT AS key, NULL::BIGINT AS session_start, NULL::BIGINT AS session_end,
        NULL::BIGINT[] AS positions, 0::BIGINT AS waiting, NULL::BIGINT AS waiting_since, false AS emits
    UNION ALL
    SELECT nth, key, session_start, session_end, positions, waiting, waiting_since,
        NOT is_late AND waiting > 0 AND coalesce(
            session_end < next_clock - size
            OR waiting >= every_tuples
            OR next_clock // every_ms > waiting_since // every_ms,
            false
        )
    FROM (
        SELECT nth, key, size, every_tuples, every_ms, min(session_start) AS session_start,
            max(session_end) AS session_end,
            -- The order at a merge: sessions by end, each in its own order, the new message last.
            flatten(list(positions ORDER BY is_new, session_end)) AS positions,
            sum(waiting)::BIGINT AS waiting, min(waiting_since) AS waiting_since, next_clock,
            -- The new message is late iff the session that it would be in is no longer open.
            max(session_end) < late_edge - size AS is_late
        FROM (
            SELECT *, count(*) FILTER (starts_island) OVER (PARTITION BY key ORDER BY session_start) AS island
            FROM (
                SELECT *, coalesce(session_start - max(session_end) OVER before_it > size, true) AS starts_island
                FROM (
                    -- The sessions that are still open: those complete too, for as long as they take messages,
                    SELECT new.nth_of_key AS nth, new.key, session_start, session_end, positions,
                        CASE WHEN emits THEN 0 ELSE waiting END AS waiting,
                        CASE WHEN emits THEN NULL ELSE waiting_since END AS waiting_since,
                        new.size, new.every_tuples, new.every_ms, new.late_edge, new.next_clock, false AS is_new
                    FROM sessions AS old JOIN messages AS new ON new.key = old.key AND new.nth_of_key = old.nth + 1
                    WHERE session_end >= new.late_edge - new.size
                    UNION ALL
                    -- with the new message, fall into islands.
                    SELECT nth_of_key, key, timestamp, timestamp, [position], 1, clock,
                        size, every_tuples, every_ms, late_edge, next_clock, true
                    FROM messages
                    WHERE type = 'session' AND nth_of_key = (SELECT max(nth) + 1 FROM sessions)
                )
                WINDOW before_it AS (PARTITION BY key ORDER BY session_start
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
            )
        )
        GROUP BY nth, key, island, size, every_tuples, every_ms, late_edge, next_clock
    )
),

-- Each emission of a session takes the place of those before it; with storage = 'full' each message is emitted but once.
emitted_by_sessions AS (
    SELECT key, session_start AS window_start, session_end AS window_end, position, place
    FROM (
        SELECT *, unnest(positions) AS position, generate_subscripts(positions, 1) AS place FROM sessions WHERE emits
    ) JOIN (SELECT position, storage FROM messages) USING (position)
    QUALIFY nth = CASE storage
        WHEN 'aggregate' THEN max(nth) OVER (PARTITION BY position)
        WHEN 'full' THEN min(nth) OVER (PARTITION BY position)
    END
)

SELECT emitted.key, window_start, window_end, aggregated(value, place) AS value, max(timestamp) AS timestamp
FROM (SELECT * FROM emitted_by_fixed UNION ALL SELECT * FROM emitted_by_sessions) AS emitted
    JOIN arrivals USING (position) JOIN given USING (definition)
GROUP BY emitted.key, window_start, window_end, CASE storage WHEN 'full' THEN position END
