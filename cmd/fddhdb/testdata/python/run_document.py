"""Runs the blocks of a document in Python, one after the other. A block of text behind one is what it prints.

Runs of spaces count as one. Where a block names a server, one serves photos.db, at another port. Folders under /mnt are in
the folder of the test.
"""
import contextlib
import io
import json
import os
import subprocess
import sys


def blocks(lines):
    """Yields the kind, the number of the first line and the lines of each block."""
    kind, first = None, 0
    for i, line in enumerate(lines):
        if line.startswith("```") and kind is None:
            kind, first = line[3:], i + 1
        elif line == "```":
            yield kind, first, lines[first:i]
            kind = None


def words(lines):
    return [line.split() for line in lines if line.strip()]


path = sys.argv[1]
with io.open(path, encoding="utf-8") as f:
    everything = list(blocks(f.read().split("\n")))
names, printed, server, url = {"__name__": "document"}, [], None, ""
count = 0
for kind, first, lines in everything:
    if kind == "text" and printed is not None and words(lines) != words(printed):
        sys.exit(f"{path}:{first + 1}: the block before prints\n" + "\n".join(printed))
    if kind == "text":
        printed = None
    if kind != "python":
        continue
    program = "\n".join(lines).replace("file:///mnt/", "file://" + os.getcwd() + "/mnt/")
    if "http://127.0.0.1:7070" in program:
        if server is None:
            server = subprocess.Popen([os.environ["FDDHDB_BINARY"], "serve", "photos.db", "--address", "127.0.0.1:0", "--json"],
                                      stdout=subprocess.PIPE)
            url = json.loads(server.stdout.readline())["url"]
        program = program.replace("http://127.0.0.1:7070", url)
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile("\n" * first + program, path, "exec"), names)
    finally:
        if sys.exc_info()[0] and server:
            server.kill()
    printed = out.getvalue().split("\n")
    count += 1
if server:
    server.terminate()
    server.stdout.close()
    server.wait()
if not count:
    sys.exit(path + " has no block of Python")
names["db"].close()
