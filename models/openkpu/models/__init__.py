# SPDX-License-Identifier: Apache-2.0
"""Names that modules had before 0.3.0: ``openkpu.models.golden`` is ``openkpu.layer.golden``.

They go with the next release. An import by an old name gives a FutureWarning and the same
module object, so that classes are the same by both names. The module then has its functions by
their old names as well.
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
    "prediction": "bound cycles cycles_array cycles_fp16 cycles_front cycles_maps cycles_model"
    " cycles_pool cycles_shape roofline",
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

CONTENTS = {  # today's module: its names then, and what they are called now
    "compare": "describe=describe_difference",
    "configs": "load=load_config",
    "digits.float_model": "conv=conv3x3 predict=predict_classes",
    "generators.generate_fp16": "numbers=fp16_numbers",
    "kmodel": "load=load_kmodel loads=loads_kmodel run=run_kmodel Step=KpuStep Outcome=KpuOutcome"
    " Result=ModelResult Tensor=ModelTensor",
    "kmodel.build": "chain=chain_layers",
    "kmodel.describe": "table=describe_program",
    "kmodel.execute": "run=run_kmodel Step=KpuStep Outcome=KpuOutcome Result=ModelResult",
    "kmodel.operations.kernels": "softmax=softmax_floats pad=pad_axes conv2d=conv2d_float64",
    "kmodel.program": "Tensor=ModelTensor",
    "kmodel.readers.names": "words=split_names",
    "kmodel.readers.nnil": "decode=decode_nnil",
    "kmodel.readers.shapes": "as_map=output_map",
    "kmodel.residence.flow": "overlap=bytes_overlap",
    "kmodel.results.boxes": "number=side_file_number overlap=box_overlap",
    "kmodel.results.results": "draw=draw_boxes overlap=box_overlap",
    "kmodel.version5.bytecode": "decode=decode_function",
    "kmodel.version5.numbering": "choose=choose_numbering",
    "layer.airam": "pack=pack_map unpack=unpack_map",
    "layer.pool_tasks": "fault=pool_fault Window=PoolWindow",
    "network.kept": "rows=kept_rows fault=kept_fault moved=moved_weights",
    "network.network_rules": "numbers=layer_numbers",
    "network.relay": "fault=relay_fault",
    "prediction.bound": "work=layer_work",
    "prediction.cycles": "run=predict_layers",
    "prediction.cycles_fp16": "run=predict_fp16_layer",
    "prediction.cycles_pool": "run=predict_pool_task",
    "prediction.roofline": "cycles=roofline_cycles beside=cycles_beside",
    "products.matmul": "plan=plan_matmul operands=matmul_operands product=matmul_product",
    "products.matmul_deep": "plan=plan_deep storage_bytes=tile_storage_bytes"
    " operands=deep_operands",
    "products.matmul_fp16": "plan=plan_fp16 operands=fp16_operands product=fp16_product",
    "products.matmul_lists": "split=split_tiles",
}
_READ = {  # the same, where "read_" came before each name
    "kmodel.readers.neutral4": "binary quantized_binary concat dequantize quantize pad reduce"
    " memory_copy resize_image softmax transpose strided_slice unary table_lookup1d"
    " nnil_unary_method",
    "kmodel.readers.products4": "conv2d quantized_conv2d conv2d_transpose matmul quantized_matmul"
    " reduce_window2d cpu_conv2d cpu_reduce_window2d",
}
CONTENTS |= {
    module: " ".join(f"{name}=read_{name}" for name in names.split())
    for module, names in _READ.items()
}


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
            FutureWarning,  # seen by who uses a library that has the old name, too
            stacklevel=2,
        )
        module = importlib.import_module(name)
        for pair in CONTENTS.get(name.removeprefix("openkpu."), "").split():
            old, now = pair.split("=")
            setattr(module, old, getattr(module, now))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has run; only what the import system has just set is put back."""
        spec = module.__spec__
        if spec is not None and spec.loader_state is not None:
            module.__spec__ = spec.loader_state


# before the others, which would load the parts of an old package a second time
sys.meta_path.insert(0, _Finder())
