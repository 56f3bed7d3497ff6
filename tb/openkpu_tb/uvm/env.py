# SPDX-License-Identifier: Apache-2.0
"""pyuvm environment of the whole device.

sequences -> sequencer -> HostDriver -> pins            HostMonitor -> Predictor -> Scoreboard
          -> sequencer -> BusDriver -> AHB fabric                   -> CoverageCollector
StorageAgent: loads storage and AI RAM past the buses, reads results back        -> Scoreboard
"""

import cocotb
import numpy as np
from pyuvm import ConfigDB, uvm_analysis_port, uvm_env, uvm_sequencer

from openkpu_tb.handle import Handle
from openkpu_tb.uvm.agents import BusAgent, HostAgent, LayerMonitor, ResetMonitor, StorageAgent
from openkpu_tb.uvm.coverage import CoverageCollector
from openkpu_tb.uvm.create import create
from openkpu_tb.uvm.predictor import Predictor
from openkpu_tb.uvm.ral import Adapter, Registers
from openkpu_tb.uvm.scoreboard import Scoreboard
from openkpu_tb.uvm.sequencer_device import SequencerDevice


class VirtualSequencer(uvm_sequencer):
    """Runs the virtual sequences: has the sequencers of the agents, and the resources of a job."""

    host: uvm_sequencer
    bus: uvm_sequencer
    registers: Registers
    storage: StorageAgent
    device: SequencerDevice

    def build_phase(self) -> None:
        self.rng = np.random.default_rng(cocotb.RANDOM_SEED)
        self.ap = uvm_analysis_port("ap", self)  # names of the sequences that begin
        self.used: dict[str, int] = {}


class DeviceEnv(uvm_env):
    """Agents, predictor, scoreboard, register model, coverage."""

    def build_phase(self) -> None:
        self.host = create(HostAgent, "host", self)
        self.bus = create(BusAgent, "bus", self)
        self.storage = create(StorageAgent, "storage", self)
        self.resets = create(ResetMonitor, "resets", self)
        self.layers = create(LayerMonitor, "layers", self)
        self.predictor = create(Predictor, "predictor", self)
        self.scoreboard = create(Scoreboard, "scoreboard", self)
        self.coverage = create(CoverageCollector, "coverage", self)
        self.virtual = create(VirtualSequencer, "virtual", self)
        self.registers = Registers()

    def connect_phase(self) -> None:
        self.scoreboard.predictor = self.predictor
        self.host.monitor.ap.connect(self.predictor.analysis_export)
        self.resets.ap.connect(self.predictor.reset_export)
        self.storage.ap.connect(self.scoreboard.analysis_export)
        for port, export in (
            (self.host.monitor.ap, self.coverage.analysis_export),
            (self.resets.ap, self.coverage.reset_export),
            (self.layers.ap, self.coverage.layer_export),
            (self.storage.ap, self.coverage.memory_export),
            (self.predictor.products, self.coverage.product_export),
        ):
            port.connect(export)
        self.registers.map.set_sequencer(self.host.sequencer, Adapter())
        self.registers.map.set_auto_predict(True)
        virtual = self.virtual
        virtual.host, virtual.bus = self.host.sequencer, self.bus.sequencer
        virtual.registers, virtual.storage = self.registers, self.storage

    def start_of_simulation_phase(self) -> None:
        tb: Handle = ConfigDB().get(self, "", "TB")
        parts = self.host.sequencer, self.registers, self.storage
        self.virtual.device = SequencerDevice(tb, *parts)
