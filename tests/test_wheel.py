"""The packages that are built, and what lies in them; tests/test_container.py installs a wheel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from ingest.version import VERSION
from tests.support.once import made_once

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("benchmarks", "docs", "examples", "ingest", "migrations", "queries", "tests", "xbuf")


def run(*command: str | Path, cwd: Path) -> str:
    """Run a program without our environment and return its output; fail with its error text."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    environment["PIP_NO_COMPILE"] = "1"  # most modules are never imported here
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr or done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the sdist and the wheel, built from a copy of the tracked and new files."""
    return made_once(tmp_path_factory, "packages", build)


def build(folder: Path) -> Path:
    """Build in a folder of its own; return the one with the packages."""
    source, wheel_only, both = (folder / name for name in ("source", "direct", "dist"))
    source.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", "*.duckdb")
    for entry in ROOT.iterdir():
        if entry.name in SOURCES:
            shutil.copytree(entry, source / entry.name, ignore=ignored)
        elif entry.is_file():
            shutil.copy(entry, source)
    # Left-overs of a developer's runs, which must not be packed.
    for name in ("ingest", "migrations/versions"):
        (source / name / "__pycache__").mkdir()
        (source / name / "__pycache__" / "left.cpython-311.pyc").write_bytes(b"")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", wheel_only, source, cwd=source)
    # Without options `build` makes the sdist, and the wheel from the sdist.
    run(sys.executable, "-m", "build", "--outdir", both, source, cwd=source)
    shutil.move(wheel_only / wheel_name(), both / "direct.whl")
    return both


def wheel_name() -> str:
    """Return the file name of the wheel."""
    return f"xbuf-{VERSION}-py3-none-any.whl"


def contents(wheel: Path) -> dict[str, bytes]:
    """Return the files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_carries_package_migrations_and_queries(built: Path) -> None:
    """Every file of the folders is in a package, and nothing else but the metadata."""
    expected = set()
    for folder, target in (
        ("ingest", "ingest"),
        ("migrations", "ingest/migrations"),
        ("queries", "ingest/queries"),
        ("xbuf", "xbuf"),
    ):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                expected.add(f"{target}/{path.relative_to(ROOT / folder).as_posix()}")
    files = contents(built / wheel_name())
    found = {name for name in files if ".dist-info/" not in name and ".data/" not in name}
    assert found == expected
    assert {"ingest/migrations/env.py", "ingest/migrations/versions/0001_tables.py", "xbuf/py.typed"} <= found


def test_the_wheel_carries_a_manual_page_for_each_command(built: Path) -> None:
    """Where `man` looks for those of an environment."""
    files = contents(built / wheel_name())
    data = f"xbuf-{VERSION}.data/data/share/man/man1/"
    # Of a process of its own: click keeps the help option of a command that a test has called without `xbuf`.
    code = (
        "import json; from ingest.cli.manual import as_man, pages;"
        " print(json.dumps({page.file_name: as_man(page) for page in pages()}))"
    )
    expected = json.loads(run(sys.executable, "-c", code, cwd=ROOT))
    assert {
        name.removeprefix(data): text.decode() for name, text in files.items() if ".data/" in name
    } == expected


def test_the_packages_pass_the_checks_of_an_index(built: Path) -> None:
    """Metadata that can be shown, and a wheel without anything that does not belong there."""
    packages = [built / wheel_name(), built / f"xbuf-{VERSION}.tar.gz"]
    done = run(sys.executable, "-m", "twine", "check", "--strict", *packages, cwd=built)
    assert done.count("PASSED") == 2, done
    # Revisions of the schema have numbers for names; Alembic finds them by their paths (W004).
    options = ("--toplevel", "ingest,xbuf", "--ignore", "W004")
    run(sys.executable, "-m", "check_wheel_contents", *options, wheel_name(), cwd=built)


def test_the_sdist_builds_the_same_wheel(built: Path) -> None:
    """The wheel made from the sdist equals the one made from the checkout, file by file."""
    assert contents(built / wheel_name()) == contents(built / "direct.whl")


def test_the_sdist_carries_the_tests_and_the_licence(built: Path) -> None:
    """Who has the sdist can test and redistribute."""
    with tarfile.open(built / f"xbuf-{VERSION}.tar.gz") as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "pyproject.toml", "tests/test_wheel.py", "migrations/env.py"} <= names
    assert [name for name in names if "__pycache__" in name or ".git/" in name] == []
