"""Verdicts in notebooks and in Rich: a panel whose colour and title are the verdict."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.jupyter import JupyterMixin
from rich.panel import Panel
from rich.text import Text

STYLES = {"conforms": "green", "violated": "red", "inconclusive": "yellow"}


class Shown(JupyterMixin):
    """An object with a verdict, which notebooks show as a panel."""

    verdict = "conforms"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the panel."""
        yield Panel(Text(str(self)), title=self.verdict, title_align="left", border_style=STYLES[self.verdict])


class Raised(Shown):
    """A verdict that a check raises; a notebook shows the message instead of the traceback."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]
