"""What the code of a job keeps in this process: another start finds it as a new process would."""

import collections
import functools
import pickle
import sqlite3
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest
from streamproof import Input, Script
from streamproof.properties.witnesses.job.dying.memory import Memory, _is_same

SEEN: set = set()
COUNT = 0
NESTED: dict = {"a": [1], "b": {"c": collections.deque([1])}}
LATE: list = []
CONNECTION = None


class Kept:
    """A class whose attributes are memory, as those of its instances."""

    total = 0
    rows: ClassVar[list] = []
    slots: "Slotted"

    def __init__(self) -> None:
        self.seen, self.last = {1}, 0

    def write(self) -> None:
        Kept.total += 1
        Kept.rows.append(Kept.total)
        Kept.new = 1
        self.seen.add(2)
        self.last = 5
        self.more = 1


class Slotted:
    __slots__ = ("__count", "__dict__", "last")

    def __init__(self) -> None:
        self.last, self.__count = [0], 0

    def add(self) -> None:
        self.last.append(1)
        self.last = [*self.last, 2]
        self.__count += 1
        self.a = 1

    @property
    def state(self) -> list:
        return [self.last, self.__count, {**vars(self)}]


@functools.lru_cache
def known(key: str) -> list:
    return []


def globals_of_each_kind() -> None:
    global COUNT, NEW
    SEEN.add(1)
    COUNT += 1
    NEW = 2
    NESTED["a"].append(2)
    NESTED["b"]["c"].append(2)
    NESTED["d"] = 1
    known("a").append(1)


def default(rows: list = [0], *, by: dict = {}) -> None:  # noqa: B006
    rows.append(1)
    by["a"] = 1
    default.calls = 1


def closure():
    seen, count = {1}, 0

    def write() -> None:
        nonlocal count
        seen.discard(1)
        count += 1

    write.state = lambda: (set(seen), count)
    return write


def state_of(job) -> object:
    """Return all values that the jobs of this file keep."""
    cells = [repr(cell.cell_contents) for cell in getattr(job, "__closure__", None) or ()]
    instance = getattr(job, "__self__", None)
    own = {} if instance is None else {**vars(instance)}
    kind = {key: value for key, value in vars(Kept).items() if not key.startswith("_") and not callable(value)}
    kept = [SEEN, COUNT, globals().get("NEW"), NESTED, known.cache_info().currsize, cells, own, kind]
    return repr([*kept, default.__defaults__, default.__kwdefaults__, {**vars(default)}])


class Called:
    """A job that is an object."""

    def __init__(self) -> None:
        self.slotted = Slotted()

    def __call__(self) -> None:
        self.slotted.add()


class Holder(SimpleNamespace):
    """A library's object that calls a function of the user's."""

    __module__ = "types"

    def __call__(self) -> None:
        self.function()


def only(member):
    """Return an object of a class with one member, which alone refers to what it changes."""
    return type("Only", (), {"member": member})()


SETTER = only(property(lambda self: 0, lambda self, value: default(by=NESTED)))
GETTER = only(property(lambda self: default(by=NESTED)))
OF_CLASS = only(classmethod(lambda cls: default(by=NESTED)))
STATIC = only(staticmethod(lambda: default(by=NESTED)))
JOBS = {
    "a property's setter": lambda: setattr(SETTER, "member", 1),
    "a property": lambda: GETTER.member,
    "a class method": lambda: OF_CLASS.member(),
    "a static method": lambda: STATIC.member(),
    "a library's object that calls a function": Holder(function=globals_of_each_kind),
    "globals": globals_of_each_kind,
    "defaults and attributes of a function": default,
    "a closure": closure(),
    "attributes of a class and of an object": Kept().write,
    "a partial function": functools.partial(default, by=NESTED),
    "a function within a decorator": functools.wraps(globals_of_each_kind)(lambda: globals_of_each_kind()),
}


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_what_a_job_changes_is_put_back(job) -> None:
    memory, given = Memory(), state_of(job)
    memory.learn(job)
    for _ in range(2):
        job()
        assert state_of(job) != given
        memory.learn(job)  # each start learns what it may refer to now
        memory.put_back()
        assert state_of(job) == given


def test_objects_with_slots_are_put_back() -> None:
    memory, job = Memory(), Called()
    memory.learn(job)
    job()
    assert job.slotted.state == [[0, 1, 2], 1, {"a": 1}]
    memory.put_back()
    assert job.slotted.state == [[0], 0, {}]


