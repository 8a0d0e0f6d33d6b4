"""The lines of the Dockerfile build an image that imports and answers: in Docker where it is, else without.

Without Docker the same shell lines run in a fresh environment, with the image's places below a folder.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

from tests.support.dump_sets import DATA

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
SEEDS = DATA / "seeds"


def instructions(name: str) -> list[str]:
    """Return the arguments of the instructions of a kind."""
    return re.findall(rf"^{name} (.*)$", DOCKERFILE, re.MULTILINE)


def docker_works() -> bool:
    """Say whether there is a daemon that could build."""
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0


class Machine:
    """What an image is, as a folder: its root with a Python of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        venv.create(root / "python", with_pip=True)
        self.environment = {
            "PATH": f"{root / 'python/bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(root),
            "PIP_NO_COMPILE": "1",
            "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", str(Path.home() / ".cache/pip")),
            **{name: text for name, text in os.environ.items() if name.startswith("PIP_")},
        }

    def run(self, line: str, folder: str) -> str:
        """Run a shell line in a folder of the image; it must succeed."""
        line = re.sub(r"--mount=\S+ |--no-cache-dir ", "", line)
        line = re.sub(r"(?<![\w.])/(src|wheels|data|dumps)\b", lambda place: f"{self.root}{place[0]}", line)
        if os.getuid() != 0:
            line = re.sub(r"--(owner|group)=\d+ ", "", line)
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=f"{self.root}{folder}",
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def set(self, pairs: str) -> None:
        """Take an ENV instruction."""
        for name, place in re.findall(r"(\w+)=(\S+)", pairs):
            self.environment[name] = f"{self.root}{place}"


def test_the_lines_of_the_image_build_one_that_works(tmp_path: Path) -> None:
    """From the files that the build context has, to a database that its health check is content with.

    The wheel works away from the checkout: it has its migrations and queries, and no requirement clashes.
    """
    machine = Machine(tmp_path)
    context = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] == "!"]
    (tmp_path / "src").mkdir()
    for name in context:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / "src" / name)
    build, install, data = instructions("RUN")
    machine.run(build, "/src")
    shutil.rmtree(tmp_path / "src")
    machine.run(install, "/")
    assert "No broken requirements" in machine.run("pip check", "/")
    machine.run(data, "/")
    places = "from ingest import resources; print(resources.migrations_dir(), resources.queries_dir())"
    for place in machine.run(f'python -c "{places}"', "/data").split():
        assert Path(place).is_relative_to(tmp_path / "python")
    shutil.copytree(SEEDS, tmp_path / "dumps")
    [settings] = instructions("ENV")
    machine.set(settings)
    [health] = re.findall(r"CMD (.*)", instructions("HEALTHCHECK")[0])
    machine.run(health, "/data")
    [command] = re.findall(r'"([^"]*)", "([^"]*)"', instructions("CMD")[0])
    assert "5 loaded" in machine.run(" ".join(command), "/data")
    machine.run(health, "/data")
    assert machine.run("xbuf shell -csv -c 'SELECT count(*) AS runs FROM runs'", "/data") == "runs\n5\n"
    Path(machine.environment["XBUF_DB"]).write_bytes(b"no database")
    with pytest.raises(AssertionError):
        machine.run(health, "/data")


@pytest.mark.skipif(not docker_works(), reason="there is no Docker daemon here")
def test_the_image_imports_and_is_healthy() -> None:
    """Built by Docker, run as its own user, with the dumps mounted read-only."""
    built = subprocess.run(
        ["docker", "build", "--quiet", "."], cwd=ROOT, check=True, capture_output=True, text=True
    )
    image = built.stdout.strip()
    script = "id -u && xbuf-ingest /dumps && xbuf doctor --quiet && xbuf shell -csv -c 'SELECT 5'"
    done = subprocess.run(
        ["docker", "run", "--rm", "-v", f"{SEEDS}:/dumps:ro", image, "sh", "-c", script],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("10001\n5 dumps found: 5 loaded")


def test_the_image_is_no_root_and_has_a_check_of_its_health() -> None:
    """What a cluster asks of an image."""
    assert instructions("USER") == ["10001:10001"]
    assert [name.partition(" ")[0] for name in instructions("FROM")] == ["python:3.13-slim"] * 2
    assert len(instructions("HEALTHCHECK")) == 1
