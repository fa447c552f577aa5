"""Stand-ins for packages that aren't installed: a script may import and call a stand-in, but not use its values.

Functions of well-known packages that don't affect a check do nothing.
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

from pyspark.sql import SparkSession

from ..users_code import is_users_file

NAMESPACES = frozenset({"azure", "databricks", "google"})
"""Packages that consist of several distributions, of which some may be installed."""
QUIET = frozenset({"datadog", "loguru", "prometheus_client", "sentry_sdk", "sparkmeasure", "statsd", "structlog"})
"""Packages for logging and metrics: every call does nothing."""
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
"""Packages that prepare a script's sink: a check sees no effect of their calls."""
WRITING = "delta.tables.DeltaTable"
"""The Delta class that writes outside the query."""
NAMES: Mapping[str, Sequence[str]] = {"delta.tables": ("DeltaTable", "DeltaMergeBuilder", "DeltaOptimizeBuilder")}
"""The names that `from … import *` imports."""
OF_MISSING = "a value of a package that isn't installed"
CATCHING = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


def _same(given: Any = None, *arguments: Any, **named: Any) -> Any:
    return next(iter(named.values()), None) if given is None else given


def _nothing(*arguments: Any, **named: Any) -> None:
    return None


def _glue_options(argv: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return the arguments of an AWS Glue job; the value of a missing argument is its own name."""
    given = dict(pairwise(argv))
    return {name: given.get(f"--{name}", name.lower()) for name in names}


class _GlueContext:
    """Stands in for AWS Glue's `GlueContext`, with the check's session."""

    def __init__(self, *_: Any) -> None:
        self.spark_session = SparkSession.builder.getOrCreate()

    def __getattr__(self, name: str) -> Absent:
        return Absent(f"awsglue.context.GlueContext.{name}")


def _glue_job(*_: Any) -> Absent:
    """Return a stand-in for an AWS Glue job, whose calls do nothing."""
    return Absent("awsglue.job.Job", _nothing)


HARMLESS: Mapping[str, Callable[..., Any]] = {
    "awsglue.context.GlueContext": _GlueContext,
    "awsglue.job.Job": _glue_job,
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
"""Functions that work without their package."""


class Absent:
    """Stands in for an attribute of a missing package: a call is refused.

    Args:
        name: The full name of the attribute.
        skip: Called with the name of each call that does nothing (None: all calls are refused).
    """

    def __init__(self, name: str, skip: Callable[[str], None] | None = None) -> None:
        self._name, self._skip = name, skip

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self._name}.{name}", self._skip)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Do nothing for a call that doesn't affect the check, and refuse any other call."""
        package = self._name.partition(".")[0]
        if package in QUIET:
            return arguments[0] if len(arguments) == 1 and callable(arguments[0]) else self  # a decorator
        if self._skip is not None and not self._name.endswith(".toDF"):
            self._skip(self._name.removeprefix("delta.tables."))
            return Absent(self._name, _nothing)  # chained calls on the result do nothing, either
        raise ModuleNotFoundError(f"No module named {package!r}, and the script calls {self._name}", name=package)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        """Allow the definition of a subclass, which is refused when called."""
        return (type(self._name.rpartition(".")[2], (), {"__new__": lambda *_, **__: self()}),)

    def __getitem__(self, key: object) -> Any:
        """Refuse a value that only the missing package defines."""
        raise ModuleNotFoundError(f"No module named {self._name.partition('.')[0]!r}, and the script uses {self._name}")

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __enter__(self) -> Any:
        return self()

    def __exit__(self, *error: object) -> None:
        """End a block whose calls do nothing."""


class Uninstalled(Absent):
    """Stands in for a value of a package that isn't well known: calls do nothing, and a use of a value is refused.

    A client that only a sink's functions use does no harm, but a value that reaches Spark would do harm.
    """

    def __getattr__(self, name: str) -> Uninstalled:
        if name.startswith("_"):
            raise AttributeError(name)
        return Uninstalled(f"{self._name}.{name}", self._skip)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Skip a call, unless an argument is a function, which the package would call."""
        given = [one for one in (*arguments, *named.values()) if not isinstance(one, Absent)]
        if self._skip is None or any(map(callable, given)):
            return self._refuse()
        self._skip(self._name)
        return Uninstalled(f"{self._name}(…)", self._skip)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        """Allow the definition of a subclass, which is refused when called."""
        return (type(self._name.rpartition(".")[2], (), {"__new__": lambda *_, **__: self._refuse()}),)

    def __repr__(self) -> str:
        return f"{self._name}, {OF_MISSING}"

    def _refuse(self, *_: object) -> Any:
        package = self._name.partition(".")[0]
        raise ModuleNotFoundError(f"No module named {package!r}, and the script uses {self._name}", name=package)

    __getitem__ = __iter__ = __len__ = __bool__ = __str__ = __format__ = __reduce_ex__ = __enter__ = _refuse
    __contains__ = __lt__ = __gt__ = __le__ = __ge__ = __add__ = __radd__ = __mul__ = __rmul__ = __neg__ = _refuse
    __sub__ = __rsub__ = __truediv__ = __rtruediv__ = __mod__ = __int__ = __float__ = __index__ = __fspath__ = _refuse


class AbsentModule(ModuleType):
    """Stands in for a missing module.

    Args:
        name: The full name of the module.
        skip: As in `Absent`.
    """

    def __init__(self, name: str, skip: Callable[[str], None] | None) -> None:
        super().__init__(name)
        self._skip = skip

    def __getattr__(self, name: str) -> Any:
        package, full = self.__name__.partition(".")[0], f"{self.__name__}.{name}"
        if name == "__all__" and self.__name__ in NAMES:
            return [*NAMES[self.__name__]]
        if name == "__all__" and package not in KNOWN:  # the names of `from … import *` are unknown
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        if name.startswith("__"):
            raise AttributeError(name)
        if full in HARMLESS:
            return HARMLESS[full]
        if package not in QUIET | CLIENTS | {"delta"}:
            return Uninstalled(full, self._skip)
        return Absent(full, self._skip if full == WRITING or package in CLIENTS else None)


class _Maker(Loader):
    def __init__(self, skip: Callable[[str], None] | None) -> None:
        self.skip = skip

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return AbsentModule(spec.name, self.skip)

    def exec_module(self, module: ModuleType) -> None:
        """Leave a stand-in module unchanged."""


def stand_in(name: str, skip: Callable[[str], None] | None) -> ModuleSpec | None:
    """Return the spec of a stand-in for the module that is imported now (None: no stand-in applies).

    No stand-in applies if the code handles the missing package, as by `except ImportError`, or if a library imports a
    package that isn't well known.

    Args:
        name: The module's full name.
        skip: Called with the name of each ignored call that writes (None: all calls are refused).
    """
    package = name.partition(".")[0]
    known = sys.modules.get(package)
    if not (known is None or isinstance(known, AbsentModule) or package in NAMESPACES):
        return None
    return None if _goes_on_without(package in KNOWN) else ModuleSpec(name, _Maker(skip), is_package=True)


def _goes_on_without(is_known: bool) -> bool:
    """Return whether the import only tests for the package, or is in a `try` that catches an import error.

    If a library does the import, the function assumes that the library works without a package that isn't well known.
    """
    frame: Any = sys._getframe()
    own = os.path.dirname(__file__)
    while frame is not None:
        file = frame.f_code.co_filename
        if frame.f_globals.get("__name__") == "importlib.util":  # find_spec
            return True
        if not file.startswith((own, "<frozen ")) and "importlib" not in file:
            if not is_known and not is_users_file(file):
                return True
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
    """Remove the stand-ins, so that missing modules are missing again."""
    for name in [name for name, module in sys.modules.items() if isinstance(module, AbsentModule)]:
        del sys.modules[name]
