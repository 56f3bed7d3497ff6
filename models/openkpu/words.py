# SPDX-License-Identifier: Apache-2.0
"""Words that functions and options accept, for code that runs before there is any package."""

ROUNDINGS = ("nncase", "v01", "trunc")  # of the activation (docs/kpu.md 1.3)
WAYS = ("burst", "layers", "tasks")  # as a model's layers are started
MAPS = ("dma", "window")  # who moves maps: the device, or the host through the AI RAM's window
PRODUCTS = ("int8", "uint8", "fp16", "fp16to16")  # types of a product's matrices
METHODS = ("minmax", "percentile", "entropy")  # by which a calibration finds ranges
