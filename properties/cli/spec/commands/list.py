"""The command `spec list`, which lists the specifications and their models."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Column, Table

from ...terminal import results
from ..printing import expected_of


def list_models() -> None:
    """List the specifications and their models, with the expected result of each."""
    from .....specs.catalogue import catalogue

    table = Table(Column("model", no_wrap=True), "what it says", "expected", Column("states", justify="right"), "size")
    for specification in catalogue():
        table.add_section()
        title = f"[bold]{escape(specification.title)}[/] ({escape(specification.source)})"
        table.add_row(f"[bold]{specification.module.name}[/]", title, "", "", "")
        for model in specification.models:
            states = "" if model.distinct is None else f"{model.distinct:,}"
            table.add_row(model.name, escape(model.says), expected_of(model), states, model.size)
    results.print(table)
