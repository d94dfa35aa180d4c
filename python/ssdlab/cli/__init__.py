"""The command line: one command per file, one place that turns errors into sentences.

What is heavy is imported inside functions, so that Ctrl-C is answered while it loads too.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import sys
from collections.abc import Callable
from errno import ELOOP, ENAMETOOLONG
from pathlib import Path
from types import FrameType

from ssdlab.cli import light
from ssdlab.cli.streams import keep_open
from ssdlab.errors import ExperimentError, InputError, Interrupted, SsdlabError
from ssdlab.leftovers import any_left
from ssdlab.memory import why_short


def main() -> None:
    """The entry point: runs the command and leaves with its exit status."""
    keep_open()
    # What loads stays: to look through it for what can go takes a tenth of a short command's time.
    gc.disable()
    _answer(_leave)
    arguments = sys.argv[1:]
    light.BODIES = not light.asks_for_words(arguments, os.environ)
    from ssdlab.cli.app import module_of

    if light.BODIES and arguments[:1] != ["list"] and (short := why_short()):
        _say(short)
    module_of(arguments)  # loads what is heavy
    gc.freeze()
    gc.enable()
    try:
        _answer(_interrupt)
        # Names of files and models need not be text; what cannot be written is escaped, as on
        # stderr.
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        status = run_command(arguments)
    except KeyboardInterrupt:  # just before the command begins, or while its end is told
        status = _fail(_stopped())
    # Python takes a Ctrl-C that passed through exec() of a text (dataclasses are made that way)
    # for unhandled, and ends by the signal instead of the status; another exec clears that.
    exec("")  # noqa: S102
    sys.exit(status)


def run_command(arguments: list[str]) -> int:
    """Runs one command line; its exit status. Errors become one sentence on stderr."""
    Interrupted.asked = False
    try:
        from ssdlab.cli.app import root

        _restore_left(arguments)
        status = root().main(arguments, prog_name="ssdlab", standalone_mode=False)
        sys.stdout.flush()
        # Typer answers some of the Ctrl-Cs itself, without a word.
        return _fail(_stopped()) if status == Interrupted.exit_status else int(status or 0)
    except SsdlabError as error:
        return _fail(error)
    except KeyboardInterrupt:
        return _fail(_stopped())
    except OSError as error:
        _silence_stdout()
        return _fail(_of_system(error))
    except UnicodeEncodeError as error:
        if error.reason != "surrogates not allowed":
            raise
        return _fail(InputError(f'"{error.object}": is not text in UTF-8'))
    except MemoryError:
        return _fail(ExperimentError("there is not enough memory for this"))
    except Exception as error:
        if type(error).__name__ == "Abort":
            return _fail(_stopped())
        # A wrong option or argument: typer's own exceptions carry their sentence and status.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            print(message(), file=sys.stderr)
            return InputError.exit_status
        said = message() or "give a command; ssdlab --help lists them"
        if type(error).__name__ == "MissingParameter":
            about = getattr(getattr(error, "param", None), "help", None) or ""
            said = ": ".join(filter(None, [said.rstrip("."), " ".join(about.split()).rstrip(".")]))
        return _fail(InputError(said))


def _stopped() -> Interrupted:
    return Interrupted(Interrupted.sentence())


def _named(sign: int) -> str:
    return "Ctrl-C" if sign == signal.SIGINT else signal.Signals(sign).name


def _restore_left(arguments: list[str]) -> None:
    """Restores what killed runs have left set on the drives that a command line names."""
    asked = {"-h", "--help"} & set(arguments)
    if light.BODIES and not asked and arguments[:1] != ["setup"] and any_left():
        from ssdlab.cli.setup import restore_named

        restore_named(arguments)


def _fail(error: SsdlabError) -> int:
    """Says the sentence, on one line whatever names are in it; the exit status."""
    _say("".join(c if c.isprintable() else repr(c)[1:-1] for c in error.message))
    return error.exit_status


def _say(sentence: str) -> None:
    with contextlib.suppress(OSError):
        print(f"ssdlab: {sentence}", file=sys.stderr, flush=True)


def _of_system(error: OSError) -> SsdlabError:
    """The sentence for what the operating system refuses and nobody expected there."""
    reason = error.strerror or str(error)
    if error.filename is not None:
        given = isinstance(error, PermissionError) or error.errno in (ENAMETOOLONG, ELOOP)
        kind = InputError if given else ExperimentError
        return kind(f"{os.fsdecode(error.filename)}: {reason}")
    try:
        Path.cwd()
    except OSError:
        return InputError("the current folder no longer exists; change to another one")
    return ExperimentError(f"the system refuses: {reason}")


def _silence_stdout() -> None:
    """What is still unsaid must not fail again when the program ends."""
    with contextlib.suppress(OSError):
        # By number: whoever runs commands inside a process may have put a file of his there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _answer(handler: Callable[[int, FrameType | None], None]) -> None:
    """Has Ctrl-C, a polite kill and a closing terminal answered, unless they are to be ignored."""
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(sign) is not signal.SIG_IGN:
            signal.signal(sign, handler)


def _leave(sign: int, _frame: FrameType | None) -> None:
    # While modules load an exception could get lost in one of their callbacks, and nothing has
    # begun that would need clearing away.
    Interrupted.by = _named(sign)
    os._exit(_fail(_stopped()))


def _interrupt(sign: int, _frame: FrameType | None) -> None:
    # Ends a run in order: fio is stopped, files are cleared away.
    Interrupted.by, Interrupted.asked = _named(sign), True
    raise KeyboardInterrupt
