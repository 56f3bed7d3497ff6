# SPDX-License-Identifier: Apache-2.0
"""control among Python neighbours: host layers, task lists, streams, refusals, aborts."""

import random

import pytest

from openkpu.arithmetic.integers import ceil_div
from openkpu.layer.argument import ERROR_CODES, LayerArg
from openkpu_tb.core.block_bench import block_test
from openkpu_tb.core.descriptor import touches
from openkpu_tb.core.pipeline_bench import reset
from openkpu_tb.simrun import run_bench
from tb.control.neighbours import INPUTS, Neighbours, map_load, map_requests

N_Z = 2
END = 2  # cycles from the end of a layer's unload, if nothing else is pending, to the layer's end
TAKE = 2  # cycles from the start of the fully connected stage to the next image's address
CONFIGURATION = ("wgt_adr", "bias_adr", "list_adr", "list_len", "res_adr")


def layer(**fields: int) -> LayerArg:
    c, h, w, o = (random.randint(1, 9) for _ in range(4))
    pool = random.choice((0, 0, 1)) if min(h, w) > 1 else 0
    arg = LayerArg.make(c, h, w, o, kernel=random.choice((1, 3)), pool=pool)
    names = ("para_start_addr", "bwsx_base_addr", "active_addr")
    return arg.replace(**{n: random.getrandbits(32) for n in names}, **fields)


def bad_layer() -> tuple[LayerArg, int]:
    """An illegal argument and its code."""
    arg = layer()
    changes = (
        ({"kernel_type": 5}, "BAD_KERNEL"),
        ({"pool_type": 12}, "BAD_POOL"),
        ({"o_row_wid": arg.o_row_wid + 1}, "BAD_SIZE"),
        ({"depth_wise_layer": 1, "fc": 1}, "BAD_FLAGS"),
        ({"para_size": 0}, "BAD_WEIGHTS"),
    )
    change, code = random.choice(changes)
    return arg.replace(**change), ERROR_CODES[code]


async def begin(dut) -> Neighbours:
    await reset(dut, *INPUTS)
    n = Neighbours(dut)
    assert not int(n.dut.status_busy.value), "busy in the first cycle behind a reset"
    n.dut.cfg_eight_bit.value = 1
    for name in ("chan", "owner", "addr"):  # not valid: the master waits for nothing
        field = getattr(n.dut, f"waiting_{name}")
        field.value = random.getrandbits(len(field))
    return n


def check_runs(n: Neighbours, layers: list[LayerArg], first: int = 0) -> None:
    """Every layer ran once, in order, after its loaders were configured; parameter rows add up."""
    runs = n.kinds("run")[first:]
    assert len(runs) == len(layers) == len(n.kinds("layer_done")[first:])
    row = runs[0].info["prow"] if runs else 0
    base, kept = row, any(e.info["reuse"] for e in n.kinds("fetch"))
    for event, arg in zip(runs, layers, strict=True):
        got = event.info
        assert (got["c"], got["h"], got["w"]) == arg.in_shape and got["o"] == arg.o_ch_num
        row = base if kept and got["first"] else row
        assert got["prow"] == row, f"parameters from row {got['prow']}, expected {row}"
        # a stream releases no row before its weights have proved not to fit
        free = (base,) if kept else (row, base)
        assert got["freed"] in free, "parameters that stay, or are released"
        row += 0 if arg.pool_task else ceil_div(arg.o_ch_num, N_Z)  # pooling has no parameters
    fetched = n.kinds("fetch")[first:]
    passed = {"fetch": (), "weight_load": ("pools", "reuse"), "param_load": ("pools",)}
    for taker, without in passed.items():
        taken = [e.info["o"] for e in n.kinds(taker)][first:]
        due = [e.info["o"] for e in fetched if not any(e.info[name] for name in without)]
        assert taken == due, taker
    assert [e.info["o"] for e in fetched] == [arg.o_ch_num for arg in layers]
    for event, before in zip(runs, fetched, strict=False):
        assert before.cycle < event.cycle


