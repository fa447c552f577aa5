"""The settings of a session that a job makes are noted, and put back once its query has ended."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

from streamproof.properties.witnesses.spark.own_settings import noting_settings, taking_back_settings


class Conf(SimpleNamespace):
    """The settings of a session, as Spark's Java side and as `spark.conf` has them."""

    def settings(self) -> dict[str, str]:
        found: dict[str, str] = self.values
        return found

    def clone(self) -> Conf:
        return Conf(values={**self.values})

    def set(self, name: str, value: str) -> None:
        self.values[name] = value

    def unset(self, name: str) -> None:
        del self.values[name]


def session(values: dict[str, str]) -> Any:
    conf = Conf(values=values)
    java = SimpleNamespace(sessionState=lambda: SimpleNamespace(conf=lambda: conf))
    return SimpleNamespace(_jsparkSession=java, conf=conf)


def test_settings_that_are_new_or_changed_are_noted() -> None:
    spark, noted = session({"kept": "1", "changed": "1", "unset": "1"}), {"before": "1"}
    with noting_settings(spark, noted):
        spark.conf.set("changed", "2")
        spark.conf.set("new", "3")
        spark.conf.unset("unset")
    assert noted == {"before": "1", "changed": "2", "new": "3"}


def test_settings_are_put_back_whatever_ends_the_block() -> None:
    before = {"kept": "1", "changed": "1", "unset": "1"}
    spark = session({**before})
    with contextlib.suppress(ZeroDivisionError), taking_back_settings(spark):
        spark.conf.set("changed", "2")
        spark.conf.set("new", "3")
        spark.conf.unset("unset")
        raise ZeroDivisionError  # as the job may
    assert spark.conf.values == before


def test_over_connect_no_setting_is_seen() -> None:
    noted: dict[str, str] = {}
    with noting_settings(SimpleNamespace(), noted), taking_back_settings(SimpleNamespace()):  # type: ignore[arg-type]
        pass
    assert noted == {}
