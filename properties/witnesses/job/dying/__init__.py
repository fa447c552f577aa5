"""The death of a process as a check plays it: where it happens, and what it leaves to the next start."""

from .steps import Steps, dying_writer

__all__ = ["Steps", "dying_writer"]