@block_test(begin)
async def host_layers(n: Neighbours) -> None:
    """Layers of the FIFO run in order; done interrupt with int_en, result FIFO with send only."""
    for name in CONFIGURATION:  # of task lists: has no effect here
        field = getattr(n.dut, f"cfg_{name}")
        field.value = random.getrandbits(len(field))
    for turn in range(4):
        flags = [(random.getrandbits(1), random.getrandbits(1)) for _ in range(8)]
        layers = [layer(int_en=i, send_data_out=s) for i, s in flags]
        before, n.log = n.log, []
        n.eight_bit, n.dut.cfg_eight_bit.value = int(turn != 2), random.getrandbits(1)
        n.push(*[a.replace(para_size=2 * a.para_size) if turn == 2 else a for a in layers])
        if turn == 1:  # the queue fills up: a descriptor waits although its loaders are done
            n.silent = {"seq_done"}
            await n.steps(600)
            n.silent = set()
        await n.until(n.times("layer_done", len(layers)))
        await n.idle()
        check_runs(n, layers)
        assert [e.info["idx"] for e in n.kinds("run")] == list(range(8))
        assert {e.info["wide"] for e in n.kinds("run")} == {int(turn == 2)}
        for e, arg in zip(n.kinds("fetch"), layers, strict=True):
            addresses = arg.para_start_addr, arg.bwsx_base_addr, arg.active_addr
            assert (e.info["waddr"], e.info["baddr"], e.info["aaddr"]) == addresses
        assert len(n.kinds("ev_calc_done")) == sum(i for i, _ in flags)
        results = n.kinds("result")
        assert len(results) == sum(s for _, s in flags)
        assert all(e.info["dest"] == 0 for e in results)
        order = [e.kind for e in n.kinds("run", "result", "layer_done")]
        want = []
        for _, send in flags:
            want += ["run", *["result"] * send, "layer_done"]
        assert order == want, "the result leaves before the layer is done"
        sent = [e for e, (_, send) in zip(n.kinds("layer_done"), flags, strict=True) if send]
        for over, done in zip(n.kinds("unload_done"), sent, strict=True):
            assert done.cycle - over.cycle == END, "nothing else is waited for"
        assert not n.kinds("pixel_req", "list_req", "inf_next", "ev_inf_done", "ev_err")
        n.log = before + n.log


