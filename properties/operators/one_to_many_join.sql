-- One-to-many joins, after referring.sql: each left row under both its foreign key and its own, joined with the right row
-- of that foreign key.
--
-- Returns a row a row of the joined table: foreign_key and key, the positions of its left and right record (null for
--   none), and its timestamp.
SELECT referring.foreign_key, referring.key, referring.position AS left_record,
    CASE WHEN referred.has_value THEN referred.position END AS right_record,
    CASE
        -- The later of both rows; a right row that has gone counts if it went after the left change.
        WHEN referred.has_value OR referred.position > referring.position
            THEN greatest(referring.timestamp, referred.timestamp)
        ELSE referring.timestamp
    END AS timestamp
FROM referring LEFT JOIN referred ON referred.key = referring.foreign_key
WHERE join_type = 'left' OR referred.has_value
