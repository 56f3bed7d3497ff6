# SPDX-License-Identifier: Apache-2.0
"""The folder of builds, and the path by which tools reach the checkout.

Verilator builds with make, which takes no path with a space. For such a checkout, and for one that
cannot be written, the folder is in the user's cache; scripts/where.sh chooses the same one.
"""

import hashlib
import os
import sys
import tempfile
from pathlib import Path


class PlaceError(RuntimeError):
    """There is no folder that builds could go to: one line."""


def spaced(path: Path) -> bool:
    """The path has white space in it."""
    return len(str(path).split()) != 1


def writable(folder: Path) -> bool:
    """A file can be made there; asked by making one, which also root's rights do not mislead."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def cache(root: Path) -> Path:
    """The folder of checkout ``root`` in the user's cache; it need not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    if spaced(Path(base)):
        base = tempfile.gettempdir()
    return Path(base) / "openkpu" / hashlib.sha256(os.fsencode(root)).hexdigest()[:12]


def installed(root: Path) -> bool:
    """The folder lies in an installed package (openkpu/checkout.py)."""
    return (root.parent / "__init__.py").is_file()


def in_checkout(root: Path) -> bool:
    """Builds can go into ``root`` itself: a checkout, not an installed package."""
    return not installed(root) and not spaced(root) and writable(root)


def tool_root(root: Path) -> Path:
    """``root`` by a path without spaces: itself, or a link to it in the cache."""
    if not spaced(root):
        return root
    link = cache(root) / "checkout"
    try:
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(root)
    except FileExistsError:  # another process was first
        pass
    except OSError as error:
        raise PlaceError(f"{link}: cannot be made: {error.strerror}") from None
    return link


def builds(root: Path) -> Path:
    """The folder for builds, made if it is not there; says so when it is not in the checkout.

    PlaceError when neither place can be written.
    """
    here = in_checkout(root)
    folder = (root if here else cache(root)) / "sim_build"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlaceError(f"{folder}: cannot be made: {error.strerror}") from None
    if not writable(folder):
        raise PlaceError(f"{folder}: cannot be written")
    if not here and not installed(root):
        why = "has a space in its path" if spaced(root) else "cannot be written"
        print(f"{root} {why}: builds go to {folder}", file=sys.stderr, flush=True)
    return folder
