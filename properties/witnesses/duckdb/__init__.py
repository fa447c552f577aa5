"""The witness that runs one SQL statement over a whole cohort."""
