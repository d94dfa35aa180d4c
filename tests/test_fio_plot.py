"""fio's own consumers read what ssdlab leaves: fio-plot makes its charts from ``--logs``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import needs_fio
from ssdlab.cli import run_command

JOB = """[randwrite]
rw=randwrite
bs=4k
size={size}
iodepth={depth}
numjobs=1
ioengine=libaio
time_based
runtime=3
rate_iops=500
log_avg_msec=500
"""
PNG = b"\x89PNG\r\n"
TARGETS = ["sim", pytest.param("file", marks=[pytest.mark.real, needs_fio()])]


@pytest.fixture(scope="module", params=TARGETS)
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``--logs`` leaves of two depths, of a simulated drive and of a file."""
    folder = tmp_path_factory.mktemp("fio-plot")
    for depth in (1, 8):
        job = folder / f"{depth}.fio"
        simulated = request.param == "sim"
        job.write_text(JOB.format(depth=depth, size="100%" if simulated else "8m"))
        target = ["lab-reference", "--set", "capacity=256MiB"] if simulated else [folder / "s"]
        command = ["run", job, "--on", *target, "--logs", folder / "4k", "--out", folder / "runs"]
        assert run_command([str(one) for one in command]) == 0
    return folder / "4k"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where fio-plot's library keeps what it knows of the system's fonts."""
    return tmp_path_factory.mktemp("home")


@pytest.mark.parametrize(
    "chart",
    [
        ["-l", "-n", "1", "-d", "1", "8"],
        ["-L", "-n", "1", "-t", "iops"],
        ["-H", "-n", "1", "-d", "8"],
        ["-g", "-t", "iops", "-d", "8", "-n", "1"],
    ],
    ids=["bars", "depths and jobs", "latency histogram", "log lines"],
)
def test_fio_plot_charts_what_a_run_leaves(
    results: Path, home: Path, tmp_path: Path, chart: list[str]
) -> None:
    picture = tmp_path / "chart.png"
    program = str(Path(sys.executable).with_name("fio-plot"))
    done = subprocess.run(
        [program, "-i", str(results), "-T", "x", "-r", "randwrite", *chart, "-o", str(picture)],
        capture_output=True,
        text=True,
        env={"MPLBACKEND": "Agg", "HOME": str(home), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert picture.read_bytes().startswith(PNG), done.stdout + done.stderr
