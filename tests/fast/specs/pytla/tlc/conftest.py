"""A recorded output of TLC, concluded."""

from __future__ import annotations

import time

import pytest
from streamproof.specs.pytla.inputs.configuration import Configuration
from streamproof.specs.pytla.inputs.models import Model
from streamproof.specs.pytla.inputs.modules import Modules
from streamproof.specs.pytla.tlc.conclude import RunFacts, conclude
from streamproof.specs.pytla.tlc.output import TlcOutput, listen
from tlc_output import CONFIGURATION, MODULE


@pytest.fixture
def concluded(tmp_path):
    """The result of a recorded output, under the module and the configuration above."""

    def conclude_(text, *, exit_code=0, standard_error="", max_distinct=None, configuration=CONFIGURATION):
        (tmp_path / "M.tla").write_text(MODULE)
        (tmp_path / "M.cfg").write_text(configuration)
        model = Model(tmp_path / "M.tla", tmp_path / "M.cfg")
        modules = Modules(files={"M": model.module, "Integers": None})
        modules.take_in("M", MODULE)
        output = TlcOutput(time.monotonic())
        listen(output, text.splitlines(), None)
        output.ended(exit_code, standard_error)
        return conclude(RunFacts(model, Configuration(model.configuration), modules, max_distinct), output)

    return conclude_
