# SPDX-License-Identifier: Apache-2.0
"""What tb/openkpu_tb/simrun.py does differently when coverage is collected.

With OPENKPU_COVERAGE=folder every run of tb_top on Verilator uses an instrumented build and leaves
two files in the folder: <run>.dat.gz (code and state machines) and <run>.xml (functional bins).
With OPENKPU_COVERAGE_CODE=0 it is <run>.xml alone, and the build has no counters: several times as
fast.
"""

import gzip
import os
import re
import shutil
from pathlib import Path

FOLDER = "OPENKPU_COVERAGE"  # environment: where the files of the runs go
CODE = "OPENKPU_COVERAGE_CODE"  # environment: 0: functional bins alone
BINS = "OPENKPU_COVERAGE_BINS"  # environment of a simulation: its file of functional bins
TOPS = ("tb_top",)
# No signal is too wide to be counted: waivers.toml lists the exceptions.
OF_CODE = os.environ.get(CODE) != "0"
ARGS = [f"--coverage-{kind}" for kind in ("line", "expr", "toggle", "user")] if OF_CODE else []
ARGS += ["--coverage-max-width", str(1 << 24)] if OF_CODE else []
DAT, XML = ".dat.gz", ".xml"


def wanted(sim: str, top: str) -> bool:
    """This run is to be covered."""
    return sim == "verilator" and top in TOPS and bool(os.environ.get(FOLDER))


class Recording:
    """Coverage files of one simulation that runs in folder ``work``."""

    def __init__(self, work: Path, name: str) -> None:
        self.work = work
        stem = re.sub(r"[^A-Za-z0-9.]+", "_", name)
        self.stem = Path(os.environ[FOLDER]).absolute() / f"{stem}_{work.name}"
        self.plusargs = [f"+verilator+coverage+file+{work / 'coverage.dat'}"] if OF_CODE else []
        self.env = {BINS: str(work / "bins.xml")}

    def keep(self) -> None:
        """Move what a run that passed has left; FileNotFoundError when it left none."""
        self.stem.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.work / "bins.xml", f"{self.stem}{XML}")
        if not OF_CODE:
            return
        part = Path(f"{self.stem}.part")
        with (
            open(self.work / "coverage.dat", "rb") as source,
            gzip.open(part, "wb", compresslevel=1) as packed,
        ):
            shutil.copyfileobj(source, packed)
        part.rename(f"{self.stem}{DAT}")
