"""Inductor's kernels: `torch.compile` launches most of them with its own launcher, which bypasses Triton's.

Its workers compile in other processes and deliver machine code; the PTX lies beside it in Triton's cache. Kernels that Inductor
launches otherwise go through Triton's compiled kernels, as all others do.
"""

from __future__ import annotations

import copy
import importlib.abc
import importlib.util
import json
import logging
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

log = logging.getLogger("headstart")

MODULE = "torch._inductor.runtime.triton_heuristics"

Replace = Callable[[Any, str, Callable[[Any], Any]], None]


class _Afterwards(importlib.abc.MetaPathFinder):
    """Calls a function after anything has imported Inductor's module: importing it takes seconds."""

    def __init__(self, then: Callable[[types.ModuleType], None]) -> None:
        self.then = then

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """The module's own loader, which calls our function after it."""
        if fullname != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        loader, execute = spec.loader, spec.loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            execute(module)
            try:
                self.then(module)
            except Exception as error:  # A change in Inductor must not stop it from working.
                log.info("Inductor's kernels are left as they are: %s", error)

        loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def patch(replace: Replace, as_trial: Callable[[Any], Any]) -> None:
    """Watches launchers that Inductor makes from now on, and leaves its autotuner's trials alone."""

    def then(module: types.ModuleType) -> None:
        _patch(module, replace, as_trial)

    unpatch()
    if MODULE in sys.modules:
        then(sys.modules[MODULE])
    else:
        sys.meta_path.insert(0, _Afterwards(then))


def unpatch() -> None:
    """Stops waiting for the import."""
    sys.meta_path[:] = [own for own in sys.meta_path if not isinstance(own, _Afterwards)]


def _patch(triton_heuristics: Any, replace: Replace, as_trial: Callable[[Any], Any]) -> None:
    if hasattr(triton_heuristics, "CachingAutotuner"):
        replace(triton_heuristics.CachingAutotuner, "bench", as_trial)
    if not hasattr(triton_heuristics, "StaticTritonCompileResult"):
        return

    def with_launcher(original: Any) -> Any:
        def make_launcher(self: Any) -> Any:
            try:
                wrapped = _wrapped(self)
            except Exception as error:  # A change in Inductor must not stop it from working.
                log.info("kernel %s of Inductor's is left as it is: %s", getattr(self.kernel, "name", "?"), error)
                wrapped = None
            if wrapped is None:
                return original(self)
            # The launcher keeps this reference; the kernel itself is pickled, and must not have it.
            self.kernel.run = wrapped
            try:
                return original(self)
            finally:
                del self.kernel.run

        return make_launcher

    replace(triton_heuristics.StaticTritonCompileResult, "make_launcher", with_launcher)


def _wrapped(result: Any) -> Callable[..., None] | None:
    """The function in place of the static kernel's `run`; `None` if the kernel is not watched."""
    from headstart import _hook

    settings = _hook.settings_of(None)
    if settings is None or settings.mode == "off":
        return None
    kernel = result.kernel
    if not kernel.cubin_path:
        result.reload_cubin_path()
    code = Path(kernel.cubin_path)
    text, manifest = code.with_suffix(".ptx"), code.with_suffix(".json")
    if not text.is_file() or not manifest.is_file():
        log.info("kernel %s of Inductor's is left as it is: it has no PTX", kernel.name)
        return None
    metadata = json.loads(manifest.read_text())
    from triton.backends.compiler import GPUTarget

    target = metadata["target"]
    metadata["target"] = GPUTarget(target["backend"], target["arch"], target["warp_size"])
    signature = result.compile_meta["signature"]
    arguments = [
        name
        for number, name in enumerate(kernel.arg_names)
        if number not in kernel.full_constexprs and signature.get(name, "constexpr") != "constexpr"
    ]
    fields = types.SimpleNamespace(**metadata)
    fields._asdict = lambda: metadata
    compiled = types.SimpleNamespace(
        name=metadata["name"],
        asm={"ptx": text.read_text()},
        metadata=fields,
        src=types.SimpleNamespace(signature={name: signature[name] for name in arguments}, fn=None),
    )
    launcher = _hook.made_for(compiled, settings, kernel.run, len(arguments), of_triton=False)
    if launcher is None:
        return None

    def adapted(function: Any) -> Callable[..., None]:
        better = copy.copy(kernel)
        better.function = function
        return better.run

    launcher.adapt = adapted
    return launcher.fast.launch
