"""Compiles the Triton kernels of packages, without a GPU and without torch.

    triton_kernels.py FOLDER OUT [CAPABILITY]

FOLDER holds unpacked packages; every `@triton.jit` function in it that loads or stores is tried with parameters guessed by
their names and uses, and becomes OUT/NAME.ptx. What does not compile with any guess is left out, counted, and listed in
OUT/.left-out. A run that is stopped goes on where it was: kernels that were made or left out are not tried again.
"""

import ast
import builtins
import multiprocessing
import os
import pathlib
import re
import resource
import sys

# Of processor time, so that what is left out does not depend on what else the machine does.
MOST_SECONDS = 60

# Functions and constants of all packages, which the processes that compile have from this one.
INDEX = ({}, {})


def index(folder):
    """Where each function that Triton compiles is defined, and the constants of modules: by name."""
    functions, constants = {}, {}
    for path in sorted(pathlib.Path(folder).rglob("*.py")):
        text = path.read_text(errors="ignore")
        if "triton" not in text:
            continue
        for node in ast.parse(text).body:
            if is_kernel(node):
                functions.setdefault(node.name, (str(path), node))
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if isinstance(target, ast.Name):
                    constants.setdefault(target.id, ast.unparse(node.value))
    return functions, constants


def is_kernel(node):
    return isinstance(node, ast.FunctionDef) and any(
        "triton.jit" in ast.unparse(d) for d in node.decorator_list
    )


class World:
    """Functions and what they mention, made when they are asked for. Their packages are not imported: those want torch."""

    def __init__(self, functions, constants):
        self.functions, self.constants, self.made = functions, constants, {}

    def function(self, path, node):
        import triton
        import triton.language as tl

        if (path, node.name) in self.made:
            return self.made[path, node.name]
        space = {"triton": triton, "tl": tl, "__name__": "standin"}
        wanted = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)} - {
            a.arg for a in node.args.args
        }
        plain = ast.FunctionDef(
            **{
                **{f: getattr(node, f, None) for f in node._fields},
                "decorator_list": [d for d in node.decorator_list if ast.unparse(d).startswith("triton.jit")],
            }
        )
        ast.copy_location(plain, node)
        own = {
            n.name: n for n in ast.parse(pathlib.Path(path).read_text(errors="ignore")).body if is_kernel(n)
        }
        # `min` and the like are Python's own.
        for name in sorted(wanted - set(space) - {node.name} - set(dir(builtins))):
            if name in own:
                space[name] = self.function(path, own[name])
            elif name in self.functions:
                space[name] = self.function(*self.functions[name])
            elif hasattr(tl, name) and name not in ("constexpr",):
                space[name] = getattr(tl, name)
            elif name == "tldevice" or name == "libdevice":
                from triton.language.extra import libdevice

                space[name] = libdevice
            elif hasattr(libdevice_names(), name):
                space[name] = getattr(libdevice_names(), name)
            elif name.isupper():
                try:
                    value = eval(self.constants.get(name, "True"), {"tl": tl, "triton": triton})
                except Exception:  # noqa: BLE001 - an expression of the package's own
                    value = True
                space[name] = value if isinstance(value, tl.constexpr) else tl.constexpr(value)
        # The file itself wants its package and torch; its functions do not. Defaults of parameters are among the names.
        exec(compile(ast.Module([plain], []), path, "exec"), space)  # noqa: S102
        self.made[path, node.name] = space[node.name]
        return space[node.name]


def libdevice_names():
    from triton.language.extra import libdevice

    return libdevice


def uses(function):
    """How the parameters of a function are used: which are pointers, which are constants by annotation."""
    arguments = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
    names = [argument.arg for argument in arguments]
    constants = {
        a.arg for a in arguments if a.annotation is not None and "constexpr" in ast.unparse(a.annotation)
    }
    pointers, passed = set(), set()

    def first_name(node):
        while isinstance(node, ast.BinOp):
            node = node.left
        return node.id if isinstance(node, ast.Name) else None

    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if node.args and re.search(
                r"(\.|^)(load|store|make_block_ptr|make_tensor_descriptor|atomic_\w+)$", called
            ):
                name = first_name(node.args[0])
                if name in names:
                    pointers.add(name)
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            text = ast.unparse(node)
            for name in names:
                if re.match(rf"^\w+ (\+)?= {name} \+", text) or re.match(rf"^{name} \+= ", text):
                    passed.add(name)
        if isinstance(node, ast.Attribute) and node.attr == "element_ty":
            found = re.match(r"(\w+)\.dtype", ast.unparse(node))
            if found:
                pointers.add(found[1])
    number = re.compile(
        r"^(i_|n_|stride|num_|T$|B$|H$|K$|V$|D$|HQ$|NT$|N$|M$|S$|offs?)|stride|size|_n$|_cols|_rows|seqlen|numel"
    )
    for name in passed:
        if not number.search(name):
            pointers.add(name)
    for name in names:
        if re.search(r"(_ptr|_ptrs|Ptr|_indices|_offsets|cu_seqlens|_out)$", name):
            pointers.add(name)
    return names, constants, pointers - constants


