"""``ssdlab reproduce``: published experiments on simulated drives, the two side by side."""

from __future__ import annotations

from pathlib import Path

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View, answering
from ssdlab.cli.options import ReuseOptions, argument, flag, option
from ssdlab.output import make_folder, write_to

if light.BODIES:
    from ssdlab import units
    from ssdlab.api.reproduce import reproduce
    from ssdlab.cli.output import stdout
    from ssdlab.experiments import find
    from ssdlab.experiments.base import Experiment


@answering
def command(
    names: list[str] | None = argument(
        "NAME",
        f"{', '.join(light.index()['experiments'])}; all without a name. After measured "
        f"also drives: {', '.join(light.index()['measured'])}. By itself, twin: fits to drives "
        "that others measured, held to what they were not fitted to.",
        default=None,
        autocompletion=light.complete("experiments", "measured"),
    ),
    quick: bool = flag("Very small drives: a few minutes in all, rough."),
    full: bool = flag("Drives and times at full size."),
    seed: int = option("N", "Seed of the runs.", default=1, min=0),
    save_jobs: Path | None = option(
        "DIR", "Only write the job files, as they run on a real drive."
    ),
    *,
    where: ReuseOptions,
    view: View,
    ask: Ask,
) -> None:
    """Repeat published experiments on simulated drives; print published beside simulated."""
    if save_jobs is not None:
        view.require_no_documents("--save-jobs")
        _save_jobs(find(names or []), save_jobs)
        return
    report = ask(reproduce, *(names or []))
    view.show(report.answer, seconds=ask.seconds)


def _save_jobs(experiments: list[Experiment], folder: Path) -> None:
    make_folder(folder)
    files = {n: text for experiment in experiments for n, text in experiment.job_files().items()}
    for name, text in files.items():
        write_to(folder / name, text)
    many = units.counted(len(files), "job file")
    stdout().print(f"wrote {many} to {folder}", markup=False, soft_wrap=True)
