"""Mutants of a job: the job's source with a single change, which runs as a separate module. No file is written."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import libcst as cst
import pyarrow as pa
from libcst.metadata import MetadataWrapper

from .....reference.core.errors import BadInput
from ....generators.columns.model import Source
from ....system.ipynb import source_of
from ..contract import location
from ..scripts.script import Script
from .names import BY_KEYS, FUNCTIONS, OWN_NAME
from .nodes import ChangeKind, CodeEdit
from .operators import Changes, FunctionNames
from .returns import Returned

SPARKS = "pyspark.sql.functions"
MAX_SHOWN = 60
"""The largest length of code that a mutant shows whole; for longer code, it shows only the difference."""
BESIDE = 16
"""The number of characters that a mutant shows before and after the difference in longer code."""


@dataclass(frozen=True)
class Mutant:
    """A job with one change.

    Attributes:
        file: The name of the job's file.
        line: The line of the change.
        kind: The kind of the change.
        before: The original code.
        after: The code of the mutant.
        make: Runs the changed source, and returns the changed function.
    """

    file: str
    line: int
    kind: ChangeKind
    before: str
    after: str
    make: Callable[[], Callable[..., Any]]

    def __str__(self) -> str:
        before, after = _apart(self.before, self.after)
        return f"{self.file}:{self.line}: `{before}` → `{after}`"


@dataclass(frozen=True)
class JobSource:
    """The source of a job: a function of a module.

    Attributes:
        path: The module's file.
        text: The file's text.
        module: The module's name.
        name: The function's name in the module; empty: the module is a script.
        script: The script itself, or the script of the function (None: the function is a job).
    """

    path: str
    text: str
    module: str
    name: str
    script: Script | None = None

    @classmethod
    def of(cls, function: Callable[..., Any]) -> JobSource:
        """Find the source of a function.

        Raises:
            BadInput: The source can't be found, or doesn't define the function by its name.
        """
        inner = inspect.unwrap(function)
        name = getattr(inner, "__qualname__", "")
        path = inspect.getsourcefile(inner) if hasattr(inner, "__code__") else None
        if path is None or not Path(path).is_file() or "<" in name:
            raise BadInput(
                f"{location(function)} can't be mutated: it must be a function or a method that a module defines by "
                "name"
            )
        return cls(path, source_of(Path(path)), inner.__module__, name)

    @classmethod
    def of_script(cls, script: Script) -> JobSource:
        """Find the source of a script.

        Raises:
            BadInput: The script is a function whose source can't be found.
        """
        if callable(script.source):
            return replace(cls.of(script.source), script=script)
        path = Path(script.source).resolve()
        return cls(str(path), source_of(path), "__main__", "", script)

    @property
    def has_loops(self) -> bool:
        """Return whether the module contains a loop that a mutant could turn into an endless loop."""
        return any(isinstance(node, ast.While) for node in ast.walk(ast.parse(self.text)))

    def run(self, text: str) -> Any:
        """Run a text as a module, and return the job's function. Workers receive the function by value, because they
        can't import the module.

        For a script, return a script with this text, without running it.
        """
        from pyspark.sql import functions

        if self.script is not None and not self.name:
            compile(text, self.path, "exec")
            return self.script.changed(text)
        original = sys.modules.get(self.module)
        module = ModuleType(self.module)
        package, spec = (getattr(original, name, None) for name in ("__package__", "__spec__"))
        module.__dict__.update(__file__=self.path, __package__=package, __spec__=spec)
        if original is None or not hasattr(original, OWN_NAME):
            module.__dict__[OWN_NAME] = functions
        exec(compile(text, self.path, "exec"), module.__dict__)
        found: Any = module
        for part in self.name.split("."):
            found = getattr(found, part)
        return found if self.script is None else self.script.changed(source=found)

    def mutants(
        self,
        sources: Sequence[Source],
        static: Mapping[str, pa.Table] = MappingProxyType({}),
        returns_rows: bool = False,
    ) -> list[Mutant]:
        """Return the mutants of the function, and of the module's other functions and constants that the function uses.

        Args:
            sources: The job's inputs; mutants exchange columns of the same type.
            static: The job's static tables; mutants exchange their columns, too.
            returns_rows: Whether the function returns a DataFrame, whose rows mutants change; a sink's function returns
                a query.
        """
        given = [source.schema if source.has_payload else source.wire_schema for source in sources]
        schemas = given + [table.schema for table in static.values()]
        alike, functions = _alike(schemas), functions_of(self.text)
        keys = {name for source in sources for name in source.key}
        values = dict.fromkeys(name for schema in given for name in schema.names if name not in keys)
        wrapper = MetadataWrapper(cst.parse_module(self.text))
        reached = _reached(self.text, self.name.partition(".")[0])
        returned = Returned(self.name, self._may_repeat(reached), *_of_inputs(sources)) if returns_rows else None
        changes: list[CodeEdit] = []
        for statement in wrapper.module.body:
            if not self.name or _names_of(statement) & reached:
                visitor = Changes(alike, [*values], functions, self.script is None, returned)
                with visitor.resolve(wrapper):
                    statement.visit(visitor)
                changes += visitor.found
        made: dict[tuple[int, str], Mutant] = {}
        for change in changes:
            mutant = self._mutant(wrapper.module, change)
            if mutant.after != mutant.before:
                made.setdefault((id(change.node), mutant.after), mutant)
        return [*made.values()]

    def _may_repeat(self, reached: Set[str]) -> bool:
        """Return whether a result may contain duplicates: the reached code neither groups nor deduplicates."""
        code = [statement for statement in ast.parse(self.text).body if reached & {*_defined(statement)}]
        nodes = (node for statement in code for node in ast.walk(statement))
        return not any(isinstance(node, ast.Attribute) and node.attr in BY_KEYS | {"distinct"} for node in nodes)

    def _mutant(self, module: cst.Module, change: CodeEdit) -> Mutant:
        nodes = change.shown or (change.node, change.replacement)
        before, after = (" ".join(module.code_for_node(one).split()) for one in nodes)

        def make() -> Any:
            changed = module.deep_replace(change.node, change.replacement)
            return self.run(cst.ensure_type(changed, cst.Module).code)

        return Mutant(Path(self.path).name, change.line, change.kind, before, after, make)


def _apart(before: str, after: str) -> tuple[str, str]:
    """Return two long texts without most of their common prefix and suffix."""
    if max(len(before), len(after)) <= MAX_SHOWN:
        return before, after
    begin = _alike_at_first(before, after)
    end = _alike_at_first(before[begin:][::-1], after[begin:][::-1])
    cut, rest = max(0, begin - BESIDE), max(0, end - BESIDE)

    def shown(text: str) -> str:
        return f"{'…' * (cut > 0)}{text[cut : len(text) - rest]}{'…' * (rest > 0)}"

    return shown(before), shown(after)


def _alike_at_first(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _of_inputs(sources: Sequence[Source]) -> tuple[bool, Mapping[str, Sequence[str]]]:
    """Return whether a value of the inputs may be null, and the columns of each input."""
    values = (field for source in sources for field in source.schema if field.name not in {*source.key, source.time})
    return any(field.nullable for field in values), {source.name: source.wire_schema.names for source in sources}


def _alike(schemas: Sequence[pa.Schema]) -> Mapping[str, Sequence[str]]:
    """Return for each column the other columns of its type in the same table; if there are none, a number's other
    numbers.
    """

    def others(schema: pa.Schema, field: pa.Field) -> list[str]:
        beside = [other for other in schema if other.name != field.name]
        return [one.name for one in beside if one.type == field.type] or [
            one.name for one in beside if _is_number(one.type) and _is_number(field.type)
        ]

    return {field.name: others(schema, field) for schema in reversed(schemas) for field in schema}


def _is_number(kind: pa.DataType) -> bool:
    return any(of(kind) for of in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))


def functions_of(text: str) -> FunctionNames:
    """Return the names of Spark's functions in a module, from its imports."""
    modules, bare = {*FUNCTIONS}, dict[str, str]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == SPARKS:
            bare |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == SPARKS.rpartition(".")[0]:
            modules |= {alias.asname or alias.name for alias in node.names if alias.name == OWN_NAME}
        elif isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name for alias in node.names if alias.name == SPARKS}
    return FunctionNames(frozenset(modules), bare)


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
    """Return the names of a module that a function uses directly or indirectly, including the function's own name."""
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
