"""Advice without a GPU: what goes in, what comes out, and what is refused."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from needed import needs, needs_numba

import headstart
from headstart import _arguments, _command, _ptx

GATHER = """
extern "C" __global__ void gather(const int* indices, const float* values, float* out, int n, int count) {
    int item = blockIdx.x * blockDim.x + threadIdx.x;
    float total = 0;
    for (int step = 0; step < count; step++) total += values[indices[step * n + item]];
    out[item] = total;
}
"""


def gathers(**more):
    """Arguments of a gather by 16 work-groups of 64."""
    n, count, values = 16 * 64, 8, 1 << 16
    arrays = (
        headstart.indices((count, n), uniform=values, seed=1),
        headstart.shape(values),
        headstart.shape(n, fill="zero"),
        n,
        count,
    )
    return {"grid": 16, "args": arrays, "budget": 2, **more}


needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton")


@needs_triton
def test_a_triton_kernel_has_a_report(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import kernels

    launch = kernels.gathers(16 * 128, 1 << 16, count=16)
    report = headstart.advise(
        launch.kernel,
        grid=lambda call: (call["n"] // call["BLOCK"],),
        args=launch.args,
        budget=5,
        **launch.constants,
    )
    assert report.name == "gather_reduce" and report.device == "sim:h200"
    assert report.verdict in ("prefetch", "unroll") and report.speedup > 1.1 and report.plan
    assert "values=" in report.plan or report.plan.startswith("unroll")
    assert any("`values`" in reason for reason in report.reasons)
    assert report.kernel is launch.kernel
    assert any("waiting for loads" in reason for reason in report.reasons)
    assert [choice.chosen for choice in report.choices].count(True) == 1
    # Places are lines of the Python file.
    assert any(step.place and "kernels.py" in step.place for step in report.steps)
    shown = report._repr_html_()
    assert "<svg" in shown and report.plan in shown and "<script" not in shown and report._repr_svg_() in shown
    assert report.conclusion in str(report)
    assert repr(report) == f"<headstart.Report 'gather_reduce' on sim:h200: {report.verdict}, {report.speedup:.2f}×>"
    # One vocabulary: that of the device's maker.
    assert "warps" in str(report) and "sub-group" not in str(report) and "work-item" not in str(report)
    if importlib.util.find_spec("pandas"):
        frame = report.to_dataframe()
        assert list(frame.columns) == ["what", "plan", "time_ns", "speedup", "chosen", "between"]
        assert len(frame) == len(report.choices)
        assert frame[frame.chosen].plan.item() == report.plan
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(headstart.UsageError, match="pip install pandas"):
        report.to_dataframe()
    # Nothing prints.
    assert capfd.readouterr() == ("", "")


@needs_triton
def test_a_report_is_opened_and_its_search_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    import kernels

    launch = kernels.gathers(16 * 128, 1 << 16, count=16)
    said: list[str] = []
    report = headstart.advise(
        launch.kernel, grid=(16,), args=launch.args, budget=2, l2="flushed", progress=said.append, **launch.constants
    )
    assert any("on sim:h200" in line for line in said), said
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    path = report.open()
    assert opened == [path.as_uri()] and path.name == "gather_reduce.html"
    assert path.read_text(encoding="utf-8") == report.page()
    with pytest.raises(headstart.UsageError, match="h2000"):
        headstart.advise(
            launch.kernel, grid=(16,), args=launch.args, device="sim:h2000", progress=said.append, **launch.constants
        )


def test_terms_are_those_of_the_device() -> None:
    from headstart.report import in_terms

    text = "A core holds 4 sub-groups of a work-group; `work-group` and core.clock stay, src/core.rs:3 too."
    said = "An SM holds 4 warps of a block; `work-group` and core.clock stay, src/core.rs:3 too."
    assert in_terms({"a": [text]}, "sim:h200") == {"a": [said]}
    assert in_terms(text, "sim:pvc-1550") == text


@needs_triton
def test_checks_of_indices_are_no_hindrance() -> None:
    import checked

    items, rows = 2048, 1 << 18
    indices = headstart.indices((64, items), uniform=rows, seed=1)
    report = headstart.advise(
        checked.checked_bag,
        grid=(64,),
        args=(indices, headstart.shape(rows), headstart.shape(64, fill="zero"), rows, items),
        budget=15,
        BLOCK=128,
        num_warps=4,
        debug=True,
        sanitize_overflow=False,
    )
    assert report.speedup > 1.2 and report.plan
    assert any("`table` can be fetched early" in reason for reason in report.reasons)


@needs_triton
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"args": (1,)}, "argument `values` is missing"),
        ({"args": "abcdefgh"}, "takes 6 arguments"),
        ({"grid": 0}, "`grid` is 0"),
        ({"grid": (1, 1, 1, 1)}, "one to three integers"),
        ({"block": 128}, "omit `block`"),
        ({"WIDTH": 3}, "no argument `WIDTH`"),
        ({"num_ctas": 2}, "clusters"),
    ],
)
def test_wrong_launches_of_triton_kernels_are_refused(change, message) -> None:
    import kernels

    launch = kernels.gathers(128, 64, count=2)
    with pytest.raises(headstart.UsageError, match=message):
        headstart.advise(launch.kernel, **{"grid": launch.grid, "args": launch.args, "BLOCK": 128, **change})


@needs_triton
def test_what_triton_refuses_is_told_in_its_words(tmp_path: Path) -> None:
    source = tmp_path / "wrong.py"
    source.write_text(
        "import triton, triton.language as tl\n\n@triton.jit\ndef wrong(out, BLOCK: tl.constexpr):\n"
        "    tl.store(out + tl.arange(0, BLOCK), 1.0)\n"
    )
    spec = importlib.util.spec_from_file_location("wrong", source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["wrong"] = module
    spec.loader.exec_module(module)
    with pytest.raises(headstart.KernelError, match=r"(?s)Triton refuses kernel `wrong`.*power of 2") as refused:
        headstart.advise(module.wrong, grid=1, args=(headstart.shape(100),), BLOCK=100)
    assert refused.value.__cause__ is not None


PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry sums(.param .u64 table, .param .u64 out, .param .u32 n)
{
.reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
ld.param.u64 %rd1, [table]; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [n];
mov.u32 %r2, 0; mov.u32 %r3, 0;
L: mul.wide.s32 %rd3, %r2, 4; add.s64 %rd4, %rd1, %rd3; ld.global.u32 %r4, [%rd4];
add.s32 %r3, %r3, %r4; add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, %r1; @%p1 bra L;
mov.u32 %r5, %tid.x; mul.wide.u32 %rd5, %r5, 4; add.s64 %rd6, %rd2, %rd5; st.global.u32 [%rd6], %r3; ret;
}
"""


