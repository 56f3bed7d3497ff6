# SPDX-License-Identifier: Apache-2.0
"""Train two networks on the digits (numpy only), quantise them, write TFLite and ONNX models.

    python -m openkpu_tools.foreign.train_networks   train, write digits/networks.npz and models
    ... --models   no training: models from what is committed
    ... --check    no training: accuracies of what is committed

A residual network and a depthwise-separable one. TFLite: int8 with a scale per channel and, of the
separable one, uint8 with one per tensor, written here. ONNX: QDQ of int8 and QOperator of uint8, by
onnxruntime's ``quantize_static``. The models are the same wherever the packages are, but for last
bits of scales, which follow the BLAS; the training is deterministic for a given numpy and BLAS.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import logging
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from openkpu import digits
from openkpu.arithmetic.integers import ceil_div
from openkpu.writers import Quant, Value, Weights, Writer, same_pads
from openkpu.writers.tflite_model import TfliteModel
from openkpu_tools.foreign.train_digits import Params, descend

SEED = 91
FLOAT = digits.FOLDER / "networks.npz"
CALIBRATION = 200  # scans that give the ranges of values
OPSET = 17


@dataclasses.dataclass(frozen=True)
class Layer:
    """conv (o, kernel, stride, groups), add, mean or fully (o), of layers by name; ``x`` is the
    input. All padding is TensorFlow's SAME."""

    name: str
    kind: str
    inputs: tuple[str, ...]
    shape: tuple[int, ...] = ()  # of the weights: (O, C / groups, K, K) or (O, C)
    stride: int = 1
    act: str | None = None


def _residual() -> Iterator[Layer]:
    yield Layer("stem", "conv", ("x",), (12, 1, 3, 3), act="relu")
    yield Layer("a1", "conv", ("stem",), (12, 12, 3, 3), act="relu")
    yield Layer("a2", "conv", ("a1",), (12, 12, 3, 3))
    yield Layer("a", "add", ("stem", "a2"), act="relu")
    yield Layer("b1", "conv", ("a",), (20, 12, 3, 3), stride=2, act="relu")
    yield Layer("b2", "conv", ("b1",), (20, 20, 3, 3))
    yield Layer("short", "conv", ("a",), (20, 12, 1, 1), stride=2)
    yield Layer("b", "add", ("short", "b2"), act="relu")
    yield Layer("mean", "mean", ("b",))
    yield Layer("logits", "fully", ("mean",), (10, 20))


def _separable() -> Iterator[Layer]:
    yield Layer("stem", "conv", ("x",), (16, 1, 3, 3), act="relu6")
    yield Layer("d1", "depthwise", ("stem",), (16, 1, 3, 3), act="relu6")
    yield Layer("p1", "conv", ("d1",), (24, 16, 1, 1), act="relu6")
    yield Layer("d2", "depthwise", ("p1",), (24, 1, 3, 3), stride=2, act="relu6")
    yield Layer("p2", "conv", ("d2",), (32, 24, 1, 1), act="relu6")
    yield Layer("d3", "depthwise", ("p2",), (32, 1, 3, 3), act="relu6")
    yield Layer("p3", "conv", ("d3",), (32, 32, 1, 1), act="relu6")
    yield Layer("mean", "mean", ("p3",))
    yield Layer("logits", "fully", ("mean",), (10, 32))


NETWORKS = {"residual": tuple(_residual()), "separable": tuple(_separable())}
FILES = {  # name of the model: network, how
    "residual_int8.tflite": ("residual", "int8"),
    "separable_int8.tflite": ("separable", "int8"),
    "separable_uint8.tflite": ("separable", "uint8"),
    "residual_qdq.onnx": ("residual", "qdq"),
    "residual_qoperator.onnx": ("residual", "qoperator"),
    "separable_qdq.onnx": ("separable", "qdq"),
    "separable_qoperator.onnx": ("separable", "qoperator"),
}


# ---- the float network and its gradients; maps are (N, H, W, C) here


def _taps(layer: Layer, size: int) -> Iterator[tuple[int, int, slice, slice]]:
    """(ky, kx, lines, columns of the padded map) of each tap; maps are square."""
    kernel, out = layer.shape[2], ceil_div(size, layer.stride)
    for ky in range(kernel):
        for kx in range(kernel):
            lines, columns = (
                slice(k, k + (out - 1) * layer.stride + 1, layer.stride) for k in (ky, kx)
            )
            yield ky, kx, lines, columns


