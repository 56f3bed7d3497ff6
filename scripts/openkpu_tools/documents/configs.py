# SPDX-License-Identifier: Apache-2.0
"""Print the table of configurations, which docs/silicon.md has."""

from openkpu import configs
from openkpu.layer.layout import ROW_BYTES
from openkpu_tools import registry


def configs_table() -> str:
    """Markdown table of configs.toml."""
    titles = "name", "(n_x, n_y, n_z)", "MACs", "post lanes", "path", "bus"
    titles += "AI RAM, KiB", "weight rows", "tile entries", "for"
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for name in configs.names():
        c = configs.load_config(name)
        size = f"({configs.N_X},{c.n_y},{c.n_z})"
        lanes = c.macs // 9 // c.post_share
        cells = f"`{name}`", size, c.macs, lanes, c.path_bytes, c.ahb_width
        cells += c.ai_ram_rows * ROW_BYTES // 1024, c.wbuf_rows, c.tile_rows, c.use
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    registry.parse_command("configs", argv)
    print(configs_table())
    return 0
