# SPDX-License-Identifier: Apache-2.0
"""What a device of a configuration refuses of a network, or of a layer alone."""

from openkpu.configs import Config
from openkpu.layer.argument import LayerArg
from openkpu.layer.fields import LayerError
from openkpu.network.network import Network, NetworkError


def lacks(arg: LayerArg, config: Config) -> str | None:
    """What a layer needs that a device of this configuration was built without, or with less of;
    None where it has everything (docs/kpu.md 2)."""
    for needed, what, key in (
        (arg.pool_task, "a pooling task", "pool_lanes"),
        (arg.out32, "sums of 32 bits", "out32"),
        (arg.fp16, "a product of float16", "fp16_lanes"),
    ):
        if needed and not getattr(config, key):
            return f"{what}, configuration {config.name} has {key} = 0"
    if arg.dilation > config.dilation:
        has = f"configuration {config.name} has dilation = {config.dilation}"
        return f"dilation {arg.dilation}, {has}"
    rows = arg.weight_rows(config.n_z)
    if rows > config.wbuf_rows:
        return (
            f"{rows} rows of weights at once, the buffer of configuration"
            f" {config.name} has {config.wbuf_rows}"
        )
    return None


def narrow(eight_bit: bool, config: Config) -> str | None:
    """The text for weights of 16 bits where the configuration has none; None otherwise."""
    if eight_bit or config.weight_bits >= 16:
        return None
    return f"16-bit weights, configuration {config.name} takes 8-bit ones"


def refusal(arg: LayerArg, config: Config, *, eight_bit: bool) -> str | None:
    """Why a device of this configuration refuses a layer that the host starts alone; None where it
    runs it (docs/kpu.md 2)."""
    if text := narrow(eight_bit, config) or lacks(arg, config):
        return text
    rows, word = config.ai_ram_rows, config.bus_bytes
    try:
        arg.validate(strict=False, eight_bit=eight_bit, ram_rows=rows, bus_bytes=word)
    except LayerError as error:
        return str(error)
    if arg.kept_weights and not config.keep_weights:
        return f"kept weights, configuration {config.name} has keep_weights = 0"
    # fp16_lanes: that it has them was looked at
    if arg.device_code(eight_bit=eight_bit, ram_rows=rows, bus_bytes=word, fp16_lanes=1):
        return f"BAD_WEIGHTS: {arg.loads_text}"
    return None


def check_network(network: Network, config: Config) -> None:
    """NetworkError for the first layer that a device of this configuration refuses."""
    network.validate(config.ai_ram_rows)
    if text := narrow(network.eight_bit, config):
        raise NetworkError(text)
    if network.kept and not (config.keep_weights and config.pool_lanes):
        raise NetworkError(
            f"layer {min(network.kept)}: kept weights, configuration {config.name} has"
            f" keep_weights = {config.keep_weights}, pool_lanes = {config.pool_lanes}"
        )
    for i, arg in enumerate(network.layers):
        if text := lacks(arg, config):
            raise NetworkError(f"layer {i}: {text}")
