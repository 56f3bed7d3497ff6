# SPDX-License-Identifier: Apache-2.0
"""The state of the design that a result is of; standard library alone."""

import hashlib
import re
from pathlib import Path

FORMAL = re.compile(r"`ifdef FORMAL.*?`endif", re.S)  # is no part of the design


def rtl_digest(root: Path) -> str:
    """Of the design in ``root``/rtl: its text without comments, blanks and properties."""
    files = [path for path in (root / "rtl").rglob("*.v*") if not path.stem.endswith("_props")]
    state = hashlib.sha256()
    for path in sorted(files, key=lambda path: path.relative_to(root).as_posix()):
        text = FORMAL.sub("", re.sub(r"//.*", "", path.read_text(encoding="utf-8")))
        state.update("\0".join([path.relative_to(root).as_posix(), "".join(text.split())]).encode())
    return state.hexdigest()[:16]
