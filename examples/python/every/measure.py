"""Compares kernels with their original on a GPU, through the driver alone: bits of all memory that a launch reaches, and times.

    python measure.py

Each line of the input is a job in JSON: `folder`, of a copied launch; `pointers`, the parameters that are addresses; `codes`, the
files of machine code or PTX by name, `original` among them. A line in JSON answers it. Each kernel is launched on the same memory;
`original` twice, so that one that does not repeat its own bits is known. A job has `bits`, `time` or both. Times are medians of
rounds in turns, each a graph of launches that takes about as long as `ROUND_US`, with what the launch before left in the caches.
The process ends with the first job that fails: who asks begins another.
"""

from __future__ import annotations

import ctypes
import json
import statistics
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self

#: A round of a kernel, in microseconds, and the most launches in it.
ROUND_US, MOST_LAUNCHES = 300.0, 64
ROUNDS = 15
BLOCK = 4 << 20
PLAIN = 1 << 31


class Driver:
    """The driver's functions; a failure is an exception."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)
        self.stream = ctypes.c_void_p()
        self("cuStreamCreate", ctypes.byref(self.stream), 1)
        name = ctypes.create_string_buffer(100)
        self("cuDeviceGetName", name, 100, device)
        self.name = name.value.decode()

    def __call__(self, name: str, *args: Any) -> None:
        status = getattr(self.library, name)(*args)
        if status:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(status, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'?').decode()}")


def stored(path: Path) -> bytearray:
    """Memory as a capture keeps it."""
    with path.open("rb") as file:
        magic, size = struct.unpack("<8sQ", file.read(16))
        if magic != b"HSMEM001":
            raise ValueError(f"{path} is no memory of a capture")
        contents = bytearray(size)
        for start in range(0, size, BLOCK):
            (length,) = struct.unpack("<I", file.read(4))
            if length and not length & PLAIN:
                raise ValueError(f"{path} is compressed")
            if length:
                own = file.read(length & ~PLAIN)
                contents[start : start + len(own)] = own
    return contents


def described(path: Path) -> dict[str, Any]:
    """A manifest as the Python package writes it: values are JSON as well, and Python 3.10 reads no TOML."""
    whole: dict[str, Any] = {"memory": []}
    part = whole
    for line in path.read_text().splitlines():
        name, equals, value = line.partition(" = ")
        if line == "[[memory]]":
            part = {}
            whole["memory"].append(part)
        elif line.startswith("["):
            part = whole.setdefault(line.strip("[]"), {})
        elif equals and not line.startswith("#"):
            part[name] = json.loads(value)
    return whole


def moved(address: int, places: list[tuple[int, int, int]]) -> int | None:
    """Where an address of the copied launch lies here, from places as start, length and start here.

    An allocator puts one piece of memory at the end of another, so the end of a piece belongs to it only if nothing starts there.
    """
    inside = [own for own in places if own[0] <= address < own[0] + own[1]]
    at_end = [own for own in places if address == own[0] + own[1]]
    for start, _, here in inside + at_end:
        return here + address - start
    return None


class Launch:
    """A copied launch, on memory of its own."""

    def __init__(self, driver: Driver, folder: Path, pointers: list[int]) -> None:
        self.driver = driver
        manifest = described(folder / "launch.toml")
        self.kernel, self.groups, self.group = manifest["kernel"], manifest["groups"], manifest["group"]
        self.shared = manifest["shared_bytes"]
        self.memory: list[tuple[ctypes.c_uint64, bytearray]] = []
        words = bytearray.fromhex(manifest["parameters"]["bytes"])
        places = []
        for own in manifest["memory"]:
            contents, at = stored(folder.parent / "buffers" / own["before"]), ctypes.c_uint64()
            driver("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(max(len(contents), 16)))
            self.memory.append((at, contents))
            places.append((own["address"], len(contents), at.value))
        for number in pointers:
            offset, size = manifest["parameters"]["layout"][number]
            address = int.from_bytes(words[offset : offset + size], "little")
            here = moved(address, places)
            if here is not None:
                words[offset : offset + size] = here.to_bytes(size, "little")
        self.words = ctypes.create_string_buffer(bytes(words), len(words))
        self.size = ctypes.c_size_t(len(words))
        self.extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(self.words), 2, ctypes.addressof(self.size), 0)
        self.images: list[Any] = []

    def function(self, code: Path) -> ctypes.c_void_p:
        """The kernel of a module."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        image = code.read_bytes() + b"\0"
        self.images.append(image)
        self.driver("cuModuleLoadData", ctypes.byref(module), image)
        self.driver("cuModuleGetFunction", ctypes.byref(function), module, self.kernel.encode())
        if self.shared > 48 << 10:
            self.driver("cuFuncSetAttribute", function, 8, self.shared)
        return function

    def fill(self) -> None:
        for at, contents in self.memory:
            own = (ctypes.c_char * len(contents)).from_buffer(contents) if contents else None
            if own is not None:
                self.driver("cuMemcpyHtoD_v2", at, own, ctypes.c_size_t(len(contents)))
        self.driver("cuCtxSynchronize")

    def start(self, function: ctypes.c_void_p) -> None:
        self.driver(
            "cuLaunchKernel", function, *self.groups, *self.group, self.shared, self.driver.stream, None, self.extra
        )  # fmt: skip

    def left(self) -> list[bytes]:
        """What a launch leaves in all memory."""
        self.driver("cuStreamSynchronize", self.driver.stream)
        found = []
        for at, contents in self.memory:
            back = bytearray(len(contents))
            if contents:
                own = (ctypes.c_char * len(back)).from_buffer(back)
                self.driver("cuMemcpyDtoH_v2", own, at, ctypes.c_size_t(len(back)))
            found.append(back)
        return found

    def once(self, function: ctypes.c_void_p) -> tuple[list[bytes], float]:
        """What it leaves on the copied memory, and its time in microseconds."""
        self.fill()
        with Timed(self.driver) as timed:
            self.start(function)
        return self.left(), timed.microseconds()

    def rounds(
        self, functions: list[ctypes.c_void_p], microseconds: float, seconds: float
    ) -> list[list[float]]:
        """Microseconds of a launch of each, in turns."""
        driver = self.driver
        count = max(1, min(MOST_LAUNCHES, int(ROUND_US / max(microseconds, 1.0))))
        graphs = []
        for function in functions:
            graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
            driver("cuStreamBeginCapture_v2", driver.stream, 2)
            for _ in range(count):
                self.start(function)
            driver("cuStreamEndCapture", driver.stream, ctypes.byref(graph))
            driver("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
            graphs.append((graph, executable))
        rounds = ROUNDS
        if count * microseconds * ROUNDS * len(functions) * 1e-6 > seconds:
            rounds = 5
        times: list[list[float]] = [[] for _ in functions]
        for turn in range(rounds + 1):
            for (_, executable), own in zip(graphs, times, strict=True):
                with Timed(driver) as timed:
                    driver("cuGraphLaunch", executable, driver.stream)
                driver("cuStreamSynchronize", driver.stream)
                # The first round loads code.
                if turn:
                    own.append(timed.microseconds() / count)
        for graph, executable in graphs:
            driver("cuGraphExecDestroy", executable)
            driver("cuGraphDestroy", graph)
        return times

    def free(self) -> None:
        for at, _ in self.memory:
            self.driver("cuMemFree_v2", at)


class Timed:
    """Time on the GPU between two points of the stream."""

    def __init__(self, driver: Driver) -> None:
        self.driver, self.events = driver, (ctypes.c_void_p(), ctypes.c_void_p())
        for own in self.events:
            driver("cuEventCreate", ctypes.byref(own), 0)

    def __enter__(self) -> Self:
        self.driver("cuEventRecord", self.events[0], self.driver.stream)
        return self

    def __exit__(self, *_: object) -> None:
        self.driver("cuEventRecord", self.events[1], self.driver.stream)

    def microseconds(self) -> float:
        elapsed = ctypes.c_float()
        self.driver("cuEventSynchronize", self.events[1])
        self.driver("cuEventElapsedTime", ctypes.byref(elapsed), *self.events)
        for own in self.events:
            self.driver("cuEventDestroy_v2", own)
        return 1000 * elapsed.value


def differences(one: list[bytes], other: list[bytes]) -> int:
    """Bytes that are not the same."""
    return sum(len(own) - own.count(0) for own in map(both, one, other) if own)


def both(left: bytes, right: bytes) -> bytes:
    """Bytes of which the bits are set that differ; none if none differs."""
    if left == right:
        return b""
    bits = int.from_bytes(left, "little") ^ int.from_bytes(right, "little")
    return bits.to_bytes(len(left), "little")


def places(one: list[bytes], other: list[bytes]) -> list[dict[str, Any]]:
    """Of each piece of memory that differs: how many bytes, the first place, and what both have there."""
    found = []
    for number, (left, right) in enumerate(zip(one, other, strict=True)):
        if own := both(left, right):
            first = (len(own) - len(own.lstrip(b"\0"))) & ~15
            found.append(
                {
                    "memory": number,
                    "bytes": len(own) - own.count(0),
                    "of": len(own),
                    "first": first,
                    "original": bytes(left[first : first + 16]).hex(),
                    "own": bytes(right[first : first + 16]).hex(),
                }
            )
    return found


def measured(driver: Driver, job: dict[str, Any]) -> dict[str, Any]:
    launch = Launch(driver, Path(job["folder"]) / "launch", job["pointers"])
    found: dict[str, Any] = {}
    original = launch.function(Path(job["codes"]["original"]))
    right, microseconds = launch.once(original)
    if job.get("bits", True):
        again, microseconds = launch.once(original)
        found["repeats"] = differences(right, again) == 0
        found["changed"] = any(
            own != bytes(before) for own, (_, before) in zip(right, launch.memory, strict=True)
        )
    functions, names = [original], ["original"]
    for name, code in job["codes"].items():
        if name == "original":
            continue
        function = launch.function(Path(code))
        if job.get("bits", True):
            left, _ = launch.once(function)
            found[name] = {"differ": differences(right, left), "places": places(right, left)}
        functions.append(function)
        names.append(name)
    if job.get("time", True):
        launch.fill()
        # What a first comparison would choose is shown by a second: the choice is not its own judge.
        for part in ("chosen_by", "verified"):
            times = launch.rounds(functions, microseconds, job.get("seconds", 1.5))
            for name, own in zip(names, times, strict=True):
                found.setdefault(name, {})[part] = statistics.median(own)
    launch.free()
    return found


def main() -> None:
    driver = Driver()
    print(json.dumps({"device": driver.name}), flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        try:
            found = measured(driver, job)
        except Exception as why:  # noqa: BLE001 - the answer says so
            # After a fault the context is of no use, nor is this process.
            print(json.dumps({"digest": job["digest"], "error": f"{type(why).__name__}: {why}"}), flush=True)
            sys.exit(1)
        print(json.dumps({"digest": job["digest"], **found}), flush=True)


if __name__ == "__main__":
    main()
