"""Make Hadoop fast in a local session, where three habits of Hadoop take a third of a check's CPU seconds.

- Hadoop runs `chmod` for each new file, because PySpark lacks Hadoop's native library: 4 ms of a core.
- Spark copies Hadoop's 1,100 settings for each list of files, each plan and each scan. 700 are YARN's and MapReduce's.
  - Spark sends the settings to the tasks with each scan and each state store. Hadoop adds to each setting the name of
    the file that set it, and compresses each name separately: tens of ms.
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
    """Make Hadoop fast in a local session's JVM; a step that another Spark's Hadoop refuses is skipped."""
    # Loading a file system also loads Hadoop's defaults and origins again, so remove them last.
    steps: list[Callable[[Any], None]] = [set_permissions_in_java] if os.name == "posix" else []
    for step in [*steps, forget_defaults, forget_origins]:
        try:
            step(session)
        except Exception as error:
            _LOG.debug("%s: %s", step.__name__, error)


def set_permissions_in_java(session: Any) -> None:
    """Let Java set the permissions of local files, with a class that Spark's compiler creates. Hadoop keeps the new
    file system for all later uses.
    """
    jvm = session._jvm
    hadoop = jvm.org.apache.hadoop
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(_SOURCE)
    conf = hadoop.conf.Configuration(session._jsc.hadoopConfiguration())
    conf.setClassLoader(compiler.getClassLoader())
    conf.set("fs.file.impl", _NAME)
    hadoop.fs.FileSystem.closeAll()
    hadoop.fs.FileSystem.get(jvm.java.net.URI("file:///"), conf)


def forget_defaults(session: Any) -> None:
    """Remove the defaults of YARN and MapReduce, which a local session doesn't start, from Hadoop's settings."""
    defaults = session._jvm.org.apache.hadoop.conf.Configuration(False)
    for name in ("yarn-default.xml", "mapred-default.xml"):
        defaults.addResource(name)
    defaults.size()
    settings = _field(session, "properties")
    settings.get(_loaded(session)).entrySet().removeAll(settings.get(defaults).entrySet())


def forget_origins(session: Any) -> None:
    """Remove the origins of Hadoop's settings, which are the names of the files that set them."""
    # Python itself would empty the existing map key by key.
    _field(session, "updatingResource").set(_loaded(session), session._jvm.java.util.concurrent.ConcurrentHashMap())


def _loaded(session: Any) -> Any:
    """Return the settings of Hadoop for a session, with all defaults."""
    session._jvm.java.lang.Class.forName("org.apache.hadoop.mapred.JobConf")  # this call loads the defaults, too
    conf = session._jsc.hadoopConfiguration()
    conf.size()
    return conf


def _field(session: Any, name: str) -> Any:
    field = session._jvm.java.lang.Class.forName("org.apache.hadoop.conf.Configuration").getDeclaredField(name)
    field.setAccessible(True)
    return field