class Network:
    """A task list with the configuration that runs it."""

    def __init__(
        self, n: Neighbours, count: int, mode: int, layers: list[LayerArg] | None = None
    ) -> None:
        self.n, self.dut = n, n.dut
        self.layers = layers or [layer(int_en=1, send_data_out=1) for _ in range(count)]
        n.image = b"".join(arg.encode().astype("<u8").tobytes() for arg in self.layers)
        self.config = {
            "more": int(mode == 2),
            "list_len": count,
            **{f"{k}_adr": random.getrandbits(32) for k in ("pix", "wgt", "bias", "list", "res")},
        }
        self.config["npix_adr"] = (self.config["pix_adr"] + 0x1000) & 0xFFFFFFFF
        self.addresses: list[tuple[int, int]] = []  # pixels and result of each inference
        self._write()
        n.on_inf_next = self.advance

    def _write(self) -> None:
        for name in (*CONFIGURATION, "more"):
            getattr(self.dut, f"cfg_{name}").value = self.config[name]
        self.n.pix_adr, self.n.npix_adr = self.config["pix_adr"], self.config["npix_adr"]
        if not self.n.npix_taken:  # otherwise the address belongs to the prefetch
            self.dut.cfg_taken_adr.value = self.config["pix_adr"]
        self.addresses.append((self.config["pix_adr"], self.config["res_adr"]))

    def stop(self) -> None:
        """As AI_CTRL.stop: no other inference follows."""
        self.config["more"] = self.dut.cfg_more.value = 0

    def advance(self) -> None:
        for name, step in (("pix", 0x1000), ("npix", 0x1000), ("res", 0x100)):
            self.config[f"{name}_adr"] = (self.config[f"{name}_adr"] + step) & 0xFFFFFFFF
        self._write()

    async def once(self, limit: int = 20000) -> None:
        """Start and check an inference."""
        self.n.pulse("host_start")
        await self.n.until(self.n.times("ev_inf_done", 1), limit=limit)
        await self.n.idle()
        self.check(1)

    async def stream(self, inferences: int, limit: int) -> None:
        """Run and check a stream; AI_CFG falls back as its last inference begins."""
        n = self.n

        def advance() -> None:
            self.advance()
            if len(n.kinds("inf_next")) == inferences - 1:
                self.dut.cfg_more.value = 0

        n.on_inf_next = advance
        n.pulse("host_start")
        await n.until(n.times("ev_inf_done", inferences), limit=limit)
        await n.idle()
        self.check(inferences)

    def check(self, inferences: int) -> None:
        """So many inferences: layers, their bases and marks, pixel and result requests."""
        n, count = self.n, len(self.layers)
        runs = n.kinds("run")
        assert len(n.kinds("ev_inf_done")) == inferences and len(runs) == count * inferences
        check_runs_list = [arg for _ in range(inferences) for arg in self.layers]
        check_runs(n, check_runs_list)
        for i, e in enumerate(runs):
            arg, at = self.layers[i % count], i % count
            marks = e.info["first"], e.info["last"], e.info["idx"]
            assert marks == (int(at == 0), int(at == count - 1), at)
            assert e.info["inf"] == i // count % 2
            base = (arg.para_start_addr + self.config["wgt_adr"]) & 0xFFFFFFFF
            assert e.info["waddr"] == base
            for field, offset in (("baddr", arg.bwsx_base_addr), ("aaddr", arg.active_addr)):
                assert e.info[field] == (offset + self.config["bias_adr"]) & 0xFFFFFFFF
        o, oh, ow = self.layers[-1].out_shape
        addresses = self.addresses[:inferences]
        asked = [e.info for e in n.kinds("pixel_req")]
        assert asked == [
            {**request, "layer": 0, "inf": k % 2}
            for k, (address, _) in enumerate(addresses)
            for request in map_requests(self.layers[0], address)
        ]
        assert all(e.info == map_load(self.layers[0]) for e in n.kinds("pixels"))
        for e, (_, address) in zip(n.kinds("result"), addresses, strict=True):
            names = ("address", "base", "chans_m1", "height_m1", "width_m1")
            want = address, self.layers[-1].image_dst_addr, o - 1, oh - 1, ow - 1
            assert tuple(e.info[k] for k in names) == want
        assert len(n.kinds("pixels")) == len(n.kinds("result")) == inferences
        assert all(e.info["dest"] == 1 for e in n.kinds("result"))
        whose = [(e.info["layer"], e.info["inf"]) for e in n.kinds("result")]
        assert whose == [(count - 1, k % 2) for k in range(inferences)]
        lists = {"address": self.config["list_adr"], "length": 96 * count, "layer": 0, "beyond": 0}
        for k, e in enumerate(n.kinds("list_req")):
            assert e.info == lists | {"inf": k % 2}
        assert not n.kinds("ev_calc_done", "ev_err")
        # an inference ends when its result is in storage
        ends = zip(n.kinds("unload_done"), n.kinds("ev_inf_done"), strict=True)
        assert all(a.cycle < b.cycle for a, b in ends)


@block_test(begin)
async def task_list(n: Neighbours) -> None:
    """One inference: list, pixels before the first layer, result after the last, then idle."""
    for count in (1, 2, 7):
        n.log.clear()
        net = Network(n, count, 1)
        await net.once()
        assert len(n.kinds("list_req")) == 1 and not n.kinds("inf_next", "flush")
        asked, runs = n.kinds("pixel_req"), n.kinds("run")
        assert len(asked) == len(map_requests(net.layers[0], 0))
        assert asked[0].cycle < runs[0].cycle  # of a map in bands, others may follow
        order = [e.kind for e in n.kinds("run", "result", "ev_inf_done")]
        assert order == [*["run"] * count, "result", "ev_inf_done"]


