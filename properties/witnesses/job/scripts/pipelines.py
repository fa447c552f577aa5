"""Declarative Pipelines: the declared datasets and flows, and a query for each flow that streams.

`spark-pipelines run` sends the same declarations to a server. The check calls each flow's function in the check's
session, after the functions of the datasets that the flow reads. Source: Spark's *Declarative Pipelines Programming
Guide*, 4.3.
"""

from __future__ import annotations

import contextlib
import importlib
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .....reference.core.errors import BadInput, MissingTool
from ....system.ipynb import source_of
from ....system.visible import first_line, visible, visible_path
from .reads import renewed, union
from .statements import Declaration, declarations_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VIEW, TABLE, SINK = "TemporaryView", "StreamingTable", "Sink"
"""The kinds of datasets with streaming rows, by PySpark's class names; other kinds are recomputed each time."""


@dataclass(frozen=True)
class Flow:
    """A function or a statement that defines rows of a dataset.

    Attributes:
        name: The flow's name.
        target: The dataset that receives the rows.
        make: Returns the DataFrame of the rows.
        file: The file of the declaration.
        line: The line of the declaration.
    """

    name: str
    target: str
    make: Callable[[], DataFrame]
    file: Path
    line: int


@dataclass
class Pipeline:
    """The datasets and flows that a run's files declare: a registry for `pyspark.pipelines`.

    Attributes:
        lift: The run, a `Lift`.
        kinds: The kind of each dataset, by its name.
        flows: The flows, in the order of their declarations.
        frames: The DataFrames of the evaluated flows, by the dataset's name.
        making: The datasets under evaluation; each was read by the previous dataset's flow.
    """

    lift: Any
    kinds: dict[str, str] = field(default_factory=dict)
    flows: list[Flow] = field(default_factory=list)
    frames: dict[str, list[DataFrame]] = field(default_factory=dict)
    making: list[str] = field(default_factory=list)

    def register_output(self, output: Any) -> None:
        """Record a dataset that PySpark's decorators declare."""
        self.kinds[output.name] = type(output).__name__

    def register_flow(self, flow: Any) -> None:
        """Record a flow that PySpark's decorators declare."""
        code = flow.func.__code__
        self.flows.append(Flow(flow.name, flow.target, flow.func, Path(code.co_filename), code.co_firstlineno))

    def register_auto_cdc_flow(self, flow: Any) -> None:
        """Record that an auto-CDC flow isn't checked, because the server merges its changes."""
        self.lift.note(
            f"the AutoCDC flow into {visible(flow.target)} isn't checked, because Spark's server merges its rows"
        )

    def declare(self, text: str, file: Path) -> None:
        """Record the declarations of SQL statements.

        Raises:
            BadInput: A statement isn't a known declaration.
        """
        for one in declarations_of(text):
            with self.lift.within(file, one.line):
                self._declare(one, file)

    def _declare(self, one: Declaration, file: Path) -> None:
        if one.setting is not None:
            self.lift.set(*one.setting)
            return
        if one.kind is None and one.query is None:
            raise self.lift.refuse(
                f"line {one.line} of {self.lift.source.where} declares no table, view or flow: "
                f"{visible(first_line(Exception(one.text)))!r}"
            )
        if one.kind is not None:
            self.kinds[one.target] = one.kind
        if one.query is not None:
            make = partial(self.lift.spark.sql, one.query)
            self.flows.append(Flow(one.name, one.target, make, file, one.line))

    def dataset_of(self, table: str | None) -> str | None:
        """Return the dataset that a table's name refers to, with or without its database (None: no dataset).

        Args:
            table: The name (None: the read source has no name).
        """
        asked = (table or "").replace("`", "").casefold()
        last = asked.rpartition(".")[2]
        for name in self.kinds:
            own = name.replace("`", "").casefold()
            if own == asked or (own.rpartition(".")[2] == last and (last == asked or own == last)):
                return name
        return None

    def made(self, name: str) -> list[DataFrame]:
        """Return the DataFrames of the flows of a dataset.

        Raises:
            BadInput: The dataset reads itself.
        """
        if name in self.making:
            way = " reads ".join([*self.making[self.making.index(name) :], name])
            raise self.lift.refuse(f"{self.lift.source.where}: {visible(way)}: a dataset can't read itself")
        if name not in self.frames:
            self.making.append(name)
            try:
                self.frames[name] = [self._frame(flow) for flow in self._flows_of(name)]
            finally:
                self.making.pop()
        return self.frames[name]

    def _flows_of(self, name: str) -> list[Flow]:
        return [flow for flow in self.flows if self.dataset_of(flow.target) == name]

    def _frame(self, flow: Flow) -> DataFrame:
        with self.lift.within(flow.file, flow.line):
            return flow.make()

    def rows(self, name: str) -> DataFrame | None:
        """Return the union of the rows of a dataset's flows (None: the dataset has no flow)."""
        frames = self.made(name)
        if not frames:
            return None
        return renewed(union(frames))

    def start(self) -> None:
        """Start a query for each flow that streams into a table or a sink.

        Raises:
            BadInput: The files declare datasets, but no flow that streams.
        """
        started = len(self.lift.writes)
        for name, kind in self.kinds.items():
            if kind in (TABLE, SINK):
                for flow, frame in zip(self._flows_of(name), self.made(name), strict=True):
                    self._start(flow, frame, name)
            elif kind != VIEW:
                self.lift.note(f"{visible(name)} isn't checked: Spark computes a materialized view anew each time")
        if self.kinds and len(self.lift.writes) == started:
            raise self.lift.refuse(
                f"{self.lift.source.where} declares {', '.join(map(visible, self.kinds))}, and no flow that reads a "
                "stream: a materialized view, which Spark recomputes each time, needs no test of micro-batches"
            )

    def _start(self, flow: Flow, frame: DataFrame, dataset: str) -> None:
        with self.lift.within(flow.file, flow.line):
            if frame.isStreaming:
                frame.writeStream.queryName(flow.name).outputMode("append").toTable(dataset)
            else:
                self.lift.note(f"the flow {visible(flow.name)} isn't checked: it reads no stream")


