# SPDX-License-Identifier: Apache-2.0
"""Cycles without a simulator: roofline, bound, and the model of the device's cycles."""


class DeadlockError(RuntimeError):
    """The prediction waits for something that nobody brings: a fault of the model."""