def _padded(layer: Layer, x: np.ndarray) -> tuple[np.ndarray, int]:
    before, after = same_pads(x.shape[1], layer.shape[2], layer.stride)
    return np.pad(x, ((0, 0), (before, after), (before, after), (0, 0))), before


def _forward(layer: Layer, params: Params, inputs: list[np.ndarray]) -> np.ndarray:
    """Before the activation."""
    x = inputs[0]
    if layer.kind == "add":
        return x + inputs[1]
    if layer.kind == "mean":
        return x.mean(axis=(1, 2))
    weight, bias = params[f"{layer.name}_w"], params[f"{layer.name}_b"]
    if layer.kind == "fully":
        return x @ weight.T + bias
    padded, _ = _padded(layer, x)
    y: np.ndarray | float = 0.0
    for ky, kx, lines, columns in _taps(layer, x.shape[1]):
        tap, part = weight[:, :, ky, kx], padded[:, lines, columns]
        y = y + (part * tap[:, 0] if layer.kind == "depthwise" else part @ tap.T)
    return y + bias


def _backward(
    layer: Layer, params: Params, inputs: list[np.ndarray], back: np.ndarray, grads: Params
) -> list[np.ndarray]:
    """Gradients at the inputs; those of weights and bias go into ``grads``."""
    x = inputs[0]
    if layer.kind == "add":
        return [back, back]
    if layer.kind == "mean":
        return [np.broadcast_to(back[:, None, None] / (x.shape[1] * x.shape[2]), x.shape)]
    weight = params[f"{layer.name}_w"]
    grads[f"{layer.name}_b"] = back.reshape(-1, back.shape[-1]).sum(axis=0)
    if layer.kind == "fully":
        grads[f"{layer.name}_w"] = back.T @ x
        return [back @ weight]
    padded, before = _padded(layer, x)
    found, result = np.zeros_like(weight), np.zeros_like(padded)
    flat = back.reshape(-1, back.shape[-1])
    for ky, kx, lines, columns in _taps(layer, x.shape[1]):
        tap, part = weight[:, :, ky, kx], padded[:, lines, columns]
        if layer.kind == "depthwise":
            found[:, 0, ky, kx] = (part * back).sum(axis=(0, 1, 2))
            result[:, lines, columns] += back * tap[:, 0]
        else:
            found[:, :, ky, kx] = flat.T @ part.reshape(len(flat), -1)
            result[:, lines, columns] += back @ tap
    grads[f"{layer.name}_w"] = found
    high, wide = x.shape[1:3]
    return [result[:, before : before + high, before : before + wide]]


def values(net: tuple[Layer, ...], params: Params, images: np.ndarray) -> dict[str, np.ndarray]:
    """What every layer gives for scans (n, 1, 8, 8) of 0..16, and the input as ``x``."""
    found = {"x": images.transpose(0, 2, 3, 1).astype(np.float32) / 16}
    for layer in net:
        y = _forward(layer, params, [found[name] for name in layer.inputs])
        if layer.act:
            y = np.clip(y, 0, 6 if layer.act == "relu6" else None)
        found[layer.name] = y
    return found


def gradients(
    net: tuple[Layer, ...], params: Params, images: np.ndarray, labels: np.ndarray
) -> tuple[float, Params]:
    """Mean cross entropy and its gradients."""
    found, grads = values(net, params, images), {}
    logits = found["logits"] - found["logits"].max(axis=1, keepdims=True)
    odds = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    loss = float(-np.log(odds[rows, labels] + 1e-12).mean())
    odds[rows, labels] -= 1
    back: dict[str, np.ndarray | float] = {"logits": odds / np.float32(len(labels))}
    for layer in reversed(net):
        y, grad = found[layer.name], np.asarray(back.pop(layer.name))
        if layer.act:
            grad = grad * ((y > 0) & (y < 6) if layer.act == "relu6" else y > 0)
        inputs = [found[name] for name in layer.inputs]
        results = _backward(layer, params, inputs, grad, grads)
        for name, result in zip(layer.inputs, results, strict=True):
            back[name] = back.get(name, 0.0) + result
    return loss, grads


