"""Dumps at Google's and Azure's stores, as emulators answer for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.errors import SourceError
from ingest.pipeline.importer import import_dumps
from tests.source.test_archives import DATA, DUMP, PRIMARY, as_zip
from tests.support.elsewhere import content_of
from tests.support.emulators import Emulator, azure_server, google_server
from tests.support.extras import require_library

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["gs", "az"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    require_library("obstore")
    server = google_server(tmp_path_factory.mktemp("gs")) if request.param == "gs" else azure_server()
    with server as emulator:
        yield emulator


@pytest.fixture
def emulator(store: Emulator, monkeypatch: pytest.MonkeyPatch) -> Emulator:
    """The store, as the environment of an import names it."""
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    return store


def test_dumps_are_read_once_small_or_large_alone_or_in_an_archive(
    emulator: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the rows of files; a large one is looked at again after it was read."""
    names = [f"{number}/{PRIMARY}" for number in range(3)]
    large = max((path.read_bytes() for path in (DATA / "seeds").glob("*.txt")), key=len)
    for name in names:
        content = large if name.startswith("2") else DUMP
        emulator.put(f"nightly/{name}", content)
        (tmp_path / "nightly" / name).parent.mkdir(parents=True)
        (tmp_path / "nightly" / name).write_bytes(content)
    emulator.put("run.zip", as_zip([(name, DUMP) for name in names]))
    monkeypatch.setattr("ingest.staging.stage.LARGE_BYTES", len(large))
    local = tmp_path / "local.duckdb"
    import_dumps(tmp_path / "nightly", local)
    urls = [f"{emulator.url}/nightly", f"{emulator.url}/run.zip"]
    database = tmp_path / "xbuf.duckdb"
    assert import_dumps(urls, database, jobs=2).loaded == 6
    assert import_dumps(urls, database, jobs=2).unchanged == 6
    alone = tmp_path / "alone.duckdb"
    assert import_dumps(urls[0], alone, jobs=2).loaded == 3
    assert content_of(alone, urls[0]) == content_of(local, str((tmp_path / "nightly").resolve()))
    emulator.put(f"nightly/{names[0]}", DUMP.replace(b"fusion", b"fusiom"))
    summary = import_dumps(urls, database, jobs=2)
    assert (summary.loaded, summary.unchanged, summary.rejected) == (1, 5, 0)


def test_what_is_not_there_is_one_line(emulator: Emulator, tmp_path: Path) -> None:
    """And no database is made."""
    with pytest.raises(SourceError) as caught:
        import_dumps(f"{emulator.url}-of-nobody/a", tmp_path / "xbuf.duckdb")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "xbuf.duckdb").exists()


def test_a_wrong_key_is_permission_denied(
    emulator: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The emulator of Google's store looks at no key."""
    if "AZURE_STORAGE_ACCOUNT_KEY" not in emulator.environment:
        pytest.skip("every key opens it")
    monkeypatch.setenv(
        "AZURE_STORAGE_ACCOUNT_KEY", "AAAA" + emulator.environment["AZURE_STORAGE_ACCOUNT_KEY"]
    )
    with pytest.raises(SourceError, match="permission denied; look at the credentials"):
        import_dumps(f"{emulator.url}/nightly", tmp_path / "xbuf.duckdb")
