"""The remedies in a script's errors: arguments of `Script` in a test, or options on the command line."""

from __future__ import annotations

from ....system.visible import visible


class Remedies:
    """The remedies in the wording of a test.

    Attributes:
        given: The argument for the script's inputs and tables.
        arguments: The arguments for the command line and the environment.
        query: The argument that names a query.
        package: The remedy for a package that isn't installed.
    """

    given = "reads="
    arguments = "give its arguments with args=[…], and its environment with env={…}"
    query = "Script(…, query=0)"
    package = "install it, or give a stand-in in sys.modules"

    def input_of(self, name: str) -> str:
        """Return the remedy for an input of a streaming read."""
        return f"reads={{{visible(name)!r}: Input(…)}}"

    def table_of(self, name: str) -> str:
        """Return the remedy for the rows of a batch read."""
        return f"reads={{{visible(name)!r}: [{{…}}]}}"

    def name_of(self, name: str) -> str:
        """Return the remedy for an undefined global name."""
        return f"define it with globals={{{visible(name)!r}: …}}"


class RemedyOptions(Remedies):
    """The remedies in the wording of the command line."""

    given = "the command line"
    arguments = "give its arguments, --argument VALUE, and set the environment variables that it needs"
    query = "--query 0"
    package = "install it beside streamproof"

    def input_of(self, name: str) -> str:
        """Return the option for an input."""
        return f'--input "{visible(name)}=user string, at timestamp, …"'

    def table_of(self, name: str) -> str:
        """Return the option for the rows of a batch read."""
        return f"--static {visible(name)}=FILE.csv"

    def name_of(self, name: str) -> str:
        """Return a remedy inside the script, because no option sets a global name."""
        return f"define {visible(name)}, or guard the line by a test for it"


IN_TEST, ON_COMMAND_LINE = Remedies(), RemedyOptions()
