# SPDX-License-Identifier: Apache-2.0
"""Drives the MAC stage and says in every cycle what each of its outputs must be."""

import random
from collections import Counter

import numpy as np
from cocotb.triggers import RisingEdge

from openkpu.layer.elementwise import OPERATIONS
from openkpu_tb.core.block_bench import BlockBench
from openkpu_tb.core.descriptor import join_fields, layout, pack_descriptor, split_fields
from openkpu_tb.core.pipeline_bench import join_words, split_words
from tb.mac_stage.expected import N_X, Accumulators, Issue, Layer, Shape, operands, positions

READ, LEAVE = 12, 13  # cycles from an issue to param_re and to out_valid
COUNTED = 3  # and from column 0's to the count of its multiplications
LANES = ("valid", "left", "right", "top", "bot")
KINDS = ("random", "random", "ends", "largest", "unused")


def bits(vector: dict[str, tuple[int, int]]) -> int:
    return sum(width for _, width in vector.values())


def number(values: np.ndarray, width: int) -> int:
    """Bytes, or words of 16 bits, in one number."""
    kind = "<u1" if width == 8 else "<u2"
    return int.from_bytes(values.astype(kind).tobytes(), "little")


def noise(width: int) -> int:
    return random.getrandbits(width)


class Bench(BlockBench):
    """The stage a cycle at a time: an issue or none goes in, all outputs are checked."""

    inputs = "desc", "control", "weights", "issued", "issue_tag", *(f"row_{t}" for t in range(N_X))

    def __init__(self, dut) -> None:
        super().__init__(dut)
        names = ("N_Y", "N_Z", "WEIGHT_BITS", "TILE_W")
        self.shape = Shape(*(int(getattr(dut, name).value) for name in names))
        lanes, zw = self.shape.lanes, self.shape.n_z.bit_length() - 1
        prw = int(dut.PRW.value)
        self.job = layout("job", ZW=zw)
        self.meta = layout("meta", ZW=zw, PRW=prw, JOB_BITS=bits(self.job))
        self.planes = int(dut.SUM_PLANES.value) != 0
        self.tag = layout("tag", META_BITS=bits(self.meta))
        self.column = layout("column", L=lanes, ZW=zw)
        self.rng = np.random.default_rng(random.getrandbits(32))
        self.layer = Layer("taps", False, 0, 0)
        self.sums = Accumulators(self.shape)
        self.met: Counter[str] = Counter()
        self.rows = [getattr(dut, f"row_{t}") for t in range(N_X)]
        self.clear()

    def clear(self) -> None:
        """Nothing is on its way."""
        self.history: list[tuple[Issue, bool] | None] = [None] * (LEAVE + 1)
        # kept sums that leave once more: the issue they are of, the byte
        self.later: list[tuple[Issue, int] | None] = [None] * (LEAVE + 1)
        self.kept: list[tuple[Issue, int]] = []  # that are to leave

    async def begin(self, layer: Layer) -> None:
        """Another layer, once the last sums of the one before are out."""
        await self.drain()
        self.layer = layer
        self.sums.places.clear()
        known = {"mode": layer.mode, "dw": layer.dw, "sin": layer.signed, "pad": layer.pad}
        # a line of a depthwise row has the width of the map's pitch, others that of the stripe
        known |= {"ip": layer.pitch, "swl": random.choice((4, 5, 6))}
        known["out32"] = layer.words
        known |= {"ew": layer.ewop is not None, "ewop": layer.ewop or 0}
        rest = {"k3": noise(1), "sout": noise(1), "wide": noise(1), "c": noise(11), "s": noise(18)}
        self.dut.desc.value = pack_descriptor({**rest, **{k: int(v) for k, v in known.items()}})

    async def drain(self) -> None:
        for _ in range(LEAVE + COUNTED):
            await self.cycle(None)

    def issue(self, kind: str, **tag: int) -> Issue:
        """An issue of the layer; what ``tag`` does not say is random."""
        made = operands(self.shape, self.layer, self.rng, kind)
        made.tag = split_fields(self.tag, noise(bits(self.tag))) | tag
        return made

    def _control(self, issue: Issue) -> int:
        """Control of an issue without its taps; fields that do not matter are noise."""
        upper = noise(6) // self.shape.entry * self.shape.entry
        flags = {n: issue.valid if n == "valid" else issue.edges[n] for n in LANES}
        fields = {name: join_words(flag, 1) for name, flag in flags.items()}
        width = self.column["wsel"][1]
        used = self.layer.kind in ("row", "stripe", "vector")
        fields["wsel"] = issue.bank if used else noise(width)
        fields["pos"] = issue.pos % self.shape.entry | upper
        fields["count"] = int(issue.valid.sum()) * issue.counted
        return join_fields(self.column, fields)

    def _drive(self, new: Issue | None) -> None:
        dut, shape = self.dut, self.shape
        dut.issued.value = int(new is not None) | int(self.later[0] is not None) << 1
        dut.issue_tag.value = join_fields(self.tag, new.tag) if new else noise(bits(self.tag))
        control, weights, width = [], [], bits(self.column)
        for t in range(N_X):
            at = self.history[1 + t]
            taps = noise(9) & ~(1 << t)  # a column looks at its own alone, or at the last one's
            if at:
                taps = taps & ~(1 << N_X - 1) | int(at[0].taps[N_X - 1]) << N_X - 1
                issue = at[0]
                control.append(issue.control | taps | int(issue.taps[t]) << t)
                self.rows[t].value = number(issue.row[t], 8)
                weights.append(number(issue.weight[t], shape.wb))
            else:
                low = self.column["count"][0]
                lanes = noise(width) & ~(((1 << shape.lanes) - 1) << self.column["valid"][0])
                control.append((lanes & ~(255 << low) & ~511) | taps | noise(1) << t)
                self.rows[t].value = noise(8 * shape.tile)
                weights.append(noise(shape.n_z * shape.wb))
        dut.control.value = join_words(control, width)
        dut.weights.value = join_words(weights, shape.n_z * shape.wb)

    async def cycle(self, new: Issue | None, again: bool = False) -> None:
        """One cycle, in which ``new`` is issued; ``again``: and the next of the kept sums."""
        made = None
        if new is not None:
            new.control = self._control(new)
            made = new, self.sums.add(new, self.layer)
        self.history = [made, *self.history[:-1]]
        self.later = [self.kept.pop(0) if again else None, *self.later[:-1]]
        self._drive(new)
        await RisingEdge(self.dut.clk)
        self.check()

    def _sums_at(self, cycles: int) -> tuple[Issue, int] | None:
        """The issue whose sums are so far behind it, and their byte."""
        made = self.history[cycles]
        return self.later[cycles] or ((made[0], 0) if made is not None and made[1] else None)

    def check(self) -> None:
        """All outputs of this cycle."""
        dut, waits, later = self.dut, self.history, self.later
        read, leave = self._sums_at(READ), self._sums_at(LEAVE)
        reads, leaves = read is not None, leave is not None
        assert int(dut.param_re.value) == int(reads), f"param_re is not {reads}"
        assert int(dut.out_valid.value) == int(leaves), f"out_valid is not {leaves}"
        idle = not leaves and not any(waits[1 : READ + 1]) and not any(later[1 : READ + 1])
        assert int(dut.idle.value) == int(idle), f"idle is not {idle}"
        if read is not None:
            row = self._meta(read[0])["prow"] % (1 << len(dut.param_row))
            assert int(dut.param_row.value) == row, "parameters of another row"
        if leave is not None:
            self._check_sums(*leave)
        counted = waits[COUNTED : COUNTED + N_X]
        self._check_counts([at[0] if at else None for at in counted])
        self.met["out"] += leaves
        self.met["idle"] += idle
        self.met["back to back"] += leaves and waits[LEAVE - 1] is not None

    def _meta(self, issue: Issue) -> dict[str, int]:
        return split_fields(self.meta, issue.tag["meta"])

    def _check_sums(self, issue: Issue, plane: int) -> None:
        dut, count = self.dut, self.shape.lanes
        for name, width, want in (("out_sum", 36, issue.out[0]), ("out_xsum", 29, issue.out[1])):
            got = int(getattr(dut, name).value)
            if got != join_words(want, width):
                wrong = [n for n in range(count) if split_words(got, width, count)[n] != want[n]]
                n = wrong[0]
                raise AssertionError(
                    f"{self.layer}: {name} of lanes {wrong}; lane {n} is "
                    f"{split_words(got, width, count)[n]:#x}, expected {want[n]:#x}"
                )
        meta = self._meta(issue)
        job = split_fields(self.job, meta["job"])
        if self.planes and self.layer.words:  # whole with the last byte
            job |= {"plane": plane, "whole": job["whole"] * int(plane == 3)}
        want = issue.tag["pos"], issue.tag["end"], meta["pbank"], join_fields(self.job, job)
        names = ("out_pos", "out_end", "out_bank", "out_job")
        got = tuple(int(getattr(dut, name).value) for name in names)
        assert got == want, f"{names} are {got}, expected {want}"
        self.met[f"{self.layer.kind} left"] += 1
        self.met[f"byte {plane}"] += 1
        self.met["beside an issue"] += int(plane > 0 and self.history[LEAVE] is not None)

    def _check_counts(self, issues: list[Issue | None]) -> None:
        issued = split_words(int(self.dut.macs_issued.value), 8, N_X)
        gated = split_words(int(self.dut.macs_gated.value), 8, N_X)
        for t, issue in enumerate(issues):
            want = (issue.issued[t], issue.gated[t]) if issue else (0, 0)
            got = issued[t], gated[t]
            assert got == want, f"{self.layer}: column {t} counts {got}, expected {want}"
            self.met[f"gated in {t}"] += want[1]

    async def group(self, steps: int, places: int, p_issue: float) -> None:
        """A group: each step goes over its places in any order, with pauses; maybe the last step
        more than once, as for the bytes of 32-bit sums."""
        shape, layer = self.shape, self.layer
        one = layer.kind == "vector"
        spots = [0] if one else random.sample(range(64 // shape.n_y), places)
        again = 0 if one or layer.dw else random.choice((0, 3))
        for turn, step in enumerate((*range(steps), *[steps - 1] * again)):
            random.shuffle(spots)
            for at in spots:
                while random.random() >= p_issue:
                    await self.cycle(None)
                tag = {} if layer.dw else {"idx": at, "first": step == 0, "last": step == steps - 1}
                issue = self.issue(random.choice(KINDS), **{k: int(v) for k, v in tag.items()})
                issue.counted = turn < steps
                self.meet(issue)
                await self.cycle(issue)

    async def words(self, steps: int, places: int, p_issue: float, p_again: float) -> None:
        """A group whose sums are kept and leave once more for each of bytes 1 to 3, behind its last
        step; the sums that the group before has left to send go beside its other steps."""
        spots = list(range(places))
        positions = random.sample(range(64), places)
        for step in range(steps):
            last = step == steps - 1
            while last and self.kept:
                await self.cycle(None, random.random() < p_again)
            made = []
            for at in spots:
                while random.random() >= p_issue:
                    await self.cycle(None, bool(self.kept) and random.random() < p_again)
                tag = {"idx": at, "first": int(step == 0), "last": int(last)}
                tag |= {"end": int(last and at == places - 1), "pos": positions[at]}
                issue = self.issue(random.choice(KINDS), **tag)
                job = split_fields(self.job, self._meta(issue)["job"]) | {"plane": 0}
                meta = self._meta(made[0]) if made else self._meta(issue)
                meta |= {} if made else {"job": join_fields(self.job, job)}
                issue.tag["meta"] = join_fields(self.meta, meta)
                made.append(issue)
                await self.cycle(issue, bool(self.kept) and random.random() < p_again)
        self.kept = [(issue, plane) for plane in (1, 2, 3) for issue in made]

    def meet(self, issue: Issue) -> None:
        """Count what an issue shows of its layer."""
        kind, used = self.layer.kind, issue.valid.any()
        if self.layer.ewop is not None:
            self.met[f"{kind} {OPERATIONS[self.layer.ewop]}"] += int(used)
        self.met[f"{kind} signed {int(self.layer.signed)}"] += 1
        if self.layer.padded and used:
            for name, lanes in issue.edges.items():
                self.met[f"{kind} {name}"] += int((lanes & issue.valid).any())
        self.met[f"{kind} pitch {self.layer.pitch}"] += int(used)
        self.met[f"{kind} bank {issue.bank}"] += int(used)
        self.met[f"{kind} position {issue.pos % self.shape.entry}"] += int(used)
        self.met[f"{kind} second"] += int(issue.valid[64:].any())

    def expect(self, kinds: tuple[str, ...]) -> None:
        """Everything that these kinds of layers have was met."""
        wanted = ["idle", "back to back", *(f"gated in {t}" for t in range(N_X))]
        for kind in kinds:
            layer = Layer(kind, False, 0, 0)
            wanted += [f"{kind} left", f"{kind} signed 0", f"{kind} signed 1"]
            pieces = {p % self.shape.entry for p in positions(self.shape, layer)}
            if kind != "vector":
                wanted += [f"{kind} position {p}" for p in pieces]
            if layer.padded:
                wanted += [f"{kind} {name}" for name in ("left", "right", "top", "bot")]
            if kind in ("stripe", "vector"):
                wanted += [f"{kind} bank {z}" for z in range(self.shape.n_z)]
            if layer.dw:
                wanted += [f"{kind} pitch {p}" for p in range(3)]
                wanted += [f"{kind} {op}" for op in OPERATIONS]
                wanted += [f"{kind} second"] if self.shape.tile > 64 else []
        missing = [name for name in wanted if not self.met[name]]
        assert not missing, f"never met: {missing}"
