"""Patches of memory management (`source_patches.py`): programs see the memory of any Linux."""

from __future__ import annotations

import os
import sys

import pytest
from jostle.kernel_images import Image, run_guest

_PROGRAM = """
import mmap, os, threading

# A private mapping of three pages. The file then has one page and a byte.
path = "/run/data"
open(path, "wb").write(b"x" * 4096 + b"y" * 8192)
file = os.open(path, os.O_RDONLY)
mapped = mmap.mmap(file, 3 * 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
os.truncate(path, 4097)
mapped[0] = 1
assert mapped[1:4096] == b"x" * 4095, "bytes of the file next to a written one"
assert mapped[4096:8192] == b"y" + bytes(4095), "the end of the file"
if os.fork() == 0:
    mapped[8192] = 1  # beyond the file: SIGBUS
    os._exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == -7, "a signal beyond the file"
assert open(path, "rb").read() == b"x" * 4096 + b"y", "the file"

# Memory is zero, and belongs to one process after a fork.
memory = mmap.mmap(-1, 64 * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory[20 * 4096] = 7
if os.fork() == 0:
    for page in range(64):
        memory[page * 4096 + 1] = 9
    os._exit(0)
assert os.wait()[1] == 0
assert bytes(memory) == bytes(20 * 4096) + b"\\7" + bytes(44 * 4096 - 1), "memory of the parent"

# Shared memory is written by both.
shared = mmap.mmap(-1, 4 * 4096)
if os.fork() == 0:
    shared[2 * 4096] = 5
    os._exit(0)
assert os.wait()[1] == 0
assert shared[2 * 4096] == 5, "shared memory"

# A thread sees what the others map, and they see what it maps.
def resident_kb():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))

start, go, added = threading.Event(), threading.Barrier(301), []
def work(number):
    added.append((number, bytearray([number % 251]) * 5000))
    go.wait()
    start.wait()

before_kb = resident_kb()
threads = [threading.Thread(target=work, args=(number,)) for number in range(300)]
for thread in threads:
    thread.start()
go.wait()
assert all(bytes(text) == bytes([number % 251]) * 5000 for number, text in added)
assert resident_kb() - before_kb < 300 * 64, "memory of the threads"
start.set()
for thread in threads:
    thread.join()
print("as on any Linux")
"""


def test_programs_see_the_memory_of_any_linux(kernel: Image, tmp_path):
    (tmp_path / "program.py").write_text(_PROGRAM)
    words = [os.path.realpath(sys.executable), "-I", "-S", "program.py"]
    script = tmp_path / "run"
    script.write_text(f"#!/bin/sh\ncd {tmp_path}\nexec {' '.join(words)}\n")
    output = run_guest(kernel, script, {}, memory_mb=512, timeout_s=120)
    if not output.ok:
        pytest.fail(output.tail)
    assert output.text.endswith("as on any Linux")
