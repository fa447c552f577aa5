"""Counts the histories, of thousands or millions, on which two witnesses (systems that run histories) disagree."""
