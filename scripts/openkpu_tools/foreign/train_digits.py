# SPDX-License-Identifier: Apache-2.0
"""Train the digits CNN (numpy only), quantise it, and write models/openkpu/digits/*.npz.

    python -m openkpu_tools.foreign.train_digits            train, quantise, write
    python -m openkpu_tools.foreign.train_digits --data     fetch the scans (needs scikit-learn)
    python -m openkpu_tools.foreign.train_digits --large    the large network (scans of 128 x 128)
    python -m openkpu_tools.foreign.train_digits --check    accuracies of the committed files

Deterministic for a given numpy and BLAS; another BLAS may round differently and give other weights.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from openkpu import digits
from openkpu.digits import float_model as fm
from openkpu.digits.quantise import quantise
from openkpu.files import save_arrays
from openkpu.network.network import Network
from openkpu_tools import command

SEED = 312
TEST_IMAGES = 360
Shapes = dict[str, tuple[int, ...]]
Params = dict[str, np.ndarray]


def fetch_data() -> None:
    """Write digits.npz: scans, labels and the split, from scikit-learn."""
    try:
        # from the group train, which no other command sets up
        from sklearn.datasets import load_digits  # pyright: ignore[reportMissingImports]
    except ImportError:
        sys.exit("scikit-learn is needed for --data: make setup GROUPS=train")
    bunch: Any = load_digits()  # whose fields scikit-learn makes as it runs
    test = np.zeros(len(bunch.target), dtype=bool)
    test[np.random.default_rng(SEED).permutation(test.size)[:TEST_IMAGES]] = True
    np.savez_compressed(
        digits.DATA,
        images=bunch.images.astype(np.uint8),
        labels=bunch.target.astype(np.uint8),
        test=test,
    )


def initial(rng: np.random.Generator, shapes: Shapes) -> Params:
    """He initialisation."""
    params = {}
    for name, shape in shapes.items():
        fan_in = int(np.prod(shape[1:]))
        params[f"{name}_w"] = rng.normal(0, np.sqrt(2 / fan_in), shape)
        params[f"{name}_b"] = np.zeros(shape[0])
    return params


def gradients(params: Params, images: np.ndarray, labels: np.ndarray) -> tuple[float, Params]:
    """Mean cross entropy and its gradients, by hand through the layers."""
    x, kept, grads = images / params["conv1_w"].dtype.type(16), [], {}
    for name in fm.layers(params):
        weight, bias = params[f"{name}_w"], params[f"{name}_b"]
        if weight.ndim == 4:
            full = fm.conv3x3(x, weight, bias)
            y = fm.max_pool(full)
        else:
            full = None
            y = x.reshape(len(x), -1) @ weight.T + bias
        kept.append((name, x, full, y))
        x = np.maximum(y, 0)
    logits = kept[-1][3] - kept[-1][3].max(axis=1, keepdims=True)
    odds = np.exp(logits)
    odds /= odds.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    loss = float(-np.log(odds[rows, labels] + 1e-12).mean())
    odds[rows, labels] -= 1
    back = odds / len(labels)  # gradient at the layer's output before ReLU
    for name, x, full, y in reversed(kept):
        weight = params[f"{name}_w"]
        if full is not None:
            n, o, h, w = full.shape
            up = np.repeat(np.repeat(y, 2, axis=2), 2, axis=3)
            back = np.repeat(np.repeat(back.reshape(y.shape), 2, axis=2), 2, axis=3)
            back = back * (full == up)
            flat = back.transpose(0, 2, 3, 1).reshape(-1, o)
            grads[f"{name}_w"] = (flat.T @ fm.windows(x).reshape(n * h * w, -1)).reshape(
                weight.shape
            )
            grads[f"{name}_b"] = flat.sum(axis=0)
            turned = weight[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
            if name != "conv1":  # the gradient at the image is not used
                back = fm.conv3x3(back, turned, np.zeros(len(turned), back.dtype)) * (x > 0)
        else:
            grads[f"{name}_w"] = back.T @ x.reshape(len(x), -1)
            grads[f"{name}_b"] = back.sum(axis=0)
            back = (back @ weight).reshape(x.shape) * (x > 0)
    return loss, grads


def shifted(rng: np.random.Generator, images: np.ndarray) -> np.ndarray:
    """Every third scan moved by up to one pixel, zeros moving in; the others as they are."""
    out = np.zeros_like(images)
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    offsets = rng.integers(0, 3, (len(images), 2))
    offsets[rng.random(len(images)) > 1 / 3] = 1
    for i, (dy, dx) in enumerate(offsets):
        out[i] = padded[i, :, dy : dy + 8, dx : dx + 8]
    return out


def enlarged(images: np.ndarray) -> np.ndarray:
    """Scans 0..16 as the large network's float input, 0..16."""
    return digits.enlarge(images * np.uint8(digits.PIXEL_SCALE)).astype(np.float32) / 15


