"""Finds the declarations and definitions in TLA+ modules without parsing expressions.

TLC reports no location with some of its errors, and ignores an assignment to a constant that doesn't exist.
"""

from __future__ import annotations

import os
import re
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ..errors import ParseFailed
from .sources import read_source

# Nested comments are rare, so only one level of nesting is supported.
_SKIPPED = re.compile(r"\\\*[^\n]*|\(\*(?:[^(*]|\((?!\*)|\*(?!\))|\(\*.*?\*\))*\*\)", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_NAME = r"[0-9]*[A-Za-z_][A-Za-z0-9_]*"
_EXTENDS = re.compile(rf"\bEXTENDS\s+({_NAME}(?:\s*,\s*{_NAME})*)")
_MODULE = re.compile(rf"-{{4,}}\s*MODULE\s+({_NAME})")
_HEADER = re.compile(r"-{4,}\s*MODULE\s+(\S+)")
_INSTANCE = re.compile(rf"\bINSTANCE\s+({_NAME})")
_CONSTANTS = re.compile(
    rf"\bCONSTANTS?\s+((?:{_NAME}|_)(?:\s*\([\s_,]*\))?(?:\s*,\s*(?:{_NAME}|_)(?:\s*\([\s_,]*\))?)*)"
)
_DEFINITION = re.compile(
    rf"^[ \t]*(?:LOCAL\s+)?({_NAME})\s*(?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\]]*\])?\s*==", re.MULTILINE
)


class Name(NamedTuple):
    """The location of a name's declaration or definition; `end` is the last line before the next name."""

    module: str
    line: int
    column: int
    end: int


@dataclass
class Modules:
    """A module and all extended modules: constants and definitions by name, files by module, and missing modules.

    A standard module has no file; a missing module has the line and column of its first mention.
    """

    constants: dict[str, Name] = field(default_factory=dict)
    definitions: dict[str, Name] = field(default_factory=dict)
    files: dict[str, Path | None] = field(default_factory=dict)
    missing: dict[str, tuple[int, int] | None] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Return whether every module was found; otherwise, the tables of names may be incomplete."""
        return not self.missing

    def take_in(self, module: str, text: str) -> None:
        """Add a module's declarations and definitions; `text` has no comments."""
        lines = text.count("\n") + 1
        definitions = list(_DEFINITION.finditer(text))
        ends = [*(_line(text, later.start(1)) - 1 for later in definitions[1:]), lines][: len(definitions)]
        for definition, end in zip(definitions, ends, strict=True):
            offset = definition.start(1)
            name = Name(module, _line(text, offset), _column(text, offset), end)
            self.definitions.setdefault(definition[1], name)
        for declaration in _CONSTANTS.finditer(text):
            for word in re.finditer(_NAME, declaration[1]):
                offset = declaration.start(1) + word.start()
                if word[0].strip("_"):
                    line = _line(text, offset)
                    self.constants.setdefault(word[0], Name(module, line, _column(text, offset), line))

    def first_mention(self, module: str) -> tuple[int, int] | None:
        """The line and column of the first mention of a missing module."""
        return self.missing.get(module)


def read_modules(root: Path, jar: Path) -> Modules:
    """Read `root` and all extended modules, from its folder, then from the standard modules in the jar.

    Raises:
        ParseFailed: A file isn't a TLA+ module, or its name differs from the module's.
    """
    found = Modules()
    # A module that INSTANCE names must exist, but adds no names; the second value is whether to read the file's names.
    waiting: list[tuple[str, bool, tuple[int, int] | None]] = [(root.stem, True, None)]
    seen: set[tuple[str, bool]] = set()
    inner: set[str] = set()
    with zipfile.ZipFile(jar) as archive:
        while waiting:
            module, extended, mention = waiting.pop()
            if (module, extended) in seen or module in inner:
                continue
            seen.add((module, extended))
            text = _text_of(module, root, archive, found)
            if text is None:
                found.missing[module] = mention
                continue
            plain = without_comments(text)
            inner.update(name for name in _MODULE.findall(plain) if name != module)
            if extended:
                found.take_in(module, plain)
            for pattern, with_names in ((_EXTENDS, extended), (_INSTANCE, False)):
                for names in pattern.finditer(plain):
                    for name in re.finditer(_NAME, names[1]):
                        offset = names.start(1) + name.start()
                        waiting.append((name[0], with_names, (_line(plain, offset), _column(plain, offset))))
    return found


def without_comments(text: str) -> str:
    """Return TLA+ text with comments and strings blanked; every character keeps its offset."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    # Remove comments first, because a comment sign within a string is rarer than a quotation mark within a
    # comment.
    return _STRING.sub(blank, _SKIPPED.sub(blank, text))


def _text_of(module: str, root: Path, archive: zipfile.ZipFile, found: Modules) -> str | None:
    path = root if module == root.stem else root.parent / f"{module}.tla"
    if os.path.isfile(path):  # unlike Path.is_file, os.path.isfile doesn't fail for a name that is too long
        found.files[module] = path
        return _module_text(path)
    found.files[module] = None
    try:
        return archive.read(f"tla2sany/StandardModules/{module}.tla").decode("utf-8", "replace")
    except KeyError:
        return None


def _module_text(path: Path) -> str:
    """Return the text of a module's file.

    Raises:
        ParseFailed: The file isn't a module, or the module has another name.
    """
    text = read_source(path, "module", ParseFailed)
    header = _HEADER.search(without_comments(text)) or _HEADER.search(text)  # any text may precede the header
    if header is None:
        raise ParseFailed(
            f"it isn't a TLA+ module: it has no line `---- MODULE {path.stem} ----`, which begins a module.",
            file=path,
            line=1,
        )
    name = header[1].rstrip("-") or header[1]
    what = ""
    if not re.fullmatch(_NAME, name, re.ASCII):
        what = f"{name} isn't a module name: use only letters, digits and _."
    elif name != path.stem:
        what = f"the module in it is named {name}: a file and its module must have the same name."
    if what:
        raise ParseFailed(what, file=path, line=_line(text, header.start(1)), column=_column(text, header.start(1)))
    return text


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _column(text: str, offset: int) -> int:
    return offset - text.rfind("\n", 0, offset)
