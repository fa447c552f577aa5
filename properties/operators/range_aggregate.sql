-- Range aggregates of many histories in one statement: OVER (ORDER BY time RANGE … PRECEDING), as it arrives.
--
-- Reads the relation `arrivals`, a row an arrival, with the number of its definition:
--   position (order of arrival, over all histories), key (an integer that no two histories share; null for a null key
--   or a heartbeat), timestamp (ms) and value (see aggregates.sql).
-- Reads the relation `definitions`, a row a definition: its number, clock ('stream_time', 'batch') and options (JSON,
--   as in a history file; what is left out has its default here).
-- The clock plays no part, for nothing is late.
-- Returns a row a record: its key, what the values of its range come to (aggregates.sql), and its timestamp.

WITH

-- The options of each definition.
given AS (
    SELECT definition, (options->>'preceding_ms')::BIGINT AS preceding_ms FROM definitions
)

-- A record's range: what has arrived by then, itself included, no more than `preceding_ms` before it and not after it.
SELECT own.key, aggregated(other.value, (other.timestamp, other.position)) AS value, own.timestamp
FROM arrivals AS own JOIN given USING (definition) JOIN arrivals AS other
    ON other.key = own.key
    AND other.position <= own.position
    AND other.timestamp BETWEEN own.timestamp - preceding_ms AND own.timestamp
GROUP BY own.key, own.position, own.timestamp
