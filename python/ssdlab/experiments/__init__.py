"""The published experiments: each file is one, with its numbers and the article they come from."""

from __future__ import annotations

from importlib import import_module

from ssdlab.errors import InputError, unknown_name
from ssdlab.experiments import measured
from ssdlab.experiments.base import Experiment, described

EXPERIMENTS: tuple[Experiment, ...] = tuple(
    import_module(f"{__name__}.{name.replace('-', '_')}").EXPERIMENT for name in described()
)
"""In the order of lists."""


def find(names: list[str]) -> list[Experiment]:
    """The experiments of these names, among them those of drives that ``measured`` is about, each
    once, in the order asked for; all without names."""
    known = {experiment.name: experiment for experiment in EXPERIMENTS}
    drives = [name for name in dict.fromkeys(names) if name in measured.DRIVES]
    if drives:
        if measured.EXPERIMENT.name not in names:
            raise InputError(
                f"{drives[0]}: is a drive, expected an experiment; write ssdlab reproduce "
                f"{measured.EXPERIMENT.name} {drives[0]}"
            )
        known[measured.EXPERIMENT.name] = measured.of(drives)
    asked = [name for name in dict.fromkeys(names) if name not in drives]
    for name in asked:
        if name not in known:
            about = (*known, *measured.DRIVES) if measured.EXPERIMENT.name in names else known
            raise unknown_name("published experiment", name, about)
    return [known[name] for name in asked] or list(EXPERIMENTS)
