# SPDX-License-Identifier: Apache-2.0
"""The order in which the operators of a float network are spelled."""

from __future__ import annotations

from typing import Any

from openkpu.compiler.calibration.net import Net
from openkpu.compiler.calibration.spelling import (
    einsum,
    masks,
    matrices,
    normalisations,
    operators,
    recurrent,
)

# computed from constants or shapes, folded, or spelled; what is left of them is refused when read
SPELLED = frozenset((*operators.REDUCED, *recurrent.CELLS, "Einsum", "LRN"))
RULES = (
    *(einsum.spell_einsum, matrices.spell_products, recurrent.unroll),
    *(operators.spell_sums, operators.spell_lrn, operators.spell_expands),
    *(operators.spell_logarithms, masks.spell_masks),
    *(normalisations.join_normalisations, normalisations.join_lengths),
    *(operators.spell_reductions, normalisations.spell_terms),
)


def spell_model(model: Any) -> None:
    """What ONNX Runtime cannot run, before it optimises the model."""
    operators.spell_pads(model)
    normalisations.spell_groups(model)


def spell_net(net: Net) -> None:
    """What its quantiser, or a reader, has for fewer cases."""
    for rule in RULES:
        rule(net)
