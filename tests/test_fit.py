"""Twins: tables of observations, fits, predictions."""

from __future__ import annotations

from pathlib import Path

import pytest

import ssdlab
from ssdlab.errors import InputError
from ssdlab.fits import observations
from ssdlab.fits.observations import Load

HEAD = "rw,bs,iodepth,numjobs,rwmixread,state,namespace,iops,lat_mean_us\n"


def table(folder: Path, text: str) -> Path:
    """A CSV file of that text."""
    path = folder / "table.csv"
    path.write_text(text)
    return path


def test_a_table_reads_back_as_it_was_written(tmp_path: Path) -> None:
    text = HEAD + (
        "randread,4k,4,2,,,,50000,160\nrandrw,16KiB,1,1,70,,480GB,,\nwrite,1m,,,,steady-seq,,900,\n"
    )
    read = observations.read(table(tmp_path, text))
    assert [one.load for one in read] == [
        Load("randread", 4096, 4, 2),
        Load("randrw", 16384, 1, 1, 70.0, "steady", 480 * 10**9),
        Load("write", 1 << 20, 1, 1, None, "steady-seq"),
    ]
    assert read[0].measured == {"iops": 50000.0, "lat_mean_us": 160.0}
    again = table(tmp_path, observations.text(observations.frame(read)))
    assert [(one.load, one.measured) for one in observations.read(again)] == [
        (one.load, one.measured) for one in read
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("rw,iops\n", "no rows"),
        ("bs,iops\n4k,1\n", 'no column "rw"'),
        ("rw,iop\nrandread,1\n", 'did you mean "iops"'),
        ("rw,rw\nread,read\n", "twice"),
        ("rw,iops\nrandred,1\n", 'did you mean "randread"'),
        ("rw,state\nread,filed\n", 'did you mean "filled"'),
        ("rw,bs\nread,4q\n", "line 2: bs"),
        ("rw,bs\nread,100\n", "512"),
        ("rw,iodepth\nread,0\n", "whole number from 1"),
        ("rw,iops\nread,fast\n", "above 0"),
        ("rw,iops\nread,1,2\n", "3 cells"),
        ("rw,rwmixread\nrandread,50\n", "contradicts"),
        ("rw,rwmixread\nrandrw,170\n", "0 to 100"),
        ("rw,iops,lat_mean_us\nrandread,10000,0.1\n", "microseconds"),
        ("rw,clat_p50_us,clat_p99_us\nrandread,90,80\n", "is more than"),
        ("rw,device\nread,A\nread,B\n", "several drives"),
    ],
)
def test_a_wrong_table_is_told_in_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        observations.read(table(tmp_path, text))
    assert said in error.value.message
    assert str(tmp_path) in error.value.message


def test_a_run_gives_the_rows_that_its_summary_has() -> None:
    job = (
        "[fill]\nrw=write\nbs=128k\n[r]\nstonewall\nrw=randread\nbs=8k\niodepth=4\nnumber_ios=500\n"
    )
    result = ssdlab.run(job, on="lab-reference", set={"capacity": "64MiB"})
    (only,) = observations.observations(result)
    assert only.load == Load("randread", 8192, 4)
    shown = result.summary()[-1]
    assert only.measured["iops"] == shown["iops"]
    assert only.measured["clat_mean_us"] == pytest.approx(shown["clat_mean_ns"] / 1e3)
