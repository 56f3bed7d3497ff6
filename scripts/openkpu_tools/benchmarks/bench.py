# SPDX-License-Identifier: Apache-2.0
"""Performance of the device, measured on the RTL: `make bench` (docs/performance.md 7).

K210 rows, single layers, products, element-wise work and pools, the project's own networks and, if
their folder exists, the published models: cycles, roofline, efficiency of each. Writes figures,
tables and pictures into reports; ``--record`` writes the figures that need no published model to
bench_baseline.json, all tables to docs/benchmarks.md, and the time line of the yolo to docs/images.
``--quick`` runs a part within some minutes. Exit status 1 when a run failed, or a figure is more
than 1 % worse than its record. ``--errors`` compares predicted cycles instead (bench_errors).
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu_tools import command, marked, registry
from openkpu_tools.benchmarks import bench_errors, bench_tables, bench_timeline
from openkpu_tools.benchmarks.bench_goals import END_TO_END, GOALS, IN_TURN, LEAST
from openkpu_tools.benchmarks.bench_tables import FP16_PRODUCT, PRODUCT, BenchRun

BASELINE = ROOT / "scripts" / "openkpu_tools" / "benchmarks" / "bench_baseline.json"
TIME_LINE = ROOT / "docs" / "images" / "model_timeline.png"
TOLERANCE = 1.01  # of a record, in cycles
SHARED = Path(os.environ.get("OPENKPU_SHARED", ROOT.parent / "shared"))
PICTURES = {
    "mnist": "mnist_train_0.jpg",
    "yolox": "nncase_dog.bmp",
}  # by the first part of a model's name
PICTURE = "test1.jpg"
OF_MODELS = ("models", "quantised", "continuous")  # runs of files that the project has not
NETWORKS = ("yolo20", "mobilenet075")  # task lists of layers that make_vectors has
# 1x1 layers of many channels: inputs that fit the tile buffer, and inputs that do not
WIDE_1X1 = {"face_detect_v0_16bit.model.bin", "detect5_v3.kmodel"}
# published models whose layers the host does not interrupt
STREAMED = ("detect5_v3.kmodel", "face_detect_v3_8bit.kmodel", "face_detect_v0_16bit.model.bin")


def own_runs(folder: Path) -> list[BenchRun]:
    """Runs that need the checkout only; their vectors are written to ``folder``."""

    def vectors(group: str, config: str, bus: int, name: str = "") -> BenchRun:
        words = ["--vectors", str(folder / (name or group))]
        return BenchRun(group, config, bus, words, source=name or group)

    runs = [vectors("k210_rows", "k210", bus) for bus in configs.BUSES[:2]]
    for name in bench_tables.plain_configs():
        runs.append(vectors("targets", name, configs.load_config(name).ahb_width))
    for name in ("elementwise", "pools", "product"):
        runs.append(vectors("tasks", "k210", 64, name))
    for bus in configs.BUSES:
        runs.append(BenchRun("tasks", "k210", bus, ["--matmul", PRODUCT], source=PRODUCT))
    runs += [vectors("tasks", "k210", bus, "product") for bus in configs.BUSES if bus != 64]
    runs.append(vectors("tasks", "k210_fp16", 64, "product_fp16"))
    words = ["--matmul", PRODUCT, "--type", "fp16"]
    runs.append(BenchRun("tasks", "k210_fp16", 64, words, source=FP16_PRODUCT))
    for name in ("small", "k210", *bench_tables.mapped()):
        words = ["--images", "1"]
        runs.append(
            BenchRun("networks", name, configs.load_config(name).ahb_width, words, source="digits")
        )
    whole = {("small", 32): NETWORKS, ("k210", 64): NETWORKS}
    for name, bus in (("nano", 32), ("compact", 32), ("small", 32), ("k210", 32), ("k210", 64)):
        for source in whole.get((name, bus), ("yolo20",)):
            words = ["--network", network(folder, source)]
            runs.append(BenchRun("networks", name, bus, words, source=source))
    runs.append(stream_run("streams", [], "digits", images=20))
    for source in NETWORKS:
        runs.append(stream_run("streams", ["--network", network(folder, source)], source))
    return runs


def stream_run(group: str, words: list[str], source: str, images: int = 4) -> BenchRun:
    """Images in one continuous run."""
    words = [*words, "--images", str(images)]
    return BenchRun(group, "k210", 64, words, source=source, command="stream")


def network(folder: Path, name: str) -> str:
    """The path of a network's file."""
    return str(folder / f"{name}.npz")