def test_ptx_and_its_module_with_the_plan() -> None:
    args = (np.arange(64, dtype=np.int32), np.zeros(32, np.int32), 64)
    report = headstart.advise(PTX, grid=1, block=32, args=args, budget=5)
    assert report.name == "sums" and report.time_ns > 0
    assert ".entry sums" in report.ptx()
    assert report.page().lower().startswith("<!doctype html>")
    cold = headstart.advise(PTX, grid=1, block=32, args=args, budget=5, l2="flushed")
    assert cold.time_ns > report.time_ns
    assert any("as the launch before left it" in note for note in report.raw["notes"])
    assert any("holds nothing of it" in note for note in cold.raw["notes"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"l2": "cold"}, "flushed"),
        ({"block": None}, "`block` is missing"),
        ({"args": (1, 2)}, "3 parameters, but 2 arguments"),
        ({"args": (np.zeros(4), np.zeros(4), np.zeros(4))}, "expected a number"),
        ({"args": (np.zeros(4), np.zeros(4), "four")}, "is 'str'"),
        ({"args": (np.zeros(4), np.zeros(4), 1 << 40)}, "does not fit"),
        ({"name": "other"}, "no kernel 'other'; accepted for `name=`: sums"),
        ({"n": 5}, "take arguments by name"),
        ({"device": "sim:h20"}, "h200"),
    ],
)
def test_wrong_launches_of_ptx_are_refused(change, message) -> None:
    args = (np.arange(64, dtype=np.int32), np.zeros(32, np.int32), 64)
    with pytest.raises(headstart.HeadstartError, match=message):
        headstart.advise(PTX, **{"grid": 1, "block": 32, "args": args, **change})


def test_a_launch_out_of_bounds_is_the_kernels_fault() -> None:
    args = (np.arange(8, dtype=np.int32), np.zeros(32, np.int32), 64)
    with pytest.raises(headstart.KernelError):
        headstart.advise(PTX, grid=1, block=32, args=args)
    with pytest.raises(headstart.UsageError, match="no kernel: 'int'"):
        headstart.advise(3, grid=1)


def test_cuda_tensors_are_not_simulated() -> None:
    class Tensor:
        is_cuda = True

        def data_ptr(self) -> int:
            return 16

    with pytest.raises(headstart.UsageError, match=r"tensor.cpu\(\)"):
        headstart.advise(PTX, grid=1, block=32, args=(Tensor(), Tensor(), 64))