@block_test(begin)
async def continuous(n: Neighbours) -> None:
    """Inference after inference; the next list is read ahead; stop ends after the present one."""
    for count in (1, 3):
        n.log.clear()
        net = Network(n, count, 2)
        n.pulse("host_start")
        await n.until(lambda: len(n.kinds("ev_inf_done")) == 4, limit=40000)
        # the fifth is under way
        await n.until(n.times("run", 4 * count + 1))
        net.stop()
        await n.idle()
        done = len(n.kinds("ev_inf_done"))
        assert done == 5, f"{done} inferences, the fifth was the last"
        assert len(n.kinds("inf_next")) == 4
        flushed = [e.cycle for e in n.kinds("flush")]
        assert all(cycle > n.kinds("ev_inf_done")[-1].cycle for cycle in flushed)
        # layers fetched ahead for a sixth inference do not run
        ran = n.kinds("run")
        assert len(ran) == 5 * count
        _forget_ahead(net, 5)
        net.check(5)
        lists = n.kinds("list_req")
        ends = n.kinds("ev_inf_done")
        assert all(a.cycle < b.cycle for a, b in zip(lists[1:5], ends, strict=False))


def _forget_ahead(net: Network, inferences: int) -> None:
    """Drop prefetches without a use from the log: they come after the ones that were used."""
    n, maps = net.n, len(map_requests(net.layers[0], 0))
    used = {"fetch": len(n.kinds("run")), "param_load": len(n.kinds("run"))}
    used["weight_load"] = sum(not e.info["reuse"] for e in n.kinds("fetch")[: used["fetch"]])
    used |= {"pixel_req": inferences * maps, "pixels": inferences}
    ahead = [e for kind, count in used.items() for e in n.kinds(kind)[count:]]
    n.log = [e for e in n.log if not any(e is other for other in ahead)]


@block_test(begin)
async def last_of_a_stream(n: Neighbours) -> None:
    """AI_CFG falls back to one inference as the last one begins: no list is read for another."""
    for count, n.array_time in ((2, 30), (1, 30), (2, 400), (1, 400)):
        n.log.clear()
        net = Network(n, count, 2)
        await net.stream(3, limit=40000)
        assert len(n.kinds("list_req")) == 3 and len(n.kinds("inf_next")) == 2
        assert not n.kinds("flush")


def network_layers(count: int, dense: int) -> list[LayerArg]:
    """Layers at random places of the AI RAM, the last ``dense`` fully connected."""
    layers = []
    for i in range(count):
        arg = layer()
        if i >= count - dense:
            c, h, w = arg.in_shape
            arg = LayerArg.make(c, h, w, arg.o_ch_num, fc=True)
        rows = (0, 5, 40, 200, 1000)
        arg = arg.replace(image_src_addr=random.choice(rows), image_dst_addr=random.choice(rows))
        while arg.device_code():  # maps that share rows are refused
            arg = arg.replace(image_dst_addr=random.randrange(2000))
        layers.append(arg)
    return layers


def check_prefetch(net: Network, inferences: int) -> int:
    """Check when the next inference's pixels were requested and written; how many came early."""
    n, count, layers = net.n, len(net.layers), net.layers
    place = layers[0].image_src_addr, layers[0].image_src_addr + layers[0].in_layout.rows
    users = [i for i, arg in enumerate(layers) if i == 0 or touches(arg, place)]
    dense = [i for i, arg in enumerate(layers) if arg.fc]
    runs, written = n.kinds("run"), n.kinds("pixels")
    asked = n.kinds("pixel_req")[:: len(map_requests(layers[0], 0))]  # the first ones
    ends, bounds = n.kinds("ev_inf_done"), n.kinds("first_out")
    latched = [e.cycle for e in n.kinds("npix_take")]
    early = 0
    for k in range(1, inferences):
        before = runs[(k - 1) * count : k * count]
        free = n.kinds("layer_done")[(k - 1) * count + users[-1]].cycle
        stage = before[dense[0]].cycle if dense else free
        assert written[k].cycle > free, "the input map's rows are still in use"
        assert asked[k].cycle > stage, "pixels too early"
        if dense and bounds[k].cycle < stage:  # nothing else is waited for
            assert stage + TAKE in latched, "the next image's address is latched at once"
        # an inference without a prefetch begins when the previous one has completed
        reads = min(bounds[k].cycle, ends[k - 1].cycle)
        assert asked[k].cycle > reads, "pixels before the reads of this inference end"
        assert written[k].cycle < runs[k * count].cycle
        early += asked[k].cycle < ends[k - 1].cycle
    return early


