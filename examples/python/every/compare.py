"""Comparisons in processes of their own, which a fault ends: whoever asks learns which kernel's launch it was."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
#: Seconds of one comparison; a kernel that hangs is ended with its process.
LIMIT = 40


class Comparer:
    """A process that compares kernels, begun again after each that fails."""

    def __init__(self, environment: dict[str, str], log: Any, began: Callable[[Any], None]) -> None:
        self.environment, self.log, self.began = environment, log, began
        self.process: subprocess.Popen[str] | None = None
        self.device = ""

    def begin(self) -> subprocess.Popen[str]:
        if self.process is not None and self.process.poll() is None:
            return self.process
        process = subprocess.Popen(
            [sys.executable, str(HERE / "measure.py")],
            env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
        )  # fmt: skip
        self.began(process)
        assert process.stdout is not None
        head = process.stdout.readline()
        if not head:
            raise OSError("the process that compares does not begin")
        self.device = json.loads(head)["device"]
        self.process = process
        return process

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """What the process answers; `error` if the job failed, and with it the process."""
        process = self.begin()
        assert process.stdin is not None and process.stdout is not None
        watchdog = threading.Timer(LIMIT, process.kill)
        watchdog.start()
        try:
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:
            answer = ""
        watchdog.cancel()
        found: dict[str, Any] = (
            json.loads(answer) if answer else {"error": "the process that compares it ended"}
        )
        found.pop("digest", None)
        if "error" in found:
            process.kill()
            process.wait()
            self.process = None
        return found

    def compared(self, job: dict[str, Any]) -> dict[str, Any]:
        """As `ask`; after a failure each module is asked for alone, so that the one that failed is known."""
        found = self.ask(job)
        if "error" not in found:
            return found
        original = {"original": job["codes"]["original"]}
        alone = self.ask({**job, "codes": original})
        if "error" in alone:
            return {"error": f"the original, launched here: {alone['error']}"}
        for name, code in job["codes"].items():
            if name != "original":
                own = self.ask({**job, "codes": {**original, name: code}})
                alone[name] = {"error": own["error"]} if "error" in own else own[name]
        return alone

    def end(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait(10)