def nvrtc() -> bool:
    from headstart import _cuda

    try:
        _cuda._library()
    except headstart.DeviceError:
        return False
    return True


needs_nvrtc = needs("python-cuda", nvrtc(), "NVRTC")


@needs_nvrtc
def test_cuda_c_and_raw_kernels() -> None:
    report = headstart.advise(GATHER, **gathers(block=64))
    assert report.name == "gather"

    class RawKernel:
        code, name, options = GATHER, "gather", ("-DUNUSED=1",)

    own = gathers(block=64)
    own["args"] = (*own["args"][:3], np.int32(own["args"][3]), np.int32(own["args"][4]))
    assert headstart.advise(RawKernel(), **own).time_ns == report.time_ns
    with pytest.raises(headstart.KernelError, match="NVRTC refuses"):
        headstart.advise(GATHER.replace("float total", "flat total"), **gathers(block=64))
    # The source's names, and each sentence once.
    assert "`indices" in str(report) and "param_0" not in str(report)
    constant = "__global__ void constant(float *ones) { ones[threadIdx.x] = 1; }"
    said = str(headstart.advise(constant, grid=1, block=32, args=(headstart.shape(32),))).splitlines()
    assert len(said) == len(set(said))
    with pytest.raises(headstart.UsageError, match=r"argument 4 is the float 0.5; its parameter in `gather` is an integer"):
        headstart.advise(GATHER, **(own | {"args": (*own["args"][:4], 0.5)}))
    with pytest.raises(headstart.UsageError, match="names a file"):
        headstart.advise("gather.cu", **own)


def test_names_of_cuda_c() -> None:
    from headstart import _cuda, _ptx

    source = """// void __global__ f(int a)
    template <class T> __global__ void other(T *t) {}
    extern "C" __global__ __launch_bounds__(32, 1) void f(const int *__restrict__ a, float b /* , c */, int2 c) { g(a); }
    __global__ void of(int (*array)[4]) {}"""
    assert _cuda.names(source, _ptx.Entry("f", (8, 4, 8), None)) == ["a", "b", "c"]
    assert _cuda.names(source, _ptx.Entry("_Z1fPKif4int2", (8, 4, 8), None)) == ["a", "b", "c"]
    assert _cuda.names(source, _ptx.Entry("f", (8, 4), None)) == []
    assert _cuda.names(source, _ptx.Entry("_Z2ofPA4_i", (8,), None)) == []


@needs_nvrtc
@needs("python-cuda", importlib.util.find_spec("cupy") is not None, "CuPy")
def test_kernels_of_cupy_s() -> None:
    import cupy

    scaled = GATHER.replace("out[item] = total", "out[item] = SCALE * total")
    kernel = cupy.RawKernel(scaled, "gather", options=("-DSCALE=2.0f",))
    report = headstart.advise(kernel, **gathers(block=64))
    assert report.name == "gather" and report.kernel is kernel
    module = cupy.RawModule(code=scaled, options=("-DSCALE=2.0f",))
    assert headstart.advise(module, name="gather", **gathers(block=64)).time_ns == report.time_ns
    with pytest.raises(headstart.KernelError, match="SCALE"):
        headstart.advise(cupy.RawKernel(scaled, "gather"), **gathers(block=64))


@needs_numba
def test_numba_kernels() -> None:
    from numba import cuda

    @cuda.jit
    def gather(indices, values, out, count):
        item = cuda.grid(1)
        total = np.float32(0)
        for step in range(count):
            total += values[indices[step, item]]
        out[item] = total

    own = gathers(block=64)
    own["args"] = (*own["args"][:3], own["args"][4])
    report = headstart.advise(gather, **own)
    assert report.name == "gather" and report.time_ns > 0 and report.kernel is gather
    assert "`values`" in "".join(report.reasons)
    # Loads are shown where they are written.
    assert any("test_advise.py" in (step.place or "") for step in report.steps)
    with pytest.raises(headstart.UsageError, match="argument 3 is 'str'"):
        headstart.advise(gather, **{**own, "args": (*own["args"][:3], "16")})
    with pytest.raises(headstart.UsageError, match="argument 1 is a view with gaps"):
        headstart.advise(gather, **{**own, "args": (own["args"][0], np.ones(200, np.float32)[::2], *own["args"][2:])})
    with pytest.raises(headstart.KernelError, match="Numba refuses the kernel"):
        headstart.advise(gather, **{**own, "args": own["args"][:3]})


