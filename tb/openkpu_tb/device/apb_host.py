# SPDX-License-Identifier: Apache-2.0
"""APB3 master for tb_top with APB defined; it holds the slave to the rules of APB."""

from collections.abc import Sequence

from cocotb.triggers import FallingEdge, Timer

from openkpu_tb.ahb.host_agent import ERROR, OKAY, Transfer
from openkpu_tb.handle import Handle

MOST = 200  # cycles of an access


class ApbHost:
    """Performs words one after the other; pins change on the falling edge, as all of tb_top's do.

    AssertionError for PSLVERR outside of the cycle that ends an access, and for one that does not
    end; ValueError when what was read, or an answer, holds unknown bits.
    """

    def __init__(self, tb: Handle) -> None:
        self.tb = tb
        self.took: list[int] = []  # cycles of each access

    async def send(self, transfers: Sequence[Transfer]) -> None:
        """Perform transfers in order, and fill in answers and the data of reads."""
        await FallingEdge(self.tb.clk)
        for transfer in transfers:
            assert transfer.size == 2 and not transfer.addr % 4, f"{transfer} is none of APB3"
            await self._access(transfer)
        self.tb.s_apb_psel.value = self.tb.s_apb_penable.value = 0

    async def _access(self, transfer: Transfer) -> None:
        tb = self.tb
        tb.s_apb_psel.value, tb.s_apb_penable.value = 1, 0
        tb.s_apb_paddr.value, tb.s_apb_pwrite.value = transfer.addr, int(transfer.write)
        tb.s_apb_pwdata.value = transfer.data if transfer.write else 0
        await FallingEdge(tb.clk)
        assert not int(tb.s_apb_pslverr.value), "PSLVERR in the setup phase"
        tb.s_apb_penable.value = 1
        for cycle in range(2, MOST):
            await Timer(1, "ns")  # PSLVERR follows from PENABLE
            failed = int(tb.s_apb_pslverr.value)
            if int(tb.s_apb_pready.value):
                transfer.resp = ERROR if failed else OKAY
                if not transfer.write:
                    transfer.data = int(tb.s_apb_prdata.value)
                self.took.append(cycle)
                await FallingEdge(tb.clk)
                return
            assert not failed, "PSLVERR before PREADY"
            await FallingEdge(tb.clk)
        raise AssertionError(f"{transfer}: no answer after {MOST} cycles")
