"""Every message that a user may read, side by side in `tests/golden/messages.txt`: an editor reads them in one place.

Write the file anew with `STREAMPROOF_GOLDEN=write pytest tests/fast/test_messages.py`, and read what has changed.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from paths import ROOT

GOLDEN = ROOT / "tests" / "golden" / "messages.txt"
CLI = "properties/cli/"
PACKAGES = ("streamproof", "reference", "spark_impl", "properties", "specs")
ROOT_ERRORS = {"StreamproofError", "TlcError", "ValueError", "TypeError"}
PROGRESS = ("progress", "doing", "tell")
"""The functions that say what is being done."""
PRINTED = {"print", "out"}
PARTS = {"hint", "problem", "reason", "remedy", "says", "sentence", "what", "why"}
WRAPPERS = {"escape", "short", "visible"}


def test_the_table_has_every_message() -> None:
    table = message_table(ROOT)
    if os.environ.get("STREAMPROOF_GOLDEN") == "write":
        GOLDEN.write_text(table, encoding="utf-8")
    golden = GOLDEN.read_text(encoding="utf-8")
    changed = set(table.splitlines()) ^ set(golden.splitlines())
    assert table == golden, f"{changed}: run `STREAMPROOF_GOLDEN=write pytest tests/fast/test_messages.py`"


def test_a_message_is_found_whatever_it_is_built_of() -> None:
    source = (
        "class BadInput(StreamproofError): pass\n"
        "class Refused(errors.BadInput): pass\n"
        "class Unused: pass\n"
        "def read(path, name):\n"
        "    '''Read.'''\n"
        "    why = f'{path} has no ' + ('lines' if name else 'name')\n"
        "    progress(f'reading {path}' ' again')\n"
        "    Unused('never shown')\n"
        "    raise Refused(path, f'{visible(path)}, line {name!r:>3}: {why}')\n"
        "def refuses(history): return None if history.cuts else 'without cuts'\n"
        "for command in (read,):\n"
        "    app.command()(command)\n"
        "Flag = typer.Option('--flag', help='Read twice.')\n"
        "results.print(f'[red]{verdict}[/]', end='')\n"
        "results.print(f'{verdict} of {name}', end='')\n"
        "failed = Report(why='it is wrong')\n"
    )
    tree = ast.parse(source)
    assert messages(tree, error_names([tree]), command_names([tree])) == [
        ("error", "{path}, line {name}: {why}"),
        ("help", "Read twice."),
        ("help", "Read."),
        ("printed", "{verdict} of {name}"),
        ("progress", "reading {path} again"),
        ("reason", "it is wrong"),
        ("reason", "without cuts"),
        ("reason", "{path} has no (lines | name)"),
    ]


def message_table(root: Path) -> str:
    """Return the messages of the sources under a folder, a line each, by file."""
    files = sorted(chain.from_iterable((root / package).rglob("*.py") for package in PACKAGES))
    trees = {file.relative_to(root).as_posix(): ast.parse(file.read_text(encoding="utf-8")) for file in files}
    errors = error_names(trees.values())
    commands = command_names(tree for path, tree in trees.items() if path.startswith(CLI))
    lines: list[str] = []
    for path, tree in trees.items():
        if own := messages(tree, errors, commands if path.startswith(CLI) else set()):
            lines += [path, *(f"  {kind:<8} {text}" for kind, text in own), ""]
    return "\n".join(lines)


def error_names(trees: Iterable[ast.Module]) -> set[str]:
    """Return the names of the errors that carry a message to the user, subclasses included."""
    classes = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    bases = {node.name: set(map(_name, node.bases)) for node in classes}
    names = set(ROOT_ERRORS)
    while new := {name for name, parents in bases.items() if parents & names and name not in names}:
        names |= new
    return names


def command_names(trees: Iterable[ast.Module]) -> set[str]:
    """Return the functions that are commands: handed to what `app.command()` returns, or decorated with it."""
    names = set()
    for node in chain.from_iterable(tree.body for tree in trees):
        text = ast.unparse(node)
        if ".command(" in text and not isinstance(node, ast.FunctionDef):
            names |= {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
        elif isinstance(node, ast.FunctionDef) and any(".command(" in ast.unparse(d) for d in node.decorator_list):
            names.add(node.name)
    return names


def messages(tree: ast.Module, errors: set[str], commands: set[str]) -> list[tuple[str, str]]:
    """Return kind and template of each message of a module, in order of kind, then of text."""
    found: set[tuple[str, str]] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            if node in tree.body and node.name in commands and (text := ast.get_docstring(node)):
                found.add(("help", " ".join(text.split())))
            if PARTS & set(node.name.replace("refuses", "reason").split("_")):
                returned = (inner.value for inner in ast.walk(node) if isinstance(inner, ast.Return) and inner.value)
                found.update(("reason", template(value)) for value in returned)
        elif isinstance(node, ast.Assign) and _name(node.targets[0]) in PARTS:
            found.add(("reason", template(node.value)))
        elif isinstance(node, ast.Call):
            found.update(_of_call(node, errors))
    return sorted((kind, text) for kind, text in found if _has_words(text))


def _of_call(call: ast.Call, errors: set[str]) -> Iterator[tuple[str, str]]:
    name = _name(call.func)
    if name in errors:
        yield from (("error", template(argument)) for argument in call.args)
    elif name in PROGRESS or name in PRINTED:
        yield from (("progress" if name in PROGRESS else "printed", template(first)) for first in call.args[:1])
    for keyword in call.keywords:
        if keyword.arg == "help" or keyword.arg in PARTS:
            yield "help" if keyword.arg == "help" else "reason", template(keyword.value)


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def template(node: ast.expr) -> str:
    """Return the text of an expression, what is filled in as `{expression}`, and either of two texts as `(a | b)`."""
    match node:
        case ast.Constant(value=str(text)):
            return " ".join(text.split("\n"))
        case ast.JoinedStr(values=parts):
            return "".join(map(template, parts))
        case ast.FormattedValue(value=value):
            return template(value)
        case ast.Call(func=ast.Name(id=name), args=[value]) if name in WRAPPERS:
            return template(value)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return template(left) + template(right)
        case ast.IfExp(body=body, orelse=other):
            texts = [text for text in map(template, (body, other)) if text != "{None}"]
            return f"({' | '.join(texts)})" if len(texts) > 1 else "".join(texts)
        case _:  # quotes: Pythons differ in those that they choose
            return f"{{{ast.unparse(node)}}}".replace('"', "'")


def _has_words(text: str) -> bool:
    return any(letter.isalpha() for letter in re.sub(r"\{[^{}]*\}|\[[^]]*\]", "", re.sub(r"\{[^{}]*\}", "", text)))
