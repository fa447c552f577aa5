"""Counts the structure of the project: `python -m benchmarks.structure` prints executed files, types and lines.

Each check is traced in a separate process, with a profiler in all its threads. A file counts if one of its functions
runs during the check, after all modules were imported. Code in Spark's Python workers doesn't count.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Annotated, TypeAlias

import typer

ROOT = Path(__file__).parent.parent
PACKAGES = ("reference", "spark_impl", "properties", "specs", "streamproof")
HISTORIES = 60
"""The number of histories of a traced check: enough to meet all its coverage goals."""
MOST_FILES: Mapping[str, int] = {"README's check": 50, "check('session_windows')": 70}
LEAST_SHARED = 35
KINDS: Mapping[str, tuple[int, str]] = {
    "row": (3, r"(Row|Record|Change|Emitted)"),
    "history": (2, r"History"),
    "difference": (2, r"(Difference|Comparison|Compared|Violation|Wrong)"),
    "counterexample": (1, r"(Counterexample|Saved)"),
    "report": (2, r"(Report|Content)"),
}
"""The largest number of types of each kind, and the suffixes of their names."""
MOST_LINES: Mapping[str, int] = {"properties": 42_000, "tests": 48_000}
OF_EACH_OPERATOR = ("Behaviour",)
"""Names of classes that each operator's file defines with the same meaning."""
ALIAS = re.compile(r"_?[A-Z][a-z]\w* = (?!Annotated\[|TypeVar\()[^(]+(\[.+\]|\|.+)$", re.DOTALL)
"""Matches a type alias, but not an annotated option of a command, which is named after its setting."""
BOTH_SIDES = {"reference", "spark_impl"}
"""An operator's reference and its Spark implementation use the same names for the parts of their state."""


def readme_check() -> None:
    """Check the job of README, which conforms with a watermark of ten minutes."""
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F
    from streamproof import Input, check_job, session_windows

    def visits(clicks: DataFrame) -> DataFrame:
        gap = F.session_window("at", "30 minutes")
        sessions = clicks.withWatermark("at", "10 minutes").groupBy("user", gap)
        return sessions.agg(F.sum("amount").alias("total"))

    expected = session_windows(gap="30 minutes", delay="10 minutes", aggregates={"total": ("sum", "amount")})
    check_job(visits, Input("user string, at timestamp, amount bigint", key="user", name="clicks"), expect=expected)


def operator_check() -> None:
    """Check `session_windows`, first the reference and then Spark."""
    from streamproof import check

    with tempfile.TemporaryDirectory() as folder:
        reports = check("session_windows", HISTORIES, folder=Path(folder))
    assert not any(report.found for report in reports)


CHECKS: Mapping[str, Callable[[], None]] = dict(zip(MOST_FILES, (readme_check, operator_check), strict=True))
WithoutSpark: TypeAlias = Annotated[bool, typer.Option("--without-spark", help="Trace nothing: count types and lines.")]
Traced: TypeAlias = Annotated[
    str | None, typer.Option("--traced", metavar="CHECK", help="Print the files that a check executes, as JSON.")
]


def code_called(work: Callable[[], object]) -> list[CodeType]:
    """Return the code of all calls during the work, in any thread, in the order of first calls."""
    called: dict[CodeType, None] = {}

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            called.setdefault(frame.f_code)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(called)


def files_of(work: Callable[[], object]) -> list[str]:
    """Return the project's files in which a function runs during the work, in any thread."""
    found = {Path(code.co_filename) for code in code_called(work) if code.co_flags & inspect.CO_OPTIMIZED}
    inside = {file.relative_to(ROOT).as_posix() for file in found if file.is_relative_to(ROOT)}
    return sorted(file for file in inside if file.partition("/")[0] in PACKAGES)


def import_all() -> None:
    """Import all modules, so that none is imported while a check is traced."""
    for file in sources():
        parts = file.relative_to(ROOT).with_suffix("").parts
        if parts[-1] != "__main__" and not parts[-1].endswith("_main"):
            name = ".".join(parts if parts[0] == "streamproof" else ("streamproof", *parts))
            import_module(name.removesuffix(".__init__"))


def sources() -> Iterator[Path]:
    """Yield the modules of the project."""
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def classes(files: Iterable[Path]) -> dict[str, list[str]]:
    """Return the files of each class and type alias by its name, except mutants."""
    found: dict[str, list[str]] = defaultdict(list)
    for file in files:
        name = file.relative_to(ROOT).as_posix()
        if "mutants" not in name:
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(name)
                elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
                    found[ast.unparse(node.target)].append(name)
                elif isinstance(node, ast.Assign) and ALIAS.match(ast.unparse(node)):
                    found[ast.unparse(node.targets[0])].append(name)
    return dict(found)


def types_of(kind: str, known: Mapping[str, list[str]]) -> list[str]:
    """Return the types of a kind, which the suffix of a type's name tells, each with its file."""
    named = re.compile(rf"[A-Za-z]*{KINDS[kind][1]}")
    return sorted(f"{name} in {file}" for name, files in known.items() if named.fullmatch(name) for file in files)


def named_twice(known: Mapping[str, list[str]]) -> list[str]:
    """Return the names that several classes share, each with the classes' files, except names that mean the same
    everywhere.
    """
    twice = {name: files for name, files in known.items() if len(files) > 1 and not name.startswith("_")}
    return sorted(
        f"{name}: {', '.join(files)}"
        for name, files in twice.items()
        if name not in OF_EACH_OPERATOR
        and not (len(files) == 2 and {file.partition("/")[0] for file in files} == BOTH_SIDES)
    )


def lines_of(folder: str) -> int:
    """Return the number of lines of a folder's modules."""
    return sum(file.read_text(encoding="utf-8").count("\n") for file in (ROOT / folder).rglob("*.py"))


def traced(check: str) -> list[str]:
    """Return the files that run during a check, traced in a separate process."""
    command = [sys.executable, "-m", "benchmarks.structure", "--traced", check]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    files: list[str] = json.loads(done.stdout.splitlines()[-1])
    return files


def show(name: str, count: int, limit: str, names: list[str]) -> None:
    """Print a count, the target of the count, and the counted items."""
    print(f"{name}: {count}, {limit}")
    for one in names:
        print(f"    {one}")


def main(without_spark: WithoutSpark = False, check: Traced = None) -> None:
    """Count the files in which a function runs during two checks, the types of each kind, lines, and repeated names."""
    if check is not None:
        if check not in CHECKS:
            raise typer.BadParameter(f"{check!r} isn't a check: use one of {', '.join(CHECKS)}")
        import_all()
        print(json.dumps(files_of(CHECKS[check])))
        return
    if not without_spark:
        files = {check: traced(check) for check in CHECKS}
        for check, most in MOST_FILES.items():
            show(f"files in which a function runs, {check}", len(files[check]), f"at most {most}", files[check])
        shared = sorted(set.intersection(*map(set, files.values())))
        show("files shared by the two", len(shared), f"at least {LEAST_SHARED}", shared)
    known = classes(sources())
    for kind, (most, _) in KINDS.items():
        found = types_of(kind, known)
        show(f"types of a {kind}", len(found), f"at most {most}", found)
    for folder, most in MOST_LINES.items():
        show(f"lines of {folder}/", lines_of(folder), f"at most {most:,}", [])
    twice = named_twice(known)
    show("class names with two different meanings", len(twice), "none", twice)


if __name__ == "__main__":
    typer.run(main)
