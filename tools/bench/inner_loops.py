#!/usr/bin/env python3
"""Estimates the inner loops of products with llvm-mca: cycles a pass over 64
weights of 4 or 16 rows, for machines that are not here.

    inner_loops.py [--bin build/bin] [--types q4_0,q8_0] [--targets neon-dotprod] [--cpus neoverse-n1]

prints a Markdown table. The loads all hit the first cache: it is the bound
that computing sets, to be held against the speed of memory.
"""

import argparse
import pathlib
import re
import subprocess
import tempfile

# What the activations of each weight type carry.
ACTS = {
    "q4_0": "block32, sums false, corr32 [8], corr16 []",
    "q4_1": "block32, sums true, corr32 [], corr16 []",
    "q8_0": "block32, sums false, corr32 [128], corr16 []",
    "q4_k": "block256, sums true, corr32 [], corr16 []",
    "q6_k": "block256, sums false, corr32 [], corr16 [32]",
}
KERNEL = """!a = !pack.act<512 x {act}>
!w = !pack.weight<16 x 512, "{kind}">
plan.kernel @product(%a: !a, %w: !w, %o: memref<?x16xf32>) {{
  pack.matmul %a weights(%w) into %o : (!a, !w, memref<?x16xf32>) -> ()
}}
"""
# Products of 8-bit integers that an instruction makes.
PRODUCTS = {"sdot": 16, "smmla": 32, "smull": 8, "smull2": 8, "smlal": 8, "smlal2": 8}


def assembly(izh_opt, kind, target):
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(KERNEL.format(act=ACTS[kind], kind=kind))
        file.flush()
        return subprocess.run([izh_opt, file.name, "-o", "/dev/null", f"--izh-print-assembly=target={target}"],
                              check=True, capture_output=True, text=True).stdout.splitlines()


def innermost_loops(lines):
    """Bodies of loops that hold no other, as lists of instructions."""
    labels = {m[1]: i for i, line in enumerate(lines) if (m := re.match(r"(\.L\w+):", line))}
    loops = []
    for i, line in enumerate(lines):
        jump = re.match(r"\s+(?:b\.|cbn?z|tbn?z).*?(\.L\w+)$", line)
        if jump and labels.get(jump[1], i) < i:
            loops.append((labels[jump[1]] + 1, i + 1))
    inner = [a for a in loops if not any(a != b and a[0] <= b[0] and b[1] <= a[1] for b in loops)]
    return [[line for line in lines[a:b] if not line.strip().startswith(".")] for a, b in inner]


def cycles(mca, cpu, body, rounds=50):
    done = subprocess.run([mca, "-mtriple=aarch64", f"-mcpu={cpu}", "-mattr=+dotprod,+i8mm", f"-iterations={rounds}"],
                          input="\n".join(body), check=True, capture_output=True, text=True)
    return int(re.search(r"Total Cycles:\s+(\d+)", done.stdout)[1]) / rounds


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"), help="the folder of izh-opt")
    p.add_argument("--mca", default="/usr/lib/llvm-22/bin/llvm-mca")
    p.add_argument("--types", default=",".join(ACTS))
    p.add_argument("--targets", default="neon,neon-dotprod,neon-i8mm")
    p.add_argument("--cpus", default="cortex-a72,neoverse-n1,neoverse-v2,apple-m1")
    o = p.parse_args()
    cpus = o.cpus.split(",")
    print("| type | target | rows | instructions | of them products | on the stack | "
          + " | ".join(f"{cpu}: products a cycle" for cpu in cpus) + " |")
    print("| --- | --- | --: | --: | --: | --: |" + " --: |" * len(cpus))
    for kind in o.types.split(","):
        for target in o.targets.split(","):
            loops = []
            for body in innermost_loops(assembly(o.bin / "izh-opt", kind, target)):
                names = [line.split()[0] for line in body if line.strip()]
                made = [PRODUCTS[name] for name in names if name in PRODUCTS]
                if sum(made) >= 512:
                    loops.append((body, names, made))
            for body, names, made in loops:
                # With one row of activations, which comes last, a pass takes
                # the sixteen rows of a tile at once, else four of them.
                rows = 1 if body is loops[-1][0] else sum(made) // 256
                stack = sum("[sp" in line for line in body)
                rates = [f"{sum(made) / cycles(o.mca, cpu, body):.1f}" for cpu in cpus]
                print(f"| {kind} | {target} | {rows} | {len(names)} | {len(made)} | {stack} | "
                      + " | ".join(rates) + " |")


if __name__ == "__main__":
    main()
