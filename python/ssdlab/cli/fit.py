"""``ssdlab fit``: measurements of a drive in, a rig that predicts it out."""

from __future__ import annotations

from dataclasses import dataclass

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View, answering
from ssdlab.cli.options import Seed, argument, document, flag, keys, option
from ssdlab.output import Output

if light.BODIES:
    from ssdlab.api.twins import fit


@dataclass(frozen=True)
class FitView(View):
    """How the answer is wanted; ``-o`` is the twin."""

    report: Output | None = document("--report", "--page", help="Write an HTML report there.")
    out: Output | None = document(
        "--out", "-o", metavar="FILE.toml", help="Write the twin there: a rig."
    )


@answering
def command(
    sources: list[str] | None = argument(
        "TABLE.csv|SHEET.toml|FIO.json|RUN|DIR...",
        "What was measured: tables (rw, bs, iodepth, numjobs, rwmixread, state, namespace; "
        "iops, lat_mean_us, clat_mean_us, clat_p50_us, clat_p99_us, waf), numbers of a data "
        "sheet (a small TOML, see docs/fit.md), JSON of fio or of `run --json`, runs, or "
        "folders of these.",
        default=None,
    ),
    capacity: str | None = option("SIZE", "Of the drive, as 960GB or 1.92TB."),
    start: str | None = option(
        "DRIVE",
        "Profile or rig file to start from, instead of the nearest of those that come with ssdlab.",
        autocompletion=light.complete("drives"),
    ),
    fix: list[str] | None = option("KEY=VALUE", "A key of the rig that is known and not fitted."),
    check: str | None = option(
        "TWIN.toml", "Fit nothing: show the measurements beside what this twin predicts."
    ),
    quick: bool = flag("By closed forms and few simulations, in seconds."),
    selftest: int | None = option(
        "N",
        "Fit nothing: make twins of N random simulated drives, measured only through "
        "characterise, and say how near they come under loads not measured.",
        min=1,
    ),
    seed: Seed = 1,
    *,
    view: FitView,
    ask: Ask,
) -> None:
    """Fit a rig to measurements of a drive: its twin, which any command takes as a drive."""
    report = ask(fit, out=view.out, fix=keys(fix, "--fix", "nand.channels=8"))
    view.show(report.answer, seconds=ask.seconds)
