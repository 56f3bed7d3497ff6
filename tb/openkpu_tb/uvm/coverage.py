# SPDX-License-Identifier: Apache-2.0
"""Coverage collector: the model of tb/coverage, filled through analysis ports."""

from collections.abc import Iterable

from pyuvm import ConfigDB, uvm_subscriber

from openkpu_tb.ahb.host_agent import Transfer
from openkpu_tb.coverage import collector, float16
from openkpu_tb.coverage.model import Bin, crosses
from openkpu_tb.coverage.sampler import Sampler
from openkpu_tb.uvm.agents import Memory
from openkpu_tb.uvm.predictor import PredictedProduct


class CoverageCollector(uvm_subscriber):
    """Counts what happened: layers that were read back, modes, errors, accesses of registers.

    Exports: ``analysis_export`` transfers of the host, ``layer_export`` layers that ended,
    ``memory_export`` what the storage agent loaded and found, ``reset_export`` hardware resets,
    ``product_export`` products of float16 that the predictor has run.
    """

    def build_phase(self) -> None:
        self.model = collector.Collector(ConfigDB().get(self, "", "TB"), self.sample, listen=False)
        self.bins: dict[str, dict[Bin, int]] = {
            cross.name: dict.fromkeys(cross.bins, 0) for cross in crosses()
        }
        self._count: Sampler = collector.sampler()
        self.layer_export = self.uvm_AnalysisImp("layer_export", self, self.model.layer)
        self.reset_export = self.uvm_AnalysisImp(
            "reset_export", self, lambda _: self.model.hardware_reset()
        )
        self.product_export = self.uvm_AnalysisImp("product_export", self, self.product)
        self.memory_export = self.uvm_AnalysisImp("memory_export", self, self.memory)

    def write(self, tt: Transfer) -> None:
        """A transfer of the host."""
        self.model.transfer(tt)

    def product(self, tt: PredictedProduct) -> None:
        """A product that the host has asked for; it counts when its layer has ended."""
        found = float16.sample(tt.weights, tt.x, tt.arg.o_ch_num, bool(tt.arg.fp32))
        self.model.expect((tt.arg.image_src_addr, tt.arg.image_dst_addr), found)

    def memory(self, tt: Memory) -> None:
        """What was found in a memory is looked at by the scoreboard: layers before it count."""
        if not tt.written:
            self.model.read_back()

    def sample(self, cross: str, bin: Bin) -> None:
        """Count a bin here, and in the database of cocotb-coverage."""
        self._count(cross, bin)
        if bin in self.bins[cross]:
            self.bins[cross][bin] += 1

    def hit(self, cross: str) -> set[Bin]:
        """Bins of a cross that were hit."""
        return {bin for bin, count in self.bins[cross].items() if count}

    def missing(self, cross: str, wanted: Iterable[Bin]) -> set[Bin]:
        """Which of these bins were not hit yet."""
        return set(wanted) - self.hit(cross)

    def report_phase(self) -> None:
        for cross in crosses():
            self.logger.info(
                f"coverage, {cross.title}: {len(self.hit(cross.name))} of {len(cross.bins)} bins"
            )