@needs_numba
def test_what_numba_s_parameters_are() -> None:
    """Two orders of memory, numbers of all kinds, an array that is given twice; and what `@cuda.jit` was told."""
    from numba import cuda

    from headstart import _numba

    @cuda.jit(fastmath=True)
    def kernel(by_rows, by_columns, again, whole, half, yes, small, out):
        item = cuda.grid(1)
        if yes and item < by_rows.shape[0]:
            out[item] = by_rows[item, 1] * by_columns[item, 1] / again[item, whole] + half + small

    rows = np.ones((4, 6), np.float32)
    columns = np.asfortranarray(np.arange(24, dtype=np.float32).reshape(4, 6))
    arguments = [rows, columns, rows, 1, 0.5, True, np.int16(3), np.zeros(4, np.float32)]
    ptx, name, values = _numba.compiled(kernel, arguments, 90)
    assert name == "kernel" and ".entry kernel(" in ptx and len(values) == 3 * 9 + 4 + 7
    assert values[2:4] == [24, 4] and values[5:9] == [4, 6, 24, 4]
    assert values[11:13] == [24, 4] and values[14:18] == [4, 6, 4, 16]
    assert values[4] is values[22] and values[27:31] == [1, 0.5, True, 3]
    # In the order of its memory: the first column, then the second.
    assert list(values[13].view(np.float32)[:5]) == [0.0, 6.0, 12.0, 18.0, 1.0]
    assert "div.approx" in ptx or "div.full" in ptx or "rcp.approx" in ptx


def test_patterns_are_what_they_say() -> None:
    zipf = _arguments.filled(headstart.indices(10_000, zipf=1000))
    assert zipf.dtype == np.int32 and zipf.min() == 0 and zipf.max() < 1000
    assert (zipf == 0).sum() > 5 * max(1, (zipf == 50).sum())
    uniform = _arguments.filled(headstart.indices((10, 10), uniform=7, dtype=np.int64))
    assert uniform.dtype == np.int64 and len(uniform) == 100 and uniform.max() == 6
    assert sorted(_arguments.filled(headstart.indices(50, permutation=True))) == list(range(50))
    one, other = (_arguments.filled(headstart.indices(99, uniform=99, seed=seed)) for seed in (1, 2))
    assert (one != other).any()
    fractions = _arguments.filled(headstart.shape(100, dtype="float16"))
    assert fractions.dtype == np.float16 and fractions.min() >= 1 and fractions.max() <= 2
    with pytest.raises(headstart.UsageError, match="exactly one"):
        headstart.indices(4, uniform=3, zipf=3)
    with pytest.raises(headstart.UsageError, match="no type 'float12'"):
        headstart.shape(4, dtype="float12")
    with pytest.raises(headstart.UsageError, match="`l2` is 'cold'; expected 'kept' or 'flushed'"):
        headstart.advise(PTX, grid=1, block=32, l2="cold")
    with pytest.raises(headstart.UsageError, match="no fill 'ones'; known are zero, "):
        headstart.shape(4, fill="ones")


def test_entries_are_found_with_their_parameters() -> None:
    text = """
    .visible .entry one(.param .u64 .ptr .global .align 1 one_param_0, .param .u32 b, .param .align 8 .b8 c[24])
    .reqntid 128, 1, 1 // .entry not(
    { .entry }
    .entry _Z5otherPf(.param .u64 a) { }
    """
    one = _ptx.entry(text, "one")
    assert one.sizes == (8, 4, 24) and one.layout == [(0, 8), (8, 4), (16, 24)] and one.group == (128, 1, 1)
    assert _ptx.entry(text, "other").name == "_Z5otherPf"
    with pytest.raises(headstart.KernelError, match="one, _Z5otherPf"):
        _ptx.entry(text)


def test_the_command_is_found_and_its_absence_told(monkeypatch: pytest.MonkeyPatch) -> None:
    said = subprocess.run([headstart.command(), "--version"], check=True, capture_output=True, text=True).stdout
    assert said.strip() == f"headstart-cli {headstart.__version__}" or headstart.__version__ in said
    monkeypatch.setenv("HEADSTART_COMMAND", "/nowhere/headstart")
    with pytest.raises(headstart.CommandMissing, match="/nowhere/headstart"):
        headstart.command()


NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "python" / "advise.ipynb"


