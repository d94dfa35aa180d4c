"""The notebook among the examples runs, and shows what its cells found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parent.parent / "examples" / "sweep.ipynb"
CELL_MAX = 60_000
"""Characters of what a cell shows: a notebook is kept and read as text."""


def test_the_notebook_runs_and_shows_charts_without_scripts(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook: Any = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    run = nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": tmp_path}})
    done = run.execute()
    shown = [
        output["data"]["text/html"]
        for cell in done.cells
        for output in cell.get("outputs", ())
        if output["output_type"] == "execute_result" and "text/html" in output["data"]
    ]
    reports = [one for one in shown if "<svg" in one]
    assert len(reports) == 2 and len(shown) == 3
    assert all("<script" not in one and len(one) < CELL_MAX for one in shown)
    assert "explain" not in done.cells[-1].get("outputs")[0].get("text", "")