def descend(
    params: Params,
    gradients: Callable[[Params, np.ndarray, np.ndarray], tuple[float, Params]],
    data: digits.Digits,
    rng: np.random.Generator,
    *,
    epochs: int,
    batch: int,
    rate: float,
    report_every: int = 10,
) -> Params:
    """Adam with a falling rate and a little weight decay, on shifted scans; ``params`` are changed.

    ``gradients``: (params, scans, labels) -> loss and gradients. Prints a line every
    ``report_every`` epochs.
    """
    first = {key: np.zeros_like(value) for key, value in params.items()}
    second = {key: np.zeros_like(value) for key, value in params.items()}
    step = 0
    for epoch in range(epochs):
        now = rate * 0.5 * (1 + np.cos(np.pi * epoch / epochs)) + 1e-5
        order = rng.permutation(len(data))
        losses = []
        for at in range(0, len(order), batch):
            pick = order[at : at + batch]
            loss, grads = gradients(params, shifted(rng, data.images[pick]), data.labels[pick])
            losses.append(loss)
            step += 1
            for key, grad in grads.items():
                first[key] += 0.1 * (grad - first[key])
                second[key] += 0.001 * (grad**2 - second[key])
                mean = first[key] / (1 - 0.9**step)
                spread = np.sqrt(second[key] / (1 - 0.999**step)) + 1e-8
                change = now * (mean / spread + 1e-3 * params[key])
                params[key] -= change.astype(params[key].dtype)
        if epoch % report_every == report_every - 1:
            print(f"epoch {epoch + 1:3d}  loss {np.mean(losses):.4f}", flush=True)
    return params


def train(data: digits.Digits) -> Params:
    """The small network."""
    rng = np.random.default_rng(SEED)
    params = initial(rng, fm.SHAPES)
    return descend(params, gradients, data, rng, epochs=60, batch=32, rate=2e-3)


def accuracy(params: Params, network: Network, data: digits.Digits) -> tuple[float, float]:
    """(float, quantised on the golden model)."""
    exact = (fm.predict_classes(params, data.images) == data.labels).mean()
    found = [digits.classify(network.run(x).y) for x in data.pixels]
    return float(exact), float(np.mean(found == data.labels))


def train_large(training: digits.Digits, test: digits.Digits) -> int:
    """Train, quantise and write the large network; accuracies on 100 held-out scans."""
    rng = np.random.default_rng(SEED)
    params: Params = {k: v.astype(np.float32) for k, v in initial(rng, fm.LARGE_SHAPES).items()}

    def at_large(params: Params, images: np.ndarray, labels: np.ndarray) -> tuple[float, Params]:
        return gradients(params, enlarged(images), labels)

    descend(params, at_large, training, rng, epochs=4, batch=16, rate=1e-3, report_every=1)
    network = quantise(params, enlarged(training.images[:64]))
    network.save(digits.LARGE_NETWORK)
    images, labels = test.images[:100], test.labels[:100]
    exact = (fm.predict_classes(params, enlarged(images)) == labels).mean()
    pixels = digits.enlarge(test.pixels[:100])
    found = [digits.classify(network.run(x).y) for x in pixels]
    print(f"float model     {exact:8.2%}\nquantised model {np.mean(found == labels):8.2%}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=command.first_line(__doc__))
    parser.add_argument("--data", action="store_true", help="fetch the scans again first")
    parser.add_argument("--check", action="store_true", help="only report what is committed")
    parser.add_argument("--large", action="store_true", help="train the large network")
    options = parser.parse_args()
    if options.data:
        fetch_data()
    training, test = digits.load_data()
    if options.large:
        return train_large(training, test)
    if options.check:
        params, network = digits.load_float(), digits.load_network()
    else:
        params = {key: value.astype(np.float32) for key, value in train(training).items()}
        save_arrays(digits.FLOAT, params, packed=True)
        params = digits.load_float()
        network = quantise(params, training.images)
        network.save(digits.NETWORK)
    exact, fixed = accuracy(params, network, test)
    print(f"{len(training)} training scans, {len(test)} held out")
    print(f"float model     {exact:8.2%}\nquantised model {fixed:8.2%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
