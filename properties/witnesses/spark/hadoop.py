"""Make Hadoop quick in a local session: without this, two habits of Hadoop take a third of a check's CPU seconds.

- Hadoop runs `chmod` for each file that it makes, because PySpark lacks Hadoop's native library: 4 ms of a core.
- Spark sends Hadoop's 1,100 settings to the tasks with each scan and each state store. Hadoop adds to each setting the
  name of the file that set it, and compresses each name alone: tens of ms.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

_NAME = "QuickLocalFileSystem"
_SOURCE = f"""
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public class {_NAME} extends LocalFileSystem {{
  public {_NAME}() {{ super(new Raw()); }}

  public static class Raw extends RawLocalFileSystem {{
    public void setPermission(Path path, FsPermission permission) throws IOException {{
      if (permission.getStickyBit()) {{
        super.setPermission(path, permission);
      }} else {{
        String bits = permission.toString();
        Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(bits));
      }}
    }}
  }}
}}
"""
_LOG = logging.getLogger("streamproof")


def quicken(session: Any) -> None:
    """Make Hadoop quick in a local session's JVM; if another Spark's Hadoop refuses a step, it is skipped."""
    # Loading a file system loads defaults, and with them all origins again: so origins are forgotten last.
    steps: list[Callable[[Any], None]] = [set_permissions_in_java] if os.name == "posix" else []
    for step in [*steps, forget_origins]:
        try:
            step(session)
        except Exception as error:
            _LOG.debug("%s: %s", step.__name__, error)


def set_permissions_in_java(session: Any) -> None:
    """Let Java set the permissions of local files: Spark's compiler makes the class, Hadoop keeps one file system."""
    jvm = session._jvm
    hadoop = jvm.org.apache.hadoop
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(_SOURCE)
    conf = hadoop.conf.Configuration(session._jsc.hadoopConfiguration())
    conf.setClassLoader(compiler.getClassLoader())
    conf.set("fs.file.impl", _NAME)
    hadoop.fs.FileSystem.closeAll()
    hadoop.fs.FileSystem.get(jvm.java.net.URI("file:///"), conf)


def forget_origins(session: Any) -> None:
    """Remove from Hadoop's settings the names of the files that set them; the settings stay."""
    find = session._jvm.java.lang.Class.forName
    find("org.apache.hadoop.mapred.JobConf")  # it, too, loads defaults
    conf = session._jsc.hadoopConfiguration()
    conf.size()
    origins = find("org.apache.hadoop.conf.Configuration").getDeclaredField("updatingResource")
    origins.setAccessible(True)
    origins.get(conf).clear()
