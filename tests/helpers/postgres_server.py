"""A PostgreSQL server of the tests' own: on loopback, in a data folder that goes with it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from streamproof.properties.witnesses.kafka_broker.broker import LOOPBACK, free_ports

DEBIANS = Path("/usr/lib/postgresql")


def programs() -> Path | None:
    """Return the folder of the server's programs; None: it isn't installed."""
    found = shutil.which("pg_ctl")
    of_debian = sorted(DEBIANS.glob("*/bin/pg_ctl"))
    return Path(found or of_debian[-1]).parent if found or of_debian else None


@contextlib.contextmanager
def postgres_server(folder: Path) -> Iterator[str]:
    """Start a server, give its URL, and stop it."""
    user = "postgres" if os.getuid() == 0 else None  # PostgreSQL refuses to run as root
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="streamproof-postgres-", ignore_cleanup_errors=True) as own:
        if user:
            shutil.chown(own, user)
        data = f"{own}/data"

        def run(program: str, *arguments: str) -> None:
            command = [str(folder / program), "-D", data, *arguments]
            with open(f"{own}.log", "a", encoding="utf-8") as log:
                subprocess.run(
                    command, user=user, cwd="/", check=True, stdout=log, stderr=log, stdin=subprocess.DEVNULL
                )

        try:
            run("initdb", "--auth=trust", "--username=tests", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8")
            options = f"-p {port} -h {LOOPBACK} -k {own} -c fsync=off -c max_connections=20"
            run("pg_ctl", "start", "--wait", f"--log={own}/log", "-o", options)
            try:
                yield f"postgresql://tests@{LOOPBACK}:{port}/postgres"
            finally:
                run("pg_ctl", "stop", "--mode=immediate")
        finally:
            Path(f"{own}.log").unlink(missing_ok=True)
