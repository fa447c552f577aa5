"""The log of a Delta table: the actions of its versions, and its files at a version.

Source: the Delta transaction log protocol. From time to time a checkpoint stores all valid actions as Parquet; earlier
versions are deleted from the log after `delta.logRetentionDuration`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from ....reference.core.errors import BadInput
from .files import Files, numbered
from .reading import reported_reading

LOG = "_delta_log"
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d+\.(\d+))?\.parquet")
DeltaAction: TypeAlias = dict[str, Any]
"""An action: its kind and its content."""


class DeltaLog:
    """The log of a Delta table.

    Args:
        files: The table's folder.
    """

    def __init__(self, files: Files) -> None:
        self.files, self.names = files, files.names(LOG)
        self.versions = numbered([name.removesuffix(".json") for name in self.names if name.endswith(".json")])
        self._read: dict[int, list[DeltaAction]] = {}

    def actions(self, version: int) -> list[DeltaAction]:
        """Return the actions of a version; its file is read once.

        Raises:
            BadInput: The version is no longer in the log, or is unreadable.
        """
        if version in self._read:
            return self._read[version]
        if version not in self.versions:
            raise BadInput(
                f"{self.files.where(LOG)} no longer contains version {version:,} of the table: raise the table's "
                "delta.logRetentionDuration, and judge a later run"
            )
        name = f"{LOG}/{version:020d}.json"
        try:
            actions = [json.loads(line) for line in self.files.text(name).splitlines() if line]
        except ValueError:
            raise BadInput(
                f"{self.files.where(name)} isn't a Delta table's log, or is truncated: copy the whole log"
            ) from None
        return self._read.setdefault(version, actions)

    def snapshot(self, version: int) -> tuple[list[DeltaAction], DeltaAction]:
        """Return the files of the table at a version, in a stream's order, and its metadata.

        Raises:
            BadInput: The version is no longer in the log.
        """
        files: dict[tuple[str, str], DeltaAction] = {}
        metadata: DeltaAction = {}
        for action in self._until(version):
            metadata = action.get("metaData", metadata)
            for kind in action.keys() & {"add", "remove"}:
                key = action[kind]["path"], json.dumps(action[kind].get("deletionVector"), sort_keys=True)
                if kind == "add":
                    files[key] = action["add"]
                else:
                    files.pop(key, None)
        # Delta's streaming source reads a snapshot's files in this order (DeltaSourceSnapshot).
        return sorted(files.values(), key=lambda add: (add["modificationTime"], add["path"].encode())), metadata

    def _until(self, version: int) -> Iterator[DeltaAction]:
        """Yield the actions that lead to a version, from a checkpoint or from the first version."""
        parts: dict[tuple[int, int], list[str]] = {}
        for name in self.names:
            match = _CHECKPOINT.fullmatch(name)
            if match and int(match[1]) <= version:
                parts.setdefault((int(match[1]), int(match[2] or 1)), []).append(name)
        begins, count = max((key for key, names in parts.items() if len(names) == key[1]), default=(-1, 0))
        yield from self._of_checkpoint(parts.get((begins, count), []))
        for number in range(begins + 1, version + 1):
            yield from self.actions(number)

    def _of_checkpoint(self, names: Sequence[str]) -> Iterator[DeltaAction]:
        from pyspark.sql import functions as F

        if not names:
            return
        with reported_reading(self.files.where(LOG)):
            frame = self.files.spark.read.parquet(*(f"{self.files.root}/{LOG}/{name}" for name in names))
            for kind in ("metaData", "add"):
                rows = frame.where(F.col(kind).isNotNull()).select(F.to_json(kind)).collect()
                yield from ({kind: json.loads(row[0])} for row in rows)


def changing(actions: Iterable[DeltaAction], kind: str) -> list[DeltaAction]:
    """Return the actions of a kind (such as `add`) that change the table's rows, without actions that only move rows to
    other files.
    """
    return [action[kind] for action in actions if kind in action and action[kind].get("dataChange", True)]