@block_test(begin)
async def prefetch(n: Neighbours, dut) -> None:
    """The next inference's pixels wait for the fully connected stage, or until their rows are
    free."""
    seen = {"dense": 0, "free": 0, "kept": 0, "read again": 0}
    for turn in range(16):
        n.log.clear()
        n.array_time = 900 if turn in (7, 8) else 300  # cycles; neighbours use LATE of them
        count = random.randint(2, 7)
        dense = random.randint(1, 2) if turn % 2 else 0
        net = Network(n, count, 2, network_layers(count, dense))
        await net.stream(4, limit=60000)
        seen["dense" if dense else "free"] += check_prefetch(net, 4)
        rows = sum(e.info["wrows"] for e in n.kinds("fetch")[:count])
        kept = rows <= int(dut.WBUF_ROWS.value)
        assert [e.info["reuse"] for e in n.kinds("fetch")] == [0] * count + [int(kept)] * 3 * count
        assert len(n.kinds("ev_inf_kept")) == 3 * kept
        seen["kept" if kept else "read again"] += 1
    assert all(seen.values()), seen


@block_test(begin)
async def mode_at_the_start(n: Neighbours) -> None:
    """The mode in the cycle of the start decides whether weights are kept; later modes do not."""
    for more in (1, 0):
        n.log.clear()
        net = Network(n, 2, 2, [LayerArg.make(2, 3, 3, 2, kernel=1) for _ in range(2)])
        began, n.dut.cfg_more.value = n.cycle + 1, more

        def write(began: int = began, more: int = more) -> None:
            written = {began: 1 - more, began + 5: 1}.get(n.cycle)
            if written is not None:  # from the next cycle on
                n.dut.cfg_more.value = written

        n.watch = write
        await net.stream(3, limit=20000)
        assert [e.info["reuse"] for e in n.kinds("fetch")] == [0, 0, *[more] * 4]


@block_test(begin)
async def refused_layer(n: Neighbours) -> None:
    """Layers before the illegal one finish; then the error; words are dropped until the host
    acknowledges it."""
    for good in (0, 1, 3):
        n.log.clear()
        before = [layer(int_en=1) for _ in range(good)]
        bad, code = bad_layer()
        n.push(*before, bad, *[layer() for _ in range(3)])
        await n.until(lambda: n.kinds("ev_err"))
        error = n.kinds("ev_err")[0]
        assert (error.info["code"], error.info["layer"]) == (code, good)
        check_runs(n, before)
        await n.until(lambda: not n.words)
        await n.steps(50)
        assert len(n.kinds("run")) == good, "what follows a refused layer is discarded"
        # an acknowledge between two layers; later layers run
        n.pulse("host_ack")
        await n.steps(5)
        after = [layer() for _ in range(2)]
        n.push(*after)
        await n.until(n.times("layer_done", good + 2))
        await n.idle()
        assert len(n.kinds("ev_err")) == 1
        runs = n.kinds("run")[good:]
        assert [e.info["o"] for e in runs] == [a.o_ch_num for a in after]
        assert runs[0].info["prow"] == 0 and [e.info["idx"] for e in runs] == [0, 1]


