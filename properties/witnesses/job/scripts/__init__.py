"""Scripts under test as they are: what they read is answered with drawn rows, and what they write is taken up."""
