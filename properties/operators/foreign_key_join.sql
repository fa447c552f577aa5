-- Foreign-key joins, after referring.sql: each left row joined with the right row that its value names. How the sides talk
-- plays no part, as long as every message is delivered at once.
--
-- Returns a row a row of the joined table: its key, the positions of its left and right record (null for none), and its
--   timestamp.
SELECT referring.key, referring.position AS left_record,
    CASE WHEN referred.has_value THEN referred.position END AS right_record,
    CASE
        -- A right change that came after the left one stamps the row alone, tombstones too;
        WHEN referred.position > referring.position THEN referred.timestamp
        -- otherwise the left change found the right row, or none.
        WHEN referred.has_value THEN greatest(referring.timestamp, referred.timestamp)
        ELSE referring.timestamp
    END AS timestamp
FROM referring LEFT JOIN referred ON referred.key = referring.foreign_key
WHERE join_type = 'left' OR referred.has_value
