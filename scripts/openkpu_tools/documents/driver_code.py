# SPDX-License-Identifier: Apache-2.0
"""The C code of docs/programming.md: parts of the driver between ``page:`` marks."""

import re

from openkpu.checkout import ROOT

# name on the page: the parts of sw/ that it consists of
PARTS = {
    "port": ("port", "interrupts"),
    "recovery": ("collect", "recovery"),
    "maps": ("maps",),
    "layer": ("prepare", "layer"),
    "layer-out": ("layer out",),
    "layer-moved": ("layer moved",),
    "burst": ("burst",),
    "run": ("network", "start"),
    "stream": ("stream", "wait"),
    "stop": ("stop",),
    "windows": ("windows",),
}
MARKED = re.compile(r"^/\* page: ([a-z ]+) \*/\n(.*?)^/\* page end \*/$", re.MULTILINE | re.DOTALL)


def parts() -> dict[str, str]:
    """The marked parts of the driver by name; ValueError for a name that is there twice."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "sw").glob("*.[ch]")):
        for name, code in MARKED.findall(path.read_text(encoding="utf-8")):
            if name in found:
                raise ValueError(f"{path.name}: a second part {name!r}")
            found[name] = code.strip()
    return found


def block(name: str) -> str:
    """A block of the page."""
    found = parts()
    code = "\n\n".join(found[part] for part in PARTS[name])
    return f"```c\n{code}\n```"
