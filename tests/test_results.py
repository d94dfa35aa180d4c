"""A result answers in numbers with units."""

from __future__ import annotations

import pytest

from conftest import make_result
from ssdlab.errors import InputError


def test_the_frame_has_a_row_per_job_and_direction() -> None:
    frame = make_result("x").frame()
    assert frame.height == 1
    row = frame.row(0, named=True)
    assert (row["job"], row["ddir"], row["ios"], row["io_bytes"]) == ("w", "write", 10, 40960)
    assert (row["iops"], row["bw_bytes"], row["runtime_s"]) == (5.0, 20480.0, 2.0)
    assert (row["clat_p50_ns"], row["clat_p99_ns"], row["clat_max_ns"]) == (100, None, 1000)


@pytest.mark.parametrize(("percent", "value"), [(1, 100), (90, 100), (90.1, 1000), (100, 1000)])
def test_a_percentile_is_the_latency_that_this_share_did_not_exceed(
    percent: float, value: int
) -> None:
    (stats,) = make_result("x").jobs[0].directions()
    assert stats.clat.rank_ns(percent) == value


def test_the_series_can_be_narrowed_to_a_job_and_direction() -> None:
    result = make_result("x")
    assert result.series(job="w", ddir="write").height == 2
    assert result.series(ddir="read").height == 0


def test_a_series_of_no_job_or_direction_is_refused_with_what_there_is() -> None:
    result = make_result("x")
    with pytest.raises(InputError, match=r'no job of this run is called "other"; there are: w'):
        result.series(job="other")
    with pytest.raises(InputError, match=r'"reed" \(did you mean "read"\?\); there are: read, '):
        result.series(ddir="reed")


def test_what_a_notebook_shows_escapes_names() -> None:
    html = make_result("<drive>")._repr_html_()
    assert "&lt;drive&gt;" in html
    assert "<drive>" not in html


def test_a_real_drive_tells_no_attribution_and_no_write_amplification() -> None:
    result = make_result("x")
    result.document["ssdlab"] = {"target": {"kind": "fio"}}
    assert (result.kind, result.attribution, result.waf) == ("fio", None, None)


def test_no_percentile_is_above_the_largest_latency() -> None:
    result = make_result("x")
    result.document["jobs"][0]["write"]["clat_ns"]["max"] = 995  # below the middle of its bin
    (stats,) = result.jobs[0].directions()
    assert stats.clat.rank_ns(100) == 995
