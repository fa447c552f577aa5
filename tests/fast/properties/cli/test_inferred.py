"""A script whose inputs are inferred, as the command line checks it: without Spark, for what is inferred is given."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof import Input, avro
from streamproof.properties.checking.jobs.verdicts import CheckFailed, Inconclusive
from streamproof.properties.cli.commands import inferred as commands
from streamproof.properties.cli.commands.inferred import inferred_scripts
from streamproof.properties.cli.commands.job import JobOptions
from streamproof.properties.witnesses.job.inference import exploring, inferring
from streamproof.properties.witnesses.job.inference.inputs import InferredInput
from streamproof.properties.witnesses.job.scripts.lifting import ScriptSource
from streamproof.properties.witnesses.job.scripts.reads import Read
from streamproof.properties.witnesses.spark import session
from streamproof.reference.core.errors import BadInput

CLICKS = InferredInput("clicks", Input("user string", key="user"), 'Input("user string")', Read(), [])


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    def queries(source: ScriptSource, *_: Any, **__: Any) -> list[Any]:
        whole = ScriptSource(source.code, [*source.args, "--out", "out"])
        write = SimpleNamespace(name="visits")
        return [inferring.InferredQuery(whole, None, write, {"clicks": CLICKS}, ["clicks"], {}, [])]  # type: ignore[arg-type]

    monkeypatch.setattr(inferring, "inferred_queries", queries)
    monkeypatch.setattr(exploring, "empty_frames", lambda *_: {})
    monkeypatch.setattr(session, "spark_session", lambda **_: None)
    (tmp_path / "job.py").write_text("")
    return str(tmp_path / "job.py")


def test_arguments_that_are_left_out_have_stand_ins_beside_those_given(script: str) -> None:
    (one,) = inferred_scripts(script, JobOptions(argument=("--topic", "clicks")))
    assert one.script.args == ["--topic", "clicks", "--out", "out"]


@pytest.mark.parametrize("query", [None, "0", "visits"])
def test_an_only_query_is_chosen_by_its_name_its_index_or_nothing(script: str, query: str | None) -> None:
    assert len(inferred_scripts(script, JobOptions(query=query))) == 1
    with pytest.raises(BadInput, match="--query 1: "):
        inferred_scripts(script, JobOptions(query="1"))


def test_a_script_that_takes_long_without_data_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ScriptSource(Path("slow.py"))
    monkeypatch.setattr(
        inferring, "explored", lambda *_: exploring.Explored(source, {}, {}, {}, {}, {}, [], None, 21.6)
    )
    with pytest.raises(BadInput, match=r"slow.py takes 22 s before it waits for its queries.*FILE.py:FUNCTION"):
        inferring.inferred_queries(source, None, {}, {})


def test_an_input_with_an_option_keeps_the_text_of_its_payload() -> None:
    schema = '{"type": "record", "name": "click", "fields": [{"name": "user", "type": "string"}]}'
    of_avro = Input("user string", key="user", format="kafka", value=avro(schema))
    inferred = InferredInput("clicks", of_avro, "", Read(), [], f"avro({schema!r})")
    assert inferred.with_option("key", ("name",)).text == (
        f'Input("user string", key=["name"], format="kafka", value=avro({schema!r}))'
    )


def test_an_option_takes_the_place_of_what_is_inferred(script: str) -> None:
    (one,) = inferred_scripts(script, JobOptions(key=("user, user",)))
    assert one.script.inputs[0].key == ("user", "user")


@pytest.mark.parametrize(
    ("ends", "raised", "says"),
    [
        (["", "refused"], Inconclusive, "inconclusive: not checked: no watermark"),
        (["refused", "inconclusive"], Inconclusive, "inconclusive"),
        (["violated", "refused"], CheckFailed, "violated"),
        (["refused", "refused"], BadInput, "no watermark"),
    ],
)
def test_a_query_that_cannot_be_checked_leaves_the_others_their_verdict(
    ends: list[str], raised: type[Exception], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = {
        "refused": BadInput("no watermark"),
        "inconclusive": Inconclusive("inconclusive"),
        "violated": CheckFailed("violated"),
    }

    def checking(path: str, script: Any, *_: Any) -> Any:
        def check() -> None:
            if script in errors:
                raise errors[script]

        return check

    scripts = [SimpleNamespace(script=end, lines=[], by_row=False, twin="") for end in ends]
    scripts.append(SimpleNamespace(script="refused", lines=[], by_row=True, twin="query 9: it computes as query 0"))
    monkeypatch.setattr(commands, "inferred_scripts", lambda *_: scripts)
    monkeypatch.setattr(commands, "checking", checking)
    outcomes: list[Any] = []
    with pytest.raises(raised, match=says):
        commands._checking("job.py", JobOptions(), {}, outcomes, None)()
    assert len(outcomes) == (raised is not BadInput and "" not in ends)


def test_queries_without_state_are_checked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    scripts = [SimpleNamespace(script=name, lines=[], by_row=name == "plain", twin="") for name in ("sum", "plain")]
    monkeypatch.setattr(commands, "inferred_scripts", lambda *_: scripts)
    monkeypatch.setattr(commands, "checking", lambda path, script, *_: lambda: ran.append(script))
    commands._checking("job.py", JobOptions(), {}, [], None)()
    assert ran == ["plain", "sum"]
