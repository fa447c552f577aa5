"""Stand-ins of well-known packages that aren't installed: a script may import them, and is refused where it calls them.

Some of their functions do nothing that a check would miss, and are there.
"""

from __future__ import annotations

import ast
import importlib.metadata
import linecache
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from itertools import pairwise
from types import ModuleType
from typing import Any

NAMESPACES = frozenset({"azure", "databricks", "google"})
"""Packages of several distributions: a part of them may be installed."""
QUIET = frozenset({"datadog", "loguru", "prometheus_client", "sentry_sdk", "sparkmeasure", "statsd", "structlog"})
"""Packages that log and measure: whatever is called of them does nothing."""
_OTHERS = """
    aiokafka airflow awsglue boto3 botocore cassandra clickhouse_connect clickhouse_driver confluent_kafka delta dotenv
    elasticsearch findspark graphframes great_expectations happybase hudi hvac influxdb influxdb_client jaydebeapi kafka
    minio mlflow mysql neo4j opensearchpy oracledb pika pkg_resources psycopg psycopg2 pydeequ pymongo pymssql pymysql
    pyodbc redis s3fs slack_sdk snowflake sqlalchemy tweepy twilio
"""
KNOWN = frozenset(_OTHERS.split()) | NAMESPACES | QUIET
"""Packages that scripts import for their sinks, sources and platforms."""
_OF_SINKS = """
    cassandra clickhouse_connect clickhouse_driver elasticsearch happybase influxdb influxdb_client kafka
    minio mysql neo4j opensearchpy oracledb psycopg psycopg2 pymongo pymssql pymysql pyodbc redis sqlalchemy
"""
CLIENTS = frozenset(_OF_SINKS.split())
"""Packages by which a script makes its sink ready: nothing that a check sees comes of them."""
WRITING = "delta.tables.DeltaTable"
"""The class that writes beside the query."""
NAMES: Mapping[str, Sequence[str]] = {"delta.tables": ("DeltaTable", "DeltaMergeBuilder", "DeltaOptimizeBuilder")}
"""The names that `from … import *` gives."""
CATCHING = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


def _same(given: Any = None, *arguments: Any, **named: Any) -> Any:
    return next(iter(named.values()), None) if given is None else given


def _nothing(*arguments: Any, **named: Any) -> None:
    return None


def _glue_options(argv: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return the arguments of a job of AWS Glue; an argument that isn't given is its own name."""
    given = dict(pairwise(argv))
    return {name: given.get(f"--{name}", name.lower()) for name in names}


HARMLESS: Mapping[str, Callable[..., Any]] = {
    "awsglue.utils.getResolvedOptions": _glue_options,
    "delta.configure_spark_with_delta_pip": _same,
    "delta.pip_utils.configure_spark_with_delta_pip": _same,
    "dotenv.find_dotenv": _nothing,
    "dotenv.load_dotenv": _nothing,
    "findspark.add_jars": _nothing,
    "findspark.add_packages": _nothing,
    "findspark.find": _nothing,
    "findspark.init": _nothing,
    "pkg_resources.get_distribution": importlib.metadata.distribution,
    "pkg_resources.require": _nothing,
}
"""Functions that need nothing of their package here."""


class Absent:
    """Stands in for what a package has: it is refused where it is called.

    Args:
        name: Its full name.
        skip: Is told what is called in vain; None: a call is refused.
    """

    def __init__(self, name: str, skip: Callable[[str], None] | None = None) -> None:
        self._name, self._skip = name, skip

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self._name}.{name}", self._skip)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Refuse a call, unless it does nothing that a check would miss."""
        package = self._name.partition(".")[0]
        if package in QUIET:
            return arguments[0] if len(arguments) == 1 and callable(arguments[0]) else self  # a decorator
        if self._skip is not None and not self._name.endswith(".toDF"):
            self._skip(self._name.removeprefix("delta.tables."))
            return Absent(self._name, _nothing)  # what follows in the line is a part of it
        raise ModuleNotFoundError(f"No module named {package!r}, of which {self._name} is called", name=package)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        """Let a class that derives from it be made, which is refused where it is called."""
        return (type(self._name.rpartition(".")[2], (), {"__new__": lambda *_, **__: self()}),)

    def __getitem__(self, key: object) -> Any:
        """Refuse a value that only the package has."""
        raise ModuleNotFoundError(f"No module named {self._name.partition('.')[0]!r}, of which {self._name} is used")

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __enter__(self) -> Any:
        return self()

    def __exit__(self, *error: object) -> None:
        """End a block of what does nothing."""


class AbsentModule(ModuleType):
    """Stands in for a module.

    Args:
        name: Its name.
        skip: As of `Absent`.
    """

    def __init__(self, name: str, skip: Callable[[str], None] | None) -> None:
        super().__init__(name)
        self._skip = skip

    def __getattr__(self, name: str) -> Any:
        if name == "__all__" and self.__name__ in NAMES:
            return [*NAMES[self.__name__]]
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        return HARMLESS.get(full) or Absent(
            full, self._skip if full == WRITING or self.__name__.partition(".")[0] in CLIENTS else None
        )


class _Maker(Loader):
    def __init__(self, skip: Callable[[str], None] | None) -> None:
        self.skip = skip

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return AbsentModule(spec.name, self.skip)

    def exec_module(self, module: ModuleType) -> None:
        """Leave it as it is."""


def stand_in(name: str, skip: Callable[[str], None] | None) -> ModuleSpec | None:
    """Return how the stand-in of a module that runs now imports is made; None: there is none.

    There is none where the code goes on without the package, as by `except ImportError`.

    Args:
        name: The module's full name.
        skip: Is told what is called in vain of what writes; None: a call is refused.
    """
    package = name.partition(".")[0]
    known = sys.modules.get(package)
    if package not in KNOWN or not (known is None or isinstance(known, AbsentModule) or package in NAMESPACES):
        return None
    return None if _goes_on_without() else ModuleSpec(name, _Maker(skip), is_package=True)


def _goes_on_without() -> bool:
    """Whether the running import only asks if a package is there, or stands in a `try` that catches its failure."""
    frame: Any = sys._getframe()
    own = os.path.dirname(__file__)
    while frame is not None:
        file = frame.f_code.co_filename
        if frame.f_globals.get("__name__") == "importlib.util":  # find_spec
            return True
        if not file.startswith((own, "<frozen ")) and "importlib" not in file:
            return any(_catches(node, frame.f_lineno) for node in _tries(file))
        frame = frame.f_back
    return False


def _tries(file: str) -> Iterator[ast.Try]:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.Try))


def _catches(node: ast.Try, line: int) -> bool:
    if not any(one.lineno <= line <= (one.end_lineno or 0) for one in node.body):
        return False
    kinds = [handler.type for handler in node.handlers]
    caught = {one.id for kind in kinds if kind for one in ast.walk(kind) if isinstance(one, ast.Name)}
    return None in kinds or bool(caught & CATCHING)


def forget_stand_ins() -> None:
    """Let modules that aren't there be missing again."""
    for name in [name for name, module in sys.modules.items() if isinstance(module, AbsentModule)]:
        del sys.modules[name]
