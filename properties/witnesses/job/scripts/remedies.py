"""The remedies of a script's errors: by arguments of `Script` in a test, by options on the command line."""

from __future__ import annotations

from ....system.visible import visible


class Remedies:
    """The remedies that messages name, as a test says them.

    Attributes:
        given: What says the inputs and tables of a script.
        arguments: How it gets arguments and an environment.
        query: How one of its queries is named.
        package: How it finds a package that isn't installed.
    """

    given = "reads="
    arguments = "give its arguments with args=[…], and its environment with env={…}"
    query = "Script(…, query=0)"
    package = "install it, or give a stand-in in sys.modules"

    def input_of(self, name: str) -> str:
        """Return how an input is given for a streaming read."""
        return f"reads={{{visible(name)!r}: Input(…)}}"

    def table_of(self, name: str) -> str:
        """Return how the rows of a batch read are given."""
        return f"reads={{{visible(name)!r}: [{{…}}]}}"

    def name_of(self, name: str) -> str:
        """Return how a global name is given that the script hasn't."""
        return f"give what its platform has with globals={{{visible(name)!r}: …}}"


class RemedyOptions(Remedies):
    """The remedies as options of the command line."""

    given = "the command line"
    arguments = "give its arguments, --argument VALUE, and set the environment variables that it needs"
    query = "--query 0"
    package = "install it beside streamproof"

    def input_of(self, name: str) -> str:
        """Return the option that gives an input."""
        return f'--input "{visible(name)}=user string, at timestamp, …"'

    def table_of(self, name: str) -> str:
        """Return the option that gives the rows of a batch read."""
        return f"--static {visible(name)}=FILE.csv"

    def name_of(self, name: str) -> str:
        """Return what the script can do itself: no option gives a name."""
        return f"define {visible(name)}, or guard the line by a test for it"


IN_TEST, ON_COMMAND_LINE = Remedies(), RemedyOptions()
