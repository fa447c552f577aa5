"""Simulates the death of a process in a user's code, and the memory and checkpoint of the next process."""

from .steps import Steps, dying_writer

__all__ = ["Steps", "dying_writer"]
