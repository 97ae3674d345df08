"""The findings of `headstart` about a kernel, as an object."""

from __future__ import annotations

import html
import logging
import re
import tempfile
import webbrowser
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart.errors import HeadstartError, UsageError

log = logging.getLogger("headstart")

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas

__all__ = ["Choice", "Report", "Step"]


@dataclass(frozen=True)
class Choice:
    """One possible change to the kernel."""

    what: str
    """`leave it`, `unroll`, `prefetch`, or another geometry."""
    plan: str | None
    """The plan, as the command spells it."""
    time_ns: float
    """The kernel's time with it, in nanoseconds."""
    speedup: float
    """The plain kernel's time divided by it."""
    chosen: bool
    between: tuple[float, float] | None = None
    """Between which values the speedup lies, in nine of ten cases."""


@dataclass(frozen=True)
class Step:
    """One question of the checklist, its answer, and the findings."""

    question: str
    answer: str
    """`yes` speaks for prefetching, `no` against it; or `unknown`."""
    finding: str
    place: str | None
    """File, line and column of the source that it is about."""


@dataclass(frozen=True, repr=False)
class Report:
    """The findings about a launch: should the kernel prefetch, how, and how much it gains."""

    kernel: Any
    """The kernel that was asked about. It launches as it always did, `report.kernel[grid](…)`: where `install` or `tuned` looks
    at it, in its better form. Of a kernel that Inductor launches, `None`."""
    name: str
    """The entry's name."""
    device: str
    verdict: str
    """`prefetch`, `unroll`, `launch settings`, `leave it`, `undecided`, …"""
    conclusion: str
    """The verdict in a sentence with its numbers."""
    speedup: float
    """The plain kernel's time divided by that of the plan; 1 where the kernel is best left as it is."""
    plan: str | None
    """The plan to use, as the command spells it; `None` where the kernel is best left as it is."""
    time_ns: float
    """The plain kernel's time in nanoseconds: simulated, or measured on the GPU that `device` names."""
    reasons: list[str]
    """Why, with numbers."""
    choices: list[Choice]
    steps: list[Step]
    warnings: list[str]
    """Why the launch shows little of the kernel."""
    doubt: str | None
    """Why nothing is decided, where times are simulated."""
    raw: dict[str, Any] = field(repr=False)
    """The command's JSON."""
    make_page: Callable[[], str] | None = field(repr=False, compare=False, default=None)
    make_module: Callable[[], str] | None = field(repr=False, compare=False, default=None)

    def page(self) -> str:
        """The command's page about this launch: one self-contained HTML document with all figures.

        Raises:
            UsageError: the launch no longer exists.
        """
        if self.make_page is None:
            raise UsageError("the launch of this report is not at hand; ask `headstart.advise` again")
        return self.make_page()

    def open(self) -> Path:
        """Shows the page in the browser, and returns the file that it was written to.

        Raises:
            UsageError: the launch no longer exists.
        """
        name = re.sub(r"[^\w.-]", "_", self.name)
        path = Path(tempfile.mkdtemp(prefix="headstart-")) / f"{name}.html"
        path.write_text(self.page(), encoding="utf-8")
        webbrowser.open(path.as_uri())
        return path

    def ptx(self) -> str:
        """The module with the plan applied, as PTX; the original if there is no plan.

        Raises:
            UsageError: the launch no longer exists.
        """
        if self.make_module is None:
            raise UsageError("the launch of this report is not at hand; ask `headstart.advise` again")
        return self.make_module()

    def to_dataframe(self) -> pandas.DataFrame:
        """The possible changes, one row each: `what`, `plan`, `time_ns`, `speedup`, `chosen`, `between`.

        Raises:
            UsageError: pandas is missing.
        """
        try:
            import pandas
        except ImportError as missing:
            raise UsageError("a data frame needs pandas: `pip install pandas`") from missing

        rows = [vars(choice) for choice in self.choices]
        return pandas.DataFrame(rows, columns=["what", "plan", "time_ns", "speedup", "chosen", "between"])

    def __repr__(self) -> str:
        return f"<headstart.Report {self.name!r} on {self.device}: {self.verdict}, {self.speedup:.2f}×>"

    def __str__(self) -> str:
        lines = [f"{self.name} on {self.device}: {self.verdict}", f"  {self.conclusion}"]
        if self.plan:
            lines.append(f"  plan: {self.plan}")
        # Several questions of the checklist may have the same answer.
        lines += [f"  {reason}" for reason in dict.fromkeys(self.reasons)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The report in a notebook: verdict, a bar for each choice, the checklist, and the page with all figures.

        The page is made when the report is first shown, which takes about as long as the report did.
        """
        say = html.escape
        parts = [
            '<div style="font-family:sans-serif;max-width:60em">',
            f"<h3><code>{say(self.name)}</code> on {say(self.device)}: {say(self.verdict)}</h3>",
            f"<p>{say(self.conclusion)}</p>",
        ]
        if self.plan:
            parts.append(f"<p>Plan: <code>{say(self.plan)}</code></p>")
        parts += [f"<p><strong>{say(warning)}</strong></p>" for warning in self.warnings]
        parts.append(self._bars())
        parts.append("<table><tr><th>question</th><th>answer</th><th>what was found</th></tr>")
        for step in self.steps:
            cells = [step.question, step.answer, step.finding]
            parts.append("<tr>" + "".join(f'<td style="text-align:left">{say(cell)}</td>' for cell in cells) + "</tr>")
        parts.append("</table>")
        parts.append(self._figures())
        parts.append("</div>")
        return "".join(parts)

    def _repr_svg_(self) -> str | None:
        """A bar for each choice, for front ends that show only pictures."""
        return self._bars() or None

    def _figures(self) -> str:
        """The page in a frame of its own; empty if the launch no longer exists."""
        if self.make_page is None:
            return ""
        try:
            page = self.make_page()
        except HeadstartError as why:
            log.info("the figures of %s are left out: %s", self.name, why)
            return ""
        # A separate document: the notebook's styles and the page's do not mix, and its script has no access outside.
        return (
            f'<iframe sandbox="allow-scripts" title="all figures of {html.escape(self.name)}" '
            f'style="width:100%;height:40em;border:1px solid #ccc" srcdoc="{html.escape(page)}"></iframe>'
        )

    def _bars(self) -> str:
        longest = max((choice.time_ns for choice in self.choices), default=0.0)
        if longest <= 0.0:
            return ""
        height = 24 * len(self.choices)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{height}" role="img" '
            'aria-label="time of each choice" style="background:#fff;font-family:sans-serif">'
        ]
        for number, choice in enumerate(self.choices):
            width = 260.0 * choice.time_ns / longest
            colour = "#2a7" if choice.chosen else "#9ab"
            label = f"{choice.time_ns / 1000:.3g} µs, {choice.speedup:.2f}×, {choice.plan or choice.what}"
            parts.append(
                f'<rect x="0" y="{24 * number + 4}" width="{width:.1f}" height="16" fill="{colour}"/>'
                f'<text x="{width + 6:.1f}" y="{24 * number + 17}" font-size="12">{html.escape(label)}</text>'
            )
        return "".join(parts) + "</svg>"


def _between(own: dict[str, Any]) -> tuple[float, float] | None:
    low_high = own.get("between")
    return (low_high[0], low_high[1]) if low_high else None


#: The command's terms and those of CUDA, which its text has for NVIDIA's GPUs and its JSON has not; longer phrases come first.
_CUDA = (
    ("a core", "an SM"),
    ("A core", "An SM"),
    ("core", "SM"),
    ("sub-group", "warp"),
    ("Sub-group", "Warp"),
    ("work-group", "block"),
    ("Work-group", "Block"),
    ("work-item", "thread"),
    ("Work-item", "Thread"),
)
_TERM = re.compile(rf"(?<![\w/:=@.-])({'|'.join(ours for ours, _ in _CUDA)})(?=s?(?![\w/=@-])(?!\.\w))")


def in_terms(value: Any, device: str) -> Any:
    """The texts of an answer in the terms of the device's vendor; what stands between backquotes stays."""
    if device.startswith(("sim:pvc", "opencl")):
        return value
    if isinstance(value, str):
        parts = value.split("`")
        parts[::2] = [_TERM.sub(lambda found: dict(_CUDA)[found[1]], part) for part in parts[::2]]
        return "`".join(parts)
    if isinstance(value, list):
        return [in_terms(own, device) for own in value]
    if isinstance(value, dict):
        return {name: in_terms(own, device) for name, own in value.items()}
    return value


def of_advice(kernel: Any, raw: dict[str, Any]) -> Report:
    """A report from the output of `headstart advise --json`."""
    said = in_terms(raw, raw["device"])
    choices = [
        Choice(own["what"], own.get("plan"), own["time_ns"], own["speedup"], own["chosen"], _between(own))
        for own in raw["choices"]
    ]
    steps = [
        Step(own["question"], own["answer"], own["finding"], plain.get("place"))
        for own, plain in zip(said["steps"], raw["steps"], strict=True)
    ]
    chosen = next((choice for choice in choices if choice.chosen), None)
    return Report(
        kernel=kernel,
        name=raw["kernel"],
        device=raw["device"],
        verdict=raw["verdict"],
        conclusion=said["conclusion"],
        speedup=chosen.speedup if chosen else 1.0,
        plan=raw.get("plan"),
        time_ns=raw["time_ns"],
        reasons=[step.finding for step in steps] + [own["finding"] for own in said["instead"]],
        choices=choices,
        steps=steps,
        warnings=said.get("warnings", []),
        doubt=said.get("doubt"),
        raw=raw,
    )


def of_tune(kernel: Any, raw: dict[str, Any]) -> Report:
    """A report from the output of `headstart tune --json`."""
    best = raw["best"]
    choices = [
        Choice(
            "leave it" if own["plan"] == "none" else "plan",
            None if own["plan"] == "none" else own["plan"],
            own["time_ns"],
            own["speedup"],
            own["plan"] == best["plan"],
            _between(own),
        )
        for own in raw["trials"]
        if own["status"] == "ok"
    ]
    plan = None if best["plan"] == "none" else best["plan"]
    speedup = best["speedup"]
    between = _between(best)
    within = f" ({between[0]:.2f}–{between[1]:.2f}× in nine of ten cases)" if between else ""
    return Report(
        kernel=kernel,
        name=raw["kernel"],
        device=raw["device"],
        verdict=raw["verdict"],
        conclusion=f"{speedup:.2f}× the speed of the plain kernel{within}."
        if speedup > 1
        else "Too few plans were tried to tell."
        if raw["verdict"] == "undecided"
        else "No plan is worth it.",
        speedup=speedup,
        plan=plan,
        time_ns=raw["baseline_ns"],
        reasons=in_terms(raw["reasons"], raw["device"]),
        choices=choices,
        steps=[],
        warnings=raw.get("warnings", []),
        doubt=raw.get("doubt"),
        raw=raw,
    )
