"""Searches: the command tunes a launch on a GPU, in a separate process."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

from headstart import _capture, _command, _cuda
from headstart.cache import Answer
from headstart.errors import HeadstartError


def left(name: str, device: str, why: str) -> Answer:
    return Answer(name, device, None, 1.0, None, (), why, "")


def search(launch: _capture.Launch, device: str, ordinal: str, budget: float, assembler: dict[str, str]) -> Answer:
    """Tunes a launch on a GPU, in a separate process."""
    folder = Path(tempfile.mkdtemp(prefix="headstart-"))
    try:
        launch.write(folder / "launch")
        return search_in(folder / "launch", device, ordinal, budget, assembler)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def search_in(
    folder: Path, device: str, ordinal: str, budget: float, assembler: dict[str, str], plans: str = "likely"
) -> Answer:
    """Tunes the launch in a folder. A kernel that cannot be read or improved has an answer, too."""
    output = folder / "report.json"
    words = ["tune", str(folder), "--device", ordinal, "--plans", plans]
    words += ["--budget", str(budget), "--json", str(output)]
    environment = {name: value for name, value in assembler.items() if name.startswith("HEADSTART_")}
    # A launch that was collected elsewhere names an assembler of that machine.
    if not os.access(environment.get("HEADSTART_PTXAS", ""), os.X_OK):
        environment.pop("HEADSTART_PTXAS", None)
        # Without an assembler the driver compiles, which can only be stopped with the process that measures.
        if program := _cuda.assembler():
            environment["HEADSTART_PTXAS"] = program
    # Kernels with thousands of instructions keep it busy for minutes, and a search waits for the slowest.
    environment.setdefault("HEADSTART_PTXAS_LIMIT", str(max(10.0, 2.0 * budget)))
    name = _capture.kernel_of(folder)
    try:
        _command.run(words, environment=environment, timeout=60 + 10 * budget)
    except HeadstartError as error:
        if not output.exists():
            return left(name, device, str(error))
    text = output.read_text()
    raw = json.loads(text)
    name, best = raw["kernel"], raw["best"]
    if best["plan"] == "none" or not (folder / "tuned.toml").exists():
        return Answer(name, device, None, 1.0, None, (), "; ".join(raw["reasons"][:1]), text)
    tuned = _capture.tuned_facts(folder)
    if tuned.get("addresses"):
        return left(name, device, "it uses variables of its module, of which another module has copies of its own")
    facts = tuned.get("facts", [])
    sentences = tuned.get("rests_on", [])
    return Answer(
        kernel=name,
        device=device,
        plan=best["plan"],
        speedup=float(best["speedup"]),
        ptx=(folder / "tuned.ptx").read_text(),
        facts=tuple(facts),
        why="; ".join(sentences),
        report=text,
    )
