"""``ssdlab fit``: measurements of a drive in, a rig that predicts it out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import Seed, document, keys
from ssdlab.errors import InputError
from ssdlab.output import Output
from ssdlab.units import parse_bytes

if TYPE_CHECKING:
    from ssdlab.fits.observations import Observation

if light.BODIES:
    from ssdlab.answers import blind as blind_answer
    from ssdlab.answers import fit as fit_answer
    from ssdlab.cli.console import progress
    from ssdlab.fits.fit import Order, fit
    from ssdlab.fits.predict import compare, predict
    from ssdlab.fits.sources import gather
    from ssdlab.fits.twin import Twin, twin_of
    from ssdlab.studies import blind


@dataclass(frozen=True)
class Outputs(View):
    """How the answer is wanted; ``-o`` is the twin."""

    report: Annotated[
        Output | None, document("--report", "--page", help="Write an HTML report there.")
    ] = None


@answering
def command(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TABLE.csv|RUN|DIR...",
            help="What was measured: tables (rw, bs, iodepth, numjobs, rwmixread, state, "
            "namespace; iops, lat_mean_us, clat_mean_us, clat_p50_us, clat_p99_us, waf), runs, or "
            "folders of either.",
        ),
    ] = None,
    out: Annotated[
        Output | None,
        document("--out", "-o", metavar="FILE.toml", help="Write the twin there: a rig."),
    ] = None,
    capacity: Annotated[
        str | None,
        typer.Option("--capacity", metavar="SIZE", help="Of the drive, as 960GB or 1.92TB."),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--start",
            metavar="DRIVE",
            help="Profile or rig file to start from, instead of the nearest of those that come "
            "with ssdlab.",
            autocompletion=light.complete("drives"),
        ),
    ] = None,
    fix: Annotated[
        list[str] | None,
        typer.Option(
            "--fix", metavar="KEY=VALUE", help="A key of the rig that is known and not fitted."
        ),
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            metavar="TWIN.toml",
            help="Fit nothing: show the measurements beside what this twin predicts.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="By closed forms alone: seconds instead of minutes.")
    ] = False,
    selftest: Annotated[
        int | None,
        typer.Option(
            "--selftest",
            min=1,
            metavar="N",
            help="Fit nothing: make twins of N random simulated drives, measured only through "
            "characterise, and say how near they come under loads not measured.",
        ),
    ] = None,
    seed: Seed = 1,
    *,
    view: Outputs,
) -> None:
    """Fit a rig to measurements of a drive: its twin, which any command takes as a drive."""
    started = time.monotonic()
    if selftest is not None:
        with progress("blind twins", quiet=view.quiet) as callback:
            done = blind.selftest(selftest, seed=seed, quick=quick, progress=callback)
        took = time.monotonic() - started
        view.show(blind_answer.answer(done, quick=quick), seconds=took, whole=True)
        return
    if not sources:
        raise InputError("what was measured? give tables (.csv), runs, or folders of either")
    gathered = gather(sources)
    observed = gathered.observed
    if check is not None:
        _check(check, observed, seed, view)
        return
    if capacity is None and start is None and gathered.capacity is None:
        raise InputError(
            "how large is the drive? give --capacity 960GB, or --start with a drive of its size"
        )
    size = gathered.capacity if capacity is None else parse_bytes("--capacity", capacity)
    if capacity is not None and size is not None and size < 10**9:
        raise InputError(f'--capacity "{capacity}": expected 1GB or more, such as 960GB')
    known = keys(fix, "--fix", "nand.channels=8")
    order = Order(observed, size, start, known, seed, quick, gathered.concluded)
    with progress("fit", quiet=view.quiet) as callback:
        found = fit(order, callback)
    name = "twin" if out is None else Path(str(out)).stem
    twin = twin_of(
        found.found, found.observed, name=name, start=found.start, sources=sources, seed=seed
    )
    if out is not None:
        out.write(twin.text)
    view.show(fit_answer.answer(found, twin), seconds=time.monotonic() - started, whole=True)


def _check(place: str, observed: Sequence[Observation], seed: int, view: View) -> None:
    started = time.monotonic()
    twin = Twin.load(place)
    known = [one for one in observed if one.measured]
    with progress("predicting", quiet=view.quiet) as callback:
        found = predict(twin, [one.load for one in known], seed=seed, progress=callback)
    answer = fit_answer.check(twin, compare(known, found))
    view.show(answer, seconds=time.monotonic() - started, whole=True)
