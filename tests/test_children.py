"""The child interpreters that other tests rely on."""

from __future__ import annotations

import pytest

from tests.conftest import Child


def test_every_supported_python_imports_lifegraph_alone(any_child: Child) -> None:
    """Without any other package installed, lifegraph can be imported by each supported Python."""
    program = "import lifegraph, sys; print(*sys.version_info[:2], 'networkx' in sys.modules)"
    major, minor = any_child.python.minor
    assert f"{major} {minor} False\n" == any_child.run(program, bare=True).stdout


def test_core_dependencies_can_be_imported(any_child: Child) -> None:
    """The children see networkx and structlog unless bare, and nothing else that is installed."""
    any_child.run("import networkx, structlog")
    for program in ("import pytest", "import hypothesis"):
        assert any_child.run(program, check=False).returncode == 1
    assert any_child.run("import networkx", bare=True, check=False).returncode == 1


def test_a_failing_child_fails_the_test(child: Child) -> None:
    """A child's failure cannot pass unseen, and what it said is shown."""
    with pytest.raises(pytest.fail.Exception, match=r"exit code 7(?s:.)*last words"):
        child.run("import sys; print('last words', file=sys.stderr); sys.exit(7)")
