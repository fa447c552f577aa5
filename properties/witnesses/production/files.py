"""Reads files on any file system that Spark supports, and writes nothing."""

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
        spark: The session, whose Hadoop configuration gives access to file systems.
        root: The folder: a path, or an address such as `s3a://bucket/checkpoints/totals`.

    Raises:
        BadInput: The file system is unknown or unreachable.
    """

    def __init__(self, spark: SparkSession, root: str) -> None:
        # Java's working directory may differ from Python's current one.
        root = os.path.abspath(root) if os.path.exists(root) else root
        self.spark, self.root = spark, root.rstrip("/") or root
        self.jvm: Any = spark._jvm
        self.system = self._of_java(lambda: self._path("").getFileSystem(spark._jsc.hadoopConfiguration()))

    def names(self, folder: str = "") -> list[str]:
        """Return the names of the files and folders in a folder, sorted; none if the folder is missing."""
        path = self._path(folder)
        if not self._of_java(lambda: self.system.exists(path)):
            return []
        found = self._of_java(lambda: [*self.system.listStatus(path)])
        return sorted(each.getPath().getName() for each in found)

    def text(self, name: str) -> str:
        """Return the text of a file.

        Raises:
            BadInput: The file is unreadable.
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
        """Return the folder's complete address, as in Spark's logs."""
        return str(self.system.makeQualified(self._path("")).toUri().toString())

    def where(self, name: str = "") -> str:
        """Return a file's path as messages show it."""
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
    """Return the numbers among the file names of a Spark log, in order."""
    return sorted(int(name) for name in names if name.isdecimal())
