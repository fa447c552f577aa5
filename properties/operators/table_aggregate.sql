-- Table aggregates of many histories in one statement: the table as it is at the end, aggregated by group.
--
-- Reads the relation `arrivals`, a row an arrival:
--   position (order of arrival, over all histories), key (an integer that no two histories share; null for a null key
--   or a heartbeat), group_key (the group that the value names, an integer too; null for none, and of a tombstone),
--   timestamp (ms) and value (see aggregates.sql): the field that is aggregated, or the whole value.
-- The clock plays no part, for arrival order decides.
-- Returns a row a group that ever had a row: its key, what the values of its rows come to (aggregates.sql; of an
--   emptied group, of none), and its timestamp.
WITH

-- The changes of each row of the table: from one group to another, or within one, or from and to none.
changes AS (
    SELECT *,
        lag(group_key) OVER changes_of_row AS old_group,
        lead(position) OVER changes_of_row IS NULL AS is_last
    FROM arrivals WHERE key IS NOT NULL
    WINDOW changes_of_row AS (PARTITION BY key ORDER BY position)
),

-- A change touches the group that it takes the old value from, and the one that it adds the new value to.
touched AS (
    SELECT group_key, max(timestamp) AS timestamp
    FROM (
        SELECT group_key, timestamp FROM changes
        UNION ALL
        SELECT old_group, timestamp FROM changes
    )
    WHERE group_key IS NOT NULL GROUP BY group_key
)

-- What is left of a row is its last value.
SELECT touched.group_key AS key, aggregated(value, position) AS value, touched.timestamp
FROM touched LEFT JOIN changes ON changes.group_key = touched.group_key AND is_last
GROUP BY touched.group_key, touched.timestamp