def quick(runs: Iterable[BenchRun]) -> list[BenchRun]:
    """The runs on the usual bus that need a few seconds each once their bench is built."""
    chosen = {("targets", "small"), ("targets", "k210"), ("tasks", "k210"), ("networks", "small")}
    return [
        run
        for run in runs
        if (run.group, run.config) in chosen
        and run.bus == configs.load_config(run.config).ahb_width
        and run.source not in (PRODUCT, "product", "mobilenet075")
    ]


def published(folder: Path) -> list[Path]:
    """Model files of a folder."""
    return sorted(folder.glob("*.kmodel")) + sorted(folder.glob("*model.bin"))


def model_runs(folder: Path) -> list[BenchRun]:
    """The published models on ``k210``: by the host, as task lists, with the host moving maps.

    Models with a target for ``small`` run there, too, and two on the smallest arrays, by the host.
    """
    runs = []
    more = {"small": {goal.source.partition(",")[0] for goal in GOALS if goal.config == "small"}}
    more |= dict.fromkeys(("nano", "compact"), WIDE_1X1)
    for model in published(folder):
        picture = PICTURES.get(model.name.partition("_")[0], PICTURE)
        for via, maps in (("burst", "dma"), ("tasks", "dma"), ("burst", "window")):
            words = ["--model", str(model), "--image", str(folder / "images" / picture)]
            words += ["--via", via, "--maps", maps]
            way = via if maps == "dma" else f"{via}, maps by the host"
            runs.append(BenchRun("models", "k210", 64, words, source=f"{model.name}, {way}"))
            for name in [name for name in more if model.name in more[name] and way == "burst"]:
                runs.append(BenchRun("models", name, 32, words, source=f"{model.name}, {way}"))
    return runs


def quantised_runs(folder: Path) -> list[BenchRun]:
    """The int8 models of MLPerf Tiny, one task list each, on three configurations."""
    return [
        BenchRun("quantised", name, bus, ["--model", str(folder / file)], source=file)
        for file in bench_tables.QUANTISED
        if (folder / file).is_file()
        for name, bus in (("k210", 64), ("small", 32), ("nano_fpga", 32))
    ]


def continuous_runs(folder: Path) -> list[BenchRun]:
    """Streams of the models that are one task list: published ones, and those of MLPerf Tiny."""
    models = [folder / name for name in STREAMED]
    models += [folder / "mlperf_tiny" / name for name in bench_tables.QUANTISED]
    return [
        stream_run("continuous", ["--model", str(model)], model.name)
        for model in models
        if model.is_file()
    ]


def prepare(folder: Path, runs: Iterable[BenchRun]) -> None:
    """Vectors and networks that the runs name."""
    for name in sorted({Path(run.words[1]).name for run in runs if run.words[0] == "--vectors"}):
        words = ["vectors", str(folder / name), "--set", name]
        subprocess.run(
            [sys.executable, "-m", "openkpu", *words], check=True, stdout=subprocess.DEVNULL
        )
    for name in {run.source for run in runs}.intersection(NETWORKS):
        bench_tables.network(name).save(network(folder, name))


