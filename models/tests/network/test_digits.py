# SPDX-License-Identifier: Apache-2.0
"""The committed digits network: what it reaches, and that it is in the patent's style."""

from __future__ import annotations

import numpy as np
import pytest

from openkpu import digits
from openkpu.arithmetic.activation import Activation
from openkpu.arithmetic.params import ActTable
from openkpu.digits import float_model, quantise


@pytest.fixture(scope="module")
def accuracies() -> tuple[float, float]:
    """(float, golden) over the whole held-out set."""
    _, test = digits.load_data()
    exact = np.equal(float_model.predict_classes(digits.load_float(), test.images), test.labels)
    network = digits.load_network()
    fixed = np.equal([digits.classify(network.run(x).y) for x in test.pixels], test.labels)
    print(f"float {exact.mean():.2%}, golden {fixed.mean():.2%} of {len(test)}")
    return float(exact.mean()), float(fixed.mean())


def test_data_is_split_for_good() -> None:
    training, test = digits.load_data()
    assert (len(training), len(test)) == (1437, 360)
    assert training.images.shape == (1437, 1, 8, 8) and int(test.images.max()) == 16
    seen = {image.tobytes() for image in training.images}
    assert not any(image.tobytes() in seen for image in test.images)
    assert np.bincount(test.labels, minlength=10).min() >= 20


def test_float_model_reaches_97_percent(accuracies: tuple[float, float]) -> None:
    assert accuracies[0] >= 0.97


def test_quantised_model_loses_less_than_a_point(accuracies: tuple[float, float]) -> None:
    assert accuracies[1] > accuracies[0] - 0.01


def test_committed_image_is_what_quantisation_gives() -> None:
    training, _ = digits.load_data()
    made = quantise.quantise(digits.load_float(), training.images)
    network = digits.load_network()
    assert made.layers == network.layers
    assert (made.weights == network.weights).all()
    # the scales come from float64 maxima: the last bit may depend on the BLAS
    assert np.count_nonzero(made.biases != network.biases) <= network.biases.size // 50


def test_relu_is_the_gate_of_the_next_layer() -> None:
    network = digits.load_network()
    assert [arg.signed_in for arg in network.layers] == [0, 1, 1, 1]
    assert all(arg.signed_out for arg in network.layers)
    assert [arg.fc for arg in network.layers] == [0, 0, 1, 1]
    _, test = digits.load_data()
    run = network.run(test.pixels[0])
    middle = run.layers[0].y.view(np.int8)
    assert middle.min() < 0 < middle.max()
    assert 50_000 < run.macs < 200_000 and run.macs_gated > run.macs // 4
    assert network.weights.size < 30_000


def test_straight_line_is_a_rounded_quotient() -> None:
    line = Activation(ActTable.unpack(quantise.straight_line()), signed=True)
    v = np.arange(-200_000, 200_000, 7)
    want = np.clip(np.rint(v / 1024), -128, 127)
    assert (line(v) == want).all()
