"""``ssdlab refresh``: what random writes scattered over the flash is written anew."""

from __future__ import annotations

from pathlib import Path

from ssdlab.care.livewrite import SLICE_S
from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import Tbw, argument, flag, naming, option
from ssdlab.errors import InputError

if light.BODIES:
    from ssdlab import units
    from ssdlab.answers import refresh as refresh_answer
    from ssdlab.api.target import rated
    from ssdlab.care.blockio import place_of
    from ssdlab.care.refresh import plan, refresh_device, refresh_file, why_refused
    from ssdlab.cli.output import notice, progress
    from ssdlab.engine.ratings import rating_of
    from ssdlab.rating import share_text


@answering
def command(
    target: Path = argument("TARGET", "A plain file, a drive or a partition."),
    rewrite: str | None = naming(
        "--rewrite", "the drive with this serial to be rewritten with its own data"
    ),
    freeze: bool = flag("Allow a mounted file system to be frozen for moments."),
    slice_s: float = option(
        "SECONDS", "How long it is frozen at a time, and then rests.", "--slice", default=SLICE_S
    ),
    unshare: bool = flag("Allow a file to lose what it shares with reflinks and snapshots."),
    tbw: Tbw = None,
    dry_run: bool = flag("Only say what would be written.", "--dry-run", "-n"),
    *,
    view: View,
) -> None:
    """Rewrite a file or drive in place with its own data, so that it reads fast again."""
    place = place_of(target)
    of_drives = {
        "--rewrite": rewrite is not None,
        "--freeze": freeze,
        "--slice": slice_s != SLICE_S,
    }
    other = {"--unshare": unshare} if place.is_device else of_drives
    if idle := [name for name, given in other.items() if given]:
        kind, only = ("drive", "plain files") if place.is_device else ("plain file", "drives")
        verb = "is" if len(idle) == 1 else "are"
        raise InputError(f"{target}: is a {kind}; {units.listed(idle)} {verb} for {only}")
    rating = rating_of(target, rated(tbw))
    if dry_run:
        planned = plan(target)
        refused = why_refused(target, freeze=freeze, unshare=unshare)
        share = share_text(0, planned.data_bytes, rating)
        view.show(refresh_answer.planned(planned, share, refused))
        return
    with progress(f"refreshing {target}", quiet=view.quiet) as callback:
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
    view.show(refresh_answer.answer(done))
