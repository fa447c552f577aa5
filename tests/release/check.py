"""Whether a release could be made of what `make wheel-check` has built and installed, step by step.

    python tests/release/check.py ENVIRONMENT DIST
    python tests/release/check.py --list

Prints a line for each step. Exits 0 if all hold, and 1 if one doesn't, which is named with the reason and the remedy.
It needs the package index for what it installs (twine, cffconvert, pytest), and nothing else of the network.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Callable, Sequence
from datetime import date
from email import message_from_string
from email.message import Message
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOOLS = ("twine==7.0.0", "cffconvert==2.0.0")
"""What is needed here alone: cffconvert wants older versions of what the project has."""
LINK = re.compile(r"\[[^\]\n]+\]\((?!https?:|#)([^)\s]+)\)")
TYPED = """\
from streamproof import Input, JobReport, check_job

report: JobReport = check_job(lambda clicks: clicks, Input("user string"), expect=lambda rows: rows)
check_job(lambda clicks: clicks, Input("user string"), expect=lambda rows: rows, histories="many")
"""


class NotReady(Exception):
    """A step doesn't hold; the message says why, and what to do."""


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def version_of_project() -> str:
    version: str = tomllib.loads(text_of("pyproject.toml"))["project"]["version"]
    return version


def newest_in_changelog() -> tuple[str, str]:
    """Return the newest version of the changelog, and its day.

    Raises:
        NotReady: It has none.
    """
    found = re.search(r"^## \[(\d[^\]]*)\] - (\S+)$", text_of("CHANGELOG.md"), re.MULTILINE)
    if found is None:
        raise NotReady("CHANGELOG.md has no version: give it a heading such as `## [1.0.0] - 2026-01-31`")
    return found[1], found[2]


def field_of_citation(name: str) -> str:
    """Return a field of the citation file, which are all one line."""
    found = re.search(rf'^{name}: "?([^"\n]+)"?$', text_of("CITATION.cff"), re.MULTILINE)
    return found[1] if found else "missing"


def check_versions() -> None:
    """Versions and days of pyproject.toml, CHANGELOG.md and CITATION.cff agree."""
    version, (newest, day) = version_of_project(), newest_in_changelog()
    said = {"CHANGELOG.md": newest, "CITATION.cff": field_of_citation("version")}
    wrong = [f"{name} says {other}" for name, other in said.items() if other != version]
    if wrong:
        raise NotReady(f"pyproject.toml has the version {version}, and {' and '.join(wrong)}: make them equal")
    if day != field_of_citation("date-released"):
        raise NotReady(
            f"CHANGELOG.md says {day}, and CITATION.cff {field_of_citation('date-released')}: make them equal"
        )
    try:
        date.fromisoformat(day)
    except ValueError:
        raise NotReady(f"CHANGELOG.md dates {newest} by {day}: write the day as 2026-01-31") from None


