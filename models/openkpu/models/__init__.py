# SPDX-License-Identifier: Apache-2.0
"""Names that modules had before 0.3.0: ``openkpu.models.golden`` is ``openkpu.layer.golden``.

They go with the next release. An import by an old name gives a DeprecationWarning and the same
module object, so that classes are the same by both names.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType

_KMODEL = "kmodel kmodel.__main__ kmodel.build kmodel.describe kmodel.errors kmodel.execute"
_ROOMS = {  # today's package: old names of its modules, whose last parts are the names of today
    "": f"compare configs digits files terminal {_KMODEL} kmodel.images kmodel.package"
    " kmodel.program",
    "arithmetic": "activation fp16 params pooling words",
    "digits": "digits.float_model digits.quantise",
    "generators": "generate generate_fp16 generate_lists generate_pools generate_products"
    " generate_tasks",
    "kmodel.operations": "kmodel.kernels kmodel.operations kmodel.products",
    "kmodel.readers": "kmodel.binary kmodel.layers kmodel.names kmodel.neutral4 kmodel.nnil"
    " kmodel.node4 kmodel.products4 kmodel.shapes kmodel.v0 kmodel.v3 kmodel.v4",
    "kmodel.residence": "kmodel.flow kmodel.joins kmodel.requantize kmodel.resident",
    "kmodel.results": "kmodel.boxes kmodel.guess kmodel.results kmodel.ssd kmodel.yolo",
    "kmodel.version5": "kmodel.bytecode kmodel.container5 kmodel.k210 kmodel.numbering"
    " kmodel.stackvm kmodel.tensor5 kmodel.v5",
    "layer": "airam conv elementwise golden layout pixels pool_tasks regdesc regmap vectors",
    "network": "kept network network_rules relay",
    "prediction": "bound cycles cycles_array cycles_bus cycles_fill cycles_fp16 cycles_front"
    " cycles_load cycles_maps cycles_model cycles_pool cycles_shape cycles_words roofline",
    "products": "matmul matmul_deep matmul_fp16 matmul_lists",
}


def _today(room: str, old: str) -> str:
    if not room:
        return f"openkpu.{old}"
    return f"openkpu.{room}.{old.rpartition('.')[2]}"


NAMES = {  # old name: today's
    f"openkpu.models.{old}": _today(room, old)
    for room, names in _ROOMS.items()
    for old in names.split()
} | {"openkpu.models.layer": "openkpu.layer.argument"}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of NAMES: each is the module of today."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in NAMES:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        name = NAMES[spec.name]
        warnings.warn(
            f"{spec.name} is {name} since 0.3.0; the old name goes with the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        module = importlib.import_module(name)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has run; only what the import system has just set is put back."""
        spec = module.__spec__
        if spec is not None and spec.loader_state is not None:
            module.__spec__ = spec.loader_state


# before the others, which would load the parts of an old package a second time
sys.meta_path.insert(0, _Finder())