@needs_triton
@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        (
            "echo 'headstart: 3 of 9 plans, about 4 s left' >&2; echo 'headstart: k.ptx:7: no such' >&2; "
            "echo '  register' >&2; exit 1",
            headstart.KernelError,
            "k.ptx:7: no such\n  register",
        ),
        (
            "echo 19 plans to try >&2; echo \"error: unexpected argument '--x'\" >&2; exit 2",
            headstart.UsageError,
            "error: unexpected argument '--x'",
        ),
        ("echo 19 plans to try >&2; exit 3", headstart.DeviceError, "19 plans to try"),
        ("exit 2", headstart.UsageError, "`headstart tune` ended with exit status 2 and said nothing"),
        ("echo so far >&2; kill -9 $$", headstart.HeadstartBug, "`headstart tune` was ended by SIGKILL\nso far"),
    ],
)
def test_the_command_s_own_sentence_is_told(script, kind, message, tmp_path: Path, monkeypatch) -> None:
    program = tmp_path / "headstart"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("HEADSTART_COMMAND", str(program))
    with pytest.raises(kind) as told:
        _command.run(["tune", "launch"])
    assert type(told.value) is kind and str(told.value) == message


def test_the_notebook_runs_and_shows_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the cells in order in one namespace, as a kernel of Jupyter's does, and asks the last value of each how it is shown.

    What a reader of the file sees, who runs nothing, are pictures and text of such a run; HEADSTART_BLESS writes them anew.
    """
    import linecache

    monkeypatch.chdir(NOTEBOOK.parent)
    names: dict[str, object] = {}
    shown: list[str] = []
    notebook = json.loads(NOTEBOOK.read_text())
    blessed = bool(os.environ.get("HEADSTART_BLESS"))
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        *first, last = source.rstrip().split("\n")
        name = f"<cell {number}>"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        if last[:1] in (" ", ")", "#") or "=" in last.split("(")[0] or last.startswith(("import", "from", "for")):
            exec(compile(source, name, "exec"), names)
            assert cell["outputs"] == []
            continue
        exec(compile("\n".join(first), name, "exec"), names)
        value = eval(compile(last, name, "eval"), names)
        if isinstance(value, headstart.Report):
            shown.append(value._repr_html_())
            data = {"image/svg+xml": value._repr_svg_(), "text/plain": str(value)}
        else:
            data = {"text/plain": repr(value)}
        (output,) = cell["outputs"] or [{}]
        if blessed:
            output = {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": data}
            cell["outputs"] = [output]
        # Times may change with the simulator; what is said of which kernel does not.
        assert output["data"].keys() == data.keys(), f"cell {number}: HEADSTART_BLESS=1 writes what it shows"
        for kind in output["data"]:
            assert output["data"][kind][:12] == data[kind][:12], f"cell {number}: HEADSTART_BLESS=1 writes what it shows"
    # The picture, the procedure, and the page with its figures.
    assert len(shown) == 2
    assert all(own.count("<svg") == 1 and "<table" in own and "<iframe" in own for own in shown)
    assert all("&lt;figure" in own for own in shown)
    if blessed:
        NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


@needs_triton
def test_the_page_shows_what_its_example_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """The first example of docs/python.md is run; `HEADSTART_BLESS=1` writes what it prints."""
    page = Path(__file__).resolve().parents[2] / "docs" / "python.md"
    text = page.read_text(encoding="utf-8")
    code = text.split("```python\n")[1].split("```")[0]
    shown = text.split("```text\n")[1].split("```")[0]
    exec(compile(code, str(page), "exec"), {"offsets": np.arange(257, dtype=np.int32) * 32})
    printed = capsys.readouterr().out.splitlines()
    waits = [line for line in printed[3:] if "waiting" in line]
    wanted = "\n".join([*printed[:3], "  …", *waits[:2], ""])
    if os.environ.get("HEADSTART_BLESS"):
        page.write_text(text.replace(shown, wanted), encoding="utf-8")
    else:
        assert shown == wanted


@needs_triton
@needs_numba
@needs("python-cuda", importlib.util.find_spec("cupy") is not None, "CuPy")
def test_the_second_example_of_the_page_runs(tmp_path: Path) -> None:
    """Each kernel is one that can be watched. Triton reads it from a file; `install` is for a process of its own."""
    page = Path(__file__).resolve().parents[2] / "docs" / "python.md"
    code = page.read_text(encoding="utf-8").split("```python\n")[2].split("```")[0]
    imports = "import cupy, headstart, triton, triton.language as tl\nfrom numba import cuda\n"
    file = tmp_path / "example.py"
    file.write_text(imports + code + "print(halved.name)", encoding="utf-8")
    ran = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "halved\n"), ran.stderr
