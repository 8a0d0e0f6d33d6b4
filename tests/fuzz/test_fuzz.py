"""Short fuzz runs with fixed seeds, and what longer ones found: each case kept as small as it goes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest.dump.parse import parse_set
from ingest.errors import DumpError
from tests.fuzz import both_ways
from tests.fuzz.oracle import judge
from tests.fuzz.run import fuzz, write_set
from tests.fuzz.sidecars import judge as judge_sidecars
from tests.fuzz.sidecars import seeds as sets_with_sidecars
from tests.fuzz.targets import TARGETS
from tests.support.dump_sets import DATA, committed_sets

ROOT = Path(__file__).parents[2]
SHORT = {"parser": 400, "pieces": 40, "sidecars": 50}
MANY = {"parser": 2_000, "pieces": 300, "sidecars": 350}


def run(target: str, cases: int, keep: Path) -> None:
    """Run and require that both good ends were met, and no other."""
    fuzzer = fuzz(TARGETS[target], cases=cases, seed=2026, keep=keep, store_every=1000)
    told = fuzzer.figures()
    assert (told["failures"], told["cases"]) == ([], cases)
    assert min(sum(fuzzer.outcomes.values()), fuzzer.cases) > 0.95 * cases
    assert {key[0] for key in fuzzer.outcomes} == {"load", "reject"}


@pytest.mark.parametrize("target", SHORT)
def test_damaged_dumps_come_to_a_good_end(target: str, tmp_path: Path) -> None:
    """A few hundred cases of each kind, always the same ones."""
    run(target, SHORT[target], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("target", MANY)
def test_many_damaged_dumps_come_to_a_good_end(target: str, tmp_path: Path) -> None:
    """Some two seconds of each kind; `tests.fuzz.run` goes on for as long as one likes."""
    run(target, MANY[target], tmp_path)


# -- what was found --------------------------------------------------------------------------------


def text_of(folder: str) -> bytes:
    """Return the primary file of the one set in a folder."""
    (dump_set,) = [one for one in committed_sets() if one.primary.parent == DATA / folder]
    return dump_set.primary.read_bytes()


def swapped(text: bytes, old: bytes, new: bytes) -> bytes:
    """Replace a text that occurs once."""
    assert text.count(old) == 1
    return text.replace(old, new)


def test_an_instruction_text_may_hold_a_second_total(tmp_path: Path) -> None:
    """It reaches to the next head: lines of other sections in it are its text, and print back as that."""
    text = text_of("dumps/jaxlib-0.7.2-cpu")
    head = b"<5 concatenate_convert_fusion @0>\n"
    texts = {"primary": swapped(text, b"\n" + head, b"\n\nTotal bytes used: 7 (7B)" + head)}
    dump = judge(write_set(tmp_path, texts), texts)
    assert not isinstance(dump, DumpError)
    assert "Total bytes used: 7" in dump.used.blocks[0][7] if dump.used else False


def test_a_values_file_may_lack_its_first_line(tmp_path: Path) -> None:
    """It is noted; value lines in an instruction's text stay where they are."""
    (split,) = [one for one in committed_sets() if one.primary.parent == DATA / "dumps/jaxlib-0.10.0-cpu"]
    texts = split.texts()
    head = b"\n positions:\n"
    start = texts["values"].index(head, texts["values"].index(head) + 1)
    start = texts["values"].rindex(b"\n", 0, start) + 1
    line = b" value: <1 a @0> (size=0,offset=0): ()\n"
    texts["values"] = texts["values"][1:start] + line + texts["values"][start:]
    dump = judge(write_set(tmp_path, texts), texts)
    assert not isinstance(dump, DumpError)
    assert {notice.kind for notice in dump.notices} == {"blank-lines"}


def ranges_head_twice(text: bytes) -> bytes:
    """Repeat the head of the ranges, so that a piece starts with it."""
    return swapped(text, b"  BufferLiveRange:\n", b"  BufferLiveRange:\n  BufferLiveRange:\n")


def huge_index(text: bytes) -> bytes:
    """Number an allocation beyond 64 bits."""
    return swapped(text, b"allocation 1: ", b"allocation 9223372036854775808: ")


def huge_slot(text: bytes) -> bytes:
    """Number a slot beyond 64 bits."""
    return swapped(text, b"    1:conc", b"    99999999999999999999:conc")


