# SPDX-License-Identifier: Apache-2.0
"""How far predicted cycles are off those of the RTL (make bench ERRORS=): histogram, table, record.

The record has both numbers of every case, and the arguments of random layers and task lists. RTL
cycles of the bundled vectors and of published models come from the records of tb/device; the others
are measured on Verilator when a number of random layers is given, and are otherwise those of the
record.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from openkpu import configs
from openkpu.arithmetic.integers import ceil_div
from openkpu.checkout import ROOT
from openkpu.compiler.errors import FloatModelError
from openkpu.compiler.source import read_program
from openkpu.configs import Config
from openkpu.generators import generate_lists
from openkpu.generators.generate_lists import ALL_KINDS, random_list
from openkpu.kmodel import loads_kmodel, read_file
from openkpu.layer import vectors
from openkpu.layer.argument import WORDS, LayerArg
from openkpu.prediction.cycles import predict_layers
from openkpu.prediction.cycles_model import predict_model, predict_network
from openkpu.prediction.spare import rows_of_layers
from openkpu_tb.runs import measured

DEVICE = ROOT / "tb" / "device"
RECORD = Path(__file__).with_name("bench_errors.json")
PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "images" / "prediction_errors.png"
VECTORS, RANDOM = "bundled vectors, each alone", "random layers, each alone"
LISTS, PUBLISHED, MLPERF = "random task lists", "published models", "MLPerf models"
LAYERS = (VECTORS, RANDOM)
KINDS = (*LAYERS, LISTS, PUBLISHED, MLPERF)
# allowed: a share, or so many cycles (docs/performance.md 4)
LAYER_OFF, LIST_OFF, MODEL_OFF, CYCLES = 0.03, 0.04, 0.02, 50
DRAWN = ("nano", "compact", "small", "medium", "k210")  # configurations of random layers
LISTED = ("small", "k210", "nano_fp16", "large")  # ... of random task lists
LAYERS_A_LIST = 16  # random layers for each random list
TINY = ("nano", "compact", "small", "k210", "large")  # configurations of the MLPerf models
EDGES = (0.25, 0.5, 1.0, 2.0, 3.0, 5.0)  # per cent
BAR = 40  # characters
SEED = 1


@dataclasses.dataclass(frozen=True)
class PredictionCase:
    """A layer, list or model: cycles predicted and on the RTL; ``layers`` of what is random:
    whether their weights have 8 bits, and the words of their arguments in hexadecimal digits."""

    kind: str
    name: str
    predicted: int
    rtl: int
    layers: tuple[bool, str] | None = None

    @property
    def off(self) -> float:
        """The error in per cent."""
        return 100 * abs(self.predicted - self.rtl) / self.rtl

    @property
    def near(self) -> bool:
        """Within the limits of the tests."""
        share = LAYER_OFF if self.kind in LAYERS else LIST_OFF if self.kind == LISTS else MODEL_OFF
        return abs(self.predicted - self.rtl) <= max(CYCLES, share * self.rtl)


def by_kind(cases: Iterable[PredictionCase]) -> dict[str, list[PredictionCase]]:
    """The cases of each kind that there is."""
    cases = list(cases)
    kinds = {kind: [case for case in cases if case.kind == kind] for kind in KINDS}
    return {kind: found for kind, found in kinds.items() if found}


def counts(cases: Sequence[PredictionCase]) -> list[tuple[str, int]]:
    """Name and number of cases of each range of the error."""
    ends = (0.0, *EDGES, float("inf"))
    return [
        (
            f"{low:g} to {high:g} %" if high <= EDGES[-1] else f"over {low:g} %",
            sum(low <= case.off < high for case in cases),
        )
        for low, high in itertools.pairwise(ends)
    ]


def histogram(cases: Iterable[PredictionCase]) -> str:
    """Lines with a bar for each range of the error, for each kind; the mean and the largest."""
    lines = []
    for kind, found in by_kind(cases).items():
        mean, most = sum(c.off for c in found) / len(found), max(c.off for c in found)
        lines.append(f"{kind}: {len(found)}, mean {mean:.2f} %, largest {most:.2f} %")
        for name, count in counts(found):
            bar = "#" * round(BAR * count / len(found))
            lines.append(f"  {name:13} {count:5d}  {bar}".rstrip())
        lines += [
            f"  beyond the limit: {case.name}, {case.predicted} predicted, {case.rtl} on the RTL"
            for case in found
            if not case.near
        ]
    return "\n".join(lines)


def error_rows(cases: Iterable[PredictionCase]) -> list[str]:
    """The same as a table of the page."""
    kinds = by_kind(cases)
    ranges = [name for name, _ in counts([])]
    lines = [
        f"| of | number | mean | largest | {' | '.join(ranges)} | beyond the limit |",
        "|---" * (5 + len(ranges)) + "|",
    ]
    for kind, found in kinds.items():
        mean, most = sum(c.off for c in found) / len(found), max(c.off for c in found)
        cells = [kind, str(len(found)), f"{mean:.2f} %", f"{most:.2f} %"]
        cells += [str(count) for _, count in counts(found)]
        lines.append(f"| {' | '.join(cells)} | {sum(not c.near for c in found)} |")
    return lines


def error_table() -> str:
    """... of the record."""
    return "\n".join(error_rows(recorded_errors()))


def draw_errors(cases: Iterable[PredictionCase], path: Path) -> None:
    """The histogram as PNG: percent of the cases of each kind."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    kinds = by_kind(cases)
    figure, axis = pyplot.subplots(figsize=(9, 3.4))
    for number, (kind, found) in enumerate(kinds.items()):
        heights = [100 * count / len(found) for _, count in counts(found)]
        at = np.arange(len(heights)) + 0.2 * (number - (len(kinds) - 1) / 2)
        axis.bar(at, heights, 0.19, label=f"{kind} ({len(found)})")
    axis.set_xticks(range(len(EDGES) + 1), [name for name, _ in counts([])])
    axis.set_ylabel("% of the cases")
    axis.set_xlabel("error of the predicted cycles against the RTL")
    axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=80, metadata={"Software": None})
    pyplot.close(figure)


