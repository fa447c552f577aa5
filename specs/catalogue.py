"""The catalogue: every specification with its models, and TLC's expected result for each.

The catalogue is the file `manifest.json`, whose field names follow the manifest of tlaplus/Examples.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeGuard, get_args

from ..reference.core.errors import BadInput

ExpectedEnd: TypeAlias = Literal["success", "safety failure", "liveness failure", "deadlock failure"]
ModelSize: TypeAlias = Literal["small", "large"]

FOLDER = Path(__file__).parent
MANIFEST = FOLDER / "manifest.json"
MODE = "exhaustive search"
_COUNTS = ("distinctStates", "totalStates", "stateDepth")


@dataclass(frozen=True)
class CatalogueModel:
    """A model: a module with the constants and properties of a configuration, and its expected result.

    Attributes:
        name: The configuration's name, `ForeignKeyJoin_race_update`.
        module: The file of the module.
        configuration: The file of the configuration.
        says: The description of the model, in one sentence.
        mode: The mode of TLC, which is always `exhaustive search`.
        size: `small` models run in `make specs` and CI, and `large` models run at night.
        result: TLC's expected result.
        violated: The property that the model violates as expected, or None if the model passes or ends in a deadlock.
        trace_length: The number of states in the counterexample, or None if the model passes.
        distinct: The number of distinct states, with one worker.
        generated: The number of generated states, with one worker.
        depth: The depth of the state graph, with one worker.
        runtime: The rough run time of TLC, as `HH:MM:SS`.
    """

    name: str
    module: Path
    configuration: Path
    says: str
    mode: str
    size: ModelSize
    result: ExpectedEnd
    violated: str | None
    trace_length: int | None
    distinct: int | None
    generated: int | None
    depth: int | None
    runtime: str

    @property
    def fails(self) -> bool:
        """Return whether a counterexample is expected."""
        return self.result != "success"


@dataclass(frozen=True)
class Specification:
    """A module of the catalogue, with its models.

    Attributes:
        name: The module's name.
        module: Its file.
        title: Its subject.
        source: The document that describes the specified protocol, such as a KIP.
        models: The models of the module, in the manifest's order.
    """

    name: str
    module: Path
    title: str
    source: str
    models: tuple[CatalogueModel, ...]


def catalogue(manifest: Path = MANIFEST) -> tuple[Specification, ...]:
    """Read the catalogue.

    Raises:
        BadInput: The manifest is unreadable, or an entry is invalid; the message names the entry.
    """
    entries = field_of(read_json(manifest), "specifications", list, str(manifest))
    specifications = tuple(
        _specification(entry, f"{manifest}: specification {number}", manifest.parent)
        for number, entry in enumerate(entries, start=1)
    )
    names = [model.name for specification in specifications for model in specification.models]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"{manifest}: two models are called {name}: rename one, because models are chosen by name")
    return specifications


def read_json(file: Path) -> Any:
    """Read a JSON file.

    Raises:
        BadInput: The file can't be read, or isn't JSON; the message names the line.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{file}: can't be read ({error.strerror})") from None
    except ValueError as error:
        raise BadInput(f"{file}: not JSON: {error}") from None


def field_of(entry: Any, name: str, kind: type, where: str) -> Any:
    """Return a field of an entry: a string, a list or an object, according to its type.

    Raises:
        BadInput: The field is missing, has another type, or is an empty string; the message starts with `where`.
    """
    if not isinstance(entry, Mapping):
        raise BadInput(f"{where}: not an object with named fields")
    if name not in entry:
        raise BadInput(f"{where}: {name!r} is missing")
    value = entry[name]
    if not isinstance(value, kind) or value == "":
        known = {"str": "a text", "list": "a list", "dict": "an object with named fields"}[kind.__name__]
        raise BadInput(f"{where}: {name!r} is {json.dumps(value)}, but must be {known}")
    return value


def find_model(name: str, manifest: Path = MANIFEST) -> CatalogueModel:
    """Find a model by its name.

    Raises:
        BadInput: No model has this name; the message lists similar names.
    """
    models = {model.name: model for specification in catalogue(manifest) for model in specification.models}
    if name in models:
        return models[name]
    close = difflib.get_close_matches(name, models, n=5, cutoff=0.5)
    close += [other for other in models if name.lower() in other.lower() and other not in close][: 5 - len(close)]
    hint = f"did you mean {', '.join(close)}?" if close else "`streamproof spec list` lists them"
    raise BadInput(f"no model is called {name!r}: {hint}")


def _specification(entry: Any, where: str, folder: Path) -> Specification:
    module = folder / field_of(entry, "module", str, where)
    where = f"{where} ({module.name})"
    if not module.is_file():
        raise BadInput(f"{where}: the file {module} is missing")
    models = tuple(
        _model(model, f"{where}, model {number}", module)
        for number, model in enumerate(field_of(entry, "models", list, where), start=1)
    )
    return Specification(
        module.stem, module, field_of(entry, "title", str, where), field_of(entry, "source", str, where), models
    )


def _model(entry: Any, where: str, module: Path) -> CatalogueModel:
    configuration = module.parent / field_of(entry, "path", str, where)
    where = f"{where} ({configuration.name})"
    if not configuration.is_file():
        raise BadInput(f"{where}: the file {configuration} is missing")
    mode, size, result = (field_of(entry, name, str, where) for name in ("mode", "size", "result"))
    if mode != MODE:
        raise BadInput(f"{where}: its mode is {mode!r}, but only {MODE!r} is supported")
    if not _is_size(size):
        raise BadInput(f"{where}: its size is {size!r}, but must be one of: {', '.join(get_args(ModelSize))}")
    if not _is_expected(result):
        raise BadInput(f"{where}: its result is {result!r}, but must be one of: {', '.join(get_args(ExpectedEnd))}")
    names_property = result in ("safety failure", "liveness failure")
    violated = field_of(entry, "property", str, where) if names_property else None
    length = _count(entry, "traceLength", where, required=result != "success")
    for name, unwanted in (("property", not names_property), ("traceLength", result == "success")):
        if unwanted and name in entry:
            raise BadInput(f"{where}: a model with the result {result!r} can't have {name!r}: remove it")
    distinct, generated, depth = (_count(entry, name, where, required=True) for name in _COUNTS)
    return CatalogueModel(
        name=configuration.stem,
        module=module,
        configuration=configuration,
        says=field_of(entry, "says", str, where),
        mode=mode,
        size=size,
        result=result,
        violated=violated,
        trace_length=length,
        distinct=distinct,
        generated=generated,
        depth=depth,
        runtime=field_of(entry, "runtime", str, where),
    )


def _count(entry: Any, name: str, where: str, required: bool) -> int | None:
    value = entry.get(name)
    if value is None and not required:
        return None
    if name not in entry:
        raise BadInput(f"{where}: {name!r} is missing")
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise BadInput(f"{where}: {name!r} is {json.dumps(value)}, but must be a count")
    return value


def _is_size(value: str) -> TypeGuard[ModelSize]:
    return value in get_args(ModelSize)


def _is_expected(value: str) -> TypeGuard[ExpectedEnd]:
    return value in get_args(ExpectedEnd)
