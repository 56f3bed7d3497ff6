# SPDX-License-Identifier: Apache-2.0
"""The page: the device's RTL in the browser, in one file (docs/page.md).

Exit status 2 when a tool is missing, 1 when it fails.
"""

import base64
import json
import re
import sys
import time
import zlib
from pathlib import Path

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu_tb import simrun
from openkpu_tools import command, registry
from openkpu_tools.command import complain
from openkpu_tools.page import compile, data

WEB = ROOT / "scripts" / "openkpu_tools" / "page" / "web"
CONFIG = "nano"
OUT = ROOT / "build" / "page" / "index.html"
LINKS = "../../docs/{page}.md#{anchor}"  # from OUT
MOST_BYTES = 3_000_000
# each only uses those before it
SCRIPTS = ("bytes", "dom", "device", "pixels", "pad", "scores", "spent", "timeline")
SCRIPTS += ("maps", "host", "lanes", "main")
IMPORT = re.compile(r"^import (\{.*?\}) from \"\./(\w+)\.js\";$", re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


class PageError(ValueError):
    """The page cannot be put together: one line."""


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    args = registry.parse_command("page", argv)
    began = time.monotonic()
    try:
        compile.check_tools()
        text = page_text(args.links or LINKS, args.jobs)
    except (simrun.ToolError, simrun.SimError, PageError) as error:
        return complain(error)
    out = Path(args.out or OUT)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    size, packed = len(text.encode()), len(zlib.compress(text.encode(), 9))
    print(
        f"{out}: {size} bytes, {packed} as a server compresses it, {time.monotonic() - began:.0f} s"
    )
    return 0


def page_text(links: str, jobs: int = 1) -> str:
    """The page as text. ``links``: address of a document, with {page} and {anchor}.

    SimError when a tool fails, PageError for what does not fit together.
    """
    config = configs.load_config(CONFIG)
    modules = {
        f"wasm-{name}": compile.module({**config.parameters, "GATE": gate}, jobs)
        for name, gate in (("gate", 1), ("plain", 0))
    }
    shown = {**data.page_data(config), "links": links}
    glue = {(folder / "page.js").read_text() for folder in modules.values()}
    if len(glue) > 1:
        raise PageError("emscripten wrote two scripts for the two devices, expected one for both")
    parts = {
        "style": (WEB / "style.css").read_text(),
        "macs": str(config.macs),
        "config": config.name,
        "data": json.dumps(shown).replace("<", "\\u003c"),
        **{name: _packed(folder / "page.wasm") for name, folder in modules.items()},
        "emscripten": _inline(glue.pop()),
        "script": _inline(bundled()),
    }
    text = (WEB / "index.html").read_text()
    made = re.sub(r"\{\{([\w-]+)\}\}", lambda place: parts[place[1]], text)
    if len(made.encode()) > MOST_BYTES:
        raise PageError(f"{len(made.encode())} bytes, expected {MOST_BYTES} at most")
    return made


def _packed(path: Path) -> str:
    """A module of WebAssembly, compressed, as text."""
    return base64.b64encode(zlib.compress(path.read_bytes(), 9)).decode()


def _inline(text: str) -> str:
    """A script that HTML may contain."""
    return text.replace("</script", "<\\/script")


def bundled() -> str:
    """The modules of web/ as one: a page from file:// may not import others.

    PageError for a module that is not listed, or uses one behind it.
    """
    found = sorted(path.stem for path in WEB.glob("*.js"))
    if found != sorted(SCRIPTS):
        raise PageError(f"scripts {', '.join(found)}, expected those that build.py lists")
    text, before = "", set[str]()
    for name in SCRIPTS:
        source = (WEB / f"{name}.js").read_text()
        if late := {used for _, used in IMPORT.findall(source)} - before:
            raise PageError(f"{name}.js imports {min(late)}.js, expected it in front of it")
        exports = ", ".join(exported for _, exported in EXPORT.findall(source))
        body = EXPORT.sub(r"\1", IMPORT.sub(r"const \1 = module_\2;", source))
        text += f"const module_{name} = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();\n"
        before.add(name)
    return text


if __name__ == "__main__":
    sys.exit(command.run_command(main))
