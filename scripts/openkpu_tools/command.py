# SPDX-License-Identifier: Apache-2.0
"""Common parts of all commands: exit status, signals, one line for a bad request.

Exit status: 0 good, 1 something did not match or failed, 2 the request could not be met, 130 ended
by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP, 141 when the reader of the output went away.
"""

import argparse
import contextlib
import errno
import itertools
import json
import math
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import BinaryIO, NoReturn, TextIO

from openkpu import configs, words
from openkpu.checkout import IN_CHECKOUT
from openkpu.kmodel_options import given_name
from openkpu.terminal import any_text, one_line, printable
from openkpu.words import option
from openkpu_tb import seeds

MISMATCH, BAD_REQUEST = 1, 2
OWN = ("openkpu", "openkpu_tb", "openkpu_tools")
GRACE = 20  # seconds for a process to clean up
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
BY_MAKE = "OPENKPU_BY_MAKE"  # environment: make called the command, which is removed at once
Main = Callable[[list[str] | None], int]


def first_line(document: str | None) -> str:
    """The first line of a module's docstring."""
    return (document or "").partition("\n")[0]


class UsageError(ValueError):
    """One line about a request that cannot be met."""


class Stopped(KeyboardInterrupt):
    """A signal asked the command to end; whoever cleans up on Ctrl-C cleans up for it too."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def any_of(words: Iterable[object]) -> str:
    """The words as a list in a sentence."""
    *others, last = map(str, words)
    return f"{', '.join(others)} or {last}" if others else last


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    """Raise Stopped once; the clean-up that follows is not interrupted again."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise Stopped(number)


def run_command(main: Main, argv: list[str] | None = None) -> int:
    """The exit status of ``main(argv)``, whatever ends it.

    An error of the project's readers, or of a missing tool, is one line (of_request). While the
    command runs, SIGINT, SIGTERM and SIGHUP raise Stopped in the main thread, so that simulators
    are ended and temporary folders removed on exit.
    """
    words.by_make = bool(os.environ.pop(BY_MAKE, ""))
    any_text()
    if closed():
        return complain("the standard output is closed, expected it open (> /dev/null drops it)")
    before = {number: signal.signal(number, _stop) for number in SIGNALS}
    try:
        status = main(argv)
        sys.stdout.flush()
        return status
    except Stopped as stopped:
        _say(f"\n{'interrupted' if stopped.number == signal.SIGINT else 'terminated'}")
        return 128 + stopped.number
    except BrokenPipeError:
        _drop_output()
        return 128 + signal.SIGPIPE
    except (ValueError, RuntimeError) as error:
        if not of_request(error):
            raise
        return complain(error)
    except AssertionError as error:
        if type(error).__module__ != "openkpu_tb.simrun":
            raise
        _say(f"error: {error}")  # for a failed simulation its whole output
        return MISMATCH
    except ModuleNotFoundError as error:  # a group of pyproject.toml that is not installed
        if (error.name or "openkpu").partition(".")[0] in OWN:
            raise
        how = "'make setup'" if IN_CHECKOUT else "pip install 'openkpu[dev]'"
        return complain(f"the Python module {error.name} is missing; {how} installs it")
    except OSError as error:
        # files that a command writes are named by ``writing``
        full = "standard output: " if error.errno == errno.ENOSPC else ""
        where = f"{error.filename}: " if error.filename else full
        status = complain(f"{where}{error.strerror or error}")
        try:
            sys.stdout.flush()
        except OSError:  # a full disk, for example
            _drop_output()
        return status
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def of_request(error: Exception) -> bool:
    """Is the request the cause? True for all ValueErrors that the project defines, and for errors
    about a missing tool or a missing place for builds."""
    module = type(error).__module__
    own = module.partition(".")[0] in OWN and isinstance(error, ValueError)
    return own or module in ("openkpu_tb.simrun", "openkpu_tb.places")


def closed() -> bool:
    """Was the standard output closed when Python started?

    Each of the three streams that was closed becomes /dev/null; otherwise the next file would get
    its number.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    return sys.stdout is None


def _drop_output(stream: TextIO | None = None) -> None:
    """Discard the buffer, which has no reader; Python would report an error at exit otherwise."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), (stream or sys.stdout).fileno())


def complain(error: object) -> int:
    """One line on stderr; the status of a bad request."""
    _say(f"error: {printable(one_line(error))}")
    return BAD_REQUEST


def _say(text: str) -> None:
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:  # the message is lost, the status is not
        _drop_output(sys.stderr)


@contextlib.contextmanager
def ending(process: subprocess.Popen) -> Iterator[None]:
    """End ``process`` when the block ends early; it may clean up first."""
    try:
        yield
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


# ---- argument types: each names the value given and the values accepted
def integer_in(least: int, most: int, what: str = "a whole number") -> Callable[[str], int]:
    """argparse type: an integer from ``least`` to ``most``."""

    def convert(text: str) -> int:
        if not (seeds.is_whole(text) and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(
                f"{seeds.shown(text)}: expected {what} from {least} to {most}"
            )
        return int(text)

    return convert


def between(least: float, most: float, what: str = "a number") -> Callable[[str], float]:
    """argparse type: a number from ``least`` to ``most``."""

    def convert(text: str) -> float:
        try:
            value = float(text if text.isascii() and "_" not in text else "")
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f"{seeds.shown(text)}: expected {what} from {least:g} to {most:g}"
            )
        return value

    return convert


