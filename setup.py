# SPDX-License-Identifier: Apache-2.0
"""The wheel: models, tb, scripts and rtl lie inside the package openkpu as they do in a checkout.

Everything else about the package is in pyproject.toml.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
FILES = ("configs.toml",)
FOLDERS = {  # folder: kinds of files
    "models": (".py", ".npz", ".md", ".tflite", ".onnx"),
    "tb": (".py", ".v", ".vlt", ".toml", ".md"),
    "scripts": (".py", ".sh", ""),
    "rtl": (".v", ".vh", ".rdl", ".toml"),
}


def is_test(path: Path) -> bool:
    """Tests stay in the repository; the claims' are what a command runs."""
    inside = path.name.endswith("_tests.py") and "claims" not in path.parts
    return "tests" in path.parts or path.name.startswith("test_") or inside


def content(root: Path) -> list[Path]:
    """What goes into the package, relative to the root."""
    found = [
        path.relative_to(root)
        for folder, kinds in FOLDERS.items()
        for path in sorted((root / folder).rglob("*"))
        if path.is_file() and path.suffix in kinds
    ]
    found = [path for path in found if not is_test(path) and "__pycache__" not in path.parts]
    # a folder of tests alone leaves an empty package
    full = {parent for p in found if p.name != "__init__.py" for parent in p.parents}
    return [Path(name) for name in FILES] + [p for p in found if p.parent in full]


class BuildWithFolders(build_py):
    """Puts the folders beside the package into it; what an earlier build left goes away."""

    def run(self) -> None:
        target = Path(self.build_lib) / "openkpu"
        if not self.editable_mode:
            shutil.rmtree(target, ignore_errors=True)
        super().run()
        if self.editable_mode:  # the checkout serves as it is
            return
        for path in content(ROOT):
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, target / path)


setup(packages=["openkpu"], cmdclass={"build_py": BuildWithFolders})