def recorded_errors() -> list[PredictionCase]:
    """The cases of the record."""
    return [PredictionCase(**case) for case in json.loads(RECORD.read_text())]


def record_errors(cases: Iterable[PredictionCase]) -> None:
    """A new record and its picture."""
    kept = [{k: v for k, v in dataclasses.asdict(case).items() if v is not None} for case in cases]
    RECORD.write_text("[\n" + ",\n".join(map(json.dumps, kept)) + "\n]\n")
    draw_errors(recorded_errors(), PICTURE)


def alone(config: Config, arg: LayerArg, eight_bit: bool) -> int:
    """Predicted cycles of a layer that the host starts alone."""
    return predict_layers(config, [arg], eight_bit=eight_bit).layers[0].cycles


def of_records(folder: Path) -> list[PredictionCase]:
    """What tb/device records; ``folder`` has the published models."""
    found = []
    recorded = json.loads((DEVICE / "cycles.json").read_text())
    layers = vectors.load_cases([ROOT / "models" / "tests" / "data" / "vectors"])
    for name in ("small", "k210"):
        config, rows = configs.load_config(name), recorded[f"vectors on {name}"]
        for layer, (case, figures) in zip(layers, rows.items(), strict=True):
            cycles = alone(config, layer.arg, layer.eight_bit)
            found.append(PredictionCase(VECTORS, f"{case} on {name}", cycles, figures[0]))
    for key, figures in json.loads((DEVICE / "model_cycles.json").read_text()).items():
        name, via, config, maps = key.split(", ")
        if (folder / name).exists():
            data = read_file(folder / name)
            programs = [loads_kmodel(data, name)]
            guess = predict_model(configs.load_config(config), programs, len(data), via, maps)
            found.append(PredictionCase(PUBLISHED, key, guess.cycles, figures["end to end"][0]))
    return found