real = between(-1e6, 1e6)  # a term


def factor(text: str) -> float:
    """argparse type: a number other than 0, of at least 1e-6 in magnitude."""
    if abs(value := real(text)) < 1e-6:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number that is not so close to 0")
    return value


def reals(text: str) -> tuple[float, ...]:
    """argparse type: numbers with commas between them."""
    return tuple(real(word) for word in text.split(","))


def factors(text: str) -> float | tuple[float, ...]:
    """argparse type: a factor, or several with commas between them."""
    found = tuple(factor(word) for word in text.split(","))
    return found[0] if len(found) == 1 else found


def named(text: str) -> Path:
    """argparse type: the name of a file, which the command looks at."""
    return Path(given_name(text))


def path(text: str) -> Path:
    """argparse type: the name of an output file, in an existing folder."""
    found = Path(given_name(text))
    if not found.resolve().parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text}: the folder does not exist")
    return found


def folder(text: str) -> Path:
    """argparse type: the name of an output folder, which may not exist yet."""
    found = Path(given_name(text))
    for each in (found, *found.parents):
        if os.path.lexists(each) and not each.is_dir():
            raise argparse.ArgumentTypeError(f"{text}: {each} is a file, expected a folder")
    return found


def there(text: str) -> str:
    """argparse type: an input file or folder."""
    try:
        mode = os.stat(given_name(text)).st_mode
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise argparse.ArgumentTypeError(f"{text}: {said}") from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise argparse.ArgumentTypeError(f"{text}: is a device, expected a file")
    return text


def file_there(text: str) -> str:
    """argparse type: an input file."""
    if Path(there(text)).is_dir():
        raise argparse.ArgumentTypeError(f"{text}: is a folder, expected a file")
    return text


def config(text: str) -> str:
    """argparse type: the name of a configuration."""
    try:
        configs.load_config(text)
    except configs.ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def bus(text: str) -> int:
    """argparse type: bits of the storage's bus."""
    if text not in map(str, configs.BUSES):
        raise argparse.ArgumentTypeError(f"{seeds.shown(text)}: expected {any_of(configs.BUSES)}")
    return int(text)


SEED = integer_in(0, seeds.LIMIT - 1)
JOBS = integer_in(1, 256)


def apart(args: argparse.Namespace, *pairs: tuple[str, str], why: str = "") -> None:
    """UsageError for the first pair of options that are both given."""
    for pair in pairs:
        if all(getattr(args, name) not in (None, False, "", []) for name in pair):
            one, other = map(option, pair)
            raise UsageError(f"{one} and {other} together{f': {why}' if why else ', expected one'}")


def needs(args: argparse.Namespace, name: str, other: str, what: str) -> None:
    """UsageError for an option that is given without the one that it depends on."""
    if getattr(args, name) not in (None, False, []) and not getattr(args, other):
        raise UsageError(f"{option(name)} without {option(other)}, expected {what} to use it with")


def in_checkout(args: argparse.Namespace, *names: str) -> None:
    """UsageError in an installed package for an option that only works in a checkout."""
    for name in names:
        if getattr(args, name) and not IN_CHECKOUT:
            raise UsageError(f"{option(name)} works on a checkout, which this is not")


# ---- files that a command will write
def check_output(path: Path, suffix: str | None = None) -> None:
    """UsageError unless a file can be written at ``path``; leaves no file there."""
    if suffix and path.suffix.lower() != suffix:
        raise UsageError(f"{path}: expected a name that ends in {suffix}")
    if path.is_dir():
        raise UsageError(f"{path}: is a folder, expected a file")
    if path.is_fifo() or path.is_socket() or path.is_block_device():
        raise UsageError(f"{path}: expected a file, or a name that is free")
    if path.is_file() and _printed(path):
        raise UsageError(f"{path}: what is printed goes there, expected another file")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise UsageError(f"{path}: the folder does not exist")
    try:
        if path.exists():
            with open(path, "ab"):
                pass
        else:
            with tempfile.TemporaryFile(dir=folder):
                pass
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def _printed(path: Path) -> bool:
    """Is this the file that receives the standard output or the error output?"""
    return any(os.path.samestat(path.stat(), os.fstat(number)) for number in (1, 2))


def check_outputs(paths: Sequence[Path | None], read: Sequence[str | Path | None] = ()) -> None:
    """``check_output`` for each path; UsageError when two are the same file, or one is a file of
    ``read``, under any name."""
    given = [path for path in paths if path]
    for path in given:
        check_output(path)
        if any(other and _same(path, Path(other)) for other in read):
            raise UsageError(f"{path}: would be read and written")
    for one, other in itertools.combinations(given, 2):
        if _same(one, other):
            raise UsageError(f"{one}: named for two outputs")


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):  # one that is not there yet
        return one.resolve() == other.resolve()


@contextlib.contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """``path``, open for writing; UsageError that names it, for a full disk, too.

    The name is used unchanged, where a library that gets a name might add a suffix.
    """
    try:
        with open(path, "wb") as stream:
            yield stream
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from None


def write_json(path: Path, content: object) -> None:
    """Write a report; UsageError as ``writing``."""
    with writing(path) as stream:
        stream.write((json.dumps(content, indent=1) + "\n").encode())
