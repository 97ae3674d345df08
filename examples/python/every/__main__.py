"""Every kernel without `tl.dot` that liger-kernel's and flash-linear-attention's operators launch, on a GPU.

    pip install liger-kernel==0.8.5 fla-core==0.6.0 einops
    python examples/python/every OUT [--seconds 360] [--budget 3] [--only WORD] [--workers N]

For each kernel, distinct by its PTX: its first launch is copied; the module that the command writes again, without a plan, has to
leave the same bytes; a search looks for a plan; and what it found is compared with the original once more. The table is
OUT/every.txt, and OUT/every.json has all that is known; both are written as it goes on. Without a GPU (`EVERY_COMPILE_ONLY=1`)
nothing is measured.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "python")]

from compare import Comparer

from headstart import _command

#: A plan is taken if it takes less than this share of the original's time: as in a program (`headstart._trial`).
LIMIT = 0.98
#: Seconds of a call of an operator, of writing a module again, and of a search beside its budget.
CALL, EMIT, BESIDE = 75, 60, 75
COMPILE_ONLY = bool(os.environ.get("EVERY_COMPILE_ONLY"))


class Table:
    """What is known of each kernel, and the files that show it."""

    def __init__(self, out: Path, head: dict[str, Any]) -> None:
        self.out, self.head, self.lock = out, head, threading.Lock()
        self.rows: dict[str, dict[str, Any]] = {}

    def add(self, digest: str, /, **known: Any) -> None:
        with self.lock:
            self.rows.setdefault(digest, {}).update(known)

    def write(self) -> None:
        with self.lock:
            rows = sorted(self.rows.values(), key=lambda row: (row["kernel"], row["digest"]))
            lines = [f"{name}: {value}" for name, value in self.head.items() if not isinstance(value, list)]
            lines += ["", *summary(rows), "", HEAD, *map(line, rows)]
            whole = {"head": self.head, "rows": rows}
        for name, text in (
            ("every.txt", "\n".join(lines) + "\n"),
            ("every.json", json.dumps(whole, indent=1)),
        ):
            part = self.out / f".{name}"
            part.write_text(text)
            part.replace(self.out / name)


HEAD = f"{'kernel':74} {'launch':24} {'us':>9} {'again':>6} bits   {'tune':>6} {'gain':>6}  plan, or why not"


def bits(row: dict[str, Any]) -> str:
    """Whether the module that was written again leaves the original's bytes."""
    if "again" not in row.get("measured", {}):
        return "-"
    again = row["measured"]["again"]
    if "error" in again:
        return "ERROR"
    if again["differ"] == 0:
        return "same"
    return "OTHER" if row["measured"]["repeats"] else "vary"


def ratio(row: dict[str, Any], name: str, part: str) -> float | None:
    """A kernel's time as a multiple of the original's."""
    found = row.get("measured", {})
    try:
        return found[name][part] / found["original"][part]
    except (KeyError, TypeError, ZeroDivisionError):
        return None


def gain(row: dict[str, Any]) -> float | None:
    """How many times as fast what is chosen is, in the comparison that did not choose it."""
    chosen = ratio(row, "tuned", "chosen_by")
    if ratio(row, "again", "verified") is None:
        return None
    if chosen is None or chosen >= LIMIT or row["measured"]["tuned"].get("differ"):
        return 1.0
    verified = ratio(row, "tuned", "verified")
    return None if verified is None else 1 / verified


