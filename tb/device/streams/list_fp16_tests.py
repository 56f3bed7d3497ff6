# SPDX-License-Identifier: Apache-2.0
"""As list_tests, on a device with lanes for products of float16, which are in the lists too."""

from openkpu.generators.generate_lists import ALL_KINDS

from tb.device.checked import checked
from tb.device.streams.list_tests import trials


@checked()
async def every_kind_and_float16_refused(tb) -> None:
    """Each kind by two faults of its own and two of all kinds, in a list of random order."""
    await trials(tb, ALL_KINDS)