def test_a_variable_that_a_function_binds_later_and_a_module_within_a_module_are_put_back(
    tmp_path: Path, monkeypatch
) -> None:
    package = tmp_path / "package_of_a_user"
    package.mkdir()
    (package / "__init__.py").write_text("from . import inner\n")
    (package / "inner.py").write_text("SEEN = [0]\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import package_of_a_user

    def outer():
        def write() -> None:
            nonlocal later
            later = package_of_a_user.inner.SEEN = [1]

        def read() -> object:
            return later

        return write, read
        later = None

    write, read = outer()
    memory = Memory()
    memory.learn(write)
    write()
    assert read() == [1]
    memory.put_back()
    assert package_of_a_user.inner.SEEN == [0]
    with pytest.raises(NameError):
        read()


def test_a_class_of_the_script_that_python_runs_is_the_user_s() -> None:
    kind = type("Kind", (), {"seen": 0, "__module__": "__main__"})

    def write() -> None:
        kind.seen = 1

    memory = Memory()
    memory.learn(write)
    write()
    memory.put_back()
    assert kind.seen == 0


def test_an_attribute_of_a_module_is_put_back_that_the_function_itself_imports(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "of_a_user.py").write_text("SEEN = []\n")
    (tmp_path / "imported_late.py").write_text("SEEN = []\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def write() -> None:
        import imported_late
        from of_a_user import SEEN as seen

        seen.append(1)
        imported_late.SEEN.append(1)

    import of_a_user

    memory = Memory()
    memory.learn(write)
    write()
    memory.put_back()
    assert of_a_user.SEEN == []
    assert "imported_late" not in sys.modules
    assert sys.modules["of_a_user"] is of_a_user


def test_what_reads_the_target_refers_to_no_memory() -> None:
    database: dict = {}
    memory = Memory()
    memory.learn(lambda: database.update(a=SEEN.add(3)), lambda: database)
    database["a"] = SEEN.add(3)
    memory.put_back()
    assert database == {"a": None}
    assert not SEEN


def test_a_library_s_cache_is_put_back_and_what_it_keeps_in_a_file_is_not(tmp_path: Path) -> None:
    import shelve

    from pyspark.sql import Row

    cache = collections.UserDict(a=1)
    with shelve.open(str(tmp_path / "shelf")) as shelf:

        def write() -> None:
            cache["b"] = shelf["b"] = Row(a=1)

        memory = Memory()
        memory.learn(write)
        write()
        memory.put_back()
        assert dict(cache) == {"a": 1}
        assert [*shelf] == ["b"]


@pytest.mark.parametrize("opened", ["by the first call", "by the module"])
def test_a_pending_transaction_is_rolled_back(tmp_path: Path, opened: str) -> None:
    database = str(tmp_path / "rows.db")
    with sqlite3.connect(database) as other:
        other.execute("CREATE TABLE rows (number)")

    def connect() -> sqlite3.Connection:
        global CONNECTION
        CONNECTION = CONNECTION or sqlite3.connect(database)
        return CONNECTION

    def write() -> None:
        connect().execute("INSERT INTO rows VALUES (1)")

    memory = Memory()
    if opened == "by the module":
        connect()
    memory.learn(write)
    write()
    memory.put_back()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "CONNECTION", None)
    assert other.execute("SELECT count(*) FROM rows").fetchone() == (0,)
    other.execute("INSERT INTO rows VALUES (2)")  # nothing holds its lock
    other.close()
    globals()["CONNECTION"] = None


@pytest.mark.parametrize("kind", [threading.Lock, threading.RLock, threading.Semaphore, threading.Condition])
def test_a_lock_that_a_dead_thread_has_is_free(kind) -> None:
    lock, memory = kind(), Memory()
    memory.learn(lambda: lock.acquire())
    for _ in range(2):
        thread = threading.Thread(target=lock.acquire)
        thread.start()
        thread.join(5)
        assert not thread.is_alive()
        memory.put_back()
    lock.acquire()
    lock.release()


def test_the_memory_of_a_script_is_that_of_its_function_or_of_its_file(tmp_path: Path) -> None:
    def read(folder: Path) -> list:
        return []

    reads = {"clicks": Input("user string, at timestamp", key="user")}
    assert Script(globals_of_each_kind, reads, read=read).job.code is globals_of_each_kind
    (tmp_path / "script.py").write_text("import json\njson.SEEN.add(1)\n")
    code = Script(tmp_path / "script.py", reads, read=read).job.code
    assert {*code.co_names} == {"json", "SEEN", "add"}
    (tmp_path / "script.py").write_text("no Python\n")
    assert Script(tmp_path / "script.py", reads, read=read).job.code is None


def test_another_process_has_a_memory_of_its_own() -> None:
    memory = Memory()
    memory.learn(lambda: threading.Lock())
    assert isinstance(pickle.loads(pickle.dumps(memory)), Memory)


def test_an_object_that_can_not_be_looked_at_is_left_as_it_is() -> None:
    class Hostile:
        __slots__ = ("a",)

        def __getattribute__(self, name: str) -> object:
            raise RuntimeError(name)

    hostile, seen, lock = Hostile(), [], threading.Lock()

    def write() -> None:
        seen.append((hostile, lock))

    memory = Memory()
    memory.learn(write)
    write()
    memory.put_back()
    assert seen == []


def test_equal_values_of_other_types_are_put_back() -> None:
    kept: dict[str, object] = {"n": True, "x": 1.0, "same": 2}

    def write() -> None:
        kept.update(n=1, x=1, same=2)

    memory = Memory()
    memory.learn(write)
    write()
    memory.put_back()
    assert [(key, type(value)) for key, value in kept.items()] == [("n", bool), ("x", float), ("same", int)]


def test_only_equal_parts_of_tuples_of_one_length_are_the_same() -> None:
    kept = [1]
    assert _is_same((1, "a", kept), (1, "a", kept))
    for other in ((1, "a"), (1, "a", kept, 2), (1, "b", kept), (True, "a", kept), (1, "a", [1]), [1, "a", kept], 1):
        assert not _is_same((1, "a", kept), other)
        assert not _is_same(other, (1, "a", kept))
