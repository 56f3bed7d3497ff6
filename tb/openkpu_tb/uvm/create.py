# SPDX-License-Identifier: Apache-2.0
"""pyuvm's factory with a type: what it makes has the type that was asked for, or one below it."""

from typing import Any, TypeVar, cast

from pyuvm import uvm_object

Kind = TypeVar("Kind", bound=uvm_object)


def create(kind: type[Kind], *args: Any) -> Kind:
    """A component (name, parent) or an object (name) as the factory makes it."""
    return cast(Kind, kind.create(*args))
