# SPDX-License-Identifier: Apache-2.0
"""Legal combinations of parameters that no configuration has: random ones, each with work of every
kind. SEED draws others."""

import pytest

from openkpu import configs
from openkpu_tb import seeds
from tb.device.layers import combinations
from tb.device.layers.combinations import COUNT, VALUES, draw
from tb.device.layers.test_random_layers import check

GIVEN = seeds.environment()
SEED = combinations.SEED if GIVEN is None else GIVEN
USUAL = 16  # a small array, so that its build is quick; the others run at night


@pytest.mark.check
@pytest.mark.parametrize(
    "number",
    [pytest.param(n, marks=() if n == USUAL else pytest.mark.nightly) for n in range(COUNT)],
)
def test_combination(number: int) -> None:
    """Twenty items of every kind and a stream: exact, and not a byte beside it."""
    found = draw(SEED, number)
    print(f"combination {number} of seed {SEED}: {found}")
    cases = combinations.cases(found.config, SEED)
    check("verilator", found.config, cases, SEED, GATE=found.gate)


@pytest.mark.fixed
def test_forty_meet_everything() -> None:
    """Every value of every parameter, and two of the ones that met nowhere else at once."""
    found = [draw(combinations.SEED, number) for number in range(COUNT)]
    assert len(set(map(str, found))) == COUNT
    for name, values in VALUES.items():
        assert {getattr(each.config, name) for each in found} == set(values), name
    assert {each.gate for each in found} == {0, 1}
    assert {each.config.n_y for each in found} == {2, 4, 8, 16}
    assert {each.config.n_z for each in found} == {2, 4, 8, 16, 32, 64}
    named = {str(configs.load_config(name).parameters) for name in configs.names()}
    assert not named & {str(each.config.parameters) for each in found}
    pairs = [each.config for each in found if each.config.path_bytes == 128]
    assert any(c.n_y * c.n_z == 128 and c.post_share > 1 for c in pairs)
    assert any(c.ai_ram_rows % 2 for c in pairs)
