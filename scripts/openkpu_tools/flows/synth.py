# SPDX-License-Identifier: Apache-2.0
"""The device through Yosys: mapped to ECP5 cells, box by box, or every configuration checked.

``synth_ecp5`` maps the configurations that are named (nano by default; ``all``), hierarchy kept
and with a small AI RAM, and the cells of every box are printed, those of the modules inside it
included. The hierarchy costs LUTs that ``make fpga`` saves, but each module is mapped once, however
often it is there: a count for arrays that are too large to flatten. ``--check`` elaborates
all configurations instead: no latch, no process left over, no net with two drivers, no path from an
input of the AHB to an output of it; memories stay memories and nothing is mapped.
"""

import json
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu_tb.simrun import builds
from openkpu_tools import command, families, registry
from openkpu_tools.flows import eda
from openkpu_tools.flows.eda import rtl_sources
from openkpu_tools.variants import Variant, variant

SMALL_RAM = 256  # rows of the AI RAM here
RECORD = (
    ROOT / "scripts" / "openkpu_tools" / "flows" / "synth_record.json"
)  # configuration: columns of the whole device
TROUBLE = re.compile(r"(ERROR:|Latch inferred|multiple conflicting drivers|found logic loop)")
# Outputs that follow an input within a cycle: it would tie the timing of the neighbours together,
# and could close a loop outside. Flip-flops and writes to memories end a path, all else passes it
# on: {0} and {1} select the inputs and the outputs.
JOINED = "{0} %co*:-$dff,$memwr_v2,$check,$scopeinfo {1} %i"
AHB = "i:[sm]_ahb_h*", "o:[sm]_ahb_h* o:irq %u"
LEFT_OVER = ("$dlatch", "$_DLATCH", "$sr", "$_SR_", "$process")
COLUMNS = families.ECP5.columns
DEPTH = 3  # levels of the hierarchy in the table
Cells = Mapping[str, Mapping[str, int]]  # module -> kind of cell -> how many


class SynthError(RuntimeError):
    """Yosys failed or warned of something that must not be; the message is what it said."""


def stage(folder: Path) -> None:
    """Copy the RTL into ``folder``, where tools run: their sandbox sees no other path for sure."""
    for source in [*rtl_sources(), *(str(h.relative_to(ROOT)) for h in ROOT.glob("rtl/**/*.vh"))]:
        target = folder / source
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / source, target)


def script(
    config: configs.Config | Variant, commands: list[str], rows: int | None = SMALL_RAM
) -> str:
    """Yosys script for a staged folder: read the device in this configuration, then ``commands``.

    ``rows``: of the AI RAM; None: the configuration's.
    """
    values = config.parameters | ({"AI_RAM_ROWS": rows} if rows else {})
    sets = " ".join(f"-set {key} {value}" for key, value in values.items())
    return "\n".join(
        [
            f"read_verilog -Irtl/include {' '.join(rtl_sources())}",
            f"chparam {sets} openkpu_top",
            *commands,
        ]
    )


def yosys(config: configs.Config | Variant, commands: list[str], doing: str = "") -> dict:
    """Run the script; what ``stat`` counted. SynthError when Yosys found trouble.

    ``doing``: its work, as reported while it runs.
    """
    with tempfile.TemporaryDirectory(prefix="synth_", dir=builds()) as tmp:
        folder = Path(tmp)
        stage(folder)
        text = script(config, [*commands, "tee -q -o stat.json stat -json"])
        try:
            eda.run_yosys(text, folder, doing)
        except eda.ToolError as error:
            eda.check_elaborated(error, config.parameters)
            raise SynthError(str(error)) from error
        log = (folder / "log").read_text().splitlines()
        if found := [line for line in log if TROUBLE.search(line)]:
            raise SynthError("\n".join(found[:10]))
        return json.loads((folder / "stat.json").read_text())


def check(config: configs.Config) -> tuple[configs.Config, str]:
    """(configuration, what is wrong with it or "")."""
    commands = ["hierarchy -check -top openkpu_top", "proc", "check -assert"]
    joined = JOINED.format(*AHB)
    commands += ["flatten", "opt_clean", "check -assert"]
    commands += [f"select -list {joined}", f"select -assert-none {joined}"]
    try:
        stat = yosys(config, commands)
    except SynthError as error:
        return config, str(error)
    kinds = stat["design"]["num_cells_by_type"]
    trouble = [f"cell that must not be there: {k}" for k in kinds if k.startswith(LEFT_OVER)]
    return config, "\n".join(trouble)


