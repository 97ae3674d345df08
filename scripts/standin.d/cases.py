"""Runs what `cargo test --test for_a_gpu` wrote, on a GPU, through the driver alone.

    cases.py FOLDER [RESULT.json]

Each case: the entry as it was and as it was written again, on the same buffers. Compared are all bytes of all buffers of
the two, and of those that count as output with what the functional engine computed, where any NaN is as good as another.
Times are medians of launches.
"""

import ctypes
import json
import pathlib
import struct
import sys

cuda = ctypes.CDLL("libcuda.so.1")


def check(status):
    if status:
        text = ctypes.c_char_p()
        cuda.cuGetErrorString(status, ctypes.byref(text))
        raise RuntimeError((text.value or b"?").decode())


def start():
    check(cuda.cuInit(0))
    device, context = ctypes.c_int(), ctypes.c_void_p()
    check(cuda.cuDeviceGet(ctypes.byref(device), 0))
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    check(cuda.cuCtxSetCurrent(context))
    name = ctypes.create_string_buffer(100)
    check(cuda.cuDeviceGetName(name, 100, device))
    return name.value.decode()


def module(path):
    loaded, log = ctypes.c_void_p(), ctypes.create_string_buffer(8192)
    options = (ctypes.c_int * 2)(5, 6)
    values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), 8192)
    status = cuda.cuModuleLoadDataEx(ctypes.byref(loaded), path.read_bytes() + b"\0", 2, options, values)
    if status:
        raise RuntimeError(f"{path.name}: {log.value.decode()[:2000]}")
    return loaded


class Case:
    def __init__(self, folder, case):
        self.folder, self.case, self.buffers = folder, case, []
        self.block = bytearray(max(case["parameter_bytes"], 1))
        for number, param in enumerate(case["params"]):
            if param["kind"] == "scalar":
                self.put(param["position"], int(param["bits"]).to_bytes(8, "little")[: param["bytes"]])
                continue
            data = (folder / param["data"]).read_bytes()
            if param["kind"] == "structure":
                self.put(param["position"], data)
            elif param["kind"] == "pointer":
                at = ctypes.c_uint64()
                check(cuda.cuMemAlloc_v2(ctypes.byref(at), max(len(data), 16)))
                self.put(param["position"], struct.pack("<Q", at.value))
                self.buffers.append((number, param, at, data))

    def put(self, position, data):
        self.block[position : position + len(data)] = data

    def fill(self):
        for _, _, at, data in self.buffers:
            check(cuda.cuMemcpyHtoD_v2(at, data, len(data)))

    def launch(self, function):
        block = ctypes.create_string_buffer(bytes(self.block), len(self.block))
        size = ctypes.c_size_t(len(self.block))
        extra = (ctypes.c_void_p * 5)(
            1, ctypes.cast(block, ctypes.c_void_p), 2, ctypes.cast(ctypes.byref(size), ctypes.c_void_p), 0
        )
        check(
            cuda.cuLaunchKernel(
                function,
                *self.case["groups"],
                *self.case["group"],
                self.case["shared_bytes"],
                None,
                None,
                extra,
            )
        )

    def run(self, loaded):
        function = ctypes.c_void_p()
        check(cuda.cuModuleGetFunction(ctypes.byref(function), loaded, self.case["entry"].encode()))
        self.fill()
        self.launch(function)
        check(cuda.cuCtxSynchronize())
        made = []
        for _, _, at, data in self.buffers:
            back = ctypes.create_string_buffer(len(data))
            check(cuda.cuMemcpyDtoH_v2(back, at, len(data)))
            made.append(back.raw)
        return made, self.time(function)

    def time(self, function):
        first, last = ctypes.c_void_p(), ctypes.c_void_p()
        check(cuda.cuEventCreate(ctypes.byref(first), 0))
        check(cuda.cuEventCreate(ctypes.byref(last), 0))
        times = []
        for _ in range(9):
            self.fill()
            check(cuda.cuEventRecord(first, None))
            self.launch(function)
            check(cuda.cuEventRecord(last, None))
            check(cuda.cuEventSynchronize(last))
            elapsed = ctypes.c_float()
            check(cuda.cuEventElapsedTime(ctypes.byref(elapsed), first, last))
            times.append(elapsed.value * 1e3)
        return sorted(times)[len(times) // 2]

    def free(self):
        for _, _, at, _ in self.buffers:
            check(cuda.cuMemFree_v2(at))


def differing(found, wanted, element):
    """Elements that differ, where a NaN is as good as another."""
    size = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}.get(element, 1)
    mask = {
        "f16": (0x7FFF, 0x7C00),
        "bf16": (0x7FFF, 0x7F80),
        "f32": (0x7FFFFFFF, 0x7F800000),
        "f64": (0x7FFFFFFFFFFFFFFF, 0x7FF0000000000000),
    }.get(element)
    count, example = 0, None
    for at in range(0, len(wanted), size):
        a, b = (int.from_bytes(bytes_[at : at + size], "little") for bytes_ in (found, wanted))
        if a != b and not (mask and a & mask[0] > mask[1] and b & mask[0] > mask[1]):
            count += 1
            example = example or (at // size, hex(a), hex(b))
    return count, example


def main():
    folder = pathlib.Path(sys.argv[1])
    device = start()
    results, loaded = [], {}
    for case in json.loads((folder / "cases.json").read_text()):
        result = {"file": case["file"], "entry": case["entry"]}
        try:
            for file in (case["file"], case["file"] + ".again"):
                if file not in loaded:
                    loaded[file] = module(folder / f"{file}.ptx")
            one = Case(folder, case)
            was, result["time_us"] = one.run(loaded[case["file"]])
            if case["written"]:
                again, result["again_us"] = one.run(loaded[case["file"] + ".again"])
                result["same"] = was == again
            if case["engine"] is None:
                counts = []
                for (number, param, _, _), made in zip(one.buffers, was):
                    if param["compared"]:
                        wanted = (folder / f"{case['file']}.{case['entry']}.{number}.out").read_bytes()
                        counts.append(differing(made, wanted, param["element"]))
                result["engine_differs"] = sum(count for count, _ in counts)
                result["example"] = next((example for _, example in counts if example), None)
            else:
                result["engine"] = case["engine"]
            one.free()
        except RuntimeError as error:
            result["error"] = str(error)
        results.append(result)
    text = json.dumps({"device": device, "cases": results}, indent=1)
    if len(sys.argv) > 2:
        pathlib.Path(sys.argv[2]).write_text(text)
    for result in results:
        if result.get("error") or result.get("same") is False or result.get("engine_differs"):
            print(result)
    same = sum(result.get("same") is True for result in results)
    engine = sum(result.get("engine_differs") == 0 for result in results)
    slow = [
        result["again_us"] / result["time_us"]
        for result in results
        if result.get("again_us") and result["time_us"] > 10
    ]
    print(
        device,
        len(results),
        "cases",
        same,
        "written again with the same bits;",
        engine,
        "as the engine says;",
        "median time ratio",
        sorted(slow)[len(slow) // 2] if slow else None,
        "worst",
        max(slow, default=None),
    )


if __name__ == "__main__":
    main()
