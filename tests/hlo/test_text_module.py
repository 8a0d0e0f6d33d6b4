"""What an HLO text implies of its dump's values: where they appear, when they live, which share a buffer."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from ingest.dump.parse import parse_dump
from ingest.errors import DumpError
from ingest.hlo.budget import MAX_RECORDS, Budget
from ingest.hlo.derivation import Derivation
from ingest.hlo.graph import Place
from ingest.hlo.shared_buffers import shared_values
from ingest.hlo.text import read_hlo_text
from ingest.hlo.text_module import DerivedOfText, PlacedValue, TextModule, derive_of_text

DATA = Path(__file__).parents[1] / "data" / "hlo"
ENDING = "-buffer-assignment.txt"


def primary_of(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(".txt") + ENDING)


TEXTS = [
    path
    for path in sorted(DATA.rglob("*_optimizations.txt"))
    if primary_of(path).exists() and path.parent.name not in ("tf-1.15-cpu", "jaxlib-0.11.2-cpu")
]
"""Scheduled and whole."""


def derived(path: Path) -> DerivedOfText | str:
    """Derive from an HLO text what its dump prints."""
    dump = parse_dump(primary_of(path))
    values = [PlacedValue(one.id, one.instruction, one.shape_index or "", one.shape) for one in dump.values]
    return derive_of_text(read_hlo_text(path, with_links=True), values, Budget(), str(path))


def assert_as_printed(path: Path) -> None:
    """Compare every position, use, slot and range with those that are printed."""
    dump = parse_dump(primary_of(path))
    found = derived(path)
    assert isinstance(found, DerivedOfText), found
    assert not found.left_out
    positions: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
    for one in found.positions:
        positions[one.value_id].append((one.instruction, one.shape_index))
    for value in dump.values:
        assert value.positions is not None
        assert value.uses is not None
        printed = [(one.instruction, one.shape_index or "{}") for one in value.positions]
        assert sorted(positions[value.id]) == sorted(printed), value
        uses = [(one.instruction, one.operand_number, one.operand_index or "{}") for one in value.uses]
        assert sorted(found.lifetimes.uses[value.id]) == sorted(uses), value
    assert dump.ranges is not None
    assert found.lifetimes.schedule == dump.schedule
    places = {value.id: (value.instruction, value.shape_index or "{}") for value in dump.values}
    ranges = {places[id_]: range_ for id_, range_ in found.lifetimes.ranges.items()}
    assert ranges == {(one.instruction, one.shape_index): (one.start, one.end) for one in dump.ranges}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: f"{path.parent.name}/{path.name[:20]}")
def test_it_is_what_the_compiler_prints(path: Path) -> None:
    """CPU and TPU of several releases."""
    assert_as_printed(path)


@pytest.mark.slow
def test_it_is_what_the_compiler_prints_on_the_whole_corpus(shared_corpus: Path) -> None:
    """Every set whose HLO text is scheduled and leaves nothing out; the one exception is documented."""
    compared = 0
    for path in sorted(shared_corpus.rglob("*after_optimizations.txt")):
        if not primary_of(path).exists() or parse_dump(primary_of(path)).ranges is None:
            continue
        text = read_hlo_text(path, with_links=True)
        starts_late = path.parent.name == "gpumh" and "async-start" in text.instructions.opcode
        assert text.links is not None
        if text.header.is_scheduled and not text.links.elements and not starts_late:
            assert_as_printed(path)
            compared += 1
    assert compared >= 229


def module(
    tmp_path: Path, *lines: str, head: str = "", before: str = "", records: int = MAX_RECORDS
) -> TextModule:
    """Read an HLO text whose entry computation has three parameters and these lines."""
    path = tmp_path / "m.txt"
    parameters = [
        "%a = f32[4]{0} parameter(0)",
        "%b = f32[4]{0} parameter(1)",
        "%i = s32[] parameter(2)",
    ]
    body = "".join(f"  {line}\n" for line in (*parameters, *lines))
    path.write_text(
        f"HloModule m, is_scheduled=true{head}\n\n{before}ENTRY %main (a: f32[4]) -> f32[4] {{\n{body}}}\n"
    )
    return TextModule(read_hlo_text(path, with_links=True), Budget(records), str(path))


def shared(found: TextModule, *defining: tuple[str, tuple[int, ...]]) -> set[tuple[str, str]]:
    """Return the instructions of different values in one buffer; `a`, `b` and `i` are values too."""
    text = found._text
    assert text.links is not None
    rows = found.row_of_name
    places = [Place(rows[name], part) for name, part in (("a", ()), ("b", ()), ("i", ()), *defining)]
    definitions = {place: number for number, place in enumerate(places)}
    derivation = Derivation(found, definitions)
    names = [found.columns.instruction[place.row] for place in places]
    pairs = shared_values(found, derivation.places, text.header.aliases, text.links.in_place)
    return {(names[min(pair)], names[max(pair)]) for pair in pairs if pair[0] != pair[1]}


FUSED = """%inner (q.0: f32[4]) -> f32[4] {
  %q.0 = f32[4]{0} parameter(0)
  %q.1 = f32[1]{0} parameter(1)
  %q.2 = s32[] parameter(2)
  ROOT %q.dus = f32[4]{0} dynamic-update-slice(%q.0, %q.1, %q.2)
}

