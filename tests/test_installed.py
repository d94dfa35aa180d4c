"""What is installed: the wheel in an empty environment, what belongs to it, and what it says where
something is missing. `./lab ci` builds the wheel, and names it in SSDLAB_WHEEL."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution, metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import ssdlab
from conftest import PATIENCE_S, Cli
from scheduling import WHEEL

ROOT = Path(__file__).parent.parent
SHARE = ROOT / "python" / "ssdlab.data" / "data" / "share"
SYSTEM = "/usr/bin:/bin"
COMPLETE = {
    "bash": (
        "source {share}/bash-completion/completions/ssdlab; COMP_WORDS=({line}); "
        'COMP_CWORD=2; _ssdlab ssdlab; printf "%s\\n" "${{COMPREPLY[@]}}"'
    ),
    # Stand in for zsh's own, which draw on a terminal.
    "zsh": (
        "_arguments() {{ print -r -- $* }}; _files() {{ print -r -l -- ${{words[-1]}}* }}; "
        "words=({line}); CURRENT=3; source {share}/zsh/site-functions/_ssdlab"
    ),
    "fish": "source {share}/fish/vendor_completions.d/ssdlab.fish; complete -C '{line}'",
}
"""How each shell is asked what may come in the last place of a line."""


def said(*command: str, where: Path | None = None, **environment: str) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=where, timeout=PATIENCE_S
    )
    assert done.returncode == 0 and not done.stderr, (command, done.stdout, done.stderr)
    return done.stdout


def first(language: str) -> str:
    """The first example in README.md in a language."""
    page = (ROOT / "README.md").read_text("utf-8")
    found = re.search(rf"```{language}\n(.*?)```", page.partition("## Run a job")[2], re.DOTALL)
    assert found
    return found[1]


def needed(names: Iterable[str]) -> Iterator[str]:
    """The packages that these need, and what those need, as they say themselves."""
    known, left = set[str](), [*names]
    while left:
        if (name := left.pop()) in known:
            continue
        known.add(name)
        yield name
        asked = map(Requirement, distribution(name).requires or ())
        left += [
            one.name for one in asked if one.marker is None or one.marker.evaluate({"extra": ""})
        ]


def lend(packages: Iterable[str], place: Path) -> None:
    """Puts links to packages of this environment into another, where pip finds them installed."""
    for package in packages:
        for file in distribution(package).files or ():
            top = Path(file.parts[0])
            source = Path(str(distribution(package).locate_file(top)))
            if top.name not in ("..", "__pycache__") and not (place / top).exists():
                (place / top).symlink_to(source)


@pytest.mark.skipif(not WHEEL, reason="no wheel was built: ./lab wheel")
def test_the_wheel_works_in_an_empty_environment_without_rust(tmp_path: Path) -> None:
    wheel, home = Path(WHEEL).resolve(), tmp_path / "env"
    assert re.fullmatch(
        r"ssdlab-[\d.]+-cp311-abi3-manylinux2014_\w+\.manylinux_2_17_\w+\.whl", wheel.name
    )
    venv.create(home)
    (packages,) = home.glob("lib/python*/site-packages")
    # What the wheel asks for is there already, and nothing else: unpacking and compiling it takes
    # four fifths of the time.
    wanted = map(Requirement, metadata("ssdlab").get_all("Requires-Dist") or ())
    lend(needed(one.name for one in wanted if one.marker is None), packages)
    own = {"PATH": str(home / "bin"), "HOME": str(tmp_path)}

    def run(*command: str | Path, system: bool = False) -> str:
        environment = own | ({"PATH": f"{own['PATH']}:{SYSTEM}"} if system else {})
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=environment
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        home / "bin/python",
        "install",
        "--no-compile",
        "--no-index",
        "--disable-pip-version-check",
        wheel,
    )
    assert run("ssdlab", "--version") == f"ssdlab {ssdlab.__version__}\n"
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    line = first("text").splitlines()[0].partition("#")[0]
    assert "IOPS" in run(*shlex.split(line))
    assert "iops" in run("python", "-c", first("python"))
    files = {one.relative_to(SHARE): one for one in SHARE.rglob("*") if one.is_file()}
    assert len(files) == 4
    for place, source in files.items():
        assert (home / "share" / place).read_bytes() == source.read_bytes()
    if shutil.which("man", path=SYSTEM):
        assert "ssdlab health" in run("man", "ssdlab", system=True)
    script = COMPLETE["bash"].format(share=home / "share", line="ssdlab run --see")
    assert "--seed" in run("bash", "-c", script, system=True)
    installed = {"/".join(one.parts[-2:]) for one in home.rglob("*ssdlab*/**/*") if one.is_file()}
    assert {"licenses/LICENSE-MIT", "licenses/LICENSE-APACHE"} <= installed
    assert {
        "ssdlab/py.typed",
        "ssdlab/_core.pyi",
        "ssdlab/__init__.pyi",
        "profiles/demo-client.toml",
    } <= installed


@pytest.mark.parametrize("shell", COMPLETE)
def test_the_completions_ask_the_program(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    script = COMPLETE[shell].format(share=SHARE, line="ssdlab run --see")
    assert re.findall(r"--\w+", said(shell, "-c", script, PATH=path)) == ["--seed"]


@pytest.mark.parametrize("shell", COMPLETE)
@pytest.mark.parametrize("line", ["ssdlab show demo", "ssdlab array demo"])
def test_files_are_completed_beside_names(shell: str, line: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "demo-mine.toml").touch()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    script = COMPLETE[shell].format(share=SHARE, line=line)
    own = {"PATH": path, "HOME": str(tmp_path), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    found = said(shell, "-c", script, where=tmp_path, **own)
    named = set(re.findall(r"demo-mine\.toml|demo-client\b|demo\*", found))
    assert named == {"demo-mine.toml", "demo-client"}


@pytest.mark.parametrize("checker", ["groff -man -ww -K utf8 -T utf8", "mandoc -T lint -W error"])
def test_the_manual_page_is_well_formed(checker: str) -> None:
    if shutil.which(checker.split()[0]) is None:
        pytest.skip(f"{checker.split()[0]} is not installed")
    said(*checker.split(), str(SHARE / "man/man1/ssdlab.1"), PATH=os.environ["PATH"])


@pytest.mark.parametrize("kind", ["missing", "foreign"])
def test_a_core_that_cannot_be_loaded_is_told_in_a_sentence(kind: str, tmp_path: Path) -> None:
    home = Path(str(ssdlab.__file__)).parent
    (tmp_path / "ssdlab").mkdir()
    for one in home.iterdir():
        if not one.name.startswith("_core."):
            (tmp_path / "ssdlab" / one.name).symlink_to(one)
    (core,) = home.glob("_core.*so")
    if kind == "foreign":
        head = bytearray(core.read_bytes()[:4096])
        head[18:20] = (22).to_bytes(2, "little")  # the machine of an ELF file: IBM S/390
        (tmp_path / "ssdlab" / core.name).write_bytes(head)
    expected = {
        "missing": r"ssdlab's compiled core is missing in \S+; install a wheel, or build it with",
        "foreign": r"ssdlab's compiled core cannot be loaded here \(.*\); install a wheel that was",
    }[kind]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    for command in (["-c", "import ssdlab"], ["-m", "ssdlab", "--version"]):
        done = subprocess.run(
            [sys.executable, *command], capture_output=True, text=True, env=environment
        )
        last = done.stderr.splitlines()[-1]
        assert done.returncode == 1 and re.search(f"{expected}.* ./lab setup$", last), done.stderr
        assert ("Traceback" in done.stderr) == (command[0] == "-c")


MISSING = {
    "cluster": ("distributed", ("sweep", "examples/sweep.toml", "--cluster", "local")),
    "query": ("duckdb", ("query", "SELECT 1")),
    "sample": ("scipy.stats", ("sweep", "examples/sweep.toml", "--sample", "lhs:4")),
    "search": ("optuna", ("sweep", "examples/sweep.toml", "--search", "iops")),
}
"""A package of each extra, and what needs it."""


@pytest.mark.parametrize("extra", MISSING)
def test_a_missing_extra_is_told_with_the_command_that_installs_it(
    extra: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, line = MISSING[extra]
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    more = () if extra == "query" else ("-o", "sweep")
    given = (*line, "--vary", "ftl.over_provisioning=0.07..0.5") if extra == "sample" else line
    outcome = cli(*given, *more)
    assert outcome.status == 2
    assert re.search(
        rf"needs \w+, which is not installed: pip install 'ssdlab\[{extra}\]'$", outcome.err.strip()
    )
    assert not (tmp_path / "sweep").exists()


def test_every_extra_that_a_command_needs_has_its_sentence() -> None:
    """The others are those of notebooks, and of who works on ssdlab."""
    extras = set(metadata("ssdlab").get_all("Provides-Extra") or ())
    assert extras - {"dev", "docs", "notebook", "test"} == set(MISSING)
