"""Tunes a kernel on the workers of a Dask cluster: each tries a part of the plans.

python tune_dask.py FOLDER PARTS KERNEL [option of `headstart tune` ...]

FOLDER is on a file system that all workers see. DASK_SCHEDULER_ADDRESS names the cluster; without it there are two
workers on this machine.
"""

import os
import subprocess
import sys

from dask.distributed import Client


def headstart(*arguments: str) -> str:
    # What a killed worker left running would write to the log beside the next one: it ends with its worker.
    command = ["setpriv", "--pdeathsig", "KILL", "headstart", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def tune_part(part: int, parts: int, folder: str, subject: list[str]) -> str:
    log = f"{folder}/part-{part}.jsonl"
    headstart("tune", *subject, "--shard", f"{part}/{parts}", "--log", log)
    return log


def report(logs: list[str], folder: str, subject: list[str]) -> str:
    whole = f"{folder}/all.jsonl"
    headstart("merge", *logs, "--log", whole)
    return headstart("tune", *subject, "--measure", "all", "--log", whole, "--json", f"{folder}/report.json")


if __name__ == "__main__":
    folder, parts, *subject = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    with Client(n_workers=2, threads_per_worker=1) as client:
        # Dask gives a lost worker's part to another one, which goes on after the last trial in its log.
        numbers = range(1, int(parts) + 1)
        logs = [client.submit(tune_part, part, len(numbers), folder, subject, retries=2) for part in numbers]
        print(client.submit(report, logs, folder, subject).result(), end="")