def train(net: tuple[Layer, ...], data: digits.Digits) -> Params:
    """Parameters of a network."""
    rng, params = np.random.default_rng(SEED), {}
    for layer in net:
        if layer.shape:
            spread = np.sqrt(2 / np.prod(layer.shape[1:]))
            params[f"{layer.name}_w"] = rng.normal(0, spread, layer.shape).astype(np.float32)
            params[f"{layer.name}_b"] = np.zeros(layer.shape[0], np.float32)
    own = functools.partial(gradients, net)
    return descend(params, own, data, rng, epochs=40, batch=32, rate=4e-3)


# ---- quantised: TFLite by the project's writer, ONNX by onnxruntime


def _asymmetric(low: float, high: float, dtype: np.dtype) -> Quant:
    """The parameters of a range; 0 is always one of its values."""
    least = np.iinfo(dtype).min
    low, high = min(low, 0.0), max(high, 0.0, low + 1e-6)
    scale = float(np.float32((high - low) / 255))
    return Quant(scale, int(np.clip(round(least - low / scale), least, least + 255)))


def _weights(layer: Layer, params: Params, x: Quant, dtype: np.dtype) -> Weights:
    data, bias = params[f"{layer.name}_w"].astype(np.float64), params[f"{layer.name}_b"]
    if dtype == np.uint8:  # one scale and a zero point
        quant = _asymmetric(float(data.min()), float(data.max()), dtype)
        scale, zero = np.float64(np.float32(quant.scale)), quant.zero_point
        ints = np.clip(np.rint(data / scale) + zero, 0, 255)
    else:
        most = np.abs(data).reshape(len(data), -1).max(axis=1)
        scale, zero = (most / 127).astype(np.float32).astype(np.float64), 0
        ints = np.clip(np.rint(data / scale.reshape(-1, *[1] * (data.ndim - 1))), -127, 127)
    steps = np.rint(bias / (x.scale * scale)).astype(np.int32)
    return Weights(ints.astype(dtype), scale, steps, zero)


def write(net: tuple[Layer, ...], params: Params, m: Writer, dtype: np.dtype) -> bytes:
    """The quantised model: input (1, 1, 8, 8) of pixel bytes 0..240 (less 128 in int8), output
    probabilities."""
    ranges = values(net, params, digits.load_data()[0].images[:CALIBRATION])
    least = int(np.iinfo(dtype).min)
    made: dict[str, Value] = {"x": m.input((1, 1, 8, 8), Quant(1 / 240, least))}
    for layer in net:
        low, high = (float(f(ranges[layer.name])) for f in (np.min, np.max))
        out, x = _asymmetric(low, high, dtype), made[layer.inputs[0]]
        if layer.kind == "add":
            y = m.binary("add", x, made[layer.inputs[1]], out, layer.act)
        elif layer.kind == "mean":
            y = m.mean(x, out, keep=False)
        elif layer.kind == "fully":
            y = m.fully(x, _weights(layer, params, x.quant, dtype), out)
        else:
            weights = _weights(layer, params, x.quant, dtype)
            groups = layer.shape[0] if layer.kind == "depthwise" else 1
            stride = (layer.stride, layer.stride)
            y = m.conv(x, weights, out, stride, "same", groups=groups, act=layer.act)
        made[layer.name] = y
    return m.finish([m.softmax(made["logits"])])


def float_onnx(net: tuple[Layer, ...], params: Params) -> onnx.ModelProto:
    """The float model: input ``x`` (batch, 1, 8, 8) of 0..1, output ``logits``."""
    nodes, size = [], {"x": 8}
    for layer in net:
        inputs, name = list(layer.inputs), layer.name
        target = f"{name}_linear" if layer.act else name
        size[name] = ceil_div(size[inputs[0]], layer.stride)
        if layer.shape:
            inputs += [f"{name}_w", f"{name}_b"]
        if layer.kind in ("conv", "depthwise"):
            before, after = same_pads(size[inputs[0]], layer.shape[2], layer.stride)
            fields = {
                "kernel_shape": layer.shape[2:],
                "strides": [layer.stride] * 2,
                "pads": [before, before, after, after],
                "group": layer.shape[0] if layer.kind == "depthwise" else 1,
            }
            nodes.append(helper.make_node("Conv", inputs, [target], f"{name}/Conv", **fields))
        elif layer.kind == "add":
            nodes.append(helper.make_node("Add", inputs, [target], f"{name}/Add"))
        elif layer.kind == "mean":
            pooled = f"{name}_map"
            nodes.append(helper.make_node("GlobalAveragePool", inputs, [pooled], f"{name}/Pool"))
            nodes.append(helper.make_node("Flatten", [pooled], [target], f"{name}/Flatten"))
        else:
            nodes.append(helper.make_node("Gemm", inputs, [target], f"{name}/Gemm", transB=1))
        if layer.act:
            bounds = ["zero", "six"] if layer.act == "relu6" else []
            kind = "Clip" if bounds else "Relu"
            nodes.append(helper.make_node(kind, [target, *bounds], [name], f"{name}/{kind}"))
    data = {"zero": np.float32(0), "six": np.float32(6), **params}
    used = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in data.items() if k in used],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = 8
    return onnx.shape_inference.infer_shapes(model)


