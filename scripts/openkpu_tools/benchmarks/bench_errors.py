# SPDX-License-Identifier: Apache-2.0
"""How far predicted cycles are off those of the RTL, as a histogram in text.

RTL cycles are the records of tb/device (published models, as far as their files are there; each of
the bundled vectors alone) and, when asked, of runs on Verilator: MLPerf models and random layers.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu.compiler.source import read_program
from openkpu.configs import Config
from openkpu.kmodel import loads_kmodel, read_file
from openkpu.layer import vectors
from openkpu.layer.vectors import VectorLayer
from openkpu.network.network import alignment
from openkpu.prediction.cycles import predict_layers
from openkpu.prediction.cycles_model import predict_model, predict_network
from openkpu_tb.runs import launch, random_cases
from openkpu_tb.runs.requests import NetworkRequest, VectorsRequest

RECORDS = ROOT / "tb" / "device"
EDGES = (0.25, 0.5, 1.0, 2.0, 3.0, 5.0)  # per cent
BAR = 40  # characters
LIMIT = 20_000_000  # cycles of a layer or an inference
SEED = 1
Pairs = list[tuple[int, int]]  # predicted, on the RTL


def histogram(kinds: Mapping[str, Pairs]) -> str:
    """Lines with a bar for each range of the error, for each kind; the mean and the largest."""
    lines = []
    for kind, pairs in kinds.items():
        found = [100 * abs(guess - right) / right for guess, right in pairs]
        mean = sum(found) / len(found)
        lines.append(f"{kind}: {len(found)}, mean {mean:.2f} %, largest {max(found):.2f} %")
        for low, high in zip((0, *EDGES), (*EDGES, float("inf")), strict=True):
            count = sum(low <= error < high for error in found)
            bar = "#" * round(BAR * count / len(found))
            lines.append(f"  {low:4.2f} to {high:4.2f} %  {count:5d}  {bar}".rstrip())
    return "\n".join(lines)


def of_layers(config: Config, layers: Sequence[VectorLayer], measured: Sequence[int]) -> Pairs:
    """Layers that the host starts one by one."""
    runs = (predict_layers(config, [la.arg], eight_bit=la.eight_bit) for la in layers)
    return [(run.layers[0].cycles, right) for run, right in zip(runs, measured, strict=True)]


def of_records(folder: Path) -> dict[str, Pairs]:
    """What tb/device records; ``folder`` has the published models."""
    found: dict[str, Pairs] = {"bundled vectors, each alone": [], "published models": []}
    record = json.loads((RECORDS / "cycles.json").read_text())
    layers = vectors.load_cases([ROOT / "models" / "tests" / "data" / "vectors"])
    for name in ("small", "k210"):
        measured = [figures[0] for figures in record[f"vectors on {name}"].values()]
        pairs = of_layers(configs.load_config(name), layers, measured)
        found["bundled vectors, each alone"] += pairs
    for key, figures in json.loads((RECORDS / "model_cycles.json").read_text()).items():
        name, via, config, maps = key.split(", ")
        if (folder / name).exists():
            data = read_file(folder / name)
            programs = [loads_kmodel(data, name)]
            guess = predict_model(configs.load_config(config), programs, len(data), via, maps)
            found["published models"].append((guess.cycles, figures["end to end"][0]))
    return {kind: pairs for kind, pairs in found.items() if pairs}


def random_layers(config: Config, count: int) -> list[VectorLayer]:
    """Layers of all kinds that the configuration takes."""
    rng, found = np.random.default_rng(SEED), []
    while len(found) < count:
        layer = random_cases.draw_layer(rng, random_cases.shapes)
        fits = layer.arg.weight_rows(config.n_z) <= config.wbuf_rows
        found += [layer] if fits and (layer.eight_bit or config.weight_bits == 16) else []
    return found


def of_runs(folder: Path, count: int) -> dict[str, Pairs]:
    """So many random layers on Verilator, dealt over the configurations, and the MLPerf models of
    a folder on k210; SimError."""
    found: dict[str, Pairs] = {"random layers, each alone": []}
    names = random.Random(SEED).choices(("nano", "compact", "small", "medium", "k210"), k=count)
    for name in sorted(set(names)):
        config, events = configs.load_config(name), list[dict[str, Any]]()
        layers = random_layers(config, names.count(name))
        request = VectorsRequest(layers, [LIMIT] * len(layers))
        launch.run_job("verilator", config, request, events.append)
        measured = [e["counters"]["total"] for e in events if e["event"] == "layer"]
        found["random layers, each alone"] += of_layers(config, layers, measured)
    config = configs.load_config("k210")
    for file in sorted(folder.glob("*_int8.tflite")):
        for part in read_program(str(file), config, None).device_parts:
            network, events = part.network, list[dict[str, Any]]()
            shape = (1, *network.in_shape)
            images = np.random.default_rng(SEED).integers(0, 256, shape, dtype=np.uint8)
            request = NetworkRequest(network, images, LIMIT, alignment(config))
            launch.run_job("verilator", config, request, events.append)
            (image,) = [event for event in events if event["event"] == "image"]
            pair = predict_network(config, network).cycles, image["inference"]["total"]
            found.setdefault("MLPerf models", []).append(pair)
    return found


def errors(folder: Path, count: int) -> str:
    """The histogram of the records, and with a ``count`` of so many random layers and the MLPerf
    models, run on Verilator; ``folder`` has the published models."""
    kinds = of_records(folder)
    return histogram(kinds | (of_runs(folder / "mlperf_tiny", count) if count else {}))
