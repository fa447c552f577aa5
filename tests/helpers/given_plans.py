"""Analyzed plans as Spark's classes give them, without Spark: operators with their expressions."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

DELAY_MS = "spark.watermarkDelayMs"


class Members(tuple[Any, ...]):
    """A sequence of Scala's."""

    def size(self) -> int:
        return len(self)

    def apply(self, index: int) -> Any:
        return self[index]

    def toSeq(self) -> Members:
        return self


class _Kind:
    def __init__(self, kind: str) -> None:
        self.kind = kind

    def getClass(self) -> Any:
        return SimpleNamespace(getSimpleName=lambda: self.kind)


class Expression(_Kind):
    """An expression: its node, and its children; a literal's value is `constant`."""

    constant: Any = None

    def __init__(self, kind: str, *below: Expression, **node: Any) -> None:
        super().__init__(kind)
        self.below, self.node = below, node

    def nodes(self) -> list[dict[str, Any]]:
        own = {"class": f"org.apache.spark.sql.{self.kind}", "num-children": len(self.below), **self.node}
        return [own, *(node for child in self.below for node in child.nodes())]

    def toJSON(self) -> str:
        return json.dumps(self.nodes())

    def children(self) -> Members:
        return Members(self.below)

    def name(self) -> str:
        return str(self.node["name"])

    def sql(self) -> str:
        return str(self.node.get("name", self.kind))

    def dataType(self) -> Any:
        return SimpleNamespace(typeName=lambda: self.node.get("dataType", "string"))

    def exprId(self) -> Any:
        return SimpleNamespace(id=lambda: self.node["exprId"]["id"])

    def toString(self) -> str:
        own = f"{self.node['name']}#{self.node['exprId']['id']}" if "exprId" in self.node else self.kind
        return f"{own}({', '.join(child.toString() for child in self.below)})" if self.below else own

    def child(self) -> Expression:
        return self.below[0]

    left = child

    def right(self) -> Expression:
        return self.below[-1]

    def extractFieldName(self) -> str:
        return self.name()

    def metadata(self) -> Any:
        return SimpleNamespace(contains=lambda key: key in self.node.get("metadata", ()))

    def references(self) -> Members:
        own = [self] if self.kind == "AttributeReference" else []
        return Members([*own, *(column for child in self.below for column in child.references())])


class Operator(_Kind):
    """An operator; `given` are the answers of its further methods."""

    def __init__(
        self,
        kind: str,
        *below: Operator,
        output: Sequence[Expression] | None = None,
        expressions: Sequence[Expression] = (),
        subqueries: Sequence[Operator] = (),
        streams: bool | None = None,
        **given: Any,
    ) -> None:
        super().__init__(kind)
        self.below, self.columns, self.given = below, below[0].columns if output is None else output, given
        self.used, self.within, self.streams = expressions, subqueries, streams

    def children(self) -> Members:
        return Members(self.below)

    def child(self) -> Operator:
        return self.below[0]

    def subqueries(self) -> Members:
        return Members(self.within)

    def expressions(self) -> Members:
        return Members(self.used)

    def output(self) -> Members:
        return Members(self.columns)

    def isStreaming(self) -> bool:
        return any(child.isStreaming() for child in self.below) if self.streams is None else self.streams

    def withNewChildren(self, below: Sequence[Operator]) -> Operator:
        made = copy.copy(self)
        made.below = (*below,)
        return made

    def toString(self) -> str:
        columns = [f"{one.name()}#{one.node['exprId']['id']}" for one in self.columns]
        used = [one.toString() for one in self.used]
        return "\n".join(
            [
                f"{self.kind} {self.given.get('name', '')} [{', '.join(columns)}] {used}",
                *(child.toString() for child in self.below),
            ]
        )

    def toJSON(self) -> str:
        return self.toString()

    def sameResult(self, other: Operator) -> bool:
        return self is other

    def __getattr__(self, name: str) -> Any:
        try:
            answer = self.__dict__["given"][name]
        except KeyError:
            raise AttributeError(name) from None
        return lambda: Members(answer) if isinstance(answer, list) else answer


def column(name: str, number: int) -> Expression:
    return Expression("AttributeReference", name=name, exprId={"id": number})


def alias(of: Expression, name: str, number: int) -> Expression:
    return Expression("Alias", of, name=name, exprId={"id": number})


def literal(value: Any, kind: str = "integer") -> Expression:
    return Expression("Literal", value=None if value is None else str(value), dataType=kind)


def stream(*columns: Expression) -> Operator:
    return Operator("StreamingRelation", output=columns, streams=True)


def table(*columns: Expression) -> Operator:
    return Operator("LocalRelation", output=columns, streams=False)


def project(below: Operator, *columns: Expression) -> Operator:
    """A projection; an alias is a column of its output, by its name and number."""
    output = [column(one.node["name"], one.node["exprId"]["id"]) for one in columns]
    return Operator("Project", below, output=output, expressions=columns, projectList=[*columns])


def watermark(below: Operator, time: Expression, *delays_ms: int) -> Operator:
    fields = [{"metadata": {DELAY_MS: delay_ms}} for delay_ms in delays_ms]
    schema = SimpleNamespace(json=lambda: json.dumps({"fields": [{"metadata": {}}, *fields]}))
    return Operator("EventTimeWatermark", below, expressions=[time], eventTime=time, schema=schema)