def no_head(text: bytes) -> bytes:
    """Write a color that no release prints, in a block whose head no pattern takes."""
    return swapped(
        text, b"\n<5 concatenate_convert_fusion @0>", b"\n<5 concatenate_convert_fusion @" + b"9" * 50 + b">"
    )


def values_of_two_releases(text: bytes) -> bytes:
    """Put a value line of TF 1.14 among those of today."""
    return swapped(text, b"allocation 1: ", b"  x[](#9 @0) [0,4]: f32[]\nallocation 1: ")


def glued_rubbish(text: bytes) -> bytes:
    """Let what means nothing stand before the head of a block."""
    return swapped(text, b"\n<5 concatenate", b"\n\\<5 concatenate")


def last_value_missing(text: bytes) -> bytes:
    """Take a value line away, so that a block stands for none."""
    start = text.index(b" value: <5 ")
    return text[:start] + text[text.index(b"\n", start) + 1 :]


def not_cut_off(text: bytes) -> bytes:
    """Damage an early line and the end: what is told is that the file is cut off."""
    return swapped(text, b"(size=80,offset=0)", b"(size=80)")[:-20]


def same_place_twice(text: bytes) -> bytes:
    """Give two values one name: the first counts, whichever way the ranges are joined."""
    return text.replace(b"concatenate_convert_fusion", b"x.1")


@pytest.mark.parametrize("block_bytes", [120, 300, 700])
@pytest.mark.parametrize(
    "damage",
    [
        ranges_head_twice,
        huge_index,
        huge_slot,
        no_head,
        values_of_two_releases,
        glued_rubbish,
        last_value_missing,
        not_cut_off,
        same_place_twice,
    ],
)
def test_pieces_come_to_what_the_whole_comes_to(
    damage: Callable[[bytes], bytes], block_bytes: int, tmp_path: Path
) -> None:
    """The same reject, word for word, or the same rows, however a large dump is cut."""
    text = damage(text_of("dumps/jaxlib-0.7.2-cpu"))
    both_ways.compare(write_set(tmp_path, {"primary": text}), block_bytes)


def test_positions_in_two_places_are_refused(tmp_path: Path) -> None:
    """TF 1.15 prints positions in the allocations: `Used values` of another dump does not go with them."""
    (old,) = [one.primary for one in committed_sets() if one.primary.parent == DATA / "dumps/tf-1.15-cpu"]
    total = sum(map(int, re.findall(rb"^allocation .*?size ([0-9]+)", old.read_bytes(), re.M)))
    used = b"\nTotal bytes used: %d\n\nUsed values:\n<1 a @0>\n positions:\n  a\n uses:\n" % total
    files = write_set(tmp_path, {"primary": old.read_bytes(), "values": used})
    with pytest.raises(DumpError, match="stand in the allocations too") as caught:
        parse_set({role: str(path) for role, path in files.items()})
    assert (caught.value.section, caught.value.file) == ("values", str(files["values"]))
    assert both_ways.compare(files, 400)[1] == "bad-line"


def test_a_frame_without_blanks_between_its_fields_is_a_notice(tmp_path: Path) -> None:
    """It made the HLO text, and the dump with it, fail."""
    texts = next(one for one in sets_with_sidecars() if b"{file_name_id=1 function_name_id=1 " in one["hlo"])
    hlo = texts["hlo"].replace(
        b"{file_name_id=1 function_name_id=1 ", b"{file_name_id=1function_name_id=1 ", 1
    )
    texts = {**texts, "hlo": hlo}
    assert "load" in judge_sidecars(write_set(tmp_path, texts), texts)


# -- what is written of it -------------------------------------------------------------------------


def test_the_document_names_what_is_there() -> None:
    """Every path and every test that docs/hostile-input.md names exists."""
    text = (ROOT / "docs/hostile-input.md").read_text()
    sources = "".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    tests = set(re.findall(r"\btest_\w+\b(?!\.py)", text))
    assert len(tests) > 20
    assert {test for test in tests if f"def {test}(" not in sources} == set()
    paths = set(re.findall(r"`((?:tests|ingest|docs)/[\w/.]+)`", text))
    assert {path for path in paths if not (ROOT / path).exists()} == set()