def line(row: dict[str, Any]) -> str:
    grid, group = row.get("grid", ()), row.get("group", ())
    launch = "×".join(map(str, grid)) + " of " + "×".join(map(str, group)) if group else ""
    own = row.get("measured", {}).get("original", {}).get("verified")
    again, faster = ratio(row, "again", "verified"), gain(row)
    words = [row.get("plan") or "", row.get("why") or "", row.get("measured", {}).get("error", "")]
    tuned = row.get("measured", {}).get("tuned", {})
    if tuned.get("differ"):
        words.append("THE PLAN'S BITS DIFFER")
    if tuned.get("error"):
        words.append(tuned["error"])
    promised = row.get("promised")
    return (
        f"{row['kernel']:74} {launch:24} {f'{own:.1f}' if own else '-':>9} {f'{again:.3f}' if again else '-':>6} {bits(row):6} "
        f"{f'{promised:.2f}' if promised else '-':>6} {f'{faster:.3f}' if faster else '-':>6}  "
        f"{'; '.join(word for word in words if word)}"
    ).rstrip()


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """Counts over all kernels."""
    read = [row for row in rows if row.get("read")]
    refused = [row for row in rows if row.get("read") is False]
    compared = collections.Counter(bits(row) for row in read)
    gains = [own for own in map(gain, read) if own is not None]
    ratios = [own for row in read if (own := ratio(row, "again", "verified")) is not None]
    said = [
        (
            f"{len(rows)} kernels by their PTX, {len({row['kernel'] for row in rows})} by their name; "
            f"{len(read)} read, {len(refused)} refused, {len(rows) - len(read) - len(refused)} left"
        ),
        "bits of the module written again: "
        + ", ".join(f"{count} {word}" for word, count in sorted(compared.items())),
    ]
    if ratios:
        middle = sorted(ratios)[len(ratios) // 2]
        said.append(
            f"written again, a launch takes {min(ratios):.3f} to {max(ratios):.3f} times as long, the median {middle:.3f}"
        )
    if gains:
        better = sum(own >= 1.05 for own in gains)
        said.append(
            f"chosen: {sum(own != 1.0 for own in gains)} plans; {better} gain 5 % or more, {sum(own >= 1.2 for own in gains)} 20 %; "
            f"the least gain is {min(gains):.3f}, the largest {max(gains):.2f}"
        )
    return said


class Work:
    """Launches, searches and comparisons, each in processes of its own."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.begin = options, time.monotonic()
        self.folder = Path(tempfile.mkdtemp(prefix="every-"))
        for name in ("calls", "kernels", "launches", "dots"):
            (self.folder / name).mkdir()
        options.out.mkdir(parents=True, exist_ok=True)
        self.table = Table(options.out, {"command": " ".join(sys.argv), "device": "none"})
        self.environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(
                [str(HERE), str(HERE.parents[2] / "python"), os.environ.get("PYTHONPATH", "")]
            ),
            "TRITON_CACHE_DIR": os.environ.get("TRITON_CACHE_DIR", str(self.folder / "triton")),
            "RAYON_NUM_THREADS": str(max(1, (os.cpu_count() or 2) // 8)),
            "OMP_NUM_THREADS": "1",
            "PYTORCH_ALLOC_CONF": "expandable_segments:False",
        }
        self.log = (options.out / "every.log").open("a")
        self.children: set[subprocess.Popen[str]] = set()

    def left(self) -> float:
        return self.options.seconds - (time.monotonic() - self.begin)

    def say(self, text: str) -> None:
        said = f"[{time.monotonic() - self.begin:6.1f} s] {text}"
        print(said, flush=True)
        self.log.write(said + "\n")
        self.log.flush()

    # Launches.

    def launches(self, until: float) -> None:
        """Makes all calls; what each process copies appears in `launches`."""
        words = [sys.executable, str(HERE / "launch.py"), str(self.folder), *self.options.only]
        running: list[subprocess.Popen[str]] = []
        restarts = 2 * self.options.workers

        def begin() -> None:
            own = subprocess.Popen(
                words, env=self.environment, stdout=self.log, stderr=subprocess.STDOUT, text=True
            )
            running.append(own)
            self.children.add(own)

        for _ in range(self.options.workers):
            begin()
        while running and self.left() > until:
            time.sleep(0.25)
            for own in list(running):
                at = self.folder / "calls" / f"at-{own.pid}"
                try:
                    since, _, name = at.read_text().partition(" ")
                    is_late = time.time() - float(since) > CALL
                except (OSError, ValueError):
                    is_late, name = False, ""
                if is_late and own.poll() is None:
                    own.kill()
                    with (self.folder / "calls.jsonl").open("a") as file:
                        file.write(json.dumps({"call": name, "error": f"ended after {CALL} s"}) + "\n")
                    own.wait()
                if own.poll() is not None:
                    running.remove(own)
                    at.unlink(missing_ok=True)
                    if own.returncode != 0:
                        self.say(f"a process of launches ended with status {own.returncode} at {name}")
                        if restarts:
                            restarts -= 1
                            begin()
            self.gather()
        for own in running:
            own.kill()
        self.gather()

    def gather(self) -> None:
        """Adds copied launches to the table, and has each written again."""
        for path in sorted((self.folder / "launches").iterdir()):
            if path.name.startswith(".") or path.name in self.table.rows:
                continue
            note = json.loads((path / "note.json").read_text())
            why = f"its launch was not copied: {note['left']}" if "left" in note else ""
            self.table.add(path.name, why=why, **{name: own for name, own in note.items() if name != "left"})
            if not why:
                self.emitting[path.name] = self.pool.submit(self.emit, path.name)

    # What the command makes of them.

    def command(self, digest: str, words: list[str], seconds: float) -> tuple[int, str, str]:
        note = self.table.rows[digest]
        environment = {**self.environment, **note.get("assembler", {}), "HEADSTART_PTXAS_LIMIT": "20"}
        try:
            done = subprocess.run(
                [_command.command(), *words],
                env=environment,
                capture_output=True,
                text=True,
                timeout=max(1.0, seconds),
                check=False,
            )
        except subprocess.TimeoutExpired:
            return 124, "", f"not done after {seconds:.0f} s"
        said = [
            own for own in done.stderr.splitlines() if own.startswith("headstart: ")
        ] or done.stderr.splitlines()[-1:]
        return done.returncode, done.stdout, (said or [""])[-1].removeprefix("headstart: ")

    def emit(self, digest: str, launch: str = "launch") -> None:
        """Writes the module again without a plan, and assembles it as Triton assembled the original.

        Sums that the text leaves to the assembler are decided on the GPU, from the launch `ran`, which has what it left.
        """
        folder = self.folder / "launches" / digest
        words = [
            "emit",
            str(folder / launch),
            "--target",
            "ptx",
            "--plan",
            "none",
            "-o",
            str(folder / "again.ptx"),
        ]
        words += ["--device", "cuda:0"] if launch == "ran" else []
        status, _, why = self.command(digest, words, min(EMIT, self.left()))
        is_open = "left to the assembler" in why
        if status != 0 and is_open and launch == "launch":
            self.table.add(
                digest, read=True, is_open=True, why="not written again: sums are left to the assembler"
            )
            if not COMPILE_ONLY:
                self.emit(digest, "ran")
            return
        if status != 0:
            self.table.add(
                digest, read=is_open, why=f"not {'written again' if is_open else 'read'}: {why[:300]}"
            )
            return
        why = self.assembled(digest, folder / "again.ptx", folder / "again.cubin")
        self.table.add(digest, read=True, why=f"what was written again: {why}" if why else "")

    def assembled(self, digest: str, text: Path, code: Path) -> str:
        """Assembles a module as Triton assembled the original; why that failed."""
        own = self.table.rows[digest]["assembler"]
        words = [
            own["HEADSTART_PTXAS"],
            "-lineinfo",
            *own["HEADSTART_PTXAS_OPTIONS"].split(),
            str(text),
            "-o",
            str(code),
        ]
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
        except subprocess.TimeoutExpired:
            return "ptxas takes over a minute"
        return "" if done.returncode == 0 else f"ptxas refuses it: {done.stderr.strip()[:300]}"

    def tune(self, digest: str, until: float) -> None:
        """Searches for a plan."""
        folder = self.folder / "launches" / digest
        seconds = min(self.options.budget + BESIDE, self.left() - until)
        if seconds < 5:
            self.table.add(digest, why="no time was left for a search")
            return
        device = "sim:h200" if COMPILE_ONLY else "cuda:0"
        start = time.monotonic()
        # Where sums are left to the assembler, what the launch has left is needed to put a plan in the original's place.
        for launch in ("ran",) if self.table.rows[digest].get("is_open") else ("launch", "ran"):
            words = ["tune", str(folder / launch), "--device", device, "--plans", "likely"]
            words += ["--budget", str(self.options.budget), "--json", str(folder / "report.json")]
            seconds = min(self.options.budget + BESIDE, self.left() - until)
            status, said, why = self.command(digest, words, seconds)
            if "cannot be replaced" not in said or COMPILE_ONLY:
                break
        known: dict[str, Any] = {"tune_seconds": round(time.monotonic() - start, 1)}
        sentence = re.search(r"Some of its sums .*", said)
        if sentence:
            known["sums"] = sentence[0]
        try:
            report = json.loads((folder / "report.json").read_text())
            known |= {
                "promised": report["best"]["speedup"],
                "trials": len(report["trials"]),
                "verdict": report["verdict"],
            }
            if report["best"]["plan"] != "none":
                known["plan"] = report["best"]["plan"]
            else:
                known["why"] = " ".join(report["reasons"][:1])[:160]
        except (OSError, ValueError, KeyError):
            known["why"] = f"not tuned: {why[:300]}"
        if status not in (0, 1, 124):
            known["why"] = (
                why[:300]
                if "has no loop that loads" in why
                else f"tune ended with status {status}: {why[:300]}"
            )
        text = folder / launch / "tuned.ptx"
        if text.exists():
            if failed := self.assembled(digest, text, folder / "tuned.cubin"):
                known["why"] = f"the plan's module: {failed}"
        elif "plan" in known:
            known["why"] = f"the plan cannot be put in place: {' '.join(said.splitlines()[-1:])[:200]}"
        self.table.add(digest, **known)

    # Comparisons.

    def comparer(self) -> Comparer:
        return Comparer(self.environment, self.log, self.children.add)

    def job(self, digest: str, **options: Any) -> dict[str, Any]:
        folder = self.folder / "launches" / digest
        row = self.table.rows[digest]
        codes = {name: folder / f"{name}.cubin" for name in ("original", "again", "tuned")}
        failed = [name for name in codes if "error" in row.get("measured", {}).get(name, {})]
        return {
            "digest": digest,
            "folder": str(folder),
            "pointers": row["pointers"],
            "codes": {name: str(own) for name, own in codes.items() if own.exists() and name not in failed},
            **options,
        }

    def compare(self, digests: list[str], seconds: float) -> None:
        """Compares the bits of what was written again, in several processes at once."""
        left = list(reversed(digests))

        def some() -> None:
            comparer = self.comparer()
            try:
                while self.left() > seconds:
                    try:
                        digest = left.pop()
                    except IndexError:
                        break
                    self.add(digest, comparer.compared(self.job(digest, time=False)))
                self.table.head["device"] = comparer.device
                comparer.end()
            except Exception as why:  # noqa: BLE001 - the others go on
                self.say(f"a process that compares: {type(why).__name__}: {why}")

        threads = [threading.Thread(target=some) for _ in range(self.options.comparers)]
        for own in threads:
            own.start()
        for own in threads:
            own.join()

    def add(self, digest: str, found: dict[str, Any]) -> None:
        """Adds what a comparison found to what others found before."""
        known = self.table.rows[digest].get("measured", {})
        for name, own in found.items():
            known[name] = {**known.get(name, {}), **own} if isinstance(own, dict) else own
        self.table.add(digest, measured=known)

    def measure(self, digests: list[str], seconds: float, **options: Any) -> None:
        """Measures kernels beside their originals, one after the other, with nothing else on the GPU."""
        comparer = self.comparer()
        for digest in digests:
            if self.left() < seconds:
                self.say("no time was left for all measurements")
                break
            if "error" not in self.table.rows[digest].get("measured", {}):
                self.add(digest, comparer.compared(self.job(digest, **options)))
        comparer.end()

    def run(self) -> None:
        options = self.options
        self.emitting: dict[str, Future[None]] = {}
        writer = threading.Thread(target=self.keep_writing, daemon=True)
        writer.start()
        # Assembling and writing again take the cores beside the processes that launch.
        self.pool = ThreadPoolExecutor(max_workers=max(2, options.workers // 2))
        self.launches(until=0.58 * options.seconds)
        self.say(f"{len(self.table.rows)} kernels were launched")
        wait(self.emitting.values(), timeout=max(1.0, self.left() - 0.42 * options.seconds))
        self.pool.shutdown(wait=False, cancel_futures=True)
        for digest, own in self.emitting.items():
            if own.cancelled():
                self.table.add(digest, why="no time was left to write it again")
        ready = [digest for digest, row in self.table.rows.items() if row.get("read") and not row.get("why")]
        self.say(f"{len(ready)} are read and assembled")
        if not COMPILE_ONLY:
            self.compare(ready, 0.2 * options.seconds)
            self.say("bits compared")
            self.measure(ready, options.search * options.seconds, bits=False)
            self.say("measured as written again")
        self.table.write()
        # Those with loops first: the others have an answer at once.
        searched = (
            []
            if options.search == 0
            else sorted(ready, key=lambda digest: -self.table.rows[digest].get("loops", 0))
        )
        reserved = 0.0 if COMPILE_ONLY else 40.0
        with ThreadPoolExecutor(max_workers=options.workers) as pool:
            for own in [pool.submit(self.tune, digest, reserved) for digest in searched]:
                own.result()
        self.say("searched")
        if not COMPILE_ONLY:
            self.measure([digest for digest in searched if self.table.rows[digest].get("plan")], 2.0)
            self.say("plans compared")

    def keep_writing(self) -> None:
        while True:
            time.sleep(3)
            self.finish()

    def finish(self) -> None:
        """Writes all that is known."""
        try:
            calls = [json.loads(own) for own in (self.folder / "calls.jsonl").read_text().splitlines()]
        except OSError:
            calls = []
        self.table.head["calls"] = calls
        self.table.head["calls that went wrong"] = sum(1 for own in calls if own.get("error"))
        self.table.head["calls made"] = len(calls)
        self.table.head["kernels with tl.dot, left out"] = len(list((self.folder / "dots").iterdir()))
        self.table.write()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=360.0, help="all of it ends after so many")
    parser.add_argument(
        "--budget", type=float, default=3.0, help="seconds after which a search begins no plan"
    )
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--comparers", type=int, default=6, help="processes that compare bits at once")
    parser.add_argument(
        "--search", type=float, default=0.35, help="share of the time for searches and their plans; 0: none"
    )
    parser.add_argument(
        "--only", action="append", default=[], help="calls whose names have this word; repeatable"
    )
    parser.add_argument("--keep", action="store_true", help="leave the copied launches where they are")
    options = parser.parse_args()
    work = Work(options)
    status = 0
    try:
        work.run()
    except (Exception, KeyboardInterrupt):  # noqa: BLE001 - what is known is written all the same
        traceback.print_exc()
        status = 1
    finally:
        for own in work.children:
            if own.poll() is None:
                own.kill()
        work.finish()
        print("\n".join((options.out / "every.txt").read_text().splitlines()[:14]), flush=True)
        if options.keep:
            print(f"kept in {work.folder}")
        else:
            import shutil

            shutil.rmtree(work.folder, ignore_errors=True)
        # Searches that are under way are not waited for.
        os._exit(status)


if __name__ == "__main__":
    main()