def plain_module_name(name: str) -> str:
    """Module name without Yosys's decoration of parameters."""
    name = name.lstrip("\\")
    match = re.match(r"\$paramod(?:\$[0-9a-f]+)?\\(\w+)", name)
    return match[1] if match else name


def totals(modules: Cells, name: str) -> Counter:
    """Library cells of a module, those of the modules inside it included."""
    cells: Counter = Counter()
    for kind, count in modules[name].items():
        inside = totals(modules, kind) if kind in modules else {kind: 1}
        cells.update({k: n * count for k, n in inside.items()})
    return cells


def box_table(
    modules: Cells, columns: Mapping[str, families.Weights], depth: int = DEPTH
) -> list[dict]:
    """A row for every box: name, level, instances, the columns; a module before those inside it.

    ``modules``: cells of each module by kind, without those of modules inside it. Boxes lie in the
    order of the first column.
    """

    def rows(name: str, count: int, level: int) -> list[dict]:
        cells = totals(modules, name)
        row = {"box": plain_module_name(name), "level": level, "instances": count}
        row |= {title: round(count * families.weighted(cells, columns[title])) for title in columns}
        inside = [
            rows(kind, number * count, level + 1)
            for kind, number in modules[name].items()
            if level < depth and kind in modules
        ]
        parts = sorted(inside, key=lambda part: -part[0][next(iter(columns))])
        return [row, *(row for part in parts for row in part)]

    (top,) = (name for name in modules if plain_module_name(name) == "openkpu_top")
    return rows(top, 1, 0)


def table(stat: dict) -> list[dict]:
    """The boxes of what ``stat`` counted."""
    modules = {
        name.lstrip("\\"): {k.lstrip("\\"): n for k, n in found["num_cells_by_type"].items()}
        for name, found in stat["modules"].items()
    }
    return box_table(modules, COLUMNS)


def print_table(found: list[dict]) -> None:
    """The boxes, indented by their level."""
    print(f"{'box':<34}" + "".join(f"{title:>11}" for title in COLUMNS))
    for row in found:
        times = f" x {row['instances']}" if row["instances"] > 1 else ""
        name = "  " * row["level"] + row["box"] + times
        print(f"{name:<34}" + "".join(f"{row[title]:>11}" for title in COLUMNS))


def check_all(names: list[str]) -> int:
    """Exit status 0 when every configuration is clean."""
    began, bad = time.monotonic(), 0
    with ThreadPoolExecutor(2) as pool:
        for config, trouble in pool.map(check, [configs.load_config(name) for name in names]):
            bad += bool(trouble)
            verdict = "FAIL" if trouble else "ok  "
            print(f"{verdict} {config.name:<7} after {time.monotonic() - began:.0f} s", flush=True)
            if trouble:
                print(trouble)
    return int(bad > 0)


def main(argv: list[str] | None = None) -> int:
    """Exit status 0 when everything is clean, 1 when not, 2 for a bad request."""
    args = registry.parse_command("synth", argv)
    for other in ("report", "record", "params"):
        command.apart(args, ("check", other), why="nothing is mapped")
    command.apart(args, ("params", "record"), why="a record is of a configuration as it is")
    command.in_checkout(args, "record")
    command.check_outputs([args.report])
    given = " ".join(args.config)
    if "all" in args.config and len(args.config) > 1:
        raise command.UsageError(f"{given}: all is every configuration, expected it alone")
    if twice := [name for name in args.config if args.config.count(name) > 1]:
        raise command.UsageError(f"{given}: {twice[0]} is given twice, expected once")
    names = configs.names() if args.config == ["all"] else args.config
    chosen = [configs.load_config(name) for name in names]
    if args.check:
        return check_all([config.name for config in chosen] or configs.names())
    tables = {}
    devices = [variant(c, args.params) for c in chosen or [configs.load_config("nano")]]
    for device in devices:
        began = time.monotonic()
        rows = dict(device.changes).get("AI_RAM_ROWS", SMALL_RAM)
        size = rows * 64 // 1024
        print(f"{device.title}, {size} KiB AI RAM, synth_ecp5 with its hierarchy ...", flush=True)
        try:
            stat = yosys(device, [f"{families.ECP5.synth} -noflatten -top openkpu_top"], "mapping")
        except SynthError as error:
            print(f"FAIL {error}")
            return 1
        tables[device.title] = table(stat)
        print_table(tables[device.title])
        print(f"after {time.monotonic() - began:.0f} s", flush=True)
    if args.report:
        args.report.write_text(json.dumps(tables, indent=1) + "\n")
    if args.record:
        known = json.loads(RECORD.read_text())
        known |= {name: {k: found[0][k] for k in COLUMNS} for name, found in tables.items()}
        RECORD.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    return 0