async def refuse_and_drop_half(n: Neighbours) -> tuple[list[int], LayerArg]:
    """A refusal, then five words of a layer that are discarded; (its other words, next layer)."""
    bad, _ = bad_layer()
    n.push(bad)
    await n.until(lambda: n.kinds("ev_err"))
    await n.steps(60)
    n.push(layer())
    rest, n.words = n.words[5:], n.words[:5]
    await n.until(lambda: not n.words)
    return rest, layer()


async def only(n: Neighbours, good: LayerArg) -> None:
    """Only ``good`` of all pushed layers runs, from parameter row 0."""
    await n.until(lambda: n.kinds("layer_done"), limit=2000)
    await n.idle()
    check_runs(n, [good])
    assert n.kinds("run")[0].info["prow"] == 0 and len(n.kinds("fetch")) == 1
    assert len(n.kinds("ev_err")) == 1


@block_test(begin)
async def acknowledge_inside_a_layer(n: Neighbours) -> None:
    """The acknowledge comes when half a layer has been discarded: the other half is discarded too.
    The next layer is already in the FIFO or arrives later; none of its words may get lost."""
    for waiting in (False, True):
        n.log.clear()
        rest, good = await refuse_and_drop_half(n)
        n.pulse("host_ack")
        await n.steps(10)
        n.words += rest
        if not waiting:
            await n.until(lambda: not n.words)
            await n.steps(2)
        n.push(good)
        await only(n, good)
        n.pulse("host_soft_reset")
        await n.idle()


@block_test(begin)
async def refused_in_a_list(n: Neighbours) -> None:
    """An illegal layer in a list: error with its index, everything stops, a new start runs."""
    net = Network(n, 4, 1)
    bad, code = bad_layer()
    args = [*net.layers[:2], bad, net.layers[3]]
    n.image = b"".join(a.encode().astype("<u8").tobytes() for a in args)
    n.pulse("host_start")
    await n.until(lambda: n.kinds("ev_err"))
    await n.idle()
    error = n.kinds("ev_err")[0]
    assert (error.info["code"], error.info["layer"]) == (code, 2)
    assert len(n.kinds("run")) == 2 and not n.kinds("ev_inf_done", "result")
    n.log.clear()
    net = Network(n, 2, 1)
    await net.once()


@block_test(begin)
async def soft_reset(n: Neighbours) -> None:
    """At any time, in either mode: no error, nothing more is started, the next layers are whole."""
    for turn in range(16):
        n.log.clear()
        if turn % 2:
            Network(n, 3, random.choice((1, 2)))
            n.pulse("host_start")
        else:
            n.push(*[layer(send_data_out=1) for _ in range(3)])
        await n.steps(random.randint(1, 300))
        n.pulse("host_soft_reset")
        n.words.clear()
        n.pulse("arg_flush")
        await n.idle()
        assert not n.kinds("ev_err")
        n.log.clear()
        layers = [layer(int_en=1) for _ in range(2)]
        n.push(*layers)
        await n.until(lambda: len(n.kinds("layer_done")) == 2)
        await n.idle()
        check_runs(n, layers)
        assert n.kinds("run")[0].info["prow"] == 0 and len(n.kinds("ev_calc_done")) == 2


FIRST = "test_control fault_tests move_tests leftover_tests stage_tests"  # half of the time


@pytest.mark.tier(check=["verilator-further", "verilator-deep"], nightly=["icarus-*"])
@pytest.mark.parametrize(
    ("modules", "ahead"),
    [(FIRST, 4), ("several_tests long_tests", 4), (FIRST, 16)],
    ids=["first", "further", "deep"],
)
@pytest.mark.parametrize("sim", ["icarus", "verilator"])
def test_control(sim: str, modules: str, ahead: int) -> None:
    """``ahead``: layers in the queue of the array."""
    sources = ["rtl/control/*.v", "rtl/lib/*.v"]
    params = {"N_Y": 2, "N_Z": N_Z, "WBUF_ROWS": 64} | ({"LOOK_AHEAD": ahead} if ahead > 4 else {})
    for module in modules.split():
        run_bench(
            sim,
            "control",
            sources,
            f"tb.control.{module}",
            params=params,
            public="tb/control/public.vlt",
        )
