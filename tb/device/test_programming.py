# SPDX-License-Identifier: Apache-2.0
"""The driver in sw/, the code of docs/programming.md, runs the RTL access by access."""

import subprocess
from pathlib import Path

import pytest

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu_tb.runs import launch

DRIVER = [ROOT / "sw" / f"openkpu{part}.c" for part in ("", "_layers")]
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
CALLS = ROOT / "tb" / "device" / "programming_calls.c"


@pytest.mark.check
def test_code_of_the_page_runs_the_device(tmp_path: Path) -> None:
    """The driver's functions run layers, bursts, lists and streams, access by access."""
    library = tmp_path / "driver.so"
    command = ["gcc", *FLAGS, "-shared", "-fPIC", f"-I{ROOT / 'include'}", f"-I{ROOT / 'sw'}"]
    command += [f"-I{CALLS.parent}", '-DOPENKPU_PORT="programming_port.h"', "-o", str(library)]
    command += map(str, (CALLS, *DRIVER))
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    config = configs.load_config("nano")
    launch.run_device(
        "icarus",
        "tb.device.programming_tests",
        launch.parameters(config, 1 << 20),
        env={"OKPU_CODE": str(library)},
    )
