"""What the expressions of several sections share: names, numbers, and how known lines begin (FORMAT 1)."""

from __future__ import annotations

import re
from typing import Final

NAME: Final = r"[^\s{}<>|,]+"
INDEX: Final = r"\{[0-9,]*\}"
INT: Final = r"(?!0[0-9])[0-9]{1,40}"
"""A number as XLA prints it; one of more digits is damage, and int() refuses 4,301 of them."""
SINT: Final = r"(?!-?0[0-9]|-0)-?[0-9]{1,40}"
KEY: Final = rf"({INT}) ({NAME})({INDEX})?( \(phi\))?(?: @({SINT}))?"
"""Inside of `<id name{index} (phi) @color>`: five groups."""
LIMIT: Final = 2**63
"""Numbers must fit a signed 64-bit integer."""
LINES: Final = re.compile(r".*\n|.+\Z")
"""Lines with their newline; str.splitlines would also cut at U+2028, form feeds and the like."""
KNOWN_START: Final = re.compile(
    r"allocation |BufferAssignment:| value:|  value:| reused by|Total bytes used|Used values:|<[0-9]"
    r"| positions:| uses:| from instruction:|HloLiveRange|  InstructionSequence:|  BufferLiveRange:"
    r"|  Live ranges at|  Peak memory could not|  Stack trace breakdown"
)
"""How lines begin that mean something; where one stands that cannot be read, the file is damaged."""