%fused (p.0: f32[4], p.1: f32[4], p.2: s32[]) -> (f32[4], f32[4]) {
  %p.0 = f32[4]{0} parameter(0)
  %p.1 = f32[4]{0} parameter(1)
  %p.2 = s32[] parameter(2)
  %cut = f32[1]{0} slice(%p.1), slice={[0:1]}
  %cast = f32[4]{0} bitcast(%p.1)
  %nested = f32[4]{0} fusion(%cast, %cut, %p.2), kind=kLoop, calls=%inner
  %dus = f32[4]{0} dynamic-update-slice(%nested, %cut, %p.2)
  %sum = f32[4]{0} add(%p.0, %p.0)
  ROOT %both = (f32[4]{0}, f32[4]{0}) tuple(%sum, %dus)
}

"""


@pytest.mark.parametrize(
    ("line", "pairs"),
    [
        ("f32[4]{0} dynamic-update-slice(%a, %b, %i)", {("a", "r")}),
        ("f32[4]{0} scatter(%a, %i, %b), to_apply=%add", {("a", "r")}),
        ("f32[4]{0} all-reduce-start(%b), to_apply=%add", {("b", "r")}),
        ("f32[<=4]{0} set-dimension-size(%a, %i), dimensions={0}", {("a", "r")}),
        ("f32[4]{0} ragged-all-to-all(%a, %b, %i, %i, %i, %i)", {("b", "r")}),
        ("f32[4]{0} collective-permute(%a, %b, %i, %i), source_target_pairs={}", {("b", "r")}),
        ("f32[4]{0} collective-permute(%a), source_target_pairs={}", set()),
        (
            'f32[4]{0} custom-call(%i, %b), custom_call_target="output_to_operand_aliasing={{}: (0, {})}",'
            ' output_to_operand_aliasing={{}: (1, {})}, backend_config="x"',
            {("b", "r")},
        ),
        ("f32[4]{0} add(%a, %b)", set()),
    ],
    ids=lambda line: line.split("(")[0].split()[-1] if isinstance(line, str) else "",
)
def test_what_is_updated_in_place_lies_in_one_buffer(
    line: str, pairs: set[tuple[str, str]], tmp_path: Path
) -> None:
    """Which operand it is depends on the opcode."""
    assert shared(module(tmp_path, f"ROOT %r = {line}"), ("r", ())) == pairs


def test_a_fusion_updates_in_place_what_its_root_does(tmp_path: Path) -> None:
    """Behind tuples, a fusion within it and a bitcast; the other output is new."""
    call = "ROOT %r = (f32[4]{0}, f32[4]{0}) fusion(%a, %b, %i), kind=kLoop, calls=%fused"
    found = module(tmp_path, call, before=FUSED)
    assert shared(found, ("r", (0,)), ("r", (1,))) == {("b", "r")}


def test_a_fusion_that_calls_itself_ends(tmp_path: Path) -> None:
    """No compiler writes that."""
    fused = FUSED.replace("calls=%inner", "calls=%fused").replace(
        "dynamic-update-slice(%nested", "fusion(%p.0"
    )
    call = "ROOT %r = (f32[4]{0}, f32[4]{0}) fusion(%a, %b, %i), kind=kLoop, calls=%fused"
    assert shared(module(tmp_path, call, before=fused), ("r", (1,))) == set()


def test_loops_branches_and_donations_share(tmp_path: Path) -> None:
    """A loop's values with its result, the results of branches with the conditional's."""
    before = """%body (s: f32[4]) -> f32[4] {
  %s = f32[4]{0} parameter(0)
  ROOT %step = f32[4]{0} negate(%s)
}

