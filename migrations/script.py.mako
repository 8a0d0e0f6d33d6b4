<%!
    def statements(rendered):
        """Return what Alembic generated, without its remarks."""
        lines = (rendered or "pass").splitlines()
        return "\n".join(line for line in lines if not line.lstrip().startswith("# ###")).strip()
%>\
"""${message}.

Revision: ${up_revision}, after ${down_revision or "nothing"}
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply the revision."""
    ${statements(upgrades)}


def downgrade() -> None:
    """Take the revision back."""
    ${statements(downgrades)}