SMALL = re.compile(r"^(T|B|H|K|V|D|S|G|N|M|HQ|HV|HK|NT|BS|C)$")


def constant(name, variant):
    if re.match(
        r"^(USE_|IS_|HAS_|STORE_|OUTPUT_|DO_|APPLY_|SAVE_|ALLOW_|REVERSE|HEAD_FIRST|TRANS|RETURN|CAUSAL|SAFE|INIT)",
        name,
    ):
        if re.search(r"VARLEN|INITIAL|FINAL|DECODING", name):
            return False
        return variant % 2 == 1
    if re.match(r"^BLOCK", name) or name.endswith("BLOCK_SIZE"):
        return (64, 128, 32, 1024)[variant % 4]
    if re.match(r"^(BT|BC|BS|BK|BV|BD|BN|BM|BB|BH|BG|NC|NS)\w*$", name):
        return (64, 32, 16, 64)[variant % 4] if name not in ("NC", "NS") else 4
    if SMALL.match(name) or re.match(r"^[A-Z]{1,2}$", name):
        return 64 if name not in ("H", "HQ", "G", "NT") else 4
    if re.search(r"(?i)eps|scale|alpha|beta|soft|cap|smooth", name):
        return 0.5
    if re.search(r"(?i)activation|casting|reduction|mode|type", name):
        return ("none", "swish", 1, 0)[variant % 4]
    if re.search(r"(?i)dtype", name):
        import triton.language as tl

        return tl.float32
    if re.search(r"(?i)num_|n_|stages|warps", name):
        return 2
    return (True, False, 64, 1)[variant % 4] if name.isupper() else (64, 1, False, 4)[variant % 4]


def scalar(name):
    return (
        "fp32"
        if re.search(
            r"(?i)scale|eps|alpha|beta|gamma|lse_square|smooth|offset_f|softcap|^lr$|weight|_p$|temperature",
            name,
        )
        else "i32"
    )


def pointer(name, variant):
    if re.search(r"(?i)indices|offset|cu_seq|idx|target|index|count|mask_ids|labels|chunk|lens", name):
        return "*i64" if variant % 2 else "*i32"
    return ("*bf16", "*fp32", "*fp16")[variant % 3]


def compile_one(world, path, node, target, capability):
    """Compiles a kernel with the first guess that fits."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names, fixed, pointers = uses(node)
    for variant in range(5):
        signature, values = {}, {}
        for parameter in names:
            if parameter in fixed:
                signature[parameter] = "constexpr"
                values[parameter] = constant(parameter, variant)
            elif parameter in pointers:
                signature[parameter] = pointer(parameter, variant)
            else:
                signature[parameter] = scalar(parameter)
        try:
            source = ASTSource(world.function(path, node), signature, values)
            compiled = triton.compile(
                source,
                target=GPUTarget("cuda", capability, 32),
                options={"num_warps": 4, "num_stages": 3 if variant % 2 == 0 else 2},
            )
        except Exception:  # noqa: BLE001, S112 - a guess that does not compile
            continue
        unfinished = target.with_suffix(".unfinished")
        unfinished.write_text(compiled.asm["ptx"])
        unfinished.rename(target)
        return


def compile_all(job):
    path, root, out, capability, before = job
    import contextlib
    import io

    made, failed = 0, []
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        world = World(*INDEX)
        file = ".".join(pathlib.Path(path).relative_to(root).with_suffix("").parts)
        for node in ast.parse(pathlib.Path(path).read_text(errors="ignore")).body:
            if not is_kernel(node):
                continue
            text = ast.unparse(node)
            if "store" not in text and "atomic" not in text:
                continue
            target = pathlib.Path(out) / f"{file}.{node.name}.ptx"
            name = f"{file}.{node.name}"
            if not target.exists() and name not in before:
                # In a process of its own: some take the compiler minutes.
                child = os.fork()
                if child == 0:
                    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
                    try:
                        compile_one(world, path, node, target, capability)
                    finally:
                        os._exit(0)
                os.waitpid(child, 0)
            if target.exists():
                made += 1
            else:
                failed.append(name)
    return made, failed


def main():
    folder, out = sys.argv[1:3]
    capability = int(sys.argv[3]) if len(sys.argv) > 3 else 90
    pathlib.Path(out).mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("TRITON_CACHE_DIR", str(pathlib.Path(out) / ".cache"))
    left_out = pathlib.Path(out) / ".left-out"
    before = frozenset(left_out.read_text().split() if left_out.exists() else ())
    for mine, found in zip(INDEX, index(folder)):
        mine.update(found)
    jobs = [
        (str(p), folder, out, capability, before)
        for p in sorted(pathlib.Path(folder).rglob("*.py"))
        if "triton.jit" in p.read_text(errors="ignore")
    ]
    made, failed = 0, []
    # Here once, rather than in each process.
    import triton.compiler  # noqa: F401

    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        for count, errors in pool.imap_unordered(compile_all, jobs):
            made += count
            failed += errors
            print(f"{made} modules, {len(failed)} kernels left out", file=sys.stderr)
            with left_out.open("a") as list_:
                for error in errors:
                    print(error, flush=True)
                    if error not in before:
                        print(error, file=list_)


if __name__ == "__main__":
    main()
