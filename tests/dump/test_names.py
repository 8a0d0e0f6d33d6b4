"""File names of dumps: which set and role they belong to, and what was compiled."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.dump.names import DumpName, is_xla_named, parse_stem, split_member

_TF_NAME = (
    "a_inference_mm_15__XlaMustCompile_true_config_proto_3175580994766145631"
    "_executor_type_11160318154034397263_.24"
)
_TF25_STEM = (
    "1795194691631740.module_0058.a_inference_wl_62__XlaMustCompile_true_config_proto___n_007_n_003CPU_020_001"
    "_n_007_n_003GPU_020_0002_002J_0008_001_202_001_000__executor_type____.58.cpu_after_optimizations"
)


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        ("module_0000.after_optimizations", DumpName(0, None, None, None, "after_optimizations")),
        (
            "1795194691631740.module_0001.after_optimizations",
            DumpName(1, None, None, None, "after_optimizations", datetime(2026, 11, 20, 17, 11, 31, 631740)),
        ),
        (
            "module_0001.jit_f.cpu_after_optimizations",
            DumpName(1, "jit_f", "cpu", "cpu", "after_optimizations"),
        ),
        (
            f"module_0015.{_TF_NAME}.cpu_after_optimizations",
            DumpName(15, _TF_NAME, "cpu", "cpu", "after_optimizations"),
        ),
        (
            "module_18571.jit_sc.sm_9.0a_gpu_after_optimizations",
            DumpName(18571, "jit_sc", "sm_9.0a_gpu", "gpu", "after_optimizations"),
        ),
        (
            "module_0003.a.b.24.sm_8.0_gpu_after_optimizations",
            DumpName(3, "a.b.24", "sm_8.0_gpu", "gpu", "after_optimizations"),
        ),
        (
            "module_0003.jit_f.gpu_after_optimizations",
            DumpName(3, "jit_f", "gpu", "gpu", "after_optimizations"),
        ),
        (
            "module_0003.jit_f.gfx90a_gpu_after_optimizations",
            DumpName(3, "jit_f", "gfx90a_gpu", "gpu", "after_optimizations"),
        ),
        ("module_0005.jit_wl.after_optimizations", DumpName(5, "jit_wl", None, None, "after_optimizations")),
        (
            "module_0000.jit_from_int2.cl_933746096.after_optimizations",
            DumpName(0, "jit_from_int2", "cl_933746096", "tpu", "after_optimizations"),
        ),
        (
            "1795194691631740.module_0007.jit_cond1.cl_933746096.after_optimizations",
            DumpName(
                7,
                "jit_cond1",
                "cl_933746096",
                "tpu",
                "after_optimizations",
                datetime(2026, 11, 20, 17, 11, 31, 631740),
            ),
        ),
        (
            "module_0001.jit___n__c__d_________________.cl_889434569.after_optimizations",
            DumpName(1, "jit___n__c__d_________________", "cl_889434569", "tpu", "after_optimizations"),
        ),
    ],
)
def test_stem_of_each_backend_and_era_tells_its_parts(stem: str, expected: DumpName) -> None:
    """Dots in module names and targets, timestamps and TPU build numbers all fall into place."""
    assert parse_stem(stem) == expected


@pytest.mark.parametrize(
    ("stem", "target"),
    [
        ("module_0063.cpu_after_optimizations", "cpu"),
        ("module_0063.sm_9.0a_gpu_after_optimizations", "sm_9.0a_gpu"),
        ("module_0063.cl_933746096.after_optimizations", "cl_933746096"),
    ],
)
def test_dropped_module_name_leaves_the_target(stem: str, target: str) -> None:
    """XLA drops a module name that makes the file name too long; the target is not taken for it."""
    name = parse_stem(stem)
    assert (name.module_id, name.module_name, name.target) == (63, None, target)


@pytest.mark.parametrize(
    "stem",
    ["", "train_step", "000_350494ed927c1c64", "module_", "module_12.jit_f.cpu_after_optimizations",
     "x.module_0001.f", "jit_f.cpu_after_optimizations",
     "module_\u0661\u0661\u0661\u0661.jit_f.cpu_after_optimizations"],
)  # fmt: skip
def test_other_naming_tells_nothing(stem: str) -> None:
    """A stem that is not XLA's gives no facts at all."""
    assert parse_stem(stem) == DumpName()


def test_unknown_stage_still_tells_the_number_and_the_time() -> None:
    """A stage of a later release does not hide what stands before it."""
    name = parse_stem("1795194691631740.module_0001.jit_f.cpu_after_something_new")
    assert name == DumpName(module_id=1, dump_time=datetime(2026, 11, 20, 17, 11, 31, 631740))


@pytest.mark.parametrize("stamp", ["0", "1", "9" * 15 + "99", "9" * 16, "9" * 5000])
def test_absurd_timestamp_is_no_time(stamp: str) -> None:
    """A number that is no microsecond count of this age gives no time and no error."""
    name = parse_stem(f"{stamp}.module_0001.jit_f.cpu_after_optimizations")
    assert (name.module_id, name.module_name, name.dump_time) == (1, "jit_f", None)


