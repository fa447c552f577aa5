"""The witness that is one SQL statement over a whole cohort."""
