"""A simulated death of a process: its place in the code, and its leftovers for the next start."""

from .steps import Steps, dying_writer

__all__ = ["Steps", "dying_writer"]
