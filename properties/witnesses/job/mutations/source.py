"""Mutants of a job: its source, in which one place is changed, run as a module of its own. No file is written."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper

from .....reference.core.errors import BadInput
from ....generators.columns.model import Source
from ..contract import location
from .operators import Changes, Kind


@dataclass(frozen=True)
class Mutant:
    """A job with one change.

    Attributes:
        file: The name of the job's file.
        line: The line of the change.
        kind: What it changes.
        before: The code as it is.
        after: The code of the mutant.
        make: Runs the changed source, and returns the changed function.
    """

    file: str
    line: int
    kind: Kind
    before: str
    after: str
    make: Callable[[], Callable[..., Any]]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: `{self.before}` → `{self.after}`"


def mutants_of(function: Callable[..., Any], sources: Sequence[Source]) -> list[Mutant]:
    """Return the mutants of a function, and of what it calls in its module.

    Args:
        function: A function of a module.
        sources: The inputs of the job, whose columns of one type are exchanged.

    Raises:
        BadInput: The function's source can't be found, or it can't be found in its module by its name.
    """
    inner = inspect.unwrap(function)
    name, where = getattr(inner, "__qualname__", ""), location(function)
    path = inspect.getsourcefile(inner) if callable(inner) and hasattr(inner, "__code__") else None
    if path is None or not Path(path).is_file() or "<" in name:
        raise BadInput(
            f"{where} can't be mutated: its source must be a function of a module, with a name of its own there"
        )
    text = Path(path).read_text()
    wrapper = MetadataWrapper(cst.parse_module(text))
    changes = Changes(_alike(sources))
    reached = _reached(text, name.partition(".")[0])
    for statement in wrapper.module.body:
        if _names_of(statement) & reached:
            changes_of = Changes(_alike(sources))
            with changes_of.resolve(wrapper):
                statement.visit(changes_of)
            changes.found += changes_of.found
    module = sys.modules.get(inner.__module__)
    found = []
    for change in changes.found:
        before, after = (" ".join(wrapper.module.code_for_node(one).split()) for one in change[:2])

        def make(node: cst.CSTNode = change.node, replacement: cst.CSTNode = change.replacement) -> Any:
            changed = cst.ensure_type(wrapper.module.deep_replace(node, replacement), cst.Module)
            return _named(_run(changed.code, path, module, inner.__module__), name)

        found.append(Mutant(Path(path).name, change.line, change.kind, before, after, make))
    return found


def _run(code: str, path: str, original: ModuleType | None, name: str) -> ModuleType:
    """Run changed source as a module that no import finds, so that Spark's workers are sent its functions whole."""
    module = ModuleType(name)
    module.__dict__.update(
        __file__=path, __package__=getattr(original, "__package__", None), __spec__=getattr(original, "__spec__", None)
    )
    exec(compile(code, path, "exec"), module.__dict__)
    return module


def _named(module: ModuleType, qualname: str) -> Any:
    found: Any = module
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


def _alike(sources: Sequence[Source]) -> Mapping[str, Sequence[str]]:
    """Return for each column of the inputs the others of the same type in the same input."""
    return {
        field.name: [other.name for other in source.schema if other.type == field.type and other.name != field.name]
        for source in sources
        for field in source.schema
    }


def _names_of(statement: cst.CSTNode) -> set[str]:
    """Return the names that a statement of a module defines."""
    if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
        return {statement.name.value}
    names: set[str] = set()
    if isinstance(statement, cst.SimpleStatementLine):
        for part in statement.body:
            if isinstance(part, cst.Assign):
                names |= {one.target.value for one in part.targets if isinstance(one.target, cst.Name)}
            elif isinstance(part, cst.AnnAssign) and isinstance(part.target, cst.Name):
                names.add(part.target.value)
    return names


def _reached(text: str, root: str) -> set[str]:
    """Return the names of a module that a function of it uses, at any depth, with its own."""
    uses: dict[str, set[str]] = {}
    for statement in ast.parse(text).body:
        for name in _defined(statement):
            uses[name] = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    reached, waiting = set[str](), [root]
    while waiting:
        name = waiting.pop()
        if name in uses and name not in reached:
            reached.add(name)
            waiting += uses[name]
    return reached


def _defined(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, ast.Assign):
        yield from (target.id for target in statement.targets if isinstance(target, ast.Name))
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        yield statement.target.id