def quantised_onnx(net: tuple[Layer, ...], params: Params, form: str) -> bytes:
    """onnxruntime's static quantisation, a scale per channel: QDQ of int8, QOperator of uint8."""
    from onnxruntime import quantization as q

    images = digits.load_data()[0].images[:CALIBRATION].astype(np.float32) / 16

    class Scans(q.CalibrationDataReader):
        """The scans of the calibration, one after the other."""

        def __init__(self) -> None:
            self.left = iter(images)

        def get_next(self) -> dict[str, np.ndarray] | None:
            """The next scan as a batch of one."""
            image = next(self.left, None)
            return None if image is None else {"x": image[None]}

    logging.disable(logging.WARNING)  # it recommends a pre-processing that changes nothing here
    qdq = form == "qdq"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.onnx"
        q.quantize_static(
            float_onnx(net, params),
            path,
            Scans(),
            quant_format=q.QuantFormat.QDQ if qdq else q.QuantFormat.QOperator,
            per_channel=True,
            activation_type=q.QuantType.QInt8 if qdq else q.QuantType.QUInt8,
            weight_type=q.QuantType.QInt8,
        )
        logging.disable(logging.NOTSET)
        return path.read_bytes()


def model(name: str, params: Params) -> bytes:
    """The file of that name in FILES."""
    network, how = FILES[name]
    net = NETWORKS[network]
    own = own_params(params, network)
    if how in ("qdq", "qoperator"):
        return quantised_onnx(net, own, how)
    dtype = np.dtype(how)
    return write(net, own, TfliteModel(dtype), dtype)


def load_params() -> Params:
    """The committed float parameters, their names with the network's before a slash."""
    with np.load(FLOAT, allow_pickle=False) as data:
        return {key: data[key].astype(np.float32) for key in data.files}


def own_params(params: Params, name: str) -> Params:
    """Those of one network, by their own names."""
    return {key.partition("/")[2]: value for key, value in params.items() if key.startswith(name)}


def classes(name: str, images: np.ndarray) -> np.ndarray:
    """What a committed model sees in scans (n, 1, 8, 8) of 0..16, by its runtime."""
    path = str(digits.FOLDER / name)
    if name.endswith(".onnx"):
        import onnxruntime

        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        (logits,) = session.run(None, {"x": images.astype(np.float32) / 16})
        return np.asarray(logits).argmax(axis=1)
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(path)
    interpreter.allocate_tensors()
    (into,), (out,) = interpreter.get_input_details(), interpreter.get_output_details()
    least = np.iinfo(into["dtype"]).min
    found = []
    for image in images:
        pixels = image.astype(int) * digits.PIXEL_SCALE + least
        interpreter.set_tensor(into["index"], pixels.reshape(1, 8, 8, 1).astype(into["dtype"]))
        interpreter.invoke()
        found.append(int(interpreter.get_tensor(out["index"]).argmax()))
    return np.array(found)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", action="store_true", help="models from committed weights")
    parser.add_argument("--check", action="store_true", help="only report what is committed")
    options = parser.parse_args(argv)
    training, test = digits.load_data()
    if not options.models and not options.check:
        params = {}
        for name, net in NETWORKS.items():
            for key, value in train(net, training).items():
                params[f"{name}/{key}"] = value.astype(np.float16)
        np.savez_compressed(FLOAT, **params)
    params = load_params()
    for name in FILES:
        if not options.check:
            (digits.FOLDER / name).write_bytes(model(name, params))
    for name, net in NETWORKS.items():
        found = values(net, own_params(params, name), test.images)["logits"].argmax(axis=1)
        print(f"{name + ', float':26} {(found == test.labels).mean():8.2%}")
    for name in FILES:
        print(f"{name:26} {(classes(name, test.images) == test.labels).mean():8.2%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
