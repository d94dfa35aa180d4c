"""``ssdlab.run`` and ``ssdlab.replay``: a job, or a recorded load, on a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ssdlab.api.target import On, target_of
from ssdlab.api.traces import reading
from ssdlab.api.watching import Watch, shown
from ssdlab.errors import InputError
from ssdlab.given import Size, keys
from ssdlab.jobfile import JobText, carried_path, read_job, replaying
from ssdlab.progress import Notice
from ssdlab.rating import Rating
from ssdlab.results import Result
from ssdlab.rig import SUPERBLOCKS_MIN, scale_doubt, set_over
from ssdlab.target import Settings, Target
from ssdlab.tracefile import FITS, Replay, existing, left_out
from ssdlab.units import parse_bytes

DEPTH_OPEN = 32
"""I/Os that fio keeps in flight at most where it follows the times of a trace."""


def run(
    job: str | Path,
    on: On,
    *,
    set: Mapping[str, object] | None = None,
    scale: int = 1,
    seed: int = 1,
    prepare: str | None = None,
    destroy: str | None = None,
    setup: str = "none",
    use_existing_file: bool = False,
    redact: bool = False,
    tbw: Size | None = None,
    all_counters: bool = False,
    progress: Watch = None,
    notice: Notice | None = None,
) -> Result:
    """Runs fio jobs on a simulated or real drive.

    In Python one job, whose result is returned; nothing is kept.

    Args:
        job: A fio job file. In Python its path, or the text of one (a string with a line break).
        on: A profile's name, a rig file (.toml), a plain file, or a block device. In Python also a
            :class:`ssdlab.Rig` or a :class:`ssdlab.Target`.
        set: Change a key of the simulated rig, such as ftl.over_provisioning=0.2; may be given
            again. In Python a dict, such as ``{"ftl.over_provisioning": 0.28}``.
        scale: Scale the capacity of simulated drives down by N; the job stays as it is.
        seed: Seed of a simulated run.
        prepare: State of a simulated drive at the start: fob (fresh, the default), or steps
            joined by commas: sequential, random:N, steady, trim, purge, idle:TIME, compressible:N
            (the data of the steps after it shrinks by N percent).
        destroy: Serial number of the block device whose data may be lost.
        setup: What is set on a real drive and its system for the run and restored after it:
            ``"pts"``, or single settings such as ``"scheduler=none,governor=performance"``.
        use_existing_file: Allow a plain file that exists to be written.
        redact: Leave serial numbers and paths out of the result.
        tbw: Rated endurance of a drive, such as ``"600TB"``, or a number of TB.
        all_counters: Keep all counters of the members of an array over time, not only those that
            are shown.
        progress: Who is told how far it is: a callback, called a few times a second, which stops
            the run by returning False; True for standard error; None for a notebook alone.
        notice: Called with a sentence for people, such as what will be lost.

    Returns:
        The result; ``result.save()`` keeps it as a run.

    Raises:
        InputError: the job, the target or a setting is wrong.
        RefusedError: the run could destroy data.
        BrokenOffError: a job failed after it had begun, as where a drive vanishes; its ``result``
            is what it had done by then.
        ExperimentError: the run failed otherwise.
        Interrupted: the run was stopped; nothing half-written remains. On a real drive its
            ``result`` is what the job had done by then, if it had begun.
    """
    target, rating = target_of(on, destroy, setup, use_existing_file, redact, tbw)
    settings = settings_of(
        target,
        set=set,
        scale=scale,
        seed=seed,
        prepare=prepare,
        rating=rating,
        notice=notice,
        all_counters=all_counters,
    )
    return watched(target, read_job(job), settings, progress)


def settings_of(
    target: Target,
    *,
    set: Mapping[str, object] | None = None,
    scale: int = 1,
    seed: int = 1,
    prepare: str | None = None,
    rating: Rating | None = None,
    notice: Notice | None = None,
    logs: bool = False,
    all_counters: bool = False,
) -> Settings:
    """How a job is run; keys are those of the drive at its scale. Raises InputError."""
    doubt = scale_doubt(target, scale)
    if doubt is not None and notice is not None:
        notice(doubt)
    return Settings(
        seed=seed,
        prepare=prepare,
        overrides=set_over(target.smaller(scale, fewest=SUPERBLOCKS_MIN), keys(set)),
        notice=notice,
        logs=logs,
        all_counters=all_counters,
        rating=rating,
    )


def watched(target: Target, job: JobText, settings: Settings, progress: Watch) -> Result:
    """A job on a target while somebody is told how far it is; raises as :func:`run`."""
    with shown(progress, f"{job.name} on {target.name}") as callback:
        return target.run(job, replace(settings, progress=callback))


def replay(
    trace: str | Path,
    on: On,
    *,
    speed: float = 1.0,
    depth: int | None = None,
    fit: str = "as-is",
    size: Size | None = None,
    prepare: str | None = None,
    set: Mapping[str, object] | None = None,
    seed: int = 1,
    format: str | None = None,
    action: str = "Q",
    trace_block: Size = "4096B",
    skip_damaged: bool = False,
    window: str | None = None,
    device: int | None = None,
    columns: str | None = None,
    redact: bool = False,
    destroy: str | None = None,
    use_existing_file: bool = False,
    progress: Watch = None,
    notice: Notice | None = None,
) -> Result:
    """Replays a trace on a simulated or real drive: as recorded, faster, or at a depth.

    In Python nothing is kept.

    Args:
        trace: A trace, compressed or not.
        on: As for :func:`ssdlab.run`.
        speed: Times the recorded speed: 2 halves all pauses.
        depth: As fast as possible with N requests in flight, whatever the times are. Without it
            requests come at their times: on a simulated drive whatever is still in flight.
        fit: Addresses beyond the target: refused, begun again at 0, or all scaled to it.
        size: Of the file that is made on a real target.
        prepare: As for ``ssdlab run``; simulated only.
        set: As for :func:`ssdlab.run`.
        seed: Seed of a simulated run.
        format: As for :func:`ssdlab.trace`.
        action: As for :func:`ssdlab.trace`.
        trace_block: As for :func:`ssdlab.trace`.
        skip_damaged: As for :func:`ssdlab.trace`.
        window: As for :func:`ssdlab.trace`.
        device: As for :func:`ssdlab.trace`.
        columns: As for :func:`ssdlab.trace`.
        redact: Whether serial numbers and paths are left out of the result.
        destroy: Serial number of the block device whose data may be lost.
        use_existing_file: As for :func:`ssdlab.run`.
        progress: Who is told how far it is, as for :func:`ssdlab.run`.
        notice: Called with a sentence for people.

    Raises:
        InputError: the trace, the target or a setting is wrong.
        RefusedError: the run could destroy data.
        ExperimentError: the run failed.
        Interrupted: the run was stopped; nothing half-written remains.
    """
    if fit not in FITS:
        raise InputError(f'--fit "{fit}": expected {", ".join(FITS)}')
    if not 0.01 <= speed <= 10_000:
        raise InputError(f"--speed {speed:g}: expected a factor from 0.01 to 10000")
    if depth is not None and speed != 1.0:
        raise InputError("--speed has no meaning with --depth, which follows no times")
    target, _ = target_of(on, destroy=destroy, use_existing_file=use_existing_file, redact=redact)
    simulated = target.simulated
    if size is not None and simulated:
        raise InputError("--size is for files on real drives; a rig says its own capacity")
    capacity = None if size is None else parse_bytes("--size", str(size))
    how = reading(format, action, trace_block, skip_damaged, window, device, columns)
    given = Replay(how, fit, open_loop=simulated and depth is None, capacity_bytes=capacity)
    more = [f"iodepth={DEPTH_OPEN}"] if depth is None and not simulated else []
    if speed != 1.0:
        more.append(f"replay_time_scale={round(100 * speed)}")
    if not simulated:
        more += ["ioengine=libaio", "direct=1"]
    job = replaying(carried_path(existing(Path(trace))), given, depth, more)
    settings = settings_of(target, set=set, seed=seed, prepare=prepare, notice=notice)
    if notice is not None:
        for sentence in left_out(existing(Path(trace)), how):
            notice(sentence)
    return watched(target, job, settings, progress)