%test (t: f32[4]) -> pred[] {
  %t = f32[4]{0} parameter(0)
  ROOT %no = pred[] constant(false)
}

%left (l: f32[4]) -> f32[4] {
  ROOT %l = f32[4]{0} parameter(0)
}

%right (g: f32[4]) -> f32[4] {
  %g = f32[4]{0} parameter(0)
  ROOT %new = f32[4]{0} negate(%g)
}

"""
    found = module(
        tmp_path,
        "%w = f32[4]{0} while(%a), condition=%test, body=%body",
        "ROOT %r = f32[4]{0} conditional(%i, %b, %w), branch_computations={%left, %right}",
        head=", input_output_alias={ {}: (0, {}, may-alias) }",
        before=before,
    )
    own: list[tuple[str, tuple[int, ...]]] = [(name, ()) for name in ("s", "step", "t", "w", "new", "r")]
    assert shared(found, *own) == {
        ("a", "w"),
        ("s", "w"),
        ("step", "w"),
        ("t", "w"),
        ("b", "r"),
        ("new", "r"),
        ("a", "r"),
    }


def test_elements_without_an_instruction_are_followed(tmp_path: Path) -> None:
    """Since jaxlib 0.11 `%x#1` stands for a get-tuple-element, which has no slot then."""
    found = module(
        tmp_path,
        "%t = (f32[4]{0}, (s32[], /*index=1*/f32[4]{0})) tuple(%a, %p)",
        "%p = (s32[], f32[4]{0}) tuple(%i, %b)",
        "ROOT %r = f32[4]{0} add(%t#0, %t#1#1)",
    )
    text = found._text
    values = [PlacedValue(number, name, "", "f32[4]{0}") for number, name in enumerate("abr")]
    answer = derive_of_text(text, values, Budget(), "m.txt")
    assert isinstance(answer, DerivedOfText)
    assert answer.left_out == 2
    assert [one[1:] for one in answer.positions if one.value_id == 1] == [
        ("b", "{}"),
        ("t", "{1,1}"),
        ("p", "{1}"),
    ]
    assert answer.lifetimes.uses == {0: (("r", 0, "{}"),), 1: (("r", 1, "{}"),), 2: ()}
    assert answer.lifetimes.ranges[2] == (5, 6)


@pytest.mark.parametrize("operands", ["%a#, %a#x", "a#0, b#", "%a#9999999999999, %b", "#1, #"])
def test_elements_that_are_none_are_passed_over(operands: str, tmp_path: Path) -> None:
    """A damaged text is read as far as it goes."""
    found = module(tmp_path, f"ROOT %r = f32[4]{{0}} add({operands})")
    assert found.columns.opcode[-1] == "add"
    assert all(len(parts) == found.operand_count(row) for row, parts in found.elements.items())
    assert len(found.elements) == operands.count("#0, ") + operands.count("#1, ")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (PlacedValue(7, "z", "{0}", "f32[4]{0}"), "it has no z{0}, where value 7 is defined"),
        (PlacedValue(7, "a", "{0}", "f32[4]{0}"), "it has no a{0}"),
        (PlacedValue(7, "a", "", "f32[8]{0}"), "a is f32[4]{0} in it, and f32[8]{0} in the dump"),
    ],
)
def test_a_text_of_another_compilation_gives_nothing(value: PlacedValue, words: str, tmp_path: Path) -> None:
    """It is said which value does not fit."""
    found = derive_of_text(module(tmp_path)._text, [value], Budget(), "m.txt")
    assert isinstance(found, str)
    assert words in found


def test_a_shape_that_nests_without_end_is_beyond_the_budget(tmp_path: Path) -> None:
    """Its parts take the square of its length."""
    depth = 1_000
    shape = "(" * depth + "f32[4]{0}" + ")" * depth
    found = module(tmp_path, f"ROOT %r = {shape} tuple(%a)", records=10_000)
    with pytest.raises(DumpError, match="more than"):
        found.indexes(found.row_of_name["r"])
