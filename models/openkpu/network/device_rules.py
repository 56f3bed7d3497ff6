# SPDX-License-Identifier: Apache-2.0
"""What a device of a configuration refuses of a network."""

from openkpu.configs import Config
from openkpu.network.network import Network, NetworkError


def check_network(network: Network, config: Config) -> None:
    """NetworkError for the first layer that a device of this configuration refuses."""
    network.validate(config.ai_ram_rows)
    if not network.eight_bit and config.weight_bits < 16:
        raise NetworkError(f"16-bit weights, configuration {config.name} takes 8-bit ones")
    if network.kept and not (config.keep_weights and config.pool_lanes):
        raise NetworkError(
            f"layer {min(network.kept)}: kept weights, configuration {config.name} has"
            f" keep_weights = {config.keep_weights}, pool_lanes = {config.pool_lanes}"
        )
    for i, arg in enumerate(network.layers):
        if arg.pool_task and not config.pool_lanes:
            raise NetworkError(
                f"layer {i}: a pooling task, configuration {config.name} has pool_lanes = 0"
            )
        if arg.out32 and not config.out32:
            raise NetworkError(
                f"layer {i}: sums of 32 bits, configuration {config.name} has out32 = 0"
            )
        if arg.dilation > config.dilation:
            raise NetworkError(
                f"layer {i}: dilation {arg.dilation}, configuration {config.name} has dilation"
                f" = {config.dilation}"
            )
        if arg.fp16 and not config.fp16_lanes:
            raise NetworkError(
                f"layer {i}: a product of float16, configuration {config.name} has fp16_lanes = 0"
            )
        rows = arg.weight_rows(config.n_z)
        if rows > config.wbuf_rows:
            raise NetworkError(
                f"layer {i}: {rows} rows of weights at once, the buffer of configuration"
                f" {config.name} has {config.wbuf_rows}"
            )
