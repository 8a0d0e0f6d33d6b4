"""What lies beside a dump: HLO text and protobuf.

Revision: 0002_siblings, after 0001_core
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from ingest.store.schema import Compressed

revision = "0002_siblings"
down_revision = "0001_core"
branch_labels = None
depends_on = None


def _column(name: str, type_: Any, comment: str, *, required: bool = False) -> sa.Column[Any]:
    return sa.Column(name, type_, nullable=not required, comment=comment, autoincrement=False)


def upgrade() -> None:
    """Add the tables, and columns of allocations and values."""
    op.add_column(
        "allocations", _column("is_tuple", sa.Boolean, "Holds a tuple table; NULL without protobuf.")
    )
    op.add_column(
        "allocations",
        _column(
            "is_aliased_with_output",
            sa.Boolean,
            "The protobuf's is_parameter_aliased_with_output; NULL where it is not told.",
        ),
    )
    op.add_column(
        "values",
        _column(
            "source_via",
            sa.String,
            "How the source line was found: own (the instruction's metadata), fused, operand, user or caller "
            "(inherited from a near instruction of the HLO module).",
        ),
    )
    op.add_column(
        "values",
        _column("source_frame_id", sa.BigInteger, "Frame of the source line (source_frames.frame_id)."),
    )
    op.create_table(
        "hlo_modules",
        _column("run_id", sa.BigInteger, "Run that this row belongs to (runs.run_id).", required=True),
        _column("name", sa.String, "Name of the HLO module."),
        _column("is_scheduled", sa.Boolean, "The module has a schedule.", required=True),
        _column("num_partitions", sa.BigInteger, "num_partitions; 1 where it is not printed."),
        _column("replica_count", sa.BigInteger, "replica_count; 1 where it is not printed."),
        _column(
            "entry_computation_layout", Compressed, "Layouts of the entry's parameters and result, verbatim."
        ),
        comment="One row for each run whose HLO text or protobuf was read: what the module's head tells.",
    )
    op.create_table(
        "source_frames",
        _column("run_id", sa.BigInteger, "Run that this row belongs to (runs.run_id).", required=True),
        _column(
            "frame_id",
            sa.BigInteger,
            "Number of the frame; values.stack_frame_id refers to it.",
            required=True,
        ),
        _column("parent_frame_id", sa.BigInteger, "Frame that called it; NULL for the outermost."),
        _column("function", sa.String, "Name of the function."),
        _column("file", sa.String, "Source file."),
        _column("line", sa.BigInteger, "First line, from 1."),
        _column("end_line", sa.BigInteger, "Last line, from 1."),
        _column("column", sa.BigInteger, "First column."),
        _column("end_column", sa.BigInteger, "Last column."),
        _column("is_framework", sa.Boolean, "The file lies in a framework's own folders.", required=True),
        comment="One row for each Python stack frame that the HLO module names (jaxlib 0.8 and later).",
    )

    op.create_table(
        "instructions",
        _column("run_id", sa.BigInteger, "Run that this row belongs to (runs.run_id).", required=True),
        _column("position", sa.BigInteger, "Order in the module, from 0.", required=True),
        _column("computation", sa.String, "Computation that holds it.", required=True),
        _column("instruction", sa.String, "Name, unique within the run.", required=True),
        _column("opcode", sa.String, "Opcode.", required=True),
        _column("shape", Compressed, "Shape with layout, verbatim.", required=True),
        _column("operands", sa.ARRAY(sa.String), "Names of the operands, in order."),
        _column("op_name", sa.String, "op_name of its metadata."),
        _column("stack_frame_id", sa.BigInteger, "Frame of its metadata (source_frames.frame_id)."),
        _column("called_computations", sa.ARRAY(sa.String), "Computations that it calls, in order."),
        _column("is_root", sa.Boolean, "Root of its computation.", required=True),
        _column("source_file", sa.String, "Source file: innermost frame of the user's own code."),
        _column("source_line", sa.BigInteger, "Source line of that frame, from 1."),
        _column("source_via", sa.String, "How the source line was found; see values.source_via."),
        comment="One row for each HLO instruction of the module, fused ones too; from HLO text or protobuf.",
    )

    op.create_table(
        "aliases",
        _column("run_id", sa.BigInteger, "Run that this row belongs to (runs.run_id).", required=True),
        _column(
            "output_index",
            sa.String,
            "Part of the entry result. ShapeIndex as XLA prints it; {} is the top level.",
            required=True,
        ),
        _column(
            "parameter_number",
            sa.BigInteger,
            "Entry parameter that shares its buffer, from 0.",
            required=True,
        ),
        _column(
            "parameter_index",
            sa.String,
            "Part of that parameter. ShapeIndex as XLA prints it; {} is the top level.",
            required=True,
        ),
        _column(
            "kind", sa.String, "may (the runtime decides) or must (the compiler relies on it).", required=True
        ),
        comment="One row for each entry of the module's input_output_alias: a donation.",
    )

    op.create_table(
        "heap_events",
        _column("run_id", sa.BigInteger, "Run that this row belongs to (runs.run_id).", required=True),
        _column("allocation_index", sa.BigInteger, "Arena that the trace is of; NULL where it is not told."),
        _column("position", sa.BigInteger, "Order within the run, from 0.", required=True),
        _column("kind", sa.String, "alloc, free or share.", required=True),
        _column("value_id", sa.BigInteger, "Value concerned.", required=True),
        _column("share_with_value_id", sa.BigInteger, "Value whose memory it shares; NULL otherwise."),
        _column("computation", sa.String, "Computation of the instruction at which it happens."),
        _column("instruction", sa.String, "Instruction at which it happens."),
        comment="One row for each event of the protobuf's heap simulator traces.",
    )

    op.create_table(
        "peak_buffers",
        _column("run_id", sa.BigInteger, "Run that this row belongs to (runs.run_id).", required=True),
        _column("allocation_index", sa.BigInteger, "Allocation.", required=True),
        _column(
            "value_id",
            sa.BigInteger,
            "Value that the compiler counts at that allocation's peak.",
            required=True,
        ),
        comment="One row for each value of the protobuf's peak buffers (jaxlib 0.10.2 and later).",
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_table("peak_buffers")
    op.drop_table("heap_events")
    op.drop_table("aliases")
    op.drop_table("instructions")
    op.drop_table("source_frames")
    op.drop_table("hlo_modules")
    op.drop_column("allocations", "is_aliased_with_output")
    op.drop_column("allocations", "is_tuple")
    op.drop_column("values", "source_frame_id")
    op.drop_column("values", "source_via")
