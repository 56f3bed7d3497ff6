# SPDX-License-Identifier: Apache-2.0
"""What commands write on terminals: wide and narrow ones, and such that overwrite nothing."""

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from openkpu.checkout import ROOT, python_path
from scripts.tests.checkouts import program
from scripts.tests.requests.test_openkpu_command import ENV
from scripts.tests.setup.test_setup_env import checkout

pytestmark = pytest.mark.check

ESCAPE, HALF = "\N{ESCAPE}", "\N{UPPER HALF BLOCK}"


def on_terminal(*words: str | Path, columns: int = 80, **env: str) -> tuple[int, str]:
    """Status and output of a program on a terminal of so many columns (0: it does not say)."""
    ours, its = os.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    kept = {k: v for k, v in ENV.items() if k not in ("TERM", "NO_COLOR", "COLUMNS", "LINES")}
    kept |= {"PYTHONPATH": python_path(), "LC_ALL": "C.UTF-8"}
    with subprocess.Popen(
        words, cwd=ROOT, env={**kept, **env}, stdin=its, stdout=its, stderr=its
    ) as process:
        os.close(its)
        said = b""
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # the last one who wrote has gone
                break
            said += part
            if not part:
                break
        os.close(ours)
    return process.returncode, said.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("columns", "env", "drawn"),
    [
        (80, {"TERM": "xterm"}, True),
        (0, {"TERM": "xterm"}, True),
        (20, {"TERM": "xterm"}, False),
        (80, {"TERM": "dumb"}, False),
        (80, {"TERM": ""}, False),
        (80, {}, False),
        (80, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (
            80,
            {"TERM": "xterm", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
            False,
        ),
    ],
)
def test_digits(columns: int, env: dict[str, str], drawn: bool) -> None:
    """A scan is drawn where there is room and colour; the answer is there in any case."""
    words = (sys.executable, "-m", "openkpu", "sim", "--golden", "--images=1")
    status, said = on_terminal(*words, columns=columns, **env)
    assert status == 0 and "image   0  predicted 1  true 1" in said, said
    assert said.count(HALF) == 32 * drawn and (ESCAPE in said) == drawn


PROGRESS = """
from openkpu_tools import rtl
progress = rtl.Progress()
bar = rtl.Bar(4, progress)
bar.show(1, "image 1 of 4, layer 3 of 4")
bar.show(2, "image 2")
progress.line("a line that stays")
"""


@pytest.mark.parametrize(("columns", "term"), [(80, "xterm"), (20, "xterm"), (80, "dumb")])
def test_bar(columns: int, term: str) -> None:
    """It fits into a line, which is overwritten; where that cannot be there is none."""
    status, said = on_terminal(sys.executable, "-c", PROGRESS, columns=columns, TERM=term)
    assert status == 0, said
    parts = re.split("[\r\n]", said)
    assert said.endswith("a line that stays\n") and max(map(len, parts)) < columns
    assert said.count("\r") == (0 if term == "dumb" else 4)
    assert ("[######....." in said) == (term != "dumb")


@pytest.mark.parametrize(("columns", "term"), [(80, "xterm"), (20, "xterm"), (80, "dumb")])
def test_set_up(columns: int, term: str, tmp_path: Path) -> None:
    """Its line about an installer that works fits as well; a dumb terminal gets lines."""
    root, tools = checkout(tmp_path / "kpu"), tmp_path / "bin"
    tools.mkdir()
    program(tools, "uv", 'echo "Downloading b (1.2MiB)"; sleep 6')
    env = {"PATH": f"{tools}{os.pathsep}{ENV['PATH']}", "TERM": term}
    status, said = on_terminal(root / "scripts/setup.sh", columns=columns, **env)
    assert status == 0, said
    if term == "dumb":
        assert "\r" not in said and ESCAPE not in said
        assert "setup: installing 1 package with uv, 5 s  Downloading b (1.2MiB)\n" in said
    else:
        shown = re.findall(f"\r([^\r\n]+){ESCAPE}\\[K", said)
        assert len(shown) > 3 and max(map(len, shown)) < columns, said
