"""Bugs planted in the reference of plans: drawn cases must be able to show each of them."""

from .making import Mutant
from .operators import OF_OPERATORS
from .watermarks import OF_EXECUTION

MUTANTS = (*OF_OPERATORS, *OF_EXECUTION)

__all__ = ["MUTANTS", "Mutant"]