@pytest.mark.parametrize(
    ("digits", "expected"),
    [
        ("14587123456", 14587123456),
        (str(2**63 - 1), 2**63 - 1),
        (str(2**63), None),
        ("9" * 5000, None),
    ],
)
def test_module_number_stays_within_bigint(digits: str, expected: int | None) -> None:
    """Numbers of more than four digits are read; what no column can hold is left out."""
    name = parse_stem(f"module_{digits}.jit_f.cpu_after_optimizations")
    assert (name.module_id, name.module_name) == (expected, "jit_f")


@pytest.mark.parametrize("ending", ["", ".gz", ".zst", ".zstd"])
@pytest.mark.parametrize(
    ("file_name", "role"),
    [
        ("-buffer-assignment.txt", "primary"),
        ("-buffer-assignment-values.txt", "values"),
        ("-live-range.txt", "live_range"),
        (".txt", "hlo"),
    ],
)
def test_text_members_are_told_by_their_endings(file_name: str, role: str, ending: str) -> None:
    """Each text of a set has its role, compressed or not, and the same stem."""
    stem = "module_0003.jit_f.sm_9.0a_gpu_after_optimizations"
    assert split_member(stem + file_name + ending) == (stem, role)


@pytest.mark.parametrize("ending", [".hlo.pb", ".hlo.pb.gz"])
def test_protobuf_members_are_told_by_their_endings(ending: str) -> None:
    """XLA writes protobufs plain or gzipped."""
    assert split_member(_TF25_STEM + ending) == (_TF25_STEM, "proto")


def test_named_members_need_no_naming_of_xla() -> None:
    """People rename sets; the ending alone tells the role, except for HLO text."""
    assert split_member("step-buffer-assignment-values.txt") == ("step", "values")
    assert split_member("\udcff\n'-buffer-assignment.txt") == ("\udcff\n'", "primary")
    assert split_member("step.txt") is None
    assert split_member("step.after_optimizations.txt") is None


@pytest.mark.parametrize(
    "file_name",
    [
        "module_0005.jit_wl.cl_747713181.after_optimizations_before_buffer_assignment.txt",
        "module_0005.jit_wl.cl_747713181.after_optimizations_after_buffer_assignment.txt",
        "module_0001.jit_f.cpu_after_optimizations-memory-usage-report.txt",
        "module_0001.jit_f.cpu_after_optimizations-memory-usage-report.pb",
        "module_0001.jit_f.cpu_after_optimizations-memory-usage-report.pb.gz",
        "module_0001.jit_f.before_optimizations.txt",
        "module_0001.jit_f.thunk_sequence.txt",
        "module_0001.jit_f.cpu_after_optimizations.riegeli",
        "module_0001.jit_f.ir-with-opt.ll",
        "-buffer-assignment.txt",
        "-live-range.txt.gz",
        ".hlo.pb",
        "buffer-assignment.txt",
        "module_0001.jit_f.cpu_after_optimizations-buffer-assignment.txt~",
        "module_0001.jit_f.cpu_after_optimizations-buffer-assignment.txt.bz2",
        "README.md",
        ".gz",
        "",
    ],
)
def test_neighbours_of_members_are_no_members(file_name: str) -> None:
    """Names that look like a member's to a careless pattern have no role."""
    assert split_member(file_name) is None


@pytest.mark.parametrize(
    ("file_name", "expected"),
    [
        ("module_0001.jit_f.ir-with-opt.ll", True),
        ("1795194691631740.module_0001.after_optimizations-memory-usage-report.txt", True),
        ("module_145871234.x.debug_options", True),
        ("module_0001", False),
        ("module_1.txt", False),
        ("my_module_0001.txt", False),
        ("000_350494ed927c1c64.txt", False),
    ],
)
def test_xla_naming_is_told_from_other_names(file_name: str, expected: bool) -> None:
    """Only a file under XLA's own naming need not be opened to know what it is."""
    assert is_xla_named(file_name) is expected


@given(
    st.text(max_size=60)
    | st.from_regex(r"([0-9]{1,30}\.)?module_[0-9]{4,30}\.[a-z._0-9]{0,40}after_optimizations")
)
def test_no_name_breaks_the_parsers(name: str) -> None:
    """Any text is a name that is told or is not; a role's stem and ending make the name again."""
    parse_stem(name)
    member = split_member(name)
    if member is not None:
        assert member.stem
        assert name.startswith(member.stem)


def test_every_name_of_the_corpus_is_understood(shared_corpus: Path) -> None:
    """All dumps of all releases have a role and a stage; all but old TensorFlow and TPU tell a backend."""
    primaries = list(shared_corpus.rglob("*-buffer-assignment.txt"))
    names = [parse_stem(member.stem) for path in primaries if (member := split_member(path.name))]
    assert 337 == len(names)
    assert {name.stage for name in names} == {"after_optimizations"}
    assert {name.backend for name in names} == {"cpu", "gpu", "tpu", None}
    assert all(name.module_id is not None for name in names)
    assert all(name.module_name is None for name in names if name.backend is None)
