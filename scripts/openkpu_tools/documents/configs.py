# SPDX-License-Identifier: Apache-2.0
"""Print the README's table of configurations, or check that the README has it (--check)."""

import sys

from openkpu.checkout import ROOT
from openkpu.layer.layout import ROW_BYTES
from openkpu_tools import command

from openkpu import configs

BEGIN, END = "<!-- configs -->", "<!-- /configs -->"


def table() -> str:
    """Markdown table of configs.toml."""
    titles = "name", "(n_x, n_y, n_z)", "MACs", "post lanes", "path", "bus"
    titles += "AI RAM, KiB", "weight rows", "tile entries", "for"
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for name in configs.names():
        c = configs.load(name)
        size = f"({configs.N_X},{c.n_y},{c.n_z})"
        lanes = c.macs // 9 // c.post_share
        cells = f"`{name}`", size, c.macs, lanes, c.path_bytes, c.ahb_width
        cells += c.ai_ram_rows * ROW_BYTES // 1024, c.wbuf_rows, c.tile_rows, c.use
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def in_readme() -> str:
    """The table as it stands in the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text.partition(BEGIN)[2].partition(END)[0].strip()


def main(argv: list[str] | None = None) -> int:
    """Exit status 1 when --check finds an old table."""
    parser = command.Parser(prog="configs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="print nothing, compare")
    if parser.parse_args(argv).check:
        if in_readme() == table():
            return 0
        print("README.md: the table of configurations is not what `make configs` prints")
        return 1
    print(table())
    return 0


if __name__ == "__main__":
    sys.exit(command.run(main))