@contextlib.contextmanager
def declaring(pipeline: Pipeline) -> Iterator[None]:
    """Let code within the block declare datasets and flows of a pipeline."""
    try:
        from pyspark.pipelines.graph_element_registry import graph_element_registration_context
    except ImportError:  # PySpark before 4.1 lacks pipelines
        yield
        return
    with graph_element_registration_context(pipeline):  # type: ignore[arg-type]
        yield


def declare_all(pipeline: Pipeline, path: Path) -> None:
    """Record the declarations of a project's files, or of a file of statements.

    Args:
        pipeline: The pipeline that receives the declarations.
        path: The project's specification file, or an SQL file.

    Raises:
        BadInput: A file can't be read, or contains an unknown declaration.
        MissingTool: PyYAML isn't installed.
    """
    if path.suffix == ".sql":
        pipeline.declare(_text(path), path)
        return
    lift, project = pipeline.lift, _project(path)
    for name, value in (project.get("configuration") or {}).items():
        lift.set(str(name), value)
    files = [file for pattern in _patterns(project, path) for file in sorted(path.parent.glob(pattern))]
    sources = [file for file in dict.fromkeys(files) if file.suffix in (".py", ".sql") and file.is_file()]
    if not sources:
        raise lift.refuse(f"{lift.source.where} includes no file: its libraries match no .py or .sql file")
    for file in sources:
        with lift.within(file):
            if file.suffix == ".sql":
                pipeline.declare(_text(file), file)
                continue
            module = types.ModuleType(file.stem)
            vars(module).update(spark=lift.spark, __file__=str(file))
            exec(compile(source_of(file), str(file), "exec"), vars(module))


def _project(path: Path) -> Mapping[str, Any]:
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise MissingTool(f"{visible_path(str(path))}: reading the file needs PyYAML: pip install pyyaml") from None
    try:
        found = yaml.safe_load(_text(path))
    except yaml.YAMLError as error:
        raise BadInput(f"{visible_path(str(path))} isn't valid YAML: {first_line(error)}") from None
    if not isinstance(found, dict) or not isinstance(found.get("libraries") or [], list):
        raise BadInput(f"{visible_path(str(path))} describes no pipeline: it needs a name, a storage and libraries")
    return found


def _patterns(project: Mapping[str, Any], path: Path) -> Iterator[str]:
    for entry in project.get("libraries") or []:
        try:
            pattern = str(entry["glob"]["include"])
        except (KeyError, TypeError):
            raise BadInput(f"{visible_path(str(path))}: an entry of libraries needs glob and include") from None
        yield f"{pattern}/*" if pattern.endswith("/**") else pattern


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{visible_path(str(path))} can't be read: {first_line(error)}") from None
