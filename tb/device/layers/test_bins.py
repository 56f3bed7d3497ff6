# SPDX-License-Identifier: Apache-2.0
"""A layer for each bin of the crosses of layers that there can be."""

import dataclasses

import pytest

from openkpu import configs
from openkpu.layer import decoded
from openkpu.layer.argument import MOST_DILATION
from openkpu_tb import seeds
from openkpu_tb.core import descriptor
from openkpu_tb.coverage.model import classify, dilation_bins
from tb.device.layers.bin_cases import bin_cases, layer_bins
from tb.device.layers.test_random_layers import check

SEED = seeds.chosen_seeds()[0][0]
PARTS = 12
# a small array with every distance of taps
CONFIG = dataclasses.replace(configs.load_config("nano"), dilation=MOST_DILATION)


@pytest.mark.check
def test_cases_fall_into_their_bins() -> None:
    """What is drawn for a bin is in it, whatever the seed; the parts are all of them."""
    for part in (0, 5, PARTS - 1):
        bins = layer_bins()[part::PARTS]
        cases = bin_cases(CONFIG, SEED, part, PARTS)
        for bin, case in zip(bins, cases, strict=True):
            (arg,) = case.network.layers
            found = descriptor.describe_layer(
                arg, decoded.Sizes(), eight_bit=case.network.eight_bit
            )
            bins_of = [classify(found), *(("dilation", b) for b in dilation_bins(found))]
            assert bin in bins_of, f"seed {SEED}: {case.title}: {arg}"
    assert sum(len(layer_bins()[part::PARTS]) for part in range(PARTS)) == len(layer_bins())


@pytest.mark.tier(nightly=["0"])
@pytest.mark.parametrize(
    "part", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(1, PARTS))]
)
def test_bins(part: int) -> None:
    """A twelfth of the bins, by all three ways, on a quiet and on a disturbed bus."""
    part = (part + SEED) % PARTS
    check("verilator", CONFIG, bin_cases(CONFIG, SEED, part, PARTS), SEED)
