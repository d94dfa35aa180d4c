"""fio's own consumers read simulated results: fio-plot makes its charts from one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import ssdlab

JOB = """[randwrite]
rw=randwrite
bs=4k
size=100%
iodepth={depth}
numjobs=1
time_based
runtime=5
write_lat_log=randwrite-iodepth-{depth}-numjobs-1
write_bw_log=randwrite-iodepth-{depth}-numjobs-1
write_iops_log=randwrite-iodepth-{depth}-numjobs-1
log_avg_msec=500
"""
PNG = b"\x89PNG\r\n"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents and logs of two depths, named the way fio-plot wants them."""
    folder = tmp_path_factory.mktemp("fio-plot") / "4k"
    folder.mkdir()
    for depth in (1, 8):
        job = JOB.format(depth=depth)
        result = ssdlab.run(job, on="lab-reference", set={"capacity": "256MiB"})
        (folder / f"randwrite-{depth}-1.json").write_text(result.json())
        assert result.logs
        for name, text in result.logs:
            (folder / name).write_text(text)
    return folder


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
def test_fio_plot_charts_a_simulated_run(results: Path, tmp_path: Path, chart: list[str]) -> None:
    picture = tmp_path / "chart.png"
    program = str(Path(sys.executable).with_name("fio-plot"))
    done = subprocess.run(
        [program, "-i", str(results), "-T", "x", "-r", "randwrite", *chart, "-o", str(picture)],
        capture_output=True,
        text=True,
        env={"MPLBACKEND": "Agg", "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert picture.read_bytes().startswith(PNG), done.stdout + done.stderr
