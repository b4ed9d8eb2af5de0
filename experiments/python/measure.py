"""Measures the client for Python: imports of a million vectors, and searches among 100,000 learned items.

    make build && bin/fddhdb python > /tmp/fddhdb.py
    FDDHDB_BINARY=bin/fddhdb PYTHONPATH=/tmp python3 experiments/python/measure.py [FOLDER]

The folder, a temporary one by default, gets a database of some GB. It is removed at the end.
"""
import shutil
import subprocess
import sys
import tempfile
import time

import fddhdb
import numpy as np

folder = tempfile.mkdtemp(dir=sys.argv[1] if len(sys.argv) > 1 else None)


def took(what, call, per=1):
    begin = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - begin
    print(f"{what}: {seconds:.3g} s" + (f", {per / seconds:,.0f} a second" if per > 1 else ""), flush=True)
    return result


def median(what, call, n=5000):
    times = []
    for i in range(n):
        begin = time.perf_counter()
        call(i)
        times.append(time.perf_counter() - begin)
    times.sort()
    print(f"{what}: median {1e6 * times[n // 2]:.0f} us, p99 {1e6 * times[n * 99 // 100]:.0f} us", flush=True)


try:
    n, rng = 1_000_000, np.random.default_rng(1)
    x = rng.random((n, 128), dtype="float32")
    keys = [f"{i}.jpg" for i in range(n)]
    labels = [["cat", "pet"] if i % 3 else ["dog"] for i in range(n)]
    years = rng.integers(2015, 2025, n)
    db = took("open", lambda: fddhdb.open(folder + "/a.db"))
    plain = db.create("plain", {"image": 128})
    took("add, an array of a million rows", lambda: plain.add(vectors=x), n)
    took("vectors, an array of a million rows", plain.vectors, n)
    db.drop("plain")
    float16 = db.create("float16", {"image": 128})
    half = np.asfortranarray(x.astype("float16"))
    took("add, the same in float16 and Fortran order", lambda: float16.add(vectors=half), n)
    db.drop("float16")
    whole = db.create("whole", {"image": 128}, {"year": "int"})
    took("add, with keys, labels and a field", lambda: whole.add(keys, x, labels=labels, fields={"year": years}), n)
    took("items, 100,000 of them", lambda: [it for it, _ in zip(whole, range(100_000))], 100_000)
    db.drop("whole")
    few = db.create("few", {"image": 128}, {"year": "int"})
    kinds = rng.integers(0, 20, 100_000)
    near = (rng.normal(size=(20, 128))[kinds] + rng.normal(size=(100_000, 128))).astype("float32")
    few.add(keys[:100_000], near, labels=[str(i) for i in kinds], fields={"year": years[:100_000]})
    took("train, 100,000 items", lambda: few.train(bits=64, anchors=200))
    for part in ("search, keys alone", ()), ("search, with labels and fields", ("labels", "fields")):
        median(part[0], lambda i: few.search(near[i], k=10, include=part[1]))
    took("search_many, 10,000 queries", lambda: few.search_many(near[:10_000], k=10, include=()))
    np.save(folder + "/queries.npy", near[:1000])
    db.close()
    print("in process:", flush=True)
    subprocess.run([fddhdb._binary(), "bench", folder + "/a.db", "--collection", "few", "--from", "image", "-k", "10",
                    "--vectors", folder + "/queries.npy"], check=True)
finally:
    shutil.rmtree(folder)
