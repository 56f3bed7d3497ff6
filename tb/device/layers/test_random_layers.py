# SPDX-License-Identifier: Apache-2.0
"""Random layers on the whole device: shapes that vectors do not have, extensions, ring wrap.

By the host, as task lists and in streams, on a quiet and on a disturbed bus, with both widths of
weights. After each case all of AI RAM and storage is compared: stray writes are failures too.
"""

from typing import Any

import numpy as np
import pytest

from openkpu import configs
from openkpu.configs import Config
from openkpu.generators.generate import random_layer
from openkpu.network.network import Network
from openkpu_tb import seeds
from openkpu_tb.runs import launch
from openkpu_tb.runs.random_cases import SLACK, cases_storage_bytes, draw_cases, in_place
from openkpu_tb.runs.requests import RandomCase, RandomRequest
from openkpu_tb.simrun import SimError

SEEDS = seeds.chosen_seeds()[0]


def check(
    sim: str, config: Config, cases: list[RandomCase], seed: int, **more: int
) -> list[dict[str, Any]]:
    """Run the cases one after the other; the events, when nothing is wrong with any of them.

    ``more``: parameters that no configuration has.
    """
    events: list[dict[str, Any]] = []
    failure = ""
    try:
        launch.run_job(
            sim,
            config,
            RandomRequest(cases),
            events.append,
            storage_bytes=cases_storage_bytes(cases),
            seed=seed,
            waves=None,
            **more,
        )
    except SimError as error:
        failure = f"\n{error}"
    done = [event for event in events if event["event"] == "case"]
    wrong = [
        f"{cases[event['index']].title}: {'; '.join(event['wrong'])}"
        f" [{'; '.join(map(str, cases[event['index']].network.layers))}]"
        for event in done
        if event["wrong"]
    ]
    title = f"{config.name} on {sim}, seed {seed}:\n"
    assert not wrong, title + "\n".join(wrong) + failure
    assert not failure, f"{title}after {len(done)} cases{failure}"
    assert [event["index"] for event in done] == list(range(len(cases))), title
    return events


@pytest.mark.tier(check=["*-small"])
@pytest.mark.parametrize("config", ["nano", "small"])
@pytest.mark.parametrize(
    "seed", [SEEDS[0], *(pytest.param(seed, marks=pytest.mark.nightly) for seed in SEEDS[1:])]
)
def test_random_layers(config: str, seed: int) -> None:
    built = configs.load_config(config)
    cases = draw_cases(built, seed, layers=60, networks=12)
    events = check("verilator", built, cases, seed)
    # what the draw is for did happen: 16-bit weights kept in a stream, and a disturbed bus
    kept = [e["kept"] for e in events if e["event"] == "case"]
    wide = [k for k, c in zip(kept, cases, strict=True) if not c.network.eight_bit]
    assert max(wide) == 2, f"seed {seed}: no stream kept its 16-bit weights"
    (bus,) = [e for e in events if e["event"] == "bus"]
    assert bus["refusals"] > 10 and bus["losses"] > 10, bus


@pytest.mark.tier(nightly=["icarus", "verilator"])
@pytest.mark.parametrize("sim", ["icarus", "verilator"])
def test_in_place(sim: str) -> None:
    """Depthwise layers that overwrite the rows they read: exact, and not a byte beside the map."""
    slow, config = sim == "icarus", configs.load_config("nano" if sim == "icarus" else "small")
    cases = in_place(config, SEEDS[0], 8 if slow else 72, slow=slow)
    assert all(case.network.layers[0].maps_meet for case in cases)
    check(sim, config, cases, SEEDS[0])


@pytest.mark.nightly
def test_random_layers_icarus() -> None:
    """A few small ones where an unknown bit is seen."""
    seed = SEEDS[0]
    nano = configs.load_config("nano")
    check("icarus", nano, draw_cases(nano, seed, 4, 2, slow=True), seed)


def test_vector_of_a_hundred_thousand() -> None:
    """The sum of pixels of a fully connected layer outgrows that of a convolution."""
    rng = np.random.default_rng(3)
    layer = random_layer(rng, fc=True, eight_bit=True, c=387, h=9, w=28, o=2, case="fc", name="w")
    case = RandomCase("long", "host", Network.single(layer), layer.x[None], False, 100 * SLACK)
    check("verilator", configs.load_config("nano"), [case], 3)


def test_shadow() -> None:
    """A single stray byte anywhere in the memories is seen, and named."""
    launch.run_device(
        "verilator", "tb.device.shadow_tests", launch.parameters(configs.load_config("nano"))
    )
