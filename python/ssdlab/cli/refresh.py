"""``ssdlab refresh``: what random writes scattered over the flash is written anew."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ssdlab.care.livewrite import SLICE_S
from ssdlab.cli import light
from ssdlab.cli.options import Json, QuietWords, Tbw, naming, rated
from ssdlab.output import Output
from ssdlab.units import size_text

if light.BODIES:
    from ssdlab import units
    from ssdlab.care.blockio import place_of
    from ssdlab.care.measure import Speed
    from ssdlab.care.refresh import (
        Plan,
        Refreshed,
        plan,
        refresh_device,
        refresh_file,
        why_refused,
    )
    from ssdlab.cli.console import progress, table
    from ssdlab.cli.output import notice, results, say, say_refusal, write_json
    from ssdlab.engine.ratings import rating_of
    from ssdlab.rating import share_text


TOLD = (
    "written_bytes zero_bytes cached_bytes unreadable_bytes seconds slices frozen_longest_s gain "
    "verdict remarks"
).split()
"""What the document says of a refresh by the names of its fields."""


def command(
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="A plain file, a drive or a partition.")
    ],
    rewrite: Annotated[
        str | None,
        naming("--rewrite", "the drive with this serial to be rewritten with its own data"),
    ] = None,
    freeze: Annotated[
        bool,
        typer.Option("--freeze", help="Allow a mounted file system to be frozen for moments."),
    ] = False,
    slice_s: Annotated[
        float,
        typer.Option(
            "--slice", metavar="SECONDS", help="How long it is frozen at a time, and then rests."
        ),
    ] = SLICE_S,
    unshare: Annotated[
        bool,
        typer.Option(
            "--unshare", help="Allow a file to lose what it shares with reflinks and snapshots."
        ),
    ] = False,
    tbw: Tbw = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Only say what would be written.")
    ] = False,
    json_: Json = None,
    quiet: QuietWords = False,
) -> None:
    """Rewrite a file or drive in place with its own data, so that it reads fast again."""
    place = place_of(target)
    rating = rating_of(target, rated(tbw))
    if dry_run:
        planned = plan(target)
        refused = why_refused(target, freeze=freeze, unshare=unshare)
        write_json(json_, {**_planned(planned), "refused": refused})
        console = results(json_)
        share = share_text(0, planned.data_bytes, rating)
        say(console, f"{target}: {planned.sentence()}, {share}; nothing was written yet")
        for remark in planned.remarks:
            say(console, remark)
        say_refusal(console, refused)
        return
    with progress(f"refreshing {target}", quiet=quiet) as callback:
        if place.is_device:
            done = refresh_device(
                target,
                rewrite=rewrite,
                freeze=freeze,
                slice_s=slice_s,
                rating=rating,
                progress=callback,
                notice=notice,
            )
        else:
            done = refresh_file(
                target, unshare=unshare, rating=rating, progress=callback, notice=notice
            )
    write_json(json_, _document(done))
    if not quiet:
        _print(done, json_)


def _print(done: Refreshed, json_: Output | None) -> None:
    console = results(json_)
    took = units.duration(done.seconds)
    head = f"refreshed {done.plan.place.path}: {size_text(done.written_bytes)} rewritten in {took}"
    if done.slices:
        longest = units.duration(done.frozen_longest_s)
        head += f"; frozen {done.slices} times, for at most {longest}"
    say(console, head)
    measured = {"before": done.before, "after": done.after}
    rows = [_row(when, speed) for when, speed in measured.items() if speed is not None]
    console.print(table(("sequential reads of 1 MiB", "best", "each"), rows, (1, 2)))
    say(console, _verdict(done))
    if done.unreadable_bytes:
        say(console, f"{size_text(done.unreadable_bytes)} could not be read and were left alone")
    for remark in done.remarks:
        say(console, remark)


def _row(name: str, speed: Speed) -> list[str]:
    each = ", ".join(f"{rate / 1e6:,.0f}" for rate in speed.bytes_per_s)
    return [name, f"{speed.best / 1e6:,.0f} MB/s", each]


def _verdict(done: Refreshed) -> str:
    gain = done.gain or 1.0
    fast = f"reading is {gain:.2f} times as fast as before"
    chance = max(done.before.spread, done.after.spread if done.after else 0.0)
    return {
        "unknown": "there was nothing to rewrite",
        "not-decided": f"not decided: {fast}, but these reads are those of a loop device, too few, "
        "or differ too much among themselves; repeat it on the drive itself with nothing else at "
        "work",
        "faster": f"it helped: {fast}",
        "slower": f"it did not help: {fast}; other work on the drive meanwhile would look so too",
        "same": f"it made no difference: {gain - 1:+.1%}, while the reads of one state differ by "
        f"{chance:.1%}",
    }[done.verdict]


def _planned(planned: Plan) -> dict[str, Any]:
    return {
        "target": str(planned.place.path),
        "kind": planned.place.kind,
        "disk": planned.place.disk,
        "drive_share": planned.drive_share,
        "layout": planned.layout and asdict(planned.layout),
        **{key: getattr(planned, key) for key in ("data_bytes", "hole_bytes", "remarks")},
    }


def _document(done: Refreshed) -> dict[str, Any]:
    own = (
        "written_bytes zero_bytes cached_bytes unreadable_bytes seconds slices frozen_longest_s "
        "gain verdict remarks"
    )
    return {
        **_planned(done.plan),
        **{name: getattr(done, name) for name in own.split()},
        "before_bytes_per_s": list(done.before.bytes_per_s),
        "after_bytes_per_s": list(done.after.bytes_per_s) if done.after else None,
    }
