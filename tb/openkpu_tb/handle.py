# SPDX-License-Identifier: Apache-2.0
"""The type of a handle of the simulator."""

from typing import Any, TypeAlias

# What a handle has depends on the design: signals, memories, instances. No type checker sees them.
Handle: TypeAlias = Any
