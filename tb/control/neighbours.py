# SPDX-License-Identifier: Apache-2.0
"""What surrounds the central controller, in Python: loaders, array, DMAC channels, task list."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from cocotb.triggers import RisingEdge

from openkpu.arithmetic.integers import ceil_div
from openkpu.layer.argument import LayerArg
from openkpu.layer.decoded import band_lines
from openkpu_tb.core.byte_stream import ByteStream
from openkpu_tb.core.descriptor import join_fields, layout, split_fields, unpack
from openkpu_tb.core.packed_ports import PackedView

INPUTS = ("cfg", "host", "arg_valid", "arg_data", "arg_flush", "list_req_ready", "list_valid")
INPUTS += ("list_beat", "weight_req_ready", "bias_req_ready", "weight_load_busy", "param_load_busy")
INPUTS += ("seq_done", "core_idle", "pixel_req_ready", "load_band", "load_done", "unload_done")
INPUTS += ("bus_err", "bus_fault", "traffic", "arg_eight_bit", "moves", "waiting", "starves")
PULSES = ("host_start", "host_soft_reset", "host_ack", "bus_err", "arg_flush")
PORTS = {"cfg": "cfg_", "host": "host_", "status": "status_", "events": "ev_", "err": "err_"}
PORTS |= {"list_req": "list_req_", "weight_req": "weight_req_", "bias_req": "bias_req_"}
PORTS |= {"pixel_req": "pixel_req_", "load": "input_", "unload": "unload_"}
PORTS |= {"bus_fault": "fault_", "traffic": "traffic_", "list_beat": "list_"}
PORTS |= {"waiting": "waiting_"}
LAYOUTS = {"events": "event", "bus_fault": "fault", "list_beat": "beat"}
MAP, OWNER = layout("map"), layout("owner")
LATE = 30  # cycles that a neighbour takes at most
ALL_THERE = 0x3FF  # lines_there of a map that does not come in bands


@dataclass
class Event:
    """Something the controller did; ``info`` by kind: address, length, descriptor fields."""

    kind: str
    cycle: int
    info: dict[str, int]


def fields(dut) -> PackedView:
    """The controller's bundles field by field."""
    lanes = int(dut.AHB_W.value) // 8
    sizes = {"AHB_W": 8 * lanes, "OW": lanes.bit_length() - 1, "CW": lanes.bit_length()}
    for name, inner in (("MAP_BITS", MAP), ("OWNER_BITS", OWNER)):
        sizes[name] = sum(width for _, width in inner.values())
    packed = {}
    for port, prefix in PORTS.items():
        name = "req" if port.endswith("_req") else LAYOUTS.get(port, port)
        packed[port] = layout(name, **sizes), prefix
    return PackedView(dut, packed, sole=True)


def map_requests(arg: LayerArg, address: int) -> list[dict[str, int]]:
    """Requests of a layer's map in storage (docs/architecture.md 3): one for the whole, or for the
    lines of a band of a channel each."""
    c, h, w = arg.in_shape
    band = band_lines(arg)
    parts = [(c * h * w, 0)]
    if band:
        order = [(y, i) for y in range(0, h, band) for i in range(c)]
        parts = [(min(band, h - y) * w, (i * h + y) * w) for y, i in order]
    places = [(length, divmod(address + at, 1 << 32)) for length, at in parts]
    return [{"address": at, "length": length, "beyond": beyond} for length, (beyond, at) in places]


def map_load(arg: LayerArg) -> dict[str, int]:
    """Its load, as the pixel writer gets it."""
    c, h, w = arg.in_shape
    found = {"base": arg.image_src_addr, "chans_m1": c - 1, "height_m1": h - 1, "width_m1": w - 1}
    return found | {"apart": arg.in_layout.channel_rows, "band": band_lines(arg)}


class Channel:
    """A request channel of the DMAC: accepts at random, is quiet once all is sent out."""

    def __init__(self, dut, name: str, quiet: str) -> None:
        self.dut, self.name, self.quiet, self.held = dut, name, quiet, 0

    def drive(self) -> None:
        ready = self.held < 3 and random.random() < 0.4
        getattr(self.dut, f"{self.name}_req_ready").value = int(ready)
        getattr(self.dut, self.quiet).value = int(self.held == 0)

    def sample(self) -> bool:
        """True when a request was accepted."""
        valid, ready = (getattr(self.dut, f"{self.name}_req_{n}") for n in ("valid", "ready"))
        accepted = bool(int(valid.value) and int(ready.value))
        if accepted:
            self.held += 1
        elif self.held and random.random() < 0.2:
            self.held -= 1
        return accepted


