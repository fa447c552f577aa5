-- The change events of many histories, for dimensions of both types, in one statement with what follows.
--
-- Reads the relation `arrivals`, a row an arrival, with the number of its definition:
--   history, position (order of arrival, over all histories), batch, heartbeat (whether it is one), key (an integer that
--   no two histories share; null for a null key or a heartbeat), timestamp (ms) and json (the value as JSON text; null
--   for none).
-- Reads the relation `definitions`, a row a definition: its number, clock ('stream_time', 'batch') and options (JSON,
--   as in a history file; what is left out has no effect).
-- Gives the events (`events`): key, position, sequence and tie (the larger is newer), deleted (whether the event deletes
--   its row), and tracked (a JSON text: what makes a new version).
WITH

-- The options of each definition; a field of a value as a path into it.
given AS (
    SELECT definition, clock AS clock_kind,
        '$."' || (options->>'sequence_by') || '"' AS sequence_at,
        '$."' || (options->>'ties') || '"' AS tie_at,
        '$."' || json_keys(options, 'deletes')[1] || '"' AS kind_at,
        json_extract(options, '$.deletes.*')[1] AS of_delete,
        (options->>'tombstone_ms')::BIGINT AS tombstone_ms,
        from_json(coalesce(options->'track', options->'columns'), '["VARCHAR"]') AS tracks
    FROM definitions
),

clocked AS (
    SELECT *,
        clock_at(clock_kind, timestamp, heartbeat OR key IS NOT NULL, history, position, batch) AS clock
    FROM arrivals JOIN given USING (definition)
),

-- A late event is dropped, and a null value that has no sequence.
events AS (
    SELECT key, position,
        CASE WHEN sequence_at IS NULL THEN timestamp ELSE json_extract(json, sequence_at)::BIGINT END AS sequence,
        coalesce(json_extract(json, tie_at)::BIGINT, 0) AS tie,
        json IS NULL OR coalesce(json_extract(json, kind_at) = of_delete, false) AS deleted,
        CASE WHEN tracks IS NULL THEN json
            ELSE list_transform(tracks, lambda name: json_extract(json, '$."' || name || '"'))::VARCHAR
        END AS tracked
    FROM clocked
    WHERE key IS NOT NULL
        AND (json IS NOT NULL OR (sequence_at IS NULL AND tie_at IS NULL))
        AND (tombstone_ms IS NULL OR timestamp >= clock - tombstone_ms)
)
