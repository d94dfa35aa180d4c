"""``ssdlab purge``: a drive erases all that it holds."""

from __future__ import annotations

from pathlib import Path

from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import Tbw, argument, flag, naming, option
from ssdlab.errors import InputError
from ssdlab.units import size_text

if light.BODIES:
    from ssdlab import safety
    from ssdlab.answer import Answer
    from ssdlab.answers import purge as purge_answer
    from ssdlab.api.target import rated
    from ssdlab.care.blockio import place_of
    from ssdlab.care.methods import KINDS, Method, available, remark
    from ssdlab.care.purge import purge, purge_file, work_of
    from ssdlab.cli.output import notice, progress
    from ssdlab.engine.ratings import rating_of
    from ssdlab.safety import BlockDevice


@answering
def command(
    target: Path = argument("TARGET", "A block device, or a plain file."),
    destroy: str | None = naming("--destroy", "the drive with this serial to be purged"),
    method: str | None = option(
        "NAME",
        "The way to do it; the strongest that the drive has unless given. --dry-run names "
        "those it has.",
        autocompletion=light.complete("methods"),
    ),
    use_existing_file: bool = flag("Allow a plain file to lose what is in it."),
    tbw: Tbw = None,
    dry_run: bool = flag("Only say which ways the drive has.", "--dry-run", "-n"),
    *,
    view: View,
) -> None:
    """Purge a drive: it erases all it holds, so that it is as new. Overwriting is no purge."""
    given = rated(tbw)
    place = place_of(target)
    if not place.is_device:
        if method not in (None, "punch"):
            raise InputError(f"{target}: is a plain file, which can only be made a hole (punch)")
        if dry_run:
            refused = safety.why_file_refused(target.absolute(), allowed=use_existing_file)
            about = f"a file on {place.kind}"
            view.show(purge_answer.ways(target, [Method(KINDS["punch"])], about, refused))
            return
        with progress(f"purging {target}", quiet=view.quiet) as callback:
            done = purge_file(target, progress=callback, allowed=use_existing_file)
    else:
        device = safety.inspect(target)
        if dry_run:
            view.show(_ways(device, given))
            return
        rating = rating_of(target, given)
        with progress(f"purging {target}", quiet=view.quiet) as callback:
            done = purge(
                device,
                destroy=destroy,
                method=method,
                rating=rating,
                progress=callback,
                notice=notice,
            )
    view.show(purge_answer.answer(target, done))


def _ways(device: BlockDevice, given: float | None) -> Answer:
    about = ", ".join([size_text(device.capacity_bytes), *device.names[:1]])
    if said := remark(device):
        about += f"; {said}"
    would = safety.warning(device, work_of(device, rating_of(device.path, given)))
    refused = safety.why_refused(device)
    return purge_answer.ways(device.path, available(device), about, refused, would)
