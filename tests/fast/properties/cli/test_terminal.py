"""How a command says what it is doing: lines, or on a terminal a bar."""

from __future__ import annotations

import io
import re

import pytest
from streamproof.properties.cli import terminal
from streamproof.properties.cli.terminal import steps


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Stands in for stderr, as a terminal."""
    file = io.StringIO()
    monkeypatch.setattr(terminal, "messages", terminal._Console(file=file, force_terminal=True, width=100))
    return file


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


def test_on_a_terminal_a_bar_says_what_is_asked_and_how_much_is_done(written: io.StringIO) -> None:
    with steps(is_counted=True) as progress:
        progress("changelog: 40 histories, session_windows, update")
        progress.count(0, 8)
        progress.count(2.5, 10)
        progress.bar.refresh()  # type: ignore[union-attr]
    *_, last = re.findall(r"changelog: 40 histories, session_windows, update[^\n]*", plain(written.getvalue()))
    assert re.search(r"25% \d:\d\d:\d\d left [-\d]:[-\d]{2}", last)


def test_each_part_that_is_counted_has_a_row_of_its_own(written: io.StringIO) -> None:
    with steps(is_counted=True) as progress:
        for part, done in (("session_windows", 1), ("table_table_join", 0), ("session_windows", 3)):
            progress.count(done, 4, part)
        progress.count(3, 8)
        progress.bar.refresh()  # type: ignore[union-attr]
    said = plain(written.getvalue())
    assert re.search(r"  session_windows [^\n]* 75% \d:\d\d:\d\d left", said)
    assert re.search(r"  table_table_join [^\n]* 0% \d:\d\d:\d\d left", said)
    assert re.search(r" 38% \d:\d\d:\d\d left", said)


def test_results_that_are_printed_meanwhile_stay_on_stdout(
    written: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    with steps(is_counted=True) as progress:
        progress("first")
        with progress.hidden():
            print("a result")
        progress("second")
        progress.bar.refresh()  # type: ignore[union-attr]
    assert capsys.readouterr().out == "a result\n"
    said = plain(written.getvalue())
    assert "first" in said
    assert "second" in said
    assert "a result" not in said


def test_what_takes_long_is_cut_to_one_line(written: io.StringIO) -> None:
    with steps(is_counted=True) as progress:
        progress("packing " * 40)
        progress.count(1, 2)
        progress.bar.refresh()  # type: ignore[union-attr]
    assert "…" in written.getvalue()
    assert max(map(len, plain(written.getvalue()).replace("\r", "\n").splitlines())) <= 100


def test_elsewhere_a_step_is_a_line_and_nothing_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with steps(is_counted=True) as progress:
        progress("a step")
        progress.count(1, 2)
        with progress.hidden():
            progress("another")
    assert capsys.readouterr().err == "a step\nanother\n"