def reported(words: Sequence[str], report: Path) -> dict[str, Any] | None:
    """The report of a command; None when it failed, after printing its last lines."""
    report.unlink(missing_ok=True)
    words = [sys.executable, "-m", "openkpu", *words, "--report", str(report)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    if done.returncode or not report.is_file():
        print((done.stdout + done.stderr)[-2000:])
        return None
    return json.loads(report.read_text())


def measure_run(run: BenchRun, folder: Path) -> dict[str, Any] | None:
    """The report of a run on Verilator, as ``reported``."""
    words = [run.command, "--sim", "verilator", "--config", run.config, "--bus", str(run.bus)]
    return reported([*words, *run.words], folder / "report.json")


def predict_run(words: Sequence[str], config: str, report: Path) -> bench_tables.Figures | None:
    """End to end without a simulator (docs/architecture.md 15), and its bounds."""
    content = reported(["predict", *words, "--config", config], report)
    if content is None:
        return None
    totals = content["totals"]
    found = {END_TO_END: "end_to_end_cycles", LEAST: "least_cycles", IN_TURN: "in_turn_cycles"}
    return {name: [totals[key], totals["roofline_cycles"]] for name, key in found.items()}


def predictions(folder: Path, models: Path) -> dict[str, bench_tables.Figures | None]:
    """Predictions of the networks and the published models on every configuration."""
    sources = {"digits": []}
    sources |= {name: ["--network", network(folder, name)] for name in NETWORKS}
    for model in published(models):
        sources[model.name] = ["--model", str(model)]
    found = {}
    for source, words in sources.items():
        for name in bench_tables.plain_configs():
            run = BenchRun(
                "predicted", name, configs.load_config(name).ahb_width, [], source=source
            )
            found[run.name] = predict_run(words, name, folder / "predicted.json")
        print(f"predicted: {source}", flush=True)
    return found


def time_lines(folder: Path, models: Iterable[Path], reports: Path) -> list[str]:
    """Draw bench_timeline_*.png of the yolo and of models on ``k210``; returns the failed ones."""
    yolo20, failed = network(folder, "yolo20"), []
    if not Path(yolo20).exists():
        bench_tables.network("yolo20").save(yolo20)
    sources = {"yolo20": ["--network", yolo20]}
    sources |= {model.name: ["--model", str(model)] for model in models}
    for source, words in sources.items():
        report, picture = folder / "predicted.json", source.partition(".")[0]
        if predict_run(words, "k210", report) is None:
            failed.append(f"time line: {source}")
            continue
        title = f"{source} on k210, predicted"
        path = reports / f"bench_timeline_{picture}.png"
        bench_timeline.draw_timeline(json.loads(report.read_text()), title, path)
    return failed


def worse(found: dict[str, Any], record: dict[str, Any]) -> list[str]:
    """A line for each figure with over 1 % more cycles than its record, or without a record."""
    lines = []
    for name, figures in found.items():
        for what, (cycles, *_) in figures.items():
            was = record.get(name, {}).get(what)
            if was is None:
                lines.append(f"{name}, {what}: {cycles} cycles, no record")
            elif cycles > was[0] * TOLERANCE:
                lines.append(f"{name}, {what}: {cycles} cycles, recorded {was[0]}")
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    args = registry.parse_command("bench", argv)
    if args.quick and args.record:
        one, other = command.option("record"), command.option("quick")
        raise command.UsageError(f"{one} records all figures, expected no {other}")
    args.reports.mkdir(parents=True, exist_ok=True)
    if args.errors is not None:
        if args.record and not (SHARED / "real" / "mlperf_tiny").is_dir():
            where = SHARED / "real"
            raise command.UsageError(f"{where} has no published models (OPENKPU_SHARED names it)")
        found = bench_errors.errors(SHARED / "real", args.errors)
        print(text := bench_errors.histogram(found))
        (args.reports / "bench_errors.txt").write_text(text + "\n")
        if args.record:
            bench_errors.record_errors(found)
            marked.fill(bench_errors.PAGE, "prediction-errors", bench_errors.error_table())
        return 0
    with tempfile.TemporaryDirectory(prefix="openkpu_bench_") as temporary:
        folder = Path(temporary)
        runs = own_runs(folder)
        if args.quick:
            runs = quick(runs)
        else:
            runs += model_runs(SHARED / "real") + quantised_runs(SHARED / "real" / "mlperf_tiny")
            runs += continuous_runs(SHARED / "real")
        if not args.quick and not (SHARED / "real").is_dir():
            print(f"no published models: {SHARED / 'real'} is not there (OPENKPU_SHARED names it)")
        prepare(folder, runs)
        failed, reports = [], {}
        for number, run in enumerate(runs, 1):
            began = time.monotonic()
            report = measure_run(run, folder)
            said = "FAILED" if report is None else bench_tables.brief(report)
            spent = time.monotonic() - began
            print(f"{number:3d}/{len(runs)} {run.name}: {said} ({spent:.0f} s)", flush=True)
            if report is None:
                failed.append(run.name)
            else:
                reports[run] = report
        guesses = {} if args.quick else predictions(folder, SHARED / "real")
        models = [] if args.quick else published(SHARED / "real")
        failed += time_lines(folder, models, args.reports)
    failed += [name for name, figures in guesses.items() if figures is None]
    found = {run.name: bench_tables.figures(report) for run, report in reports.items()}
    found |= {name: figures for name, figures in guesses.items() if figures}
    own = {run.name: found[run.name] for run in reports if run.group not in OF_MODELS}
    if args.record and not failed:
        BASELINE.write_text(json.dumps(own, indent=1) + "\n")
        bench_tables.into_page(found)
        shutil.copyfile(args.reports / "bench_timeline_yolo20.png", TIME_LINE)
        written = (BASELINE, bench_tables.PAGE, TIME_LINE)
        print("recorded:", ", ".join(str(path.relative_to(ROOT)) for path in written))
    record = json.loads(BASELINE.read_text()) if BASELINE.is_file() else {}
    lines = worse(own, record)
    (args.reports / "bench.json").write_text(json.dumps(found, indent=1) + "\n")
    (args.reports / "bench.md").write_text(bench_tables.bench_page(found))
    bench_tables.draw_bench_plots(reports, args.reports)
    print("\n".join([f"worse: {line}" for line in lines] + [f"failed: {name}" for name in failed]))
    print(f"{len(found)} runs, {len(lines)} figures worse, {len(failed)} failed: {args.reports}")
    return int(bool(failed or lines))
