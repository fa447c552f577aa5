"""Java functions made from method handles, without compilation and without calls back into Python.

Kafka Streams needs joiners, aggregators and extractors. A method handle also runs a whole history in one round trip,
because a round trip costs as much as several records in the JVM.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def filled(target: Any, content: Mapping[str, Any]) -> Any:
    """Put a mapping into a Java map, and return the map."""
    for name, value in content.items():
        target.put(name, value)
    return target


class JavaFunctions:
    """Makes handles (`java.lang.invoke.MethodHandle`) like `MethodHandles`, with types by name.

    Each method represents a Java method.
    """

    def __init__(self, gateway: Any) -> None:
        self.gateway = gateway
        self.java = gateway.jvm.java
        self.handles = self.java.lang.invoke.MethodHandles
        self._lookup = self.handles.publicLookup()
        self._kinds: dict[str, Any] = {
            "void": self.java.lang.Void.TYPE,
            "int": self.java.lang.Integer.TYPE,
            "long": self.java.lang.Long.TYPE,
            "boolean": self.java.lang.Boolean.TYPE,
        }

    def kind(self, name: str) -> Any:
        """Return the class with a name; a name without a package is in java.lang, and `Object[]` is an array."""
        if name not in self._kinds:
            full = name if "." in name else f"java.lang.{name}"
            self._kinds[name] = self.java.lang.Class.forName(f"[L{full[:-2]};" if full.endswith("[]") else full)
        return self._kinds[name]

    def array(self, kind: Any, members: list[Any]) -> Any:
        """Return a Java array."""
        made = self.gateway.new_array(kind, len(members))
        for index, member in enumerate(members):
            made[index] = member
        return made

    def type(self, result: str, *parameters: str) -> Any:
        """Return a method type."""
        kinds = self.array(self.java.lang.Class, [self.kind(name) for name in parameters])
        return self.java.lang.invoke.MethodType.methodType(self.kind(result), kinds)

    def static(self, owner: str, name: str, result: str, *parameters: str) -> Any:
        """Return a method handle that calls a static method."""
        return self._lookup.findStatic(self.kind(owner), name, self.type(result, *parameters))

    def method(self, owner: str, name: str, result: str, *parameters: str) -> Any:
        """Return a method handle that calls a method; its first parameter is the receiver."""
        return self._lookup.findVirtual(self.kind(owner), name, self.type(result, *parameters))

    def constructor(self, owner: str, *parameters: str) -> Any:
        """Return a method handle that calls a constructor."""
        return self._lookup.findConstructor(self.kind(owner), self.type("void", *parameters))

    def retyped(self, handle: Any, result: str, *parameters: str) -> Any:
        """Return the handle with its arguments and its result cast to the given type."""
        return handle.asType(self.type(result, *parameters))

    def bound(self, handle: Any, index: int, *values: Any) -> Any:
        """Return the handle with the given arguments bound, from the given index on."""
        return self.handles.insertArguments(handle, index, self.array(self.java.lang.Object, list(values)))

    def filtered(self, handle: Any, index: int, *filters: Any) -> Any:
        """Return the handle with other handles, each of one parameter, that first convert the arguments from the given
        index on.
        """
        kind = self.java.lang.invoke.MethodHandle
        return self.handles.filterArguments(handle, index, self.array(kind, list(filters)))

    def arranged(self, handle: Any, kind: Any, *indexes: int) -> Any:
        """Return a handle of the given type, which passes its arguments at the given indexes to the handle."""
        return self.handles.permuteArguments(handle, kind, self.array(self.gateway.jvm.int, list(indexes)))

    def ignoring(self, handle: Any, index: int, *kinds: str) -> Any:
        """Return the handle with additional parameters of the given types, which it ignores, at an index."""
        parameters = self.array(self.java.lang.Class, [self.kind(name) for name in kinds])
        return self.handles.dropArguments(handle, index, parameters)

    def first(self, handle: Any, then: Any) -> Any:
        """Return a handle that calls `handle` with the first arguments, ignores the result, and then calls `then`."""
        return self.handles.foldArguments(then, handle.asType(handle.type().changeReturnType(self.kind("void"))))

    def then(self, handle: Any, *others: Any) -> Any:
        """Return the handle with its result passed through the other handles, in the given order."""
        for other in others:
            handle = self.handles.filterReturnValue(
                handle, other.asType(other.type().changeParameterType(0, handle.type().returnType()))
            )
        return handle

    def each(self, body: Any, *more: str) -> Any:
        """Return a handle that calls the body with each item of an Iterable, and returns the results as an
        ArrayList.
        """
        made = "java.util.ArrayList"
        add = self.method(made, "add", "boolean", "Object")
        adding = self.first(add, self.ignoring(self.handles.identity(self.kind(made)), 1, "Object"))
        body = body.asType(body.type().changeReturnType(self.kind("Object")))
        body = self.ignoring(self.handles.collectArguments(adding, 1, body), 2, "Iterable")
        start = self.ignoring(self.constructor(made), 0, "Iterable", *more)
        return self.handles.iteratedLoop(None, start, body)

    def implementing(self, interface: str, handle: Any) -> Any:
        """Return an object that implements an interface with one method by calling the handle."""
        return self.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(self.kind(interface), handle)

    def function(self, handle: Any) -> Any:
        """Return a java.util.function.Function that calls the handle."""
        return self.implementing("java.util.function.Function", self.retyped(handle, "Object", "Object"))

    def template(self, pattern: str, parameters: int) -> Any:
        """Return a handle that inserts its arguments into a pattern of java.util.Formatter, null as `null`."""
        formatting = self.static("String", "format", "String", "String", "Object[]")
        return self.bound(formatting, 0, pattern).asCollector(self.kind("Object[]"), parameters)
