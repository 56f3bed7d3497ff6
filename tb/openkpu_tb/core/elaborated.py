# SPDX-License-Identifier: Apache-2.0
"""What a bench was built with, while its tests are collected: for ``cocotb.skipif``.

A test that returns early counts as passed; one that does not apply to a build is skipped.
"""

import cocotb


def parameter(name: str) -> int:
    """A parameter of the module under test; 0 where no simulator runs (pytest collects)."""
    top = getattr(cocotb, "top", None)
    return 0 if top is None else int(getattr(top, name).value)


def simulator() -> str:
    """The simulator in lower case; "" where none runs."""
    return str(getattr(cocotb, "SIM_NAME", "")).lower()
