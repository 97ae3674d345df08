"""`python -m headstart`: the command, and two commands of this package.

`tune-cache` tunes the launches that `mode="collect"` stored, `import-trace` converts a tritonparse trace to launches.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys

from headstart import _command, _search
from headstart._trace import import_trace
from headstart.cache import Cache
from headstart.errors import HeadstartError, UsageError


def tune_cache(words: list[str]) -> int:
    """Tunes the pending launches of a cache. Exit status 0: done, 3: one of them could not be tuned."""
    parser = argparse.ArgumentParser(prog="python -m headstart tune-cache", description=tune_cache.__doc__)
    parser.add_argument("folder", nargs="?", help="the cache; HEADSTART_PYTHON_CACHE or the user's without it")
    parser.add_argument("--device", default="cuda:0", help="the GPU to measure on")
    parser.add_argument("--budget", type=float, default=120.0, help="seconds for each launch")
    parser.add_argument("--plans", default="likely", help="which plans are tried, as `headstart tune` spells them")
    options = parser.parse_args(words)
    cache = Cache(options.folder)
    status = 0
    for folder in sorted((cache.folder / "pending").glob("*/launch")):
        note = json.loads((folder / "note.json").read_text())
        device, key = note["device"], note["key"]
        try:
            with cache.lock(device, key):
                if cache.get(device, key) is None:
                    answer = _search.search_in(folder, device, options.device, options.budget, note, options.plans)
                    cache.put(device, key, answer)
                    print(f"{answer.kernel}: {answer.plan or 'left as it is'}, {answer.speedup:.2f}×")
            shutil.rmtree(folder.parent)
        except HeadstartError as error:
            print(f"headstart: {folder}: {error}", file=sys.stderr)
            status = 3
    return status


def import_launches(words: list[str]) -> int:
    """Converts a tritonparse trace to launches for `headstart tune` and `advise`. Exit status 1: there are none."""
    parser = argparse.ArgumentParser(prog="python -m headstart import-trace", description=import_launches.__doc__)
    parser.add_argument("trace", help="a file of the trace, or a folder of them")
    parser.add_argument("-o", "--output", required=True, help="the folder to write: a new or an empty one")
    parser.add_argument("--kernel", help="a regular expression that kernels' names have to match")
    parser.add_argument("--launch", type=int, help="which launch of each kernel, from 0; else the first that can be imported")
    options = parser.parse_args(words)
    try:
        made = import_trace(options.trace, options.output, kernel=options.kernel, launch=options.launch)
    except HeadstartError as error:
        print(f"headstart: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    for folder in made:
        print(f"{folder}\nNext: headstart tune {folder}")
    return 0


def main() -> int:
    """Runs the given command line."""
    words = sys.argv[1:]
    if words[:1] == ["import-trace"]:
        return import_launches(words[1:])
    if words[:1] == ["tune-cache"]:
        return tune_cache(words[1:])
    os.execv(_command.command(), ["headstart", *words])
    return 4


if __name__ == "__main__":
    sys.exit(main())
