"""Reads files on any file system that Spark knows; nothing is ever written there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ....reference.core.errors import BadInput
from ...system.visible import first_line, visible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Files:
    """The files below a folder.

    Args:
        spark: The session, whose Hadoop configuration says how file systems are reached.
        root: The folder: a path, or an address such as `s3a://bucket/checkpoints/totals`.

    Raises:
        BadInput: Its file system isn't known, or can't be reached.
    """

    def __init__(self, spark: SparkSession, root: str) -> None:
        # Java may run in another working directory than Python does now.
        root = os.path.abspath(root) if os.path.exists(root) else root
        self.spark, self.root = spark, root.rstrip("/") or root
        self.jvm: Any = spark._jvm
        self.system = self._of_java(lambda: self._path("").getFileSystem(spark._jsc.hadoopConfiguration()))

    def names(self, folder: str = "") -> list[str]:
        """Return the names of the files and folders in a folder, sorted; none if there is no such folder."""
        path = self._path(folder)
        if not self._of_java(lambda: self.system.exists(path)):
            return []
        found = self._of_java(lambda: [*self.system.listStatus(path)])
        return sorted(each.getPath().getName() for each in found)

    def text(self, name: str) -> str:
        """Return the text of a file.

        Raises:
            BadInput: It can't be read.
        """

        def read() -> str:
            stream = self.system.open(self._path(name))
            try:
                return str(self.jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()

        return str(self._of_java(read))

    @property
    def address(self) -> str:
        """The folder's whole address, as Spark's logs have it."""
        return str(self.system.makeQualified(self._path("")).toUri().toString())

    def where(self, name: str = "") -> str:
        """Return the path of a file as messages say it."""
        return visible(f"{self.root}/{name}" if name else self.root)

    def _path(self, name: str) -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(f"{self.root}/{name}" if name else self.root)

    def _of_java(self, do: Any) -> Any:
        from py4j.protocol import Py4JJavaError

        try:
            return do()
        except Py4JJavaError as error:
            said = first_line(error.java_exception.toString())
            raise BadInput(f"{self.where()} can't be read: {said}: check its address and your rights") from None


def numbered(names: list[str]) -> list[int]:
    """Return the numbers among the names of the files of one of Spark's logs, in order."""
    return sorted(int(name) for name in names if name.isdecimal())
