"""Text of a window report for people: sizes, shares, left-out parts and reasons."""

from __future__ import annotations

from runtime.context import report as context_report
from runtime.context import window
from runtime.display.text import count, one_line

RUNGS: dict[context_report.RungName, str] = {
    "pointers": "outputs become pointers",
    "dropped": "the oldest is left out",
    "summary": "the oldest is summed up",
}


def lines(report: window.Report) -> list[str]:
    """Render the report: a line for each part, each reduction, and each kind of left-out item."""
    rows = [("window", f"{report.tokens:,} of {report.limit:,} tokens")]
    for each in report.sections:
        share = f"  share {each.share:.0%}" if each.share is not None else ""
        messages = f"  {count(each.messages, 'message')}" if each.messages else ""
        rows.append((f"  {each.name}", f"{each.tokens:,} tokens{messages}{share}"))
    rows += [(RUNGS[each.name], str(each)) for each in report.rungs]
    if report.lost:
        parts = ", ".join(f"{each.what} ({each.tokens:,} tokens)" for each in report.lost)
        due = any(each.outcome == "due" for each in report.rungs)
        rows.append(
            (
                "to be summed up" if due else "not in the request",
                parts + (f"; enough is `{report.flags}`" if report.flags else ""),
            )
        )
    left: dict[tuple[str, str], list[int]] = {}
    for each in (each for each in report.left if not each.lost):
        left.setdefault((each.what, each.why), []).append(each.tokens)
    for (what, why), tokens in left.items():
        times = f" ({len(tokens)})" if len(tokens) > 1 else ""
        rows.append((f"left out: {what}{times}", f"{sum(tokens):,} tokens: {why}"))
    # Names can come from a person's Markdown, and reasons from a server, so each is put on one line.
    indented = [(_indented(name), one_line(text)) for name, text in rows]
    wide = max(len(name) for name, _text in indented)
    return [f"{name:<{wide}}  {text}" for name, text in indented]


def _indented(name: str) -> str:
    return f"{'  ' if name.startswith('  ') else ''}{one_line(name)}"
