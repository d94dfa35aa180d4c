"""``ssdlab reproduce``: published experiments on simulated drives, the two side by side."""

from __future__ import annotations

from pathlib import Path

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View
from ssdlab.cli.made import of
from ssdlab.cli.options import option
from ssdlab.output import make_folder, write_to

if light.BODIES:
    from ssdlab import units
    from ssdlab.api.reproduce import reproduce
    from ssdlab.cli.output import stdout
    from ssdlab.experiments import find
    from ssdlab.experiments.base import Experiment


@of("reproduce")
def command(
    names: list[str] | None,
    *,
    save_jobs: Path | None = option(
        "DIR", "Only write the job files, as they run on a real drive."
    ),
    view: View,
    ask: Ask,
) -> None:
    """Writes the jobs instead where those are wanted."""
    if save_jobs is not None:
        view.require_no_documents("--save-jobs")
        _save_jobs(find(names or []), save_jobs)
        return
    report = ask(reproduce)
    view.show(report.answer, seconds=ask.seconds)


def _save_jobs(experiments: list[Experiment], folder: Path) -> None:
    make_folder(folder)
    files = {n: text for experiment in experiments for n, text in experiment.job_files().items()}
    for name, text in files.items():
        write_to(folder / name, text)
    many = units.counted(len(files), "job file")
    stdout().print(f"wrote {many} to {folder}", markup=False, soft_wrap=True)
