"""Every benchmark runs, and finds finite figures. What they are is nothing to assert: they move with the machine."""

from __future__ import annotations

import json
import math

import pytest

rows = pytest.importorskip("benchmarks.rows", reason="the benchmarks are not here, only the tests")
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", sorted(rows.ROWS))
def test_each_row_runs_and_its_figures_are_finite(name, tmp_path, capsys):
    """A quick run of each row ends, writes both files, and each figure in them is a number."""
    from benchmarks.__main__ import main

    data, page = tmp_path / "bench.json", tmp_path / "page.md"

    assert 0 == main([name, "--quick", "--json", str(data), "--write", str(page)])

    (row,) = json.loads(data.read_text(encoding="utf-8"))["rows"]
    assert name == row["name"]
    assert row["figures"]
    assert all(math.isfinite(figure[key]) for figure in row["figures"] for key in ("value", "low", "high"))
    assert all(figure["what"] in page.read_text(encoding="utf-8") for figure in row["figures"])
    assert row["title"] in capsys.readouterr().out
