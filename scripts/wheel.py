"""Packs a wheel of binaries that are there already: `wheel.py BINARIES OUT`. `scripts/wheel --built` calls it.

What maturin makes of python/pyproject.toml, without compiling: the modules, the command as a script, and the library that
`headstart capture` preloads, which comes to lie in lib/ beside bin/.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Packs it, and prints where it is."""
    binaries, out = (Path(word) for word in sys.argv[1:])
    version = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert version is not None
    name = f"headstart-{version[1]}"
    machine = subprocess.run(["uname", "-m"], check=True, capture_output=True, text=True).stdout.strip()
    tag = f"py3-none-linux_{machine}"
    files: dict[str, bytes] = {}
    for path in sorted((ROOT / "python" / "headstart").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            files[str(path.relative_to(ROOT / "python"))] = path.read_bytes()
    files[f"{name}.data/scripts/headstart"] = stripped(binaries / "headstart")
    library = binaries / "libheadstart_driver.so"
    if not library.exists():
        # `cargo test` leaves what its programs depend on there.
        library = binaries / "deps" / library.name
    files[f"{name}.data/data/lib/libheadstart_driver.so"] = stripped(library)
    project = (ROOT / "python" / "pyproject.toml").read_text()
    requires = [f"Requires-Dist: {own}" for own in listed(project, "dependencies")]
    for extra, _ in re.findall(
        r"^(\w+) = (\[.*\])$", section(project, "project.optional-dependencies"), re.MULTILINE
    ):
        requires.append(f"Provides-Extra: {extra}")
        requires += [f'Requires-Dist: {own}; extra == "{extra}"' for own in listed(project, extra)]
    files[f"{name}.dist-info/METADATA"] = "\n".join(
        [
            "Metadata-Version: 2.1",
            "Name: headstart",
            f"Version: {version[1]}",
            "Requires-Python: >=3.10",
            *requires,
            "",
        ]
    ).encode()
    files[f"{name}.dist-info/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: headstart\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    )
    record = f"{name}.dist-info/RECORD"
    lines = [f"{path},sha256={digest(own)},{len(own)}" for path, own in files.items()]
    files[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    out.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(out / f"{name}-{tag}.whl", "w", zipfile.ZIP_DEFLATED, compresslevel=6) as wheel:
        for path, own in files.items():
            about = zipfile.ZipInfo(path)
            about.compress_type = zipfile.ZIP_DEFLATED
            about.external_attr = (
                0o100755 if "/scripts/" in path or path.endswith(".so") else 0o100644
            ) << 16
            wheel.writestr(about, own)


def section(project: str, name: str) -> str:
    """The lines of a table of TOML's."""
    return project.split(f"[{name}]\n", 1)[1].split("\n[", 1)[0]


def listed(project: str, name: str) -> list[str]:
    """The strings of a list that stands on a line."""
    found = re.search(rf"^{name} = \[(.*)\]$", project, re.MULTILINE)
    return re.findall(r'"([^"]+)"', found[1]) if found else []


def digest(contents: bytes) -> str:
    """As RECORD has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()


def stripped(path: Path) -> bytes:
    """A binary without symbols, for whatever machine it is; as it is where no program here can do that."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        for program, environment in strippers():
            words = [program, "--strip-all", str(path), str(copy)]
            done = subprocess.run(words, check=False, capture_output=True, env={**os.environ, **environment})
            if done.returncode == 0 and copy.stat().st_size > 0:
                return copy.read_bytes()
        return path.read_bytes()


def strippers() -> list[tuple[str, dict[str, str]]]:
    """Programs that read a binary and write another, with what they need: rustc's own, which knows all machines, or the system's."""
    found: list[tuple[str, dict[str, str]]] = []
    if shutil.which("rustc"):
        asked = subprocess.run(
            ["rustc", "--print", "target-libdir"], check=True, capture_output=True, text=True
        )
        libraries = Path(asked.stdout.strip())
        program = libraries.parent / "bin" / "rust-objcopy"
        if program.exists():
            found.append((str(program), {"LD_LIBRARY_PATH": str(libraries.parents[2])}))
    return found + [(name, {}) for name in ("llvm-objcopy", "objcopy") if shutil.which(name)]


if __name__ == "__main__":
    main()