class Release:
    """What was built, and the environment in which the wheel is installed.

    Attributes:
        python: The Python of that environment.
        dist: The folder with the sdist and the wheel.
    """

    def __init__(self, environment: Path, dist: Path) -> None:
        self.python = environment.resolve() / "bin" / "python"
        self.dist = dist.resolve()
        self.work = environment.resolve().parent

    @cached_property
    def wheel(self) -> Path:
        """The wheel of the project's version."""
        return self._only(f"streamproof-{version_of_project()}-*.whl")

    @cached_property
    def sdist(self) -> Path:
        """The sdist of the project's version."""
        return self._only(f"streamproof-{version_of_project()}.tar.gz")

    def _only(self, pattern: str) -> Path:
        found = sorted(self.dist.glob(pattern))
        if len(found) != 1:
            raise NotReady(f"{self.dist} has {len(found)} files {pattern}: run `make wheel-check`, which builds them")
        return found[0]

    @cached_property
    def metadata(self) -> Message:
        """What the package index is told."""
        with zipfile.ZipFile(self.wheel) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            return message_from_string(archive.read(name).decode())

    @cached_property
    def tools(self) -> Path:
        """The folder of the tools' commands, in an environment of their own."""
        folder = self.work / "tools"
        venv.create(folder, with_pip=True, clear=True)
        run([folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *TOOLS])
        return folder / "bin"

    def check_distributions(self) -> None:
        """Twine accepts the sdist and the wheel, and their page renders."""
        run([self.tools / "twine", "check", "--strict", self.sdist, self.wheel])

    def check_citation(self) -> None:
        """The citation file is valid by its schema."""
        run([self.tools / "cffconvert", "--validate", "--infile", ROOT / "CITATION.cff"])

    def check_package_page(self) -> None:
        """The package page is the README, and has no link that leads nowhere."""
        page = self.metadata.get_payload()
        assert isinstance(page, str)
        if "# streamproof" not in page or len(page) < 3000:
            raise NotReady("the wheel's description isn't the README: see setup.py")
        if relative := LINK.findall(page):
            raise NotReady(
                f"the package page links to {relative[0]}, which is nowhere on a package index: see setup.py"
            )

    def check_contents(self) -> None:
        """The sdist has what a reader and a packager need; the wheel is marked as typed."""
        with tarfile.open(self.sdist) as archive:
            names = {name.partition("/")[2] for name in archive.getnames()}
        wanted = {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "SECURITY.md", "CONTRIBUTING.md"}
        if missing := wanted - names:
            raise NotReady(f"the sdist lacks {', '.join(sorted(missing))}: name them in MANIFEST.in")
        with zipfile.ZipFile(self.wheel) as archive:
            if "streamproof/py.typed" not in archive.namelist():
                raise NotReady("the wheel lacks streamproof/py.typed: see package-data in pyproject.toml")

    def check_types(self) -> None:
        """A module that uses the package is type-checked against it: a wrong argument is an error."""
        module = self.work / "typed.py"
        module.write_text(TYPED, encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--python-executable",
            self.python,
            "--cache-dir",
            os.devnull,
        ]
        told = subprocess.run([*command, module.name], cwd=self.work, env=environment(), capture_output=True, text=True)
        errors = [line for line in told.stdout.splitlines() if ": error:" in line]
        if len(errors) != 1 or not errors[0].startswith("typed.py:4:") or '"histories"' not in errors[0]:
            raise NotReady(f"mypy should refuse line 4 of {module} alone, and says:\n{told.stdout}{told.stderr}")

    def check_first_verdict(self) -> None:
        """From the wheel, pytest fails the first example of docs/jobs.md by the counterexample that is shown there."""
        said = re.search(
            r"^<!-- file: (\w+\.py) -->\n(?:<!-- .* -->\n)*```python\n(.*?)^```$", text_of("docs/jobs.md"), re.M | re.S
        )
        shown = re.search(r"^```text\n(.*?)\n", text_of("docs/jobs.md"), re.M | re.S)
        assert said is not None
        assert shown is not None
        folder = self.work / "first"
        folder.mkdir(exist_ok=True)
        (folder / said[1]).write_text(said[2], encoding="utf-8")
        run([self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "pytest"])
        command = [self.python, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", folder, said[1]]
        told = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True)
        if told.returncode != 1 or one_line(shown[1]) not in one_line(told.stdout):
            raise NotReady(
                f"{folder / said[1]} should fail with {shown[1]!r}, and pytest says:\n{told.stdout}{told.stderr}"
            )


def one_line(text: str) -> str:
    """Return text without what a terminal adds to a line."""
    return " ".join(re.sub(r"^E ", "", text, flags=re.MULTILINE).split())


def environment() -> dict[str, str]:
    """Return the environment of a command that is to see what is installed, and not this clone."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def run(command: Sequence[str | Path]) -> None:
    """Run a command.

    Raises:
        NotReady: It fails; with what it says.
    """
    told = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True)
    if told.returncode:
        raise NotReady(f"`{' '.join(map(str, command))}` exits {told.returncode}:\n{told.stdout}{told.stderr}")


def main(arguments: Sequence[str]) -> int:
    """Run the steps, and return the exit."""
    listing = arguments == ["--list"]
    if len(arguments) != 2 and not listing:
        print(__doc__, file=sys.stderr)
        return 2
    release = Release(Path("."), Path(".")) if listing else Release(Path(arguments[0]), Path(arguments[1]))
    steps: list[Callable[[], None]] = [
        check_versions,
        release.check_contents,
        release.check_package_page,
        release.check_distributions,
        release.check_citation,
        release.check_types,
        release.check_first_verdict,
    ]
    failed = 0
    for step in steps:
        sentence = (step.__doc__ or "").rstrip(".")
        if listing:
            print(sentence)
            continue
        try:
            step()
            print(f"yes  {sentence}", flush=True)
        except NotReady as why:
            failed += 1
            print(f"NO   {sentence}\n     {why}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