class Neighbours:
    """Answers with random delays and keeps a log of events."""

    def __init__(self, dut) -> None:
        self.dut = dut = fields(dut)
        self.log: list[Event] = []
        self.words: list[int] = []  # of the host's FIFO
        self.image = b""  # task list in storage
        self.list_rate = 0.7
        self.list_bytes: int | None = None  # of a list that come; None: all
        self.list = ByteStream(dut, "list")
        self.cycle = 0
        self.moved_at = -9  # cycle in which the registers began to move on
        self.due: dict[str, int] = {}  # answers on the way: port -> cycle
        self.next_pulses: dict[str, int] = {}
        self.running = False  # the array has a layer
        self.on_inf_next: Callable[[], None] = lambda: None
        self.watch: Callable[[], None] = lambda: None  # in every cycle, behind the log
        self.silent: set[str] = set()  # answers that do not come
        self.hold_words = False  # a start or a reset is pending, as the host sees it
        self.muted = self.flushing = False
        self.parity = 0  # of the inference at work
        self.eight_bit = 1  # with the last word of a host's layer
        self.npix_taken = False
        self.array_time = LATE  # cycles of a layer at most
        self.pixels_asked = 0  # requests of the map that is loaded
        self.bands = self.band_requests = 0  # bands of it that are to come, requests of each
        self.pix_adr = self.npix_adr = 0  # registers of the host
        self.channels = [Channel(dut, c, f"traffic_{c}_quiet") for c in ("weight", "bias")]
        dut.core_idle.value = dut.traffic_idle.value = 1

    def push(self, *args: LayerArg) -> None:
        for arg in args:
            self.words += [int(w) for w in arg.encode()]

    def pulse(self, name: str) -> None:
        self.next_pulses[name] = 1

    def fail(self, chan: int, layer: int, parity: int, *, refused: int = 0) -> int:
        """A transfer fails in the next cycle; its address."""
        address = random.getrandbits(32)
        self.dut.fault_addr.value, self.dut.fault_chan.value = address, chan
        self.dut.fault_owner.value = join_fields(OWNER, {"layer": layer, "inf": parity})
        self.dut.fault_refused.value = refused
        self.pulse("bus_err")
        return address

    def kinds(self, *names: str) -> list[Event]:
        return [e for e in self.log if e.kind in names]

    def times(self, kind: str, count: int) -> Callable[[], bool]:
        """A condition for ``until``: so many events of a kind."""
        return lambda: len(self.kinds(kind)) == count

    def _log(self, kind: str, **info: int) -> None:
        self.log.append(Event(kind, self.cycle, info))

    def _later(self, port: str, most: int = LATE) -> None:
        self.due[port] = self.cycle + random.randint(1, most)

    async def step(self) -> None:
        """One cycle: drive, edge, look at what the controller said before the edge."""
        dut = self.dut
        self.cycle += 1
        begins, resets = (name in self.next_pulses for name in ("host_start", "host_soft_reset"))
        for name in PULSES:
            getattr(dut, name).value = self.next_pulses.pop(name, 0)
        # as the host does it: a reset is pending until everything is dropped
        dut.host_pending.value = int(begins or resets or self.muted or self.hold_words)
        if begins:
            self.parity, self.npix_taken = 0, False
        offered = bool(self.words)
        # the weight width counts with a layer's last word only
        dut.arg_eight_bit.value = self.eight_bit ^ int(len(self.words) % 12 != 1)
        dut.arg_valid.value = int(offered)
        dut.arg_data.value = self.words[0] if offered else 0
        for channel in self.channels:
            channel.drive()
        for port in ("pixel_req", "list_req"):
            getattr(dut, f"{port}_ready").value = int(random.random() < 0.3)
        for port in ("load_done", "unload_done", "seq_done"):
            hit = port not in self.silent and port in self.due and self.due[port] <= self.cycle
            if port == "load_done":  # a band comes when it was asked for; done with the last one
                hit &= self.pixels_asked >= self.band_requests
                dut.load_band.value = int(hit)
                if hit:
                    del self.due[port]
                    hit = self._band()
            getattr(dut, port).value = int(hit)
            if hit and port == "seq_done":
                self._later("core_idle")
            elif hit:
                self._log(port)
            if hit and port != "load_done":
                del self.due[port]
        if self.due.get("core_idle", self.cycle) < self.cycle:
            del self.due["core_idle"]
            self.running = False
        dut.core_idle.value = int(not self.running)
        for port in ("weight_load_busy", "param_load_busy"):
            dut_port = getattr(dut, port)
            dut_port.value = int(port in self.due)
            if port in self.due and self.due[port] <= self.cycle:
                del self.due[port]
        dut.traffic_idle.value = int("dma_idle" not in self.due)
        if self.due.get("dma_idle", self.cycle + 1) <= self.cycle and "dma_idle" not in self.silent:
            del self.due["dma_idle"]
        self.list.drive(self.list_rate)
        await RisingEdge(dut.clk)
        self.list.sample()
        for channel in self.channels:
            channel.sample()
        if offered and int(dut.arg_ready.value):
            self.words.pop(0)
        self._observe()
        self.watch()
        self.muted = resets or (self.muted and self.flushing)

    def _band(self) -> bool:
        """A band of the map has come; True: it was the last one."""
        self._log("load_band")
        self.pixels_asked -= self.band_requests
        self.bands -= 1
        if self.bands:
            self._later("load_done")
        return not self.bands

    def _observe(self) -> None:
        dut = self.dut
        was_flushing, self.flushing = self.flushing, bool(int(dut.flush.value))
        assert int(dut.status_flushing.value) == self.flushing
        if was_flushing and self.flushing:
            assert int(dut.lines_there.value) == ALL_THERE, "lines of a map that was dropped"
        if self.cycle - self.moved_at in (1, 2):  # what follows is settled by then
            assert not int(dut.committed.value), "the next list while the registers move on"
        if self.flushing:
            if not self.log or self.log[-1].kind != "flush":
                self._log("flush")
                self.due = {"dma_idle": self.cycle + random.randint(1, LATE)}
            self.pixels_asked = self.bands = 0
            self.running = False
            self.list.words.clear()
            self.list.on = False
            for channel in self.channels:
                channel.held = 0
        starts = {
            "fetch": dut.u_dispatch.fetch_start,
            "weight_load": dut.weight_load_start,
            "param_load": dut.param_load_start,
        }
        for name, start in starts.items():
            if int(start.value):
                assert f"{name}_busy" not in self.due, f"{name} was started while busy"
                info = unpack(int(dut.load_desc.value))
                self._log(name, reuse=int(dut.reuse.value), **info)
                if name != "fetch":
                    self._later(f"{name}_busy")
        if int(dut.first_out.value):
            self._log("first_out")
        if int(dut.run_start.value):
            assert not self.running, "a layer was started before the one before it was done"
            self.running = True
            rows = {"prow": int(dut.prow_base.value), "freed": int(dut.prow_freed.value)}
            self._log("run", **rows, **unpack(int(dut.desc.value)))
            self._later("seq_done", self.array_time)
        # (during a flush the writer ignores its start)
        if int(dut.load_start.value) and not self.flushing:
            assert not self.bands, "the pixel writer was started while busy"
            info = split_fields(MAP, int(dut.input_map.value))
            info |= {name: int(getattr(dut, f"input_{name}").value) for name in ("apart", "band")}
            lines = info["height_m1"] + 1
            self.bands = ceil_div(lines, info["band"] or lines)
            self.band_requests = info["chans_m1"] + 1 if info["band"] else 1
            asked = self.pixels_asked or info["band"]
            assert asked, "the writer begins before its pixels are asked for"
            self._log("pixels", **info)
            self._later("load_done")
        if int(dut.ev_npix_take.value):
            self._log("npix_take", address=self.npix_adr)
            dut.cfg_taken_adr.value = self.npix_adr
            self.npix_taken = True
        if int(dut.unload_start.value):
            where = {"dest": int(dut.unload_store.value), "address": int(dut.unload_adr.value)}
            where |= split_fields(OWNER, int(dut.unload_owner.value))
            where["apart"] = int(dut.unload_apart.value)
            # a map leaves for the storage while its layer begins, for the host when it is over
            assert int(dut.unload_whole.value) == 1 - where["dest"], "a map is whole, or is not"
            self._log("result", **where, **split_fields(MAP, int(dut.unload_map.value)))
            self._later("unload_done")
        for port in ("pixel_req", "list_req"):
            names = ("valid", "ready")
            if all(int(getattr(dut, f"{port}_{n}").value) for n in names):
                address = int(getattr(dut, f"{port}_addr").value)
                length = int(getattr(dut, f"{port}_len").value)
                owner = split_fields(OWNER, int(getattr(dut, f"{port}_owner").value))
                beyond = int(getattr(dut, f"{port}_beyond").value)
                self._log(port, address=address, length=length, beyond=beyond, **owner)
                if port == "list_req":
                    bytes_now = self.image[:length][: self.list_bytes]
                    self.list.add(bytes_now, random.choice((length, 100)))
                if port == "pixel_req":
                    self.pixels_asked += 1
        for name in ("ev_calc_done", "ev_inf_done", "ev_inf_kept", "layer_done", "inf_next"):
            port = name if name.startswith("ev_") else f"ev_{name}"
            if int(getattr(dut, port).value):
                self._log(name)
                if name == "inf_next":
                    self.moved_at = self.cycle
                    self.on_inf_next()
                    self.npix_taken = False
        if int(dut.inf_over.value) and int(dut.go_on.value):
            self.parity ^= 1
        if int(dut.ev_error.value):
            names = ("code", "layer", "stream", "waits", "addr")
            values = {n: int(getattr(dut, f"err_{n}").value) for n in names}
            self._log("ev_err", **values)

    async def steps(self, count: int) -> None:
        for _ in range(count):
            await self.step()

    async def until(self, done: Callable[[], object], limit: int = 20000) -> None:
        for _ in range(limit):
            await self.step()
            if done():
                return
        tail = [e.kind for e in self.log[-8:]]
        raise AssertionError(f"nothing more after {tail}, {len(self.words)} words wait")

    async def idle(self) -> None:
        """Until the controller is not busy any more, for a while."""
        quiet = 0
        for _ in range(20000):
            await self.step()
            quiet = 0 if int(self.dut.status_busy.value) else quiet + 1
            if quiet == 8:
                return
        raise AssertionError("busy for ever")
