# SPDX-License-Identifier: Apache-2.0
"""The wheel: the packages of the three source roots, and files of the checkout that they read.

Those files go into openkpu/share under the names that they have in the checkout. Everything else
about the package is in pyproject.toml.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
SHARED = (  # patterns of files
    "configs.toml",
    "include/*.h",
    "sw/*.c",
    "sw/*.h",
    "sw/CMakeLists.txt",
    "rtl/**/*.v",
    "rtl/**/*.vh",
    "rtl/**/*.rdl",
    "rtl/**/*.toml",
    "rtl/openkpu.f",
    "rtl/openkpu.sdc",
    "tb/openkpu_tb/**/*.v",
    "tb/openkpu_tb/**/*.vlt",
    "scripts/bin/*",
)

# modules that work on a checkout
FLOWS = ("board", "formal", "proofs", "soc", "soc_job")
LEFT_OUT = [f"openkpu_tools/flows/{name}.py" for name in FLOWS]
LEFT_OUT += ["openkpu_tb/claims/run_claims.py", "openkpu_tb/plan/plan.py"]


class BuildWithShare(build_py):
    """Copies the shared files into the package; what an earlier build left goes away."""

    def run(self) -> None:
        if not self.editable_mode:
            for name in {package.partition(".")[0] for package in self.packages}:
                shutil.rmtree(Path(self.build_lib) / name, ignore_errors=True)
        super().run()
        if self.editable_mode:  # the checkout serves as it is
            return
        share = Path(self.build_lib) / "openkpu" / "share"
        for path in sorted(path for pattern in SHARED for path in ROOT.glob(pattern)):
            target = share / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        for name in LEFT_OUT:
            (Path(self.build_lib) / name).unlink()


setup(cmdclass={"build_py": BuildWithShare})
