# SPDX-License-Identifier: Apache-2.0
"""The committed TFLite and ONNX models of the digits: as the script writes them, and good."""

from __future__ import annotations

import numpy as np
import pytest

from openkpu import digits
from openkpu_tools.foreign import train_networks as script

FEW = 120  # held-out scans


def test_every_model_is_committed() -> None:
    assert set(digits.MODELS) == set(script.FILES)


@pytest.mark.parametrize("name", script.FILES)
def test_model_is_what_the_script_writes(name: str) -> None:
    if name.endswith(".onnx"):
        pytest.importorskip("onnxruntime", reason="make setup GROUPS=test brings onnxruntime")
    made = script.model(name, script.load_params())
    assert alike(made, (digits.FOLDER / name).read_bytes())


def alike(made: bytes, kept: bytes) -> bool:
    """The same file, but for what follows ranges of floats, whose last bits are the BLAS's: words
    of 32 bits that are numbers next to each other, floats or integers (scales, biases)."""
    if made == kept or len(made) != len(kept):
        return made == kept
    size = len(made) // 4 * 4
    words = [np.frombuffer(text[:size], "<i4").astype(np.int64) for text in (made, kept)]
    # neighbours among floats of one sign are neighbours as integers; 25 of 3,852 were seen
    apart = np.abs(words[0] - words[1])
    few = np.count_nonzero(apart) <= len(apart) // 100
    return bool(few and apart.max() <= 4) and made[size:] == kept[size:]


@pytest.mark.parametrize("place", [8, 200, 1340])
def test_other_models_are_not_alike(place: int) -> None:
    kept = (digits.FOLDER / "residual_int8.tflite").read_bytes()
    other = bytearray(kept)
    other[place + 1] ^= 1
    assert alike(kept, kept) and not alike(bytes(other), kept) and not alike(kept[:-4], kept)


@pytest.mark.parametrize("name", script.FILES)
def test_runtime_reads_digits(name: str) -> None:
    package = "onnxruntime" if name.endswith(".onnx") else "ai_edge_litert"
    pytest.importorskip(package, reason="make setup GROUPS=test brings LiteRT and onnxruntime")
    test = digits.load_data()[1]
    found = script.classes(name, test.images[:FEW])
    assert (found == test.labels[:FEW]).mean() > 0.95


@pytest.mark.parametrize("name", script.NETWORKS)
def test_gradients_are_differences(name: str) -> None:
    """Against the loss a small step to either side, in double precision."""
    net, data = script.NETWORKS[name], digits.load_data()[0]
    own = script.own_params(script.load_params(), name)
    params = {key: value.astype(np.float64) for key, value in own.items()}
    params["logits_w"] /= 10  # less sure of itself: a loss to speak of
    images, labels = data.images[:6], data.labels[:6]
    _, grads = script.gradients(net, params, images, labels)
    rng, step, close = np.random.default_rng(2), 1e-5, 0
    for key, value in params.items():
        place = tuple(rng.integers(0, n) for n in value.shape)
        losses = []
        for sign in (1, -1):
            moved = {**params, key: value.copy()}
            moved[key][place] += sign * step
            losses.append(script.gradients(net, moved, images, labels)[0])
        want = (losses[0] - losses[1]) / (2 * step)
        close += bool(np.isclose(grads[key][place], want, rtol=1e-3, atol=1e-5))
    assert close >= len(params) - 1, "one may lie on a kink of ReLU"
