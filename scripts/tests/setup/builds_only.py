# SPDX-License-Identifier: Apache-2.0
"""Plugin of pytest: tests that simulate say what they would build, and are skipped.

A line of JSON for each build goes to the file that OPENKPU_BUILDS names: ``test``, ``top``,
``sources``, ``params``.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest

from openkpu_tb import simrun

VARIABLE = "OPENKPU_BUILDS"


def _say(
    sim: str,
    top: str,
    sources: Sequence[str | Path],
    *,
    params: Mapping[str, int] | None = None,
    **_: Any,
) -> NoReturn:
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    files = [str(file) for file in simrun.expand(sources)]
    build = {"test": test, "top": top, "sources": files, "params": dict(params or {})}
    with open(os.environ[VARIABLE], "a", encoding="utf-8") as stream:
        stream.write(json.dumps(build) + "\n")
    pytest.skip("only said what it builds")


def pytest_configure() -> None:
    """Not with the import, which tests do that only need the name of the variable."""
    simrun.build_bench = _say