def drawn(
    kind: str, name: str, rtl: int, layers: Sequence[LayerArg], eight_bit: bool
) -> PredictionCase:
    """A random layer, or the layers of a random list."""
    words = np.concatenate([layer.encode() for layer in layers]).astype("<u8")
    return again(PredictionCase(kind, name, 0, rtl, (eight_bit, words.tobytes().hex())))


def again(case: PredictionCase) -> PredictionCase:
    """A random layer or list, predicted anew."""
    assert case.layers is not None
    eight_bit, digits = case.layers
    words = np.frombuffer(bytes.fromhex(digits), dtype="<u8").reshape(-1, WORDS)
    args = [LayerArg.decode(each) for each in words]
    config, tasks = configs.load_config(case.name.split()[-1]), case.kind == LISTS
    spare = rows_of_layers(config, args, eight_bit=eight_bit)[1] if tasks else 0
    run = predict_layers(config, args, eight_bit=eight_bit, tasks=tasks, spare=spare)
    cycles = sum(layer.cycles for layer in run.layers) + tasks  # the host's start of a list
    return dataclasses.replace(case, predicted=cycles)


def of_random(count: int) -> list[PredictionCase]:
    """So many random layers on Verilator, dealt over the configurations; SimError."""
    found = []
    names = random.Random(SEED).choices(DRAWN, k=count)
    for name in sorted(set(names)):
        config = configs.load_config(name)
        layers = measured.random_layers(config, SEED, names.count(name))
        rtl = measured.cycles_alone(config, layers)
        for number, (layer, cycles) in enumerate(zip(layers, rtl, strict=True)):
            case = f"{number} on {name}"
            found.append(drawn(RANDOM, case, cycles, [layer.arg], layer.eight_bit))
    return found


def of_lists(count: int) -> list[PredictionCase]:
    """``count`` random lists with a task of each kind on Verilator; half of the tasks load or store
    their maps. SimError."""
    found, rng = [], np.random.default_rng(SEED)
    for number in range(count):
        name = LISTED[number % len(LISTED)]
        config = configs.load_config(name)
        kinds = rng.permutation(ALL_KINDS if config.fp16_lanes else generate_lists.KINDS)
        # rows of 32 numbers, for products of float16
        width = 64 if config.fp16_lanes else int(rng.integers(60, 90))
        shape = (int(rng.integers(3, 20)), int(rng.integers(8, 30)), width)
        order = [str(kind) for kind in kinds]
        network, _ = random_list(rng, order, shape, ram_rows=config.ai_ram_rows, moves=0.5)
        _, rtl = measured.cycles_of_network(config, network)
        found.append(drawn(LISTS, f"list {number} on {name}", rtl, network.layers, True))
    return found


def of_tiny(folder: Path, known: dict[str, int] | None) -> list[PredictionCase]:
    """The quantised MLPerf models of a folder, each part of the device on each configuration;
    ``known``: RTL cycles by the name of the case, None: on Verilator, SimError."""
    found = []
    for file in sorted(folder.glob("*.tflite")):
        for name in TINY:
            config = configs.load_config(name)
            try:
                program = read_program(str(file), config)
            except FloatModelError:
                break
            for number, part in enumerate(program.device_parts):
                case = f"{file.name}, {number} on {name}"
                if known is not None and case not in known:
                    continue
                rtl = known[case] if known else measured.cycles_of_network(config, part.network)[1]
                cycles = predict_network(config, part.network).cycles
                found.append(PredictionCase(MLPERF, case, cycles, rtl))
    return found


def errors(folder: Path, count: int) -> list[PredictionCase]:
    """All cases, predicted anew; ``count`` random layers, lists and the MLPerf models on the RTL,
    with 0 those of the record. ``folder`` has the published models and ``mlperf_tiny``."""
    tiny = folder / "mlperf_tiny"
    if count:
        lists = of_lists(ceil_div(count, LAYERS_A_LIST))
        return [*of_records(folder), *of_random(count), *lists, *of_tiny(tiny, None)]
    cases = recorded_errors() if RECORD.is_file() else []
    known = {case.name: case.rtl for case in cases if case.kind == MLPERF}
    old = [again(case) for case in cases if case.layers]
    return [*of_records(folder), *old, *of_tiny(tiny, known)]
