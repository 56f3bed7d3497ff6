# SPDX-License-Identifier: Apache-2.0
"""The bus of the storage: read channels with their FIFOs, the arbiter, the master, and gearboxes.

All times are cycles. Everything is computed burst by burst, and beat by beat where a FIFO is
emptied, in the order of time; what waits for somebody who has not got that far yet is None
(docs/architecture.md 15.7).
"""

from __future__ import annotations

from collections import deque

# From the choice of a burst: the master takes it, its first beat is issued, the word is pushed.
GIVEN = 1  # dma_read_ctrl keeps the choice in a register
ISSUED = 1  # ... and the queue of the master is one more
GRANT = 1  # ... an idle master asks for the bus first
BEAT = 3  # address phase, data phase, register of the answer
FIFO = 1  # a word is seen the cycle after it was pushed
BLOCK_FIFO = 2  # ... in a FIFO of block RAM a cycle later
GEAR = 1  # ... and taken from the gearbox the cycle after it was popped
SETTLE = 2  # a channel proposes its next burst two cycles after one was taken, or a word popped
MOST_BURST = 16
STORE_FIFO = 32  # words of the FIFO of the write channel
BLOCK_FROM = 32  # words from which on a FIFO of weights or pixels is block RAM


def burst_words(depth: int) -> int:
    """Words of a burst: half of the FIFO, 16 at most, a power of two."""
    half = max(1, depth // 2)
    return min(MOST_BURST, 1 << (half.bit_length() - 1))


class Gear:
    """The FIFO of a channel and the gearbox behind it: words in, pieces of any size out."""

    def __init__(self, room: int) -> None:
        """``room``: bytes that the gearbox may hold and still take a word."""
        self.room = room
        self.seen: list[int] = []  # of each word: visible at the end of the FIFO
        self.ends: list[int] = []  # ... bytes up to its end
        self.pops: list[int] = []  # ... taken out of the FIFO
        self.bytes = 0  # that came, that were popped, that were taken
        self.popped = self.taken = 0
        self._takes: deque[tuple[int, int]] = deque()  # (bytes so far, cycle)
        self._passed = (0, -1)  # the last of them that a pop has looked at
        self._at = 0  # word of the last byte taken
        # nothing is popped behind cycle ``shut`` and before ``opened`` (None: not known yet), nor
        # words behind so many bytes
        self.shut, self.limit = -1, 1 << 62
        self.opened: int | None = 0

    def push(self, seen: int, size: int) -> None:
        """A word with ``size`` bytes that count."""
        self.bytes += size
        self.seen.append(seen)
        self.ends.append(self.bytes)

    def pump(self) -> None:
        """Pop what can be popped as far as it is known what was taken."""
        pops, seen, ends = self.pops, self.seen, self.ends
        if self.opened is None:
            return
        last = pops[-1] if pops else -1
        for n in range(len(pops), len(seen)):
            if self.popped >= self.limit:
                return
            due = self.popped - self.room  # so many bytes must have been taken
            while self._passed[0] < due and self._takes:
                self._passed = self._takes.popleft()
            if self._passed[0] < due:
                return
            last = max(seen[n], last + 1, self._passed[1] + 1 if due > 0 else 0)
            if last > self.shut:
                last = max(last, self.opened)
            pops.append(last)
            self.popped = ends[n]

    def take(self, size: int, at: int, following: int = 0, begin: int = 0) -> int | None:
        """Cycle of taking ``size`` bytes, ``at`` or later; None when they have not come.

        What ``following`` (bytes of the next piece) and ``begin`` are for see Groups.
        """
        need = self.taken + size
        if need > self.popped:
            self.pump()
            if need > self.popped:
                return None
        where = self._at
        ends = self.ends
        while ends[where] < need:
            where += 1
        self._at = where
        at = max(at, self.pops[where] + GEAR)
        self.taken = need
        self._takes.append((need, at))
        return at


class Groups(Gear):
    """The FIFO of weights on a bus of 32 bits, and byte_group behind it.

    A bus word is taken in a cycle as long as it ends one group at most; what is left of it begins
    the next group in the same cycle only if that one is large enough, and more than four bytes of
    this one were there before (or all of it).
    """

    APART = 4

    def __init__(self) -> None:
        super().__init__(0)
        self.word = -1  # at work, with so many bytes left from cycle ``now`` on
        self.left = self.now = 0
        self.held = 0  # bytes of the group that were taken before
        self.spare = (
            -1,
            0,
        )  # a cycle in which a word might have gone along; bytes that it might have
        self.loaded = self.done = 0  # the word came to work, the one before was done with

    def pump(self) -> None:
        """The word behind the one at work has a place."""
        following = self.word + 1
        if len(self.pops) == following and following < len(self.seen):
            self.pops.append(max(self.seen[following], self.loaded))

    def take(self, size: int, at: int, following: int = 0, begin: int = 0) -> int | None:
        """As Gear.take; nothing is taken before ``begin``, nor of a next piece of 0 bytes."""
        while self.left < size - self.held:
            if self.left:
                self.held += self.left
                self.left, self.done = 0, max(self.now, begin)
            elif not self._load():
                return None
        go = max(self.now, self.done + 1, at, begin)
        if not self.left:  # the group is there already: a word that comes in this cycle goes along
            self.held, self.now = 0, go + 1
            self.spare = go, following
            return go
        over = self.left - (size - self.held)
        if (self.held >= self.APART or self.held == size) and following >= over:
            self.held, self.left, self.done = over, 0, go
        else:
            self.held, self.left, self.now = 0, over, go + 1
            self.done = self.done if over else go
        return go

    def _load(self) -> bool:
        """Bring the next word to work, if it has come."""
        self.pump()
        if len(self.pops) == self.word + 1:
            return False
        at = max(self.done, self.pops[self.word + 1]) + 1
        self.word += 1
        self.loaded = at
        self.left = self.ends[self.word] - (self.ends[self.word - 1] if self.word else 0)
        (went, following), self.spare = self.spare, (-1, 0)
        if at <= went and following >= self.left:
            self.held, self.left, self.done = self.left, 0, went
        self.now = max(self.now, at)
        self.pump()
        return True


class Channel:
    """A read channel of the DMAC: a request at work, one that waits, others on their way."""

    def __init__(self, word: int, depth: int, gear: Gear, block_ram: bool = False) -> None:
        """``word`` bytes of the bus, ``depth`` words of the FIFO."""
        self.word, self.depth, self.gear = word, depth, gear
        self.most = burst_words(depth)
        self.late = BLOCK_FIFO if block_ram else FIFO
        self.pending: deque[tuple[int, int, int]] = deque()  # offered from, address, bytes
        self.accepted: list[int] = []  # cycle in which each request entered the channel's queue
        self.waiting: tuple[int, int, int] | None = None
        self.bursts: deque[list[int]] = deque()  # bytes of each beat, of the request at work
        self.queue_free = self.free = 0  # the place of the one that waits, the work
        self.begun = 0  # the request at work is there
        self.issued = 0  # words asked for so far
        self.taken_at = -SETTLE

    def submit(self, at: int, requests: list[tuple[int, int]]) -> None:
        """Requests (address, bytes), offered one after the other from cycle ``at`` on."""
        for address, size in requests:
            self.pending.append((at, address, size))

    def settle(self) -> None:
        """Move requests on as far as the past is known."""
        while True:
            if self.waiting is None and self.pending:
                at, address, size = self.pending.popleft()
                before = self.accepted[-1] + 1 if self.accepted else 0
                at = max(at, self.queue_free, before)
                self.accepted.append(at)
                self.waiting = (at, address, size)
            elif self.waiting is not None and not self.bursts:
                at, address, size = self.waiting
                begun = max(at + 1, self.free)
                self.begun, self.queue_free, self.waiting = begun + 1, begun + 1, None
                self.bursts = deque(self._cut(address, size))
                if not self.bursts:
                    self.free = begun + 1
            else:
                return

    def _cut(self, address: int, size: int) -> list[list[int]]:
        """Bursts of whole words that end at a multiple of the longest burst."""
        word, found = self.word, []
        end = address + size
        while address < end:
            stop = min((address // word // self.most + 1) * self.most * word, end)
            beats = []
            while address < stop:
                upto = min((address // word + 1) * word, stop)
                beats.append(upto - address)
                address = upto
            found.append(beats)
        return found

    @property
    def quiet(self) -> bool:
        """No request is at work or waits."""
        return not (self.bursts or self.waiting or self.pending)

    def want(self) -> int | None:
        """Cycle from which on the next burst is proposed; None: nothing, or not known yet."""
        if not self.bursts:
            return None
        at = max(self.begun + 1, self.taken_at + SETTLE)
        over = self.issued + len(self.bursts[0]) - self.depth
        if over > 0:
            if len(self.gear.pops) < over:
                return None
            at = max(at, self.gear.pops[over - 1] + SETTLE)
        return at

    def take(self, at: int) -> list[int]:
        """The burst was chosen in cycle ``at``; the bytes of its beats."""
        beats = self.bursts.popleft()
        self.issued += len(beats)
        self.taken_at = at
        if not self.bursts:
            self.free = at + 1
        return beats


class Store:
    """A map on its way to storage: dma_write, its FIFO, and bursts of whole words."""

    def __init__(self, word: int, address: int, size: int, words: list[int]) -> None:
        """``size`` bytes; ``words``: cycle in which each word is whole, if there is room, as far as
        they are known."""
        self.words, self.most = words, burst_words(STORE_FIFO)
        self.begins: set[int] = set()  # words before which the reader had to wait for the array
        self.pushed: list[int] = []
        self.pops: list[int] = []  # words that the bus has taken
        self.bursts: deque[tuple[int, int]] = deque()  # (beats, last word)
        first, (whole, tail) = address // word, divmod(size, word)
        n = 0
        while n < whole:
            stop = min(((first + n) // self.most + 1) * self.most - first, whole)
            self.bursts.append((stop - n, stop - 1))
            n = stop
        for bit in range(word.bit_length() - 2, -1, -1):
            if tail & 1 << bit:  # a beat for each power of two
                self.bursts.append((1, whole))
        self.taken_at = -SETTLE
        self.end = 0  # last beat, when all are issued

    def want(self) -> int | None:
        """As Channel.want."""
        if not self.bursts:
            return None
        last = self.bursts[0][1]
        while len(self.pushed) <= last:
            n = len(self.pushed)
            if n == len(self.words):  # not known yet
                return None
            at = self.words[n]
            if n:  # a reader that had to wait goes on as it would have
                pace = 1 if n in self.begins else at - self.words[n - 1]
                at = max(at, self.pushed[-1] + max(1, pace))
            if n >= STORE_FIFO:
                at = max(at, self.pops[n - STORE_FIFO] + 1)
            self.pushed.append(at)
        return max(self.taken_at, self.pushed[last]) + SETTLE

    def issued(self, first: int) -> None:
        """The first beat of the burst that was taken is issued in a cycle."""
        beats, last = self.bursts.popleft()
        if last >= len(self.pops):  # of a tail the first beat counts
            self.pops += [first + 1 + n for n in range(beats)]
        self.end = first + beats - 1


class Bus:
    """Arbiter and master: one beat a cycle, a queue of two bursts."""

    def __init__(self, channels: list[Channel]) -> None:
        """``channels`` by rank, the first one goes first."""
        self.channels = channels
        self.store: Store | None = None
        self.turn = False  # of a store, when both want the bus
        self.next = 0  # cycle of the next choice
        self.last = [-1, -1]  # last beats of the two bursts before, as they are issued
        self.beats = 0

    def step(self) -> bool:
        """Choose one burst and bring its words; False when nobody has one."""
        wants = [
            (want, rank) for rank, c in enumerate(self.channels) if (want := c.want()) is not None
        ]
        store = self.store
        stores = store.want() if store is not None else None
        if not wants and stores is None:
            return False
        now = min(want for want, _ in wants) if wants else 1 << 62
        now = max(self.next, now if stores is None else min(now, stores))
        ranks = [rank for want, rank in wants if want <= now]
        writes = stores is not None and stores <= now and (self.turn or not ranks)
        self.turn = not writes
        channel, beats = None, []
        if not writes:
            channel = self.channels[min(ranks)]
            beats = channel.take(now)
        count = len(beats)
        if writes and store is not None:
            store.taken_at = now
            count = store.bursts[0][0]
        given = max(now + GIVEN, self.last[0] + 1)
        first = max(given + ISSUED, self.last[1] + 1)
        if first > self.last[1] + 1:  # the bus was given back
            first += GRANT
        if channel is not None:
            for n, size in enumerate(beats):
                channel.gear.push(first + BEAT + n + channel.late, size)
            channel.gear.pump()
        elif store is not None:
            store.issued(first)
        before = self.last[1]
        self.last = [before, first + count - 1]
        # a burst of one beat leaves at once, for others a place must be free
        self.next = given if count == 1 else max(given + 1, before + 1)
        self.beats += count
        return True
