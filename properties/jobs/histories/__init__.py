"""The histories of a job: what its inputs hold, and how histories are drawn, packed, shrunk and written."""
