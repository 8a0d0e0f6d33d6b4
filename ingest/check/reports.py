"""Write a gate's report: for people, for GitHub, for whatever reads JUnit, for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Final
from xml.etree import ElementTree

from ingest.check.findings import Finding, Outcome, Report
from ingest.display import place_in
from ingest.query.cells import human_bytes, signed_bytes
from ingest.version import VERSION

_ANNOTATIONS: Final = 10
"""GitHub shows no more errors of a step."""
_WORD: Final = {Outcome.PASSED: "ok", Outcome.BROKEN: "BROKEN", Outcome.UNCHECKED: "UNCHECKED"}
_MARKDOWN: Final = re.compile(r"([\\`*_\[\]<>#!|~&@$]|:(?=//))")


def write_report(report: Report, format_: str) -> str:
    """Write a report in one of FORMATS; it ends with a line break."""
    return _WRITERS[format_](report)


def _text(report: Report) -> str:
    width = max((len(_WORD[finding.outcome]) for finding in report.findings), default=0)
    order = (*report.trouble, *report.of(Outcome.PASSED))
    lines = [f"{_WORD[finding.outcome]:<{width}}  {finding.sentence}" for finding in order]
    return "\n".join([*lines, report.conclusion]) + "\n"


def _markdown(report: Report) -> str:
    """Write a table of what is wrong, and one of the buffers behind it."""
    mark = {0: "✅", 1: "❌"}.get(report.exit_code, "⚠️")
    compared = f", compared with {_literal(report.baseline)}" if report.baseline else ""
    lines = [f"## {mark} Memory: {_literal(report.conclusion)}", ""]
    lines += [f"Checked {', '.join(map(_literal, report.checked))}{compared}.", ""]
    for finding in report.trouble:
        lines.append(f"- **{finding.outcome}** {_literal(finding.sentence)}")
    caused = [finding for finding in report.trouble if finding.causes]
    if caused:
        lines += ["", "| module | rule | buffer | source | operation | bytes | growth |"]
        lines += ["| --- | --- | --- | --- | --- | ---: | ---: |"]
    for finding in caused:
        for cause in finding.causes:
            growth = "" if cause.growth_bytes is None else signed_bytes(cause.growth_bytes)
            source = "" if cause.file is None else place_in(cause.file, cause.line)
            value = cause.value if cause.number == 1 else f"{cause.value} and {cause.number - 1:,} alike"
            cells = (finding.module or "", finding.rule, value, source, cause.op_name or "")
            sizes = (human_bytes(cause.bytes) if cause.bytes else "", growth)
            lines.append(f"| {' | '.join((*map(_literal, cells), *sizes))} |")
    passed = report.of(Outcome.PASSED)
    if passed:
        lines += ["", f"<details><summary>{len(passed):,} passed</summary>", ""]
        lines += [*(f"- {_literal(finding.sentence)}" for finding in passed), "", "</details>"]
    return "\n".join(lines) + "\n"


def _literal(text: str) -> str:
    """Escape a text so that Markdown shows it as it is; an entity where a backslash would not do."""
    return _MARKDOWN.sub(
        lambda match: f"&#{ord(match[1])};" if match[1] in "<>&@|" else f"\\{match[1]}", text
    )


def _github(report: Report) -> str:
    """Write workflow commands: errors at source lines, at most ten, then the conclusion."""
    lines = [_annotation(finding) for finding in report.trouble[:_ANNOTATIONS]]
    if len(report.trouble) > _ANNOTATIONS:
        rest = len(report.trouble) - _ANNOTATIONS
        lines[-1:] = [_command("error", {"title": "xbuf check"}, f"{rest + 1} more, see the whole report")]
    lines.append(_command("notice", {"title": "xbuf check"}, report.conclusion))
    return "\n".join(lines) + "\n"


def _annotation(finding: Finding) -> str:
    properties = {}
    if (place := finding.place) is not None:
        properties["file"] = place.file or ""
        if place.line is not None:
            properties["line"] = str(place.line)
    properties["title"] = f"xbuf check: {finding.rule} {finding.outcome}"
    return _command("error", properties, finding.sentence)


def _command(name: str, properties: Mapping[str, str], message: str) -> str:
    """Write a workflow command, escaped as actions/toolkit does."""
    given = ",".join(
        f"{key}={_command_data(value).replace(':', '%3A').replace(',', '%2C')}"
        for key, value in properties.items()
    )
    return f"::{name} {given}::{_command_data(message)}"


def _command_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _junit(report: Report) -> str:
    """Write JUnit XML: a rule is a class, a run a test; what could not be checked is an error."""
    counts = {
        "tests": len(report.findings),
        "failures": len(report.of(Outcome.BROKEN)),
        "errors": len(report.of(Outcome.UNCHECKED)),
        "skipped": 0,
        "time": 0,
    }
    attributes = {key: str(value) for key, value in counts.items()}
    root = ElementTree.Element("testsuites", {"name": "xbuf check", **attributes})
    suite = ElementTree.SubElement(root, "testsuite", {"name": "xbuf check", **attributes})
    for finding in report.findings:
        run = "" if finding.run_id is None else f" run {finding.run_id}"
        name = f"{finding.module or 'all modules'}{f' ({finding.backend})' if finding.backend else ''}{run}"
        case = {"classname": f"xbuf.{finding.kind}", "name": f"{finding.rule}: {name}", "time": "0"}
        if (place := finding.place) is not None:
            case["file"] = place.file or ""
            if place.line is not None:
                case["line"] = str(place.line)
        test = ElementTree.SubElement(suite, "testcase", case)
        if finding.outcome is not Outcome.PASSED:
            tag = "failure" if finding.outcome is Outcome.BROKEN else "error"
            element = ElementTree.SubElement(test, tag, {"message": finding.sentence, "type": finding.kind})
            element.text = finding.sentence
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _json(report: Report) -> str:
    document = {
        "version": VERSION,
        "exit_code": int(report.exit_code),
        "conclusion": report.conclusion,
        "checked": report.checked,
        "baseline": report.baseline,
        "runs": report.runs,
        "findings": [asdict(finding) for finding in report.findings],
    }
    return json.dumps(document, indent=1) + "\n"


_WRITERS: Final[Mapping[str, Callable[[Report], str]]] = {
    "text": _text,
    "markdown": _markdown,
    "github": _github,
    "junit": _junit,
    "json": _json,
}
FORMATS: Final = tuple(_WRITERS)
"""How a report can be written."""
