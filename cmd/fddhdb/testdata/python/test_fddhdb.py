"""Tests of the client for Python, with numpy. FDDHDB_BINARY has the path of the command."""
import datetime
import io
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import urllib.error
import urllib.request
import zlib
from unittest import mock

import numpy as np

import fddhdb

HERE = os.path.dirname(os.path.abspath(fddhdb.__file__))
ODD_KEYS = ["a/b", ".", "..", "%2F", "ü:search", "cat dog", "😀", "items/x", "a?b#c", "\\", "\n", "a" * 1000, "'\"<&>", "0"]


def eventually(condition, what):
    """Waits until a condition holds. The machine may be busy."""
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("never: " + what)
        time.sleep(.01)


def runs(pid):
    try:
        with io.open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def python(program, *args):
    """Starts a program of Python, which prints lines."""
    return subprocess.Popen([sys.executable, "-c", "import fddhdb, sys\n" + program, *args], text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": HERE})


class Base(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "a.db")
        self.db = fddhdb.open(self.path)
        self.addCleanup(self.db.close)

    def vectors(self, n, dim=8):
        return np.random.default_rng(1).normal(size=(n, dim)).astype("f4")

    def collection(self, n=0, **fields):
        c = self.db.create("main", {"image": 8}, {"year": "int", **fields})
        if n:
            c.add([f"k{i}" for i in range(n)], self.vectors(n), labels=["cat" if i % 2 else "dog" for i in range(n)],
                  fields={"year": 2000 + np.arange(n) % 20})
        return c

    def refused(self, kind, text, call, *args, **named):
        with self.assertRaises(kind) as caught:
            call(*args, **named)
        self.assertIn(text, str(caught.exception))
        return caught.exception


class Test(Base):
    def test_odd_fields(self):
        """Fields with the names of figures are beside these, and values of the wrong kind are refused."""
        c = self.db.create("odd", {"image": 8}, {"key": "string", "score": "int"})
        c.put("a/b", self.vectors(1)[0], fields={"key": "K2", "score": 7})
        table = repr(c.search(self.vectors(1)[0]))
        self.assertIn("fields.key", table)
        self.assertRegex(table, r"a/b .* K2 ")
        for what in (lambda: c.put("x", payload="text"), lambda: c.add(["x"], payloads=["text"]),
                     lambda: c.embed(file="x")):
            self.refused(fddhdb.Invalid, "is no bytes", what)
        self.assertEqual(c.delete(np.int64(3)), 0)
        self.assertEqual([i.key for i in c.items("score = ?", np.array([7]))], ["a/b"])
        self.refused(fddhdb.Invalid, "a path has no blanks", self.db.request, "GET", "/x HTTP/1.1\r\nX-Evil: 1\r\nY:")
        self.refused(fddhdb.Exists, "another schema", self.db.create, "odd", {"image": {"dim": 8, "metric": "dot"}},
                     exist_ok=True)

    def test_texts(self):
        """Texts are searched for by the program that the collection has for it."""
        c = self.collection(20)
        folder = os.path.dirname(self.path)
        program = os.path.join(folder, "encode.py")
        with io.open(program, "w") as f:
            f.write("import sys\nfor line in sys.stdin:\n"
                    "    print([float(i == len(line.strip())) for i in range(8)], flush=True)\n")
        with mock.patch.dict(os.environ, XDG_STATE_HOME=folder):
            self.refused(fddhdb.Invalid, "has no encoder of texts", lambda: c.search(text="four"))
            subprocess.run([os.environ["FDDHDB_BINARY"], "encoder", self.path, "--set",
                            f"image={sys.executable} {program}"], check=True, stdout=subprocess.DEVNULL)
            self.db.close()
            self.db = fddhdb.open(self.path)
            self.addCleanup(self.db.close)
            c = self.db.collection("main")
            x = c.embed("four")
            self.assertEqual(x.tolist(), [0, 0, 0, 0, 1, 0, 0, 0])
            self.assertEqual(c.search(text="four", k=5).keys, c.search(x, k=5).keys)
            self.assertEqual(c.search("four", k=5).keys, c.search(x, k=5).keys)
            self.assertEqual(c.search(text="four", k=5, where="label = 'cat'").keys,
                             c.search(x, k=5, where="label = 'cat'").keys)
            self.refused(fddhdb.Invalid, "of texts are for image", lambda: c.search(text="four", from_="words"))

    def test_six_lines(self):
        x = self.vectors(10_000, 64)
        c = self.db.create("photos", {"image": 64}, {"year": "int"}, exist_ok=True)
        years = 2000 + np.arange(len(x)) % 25
        self.assertEqual(10_000, c.add([f"p{i}" for i in range(len(x))], {"image": x}, fields={"year": years},
                                       labels=[["cat", "pet"] if i % 3 else ["dog"] for i in range(len(x))]))
        hits = c.search(x[5], k=5, where="label = ? AND year >= 2010", args=["cat"])
        fits = np.flatnonzero((np.arange(len(x)) % 3 > 0) & (years >= 2010))
        cosine = x[fits] @ x[5] / np.linalg.norm(x[fits], axis=1)
        self.assertEqual([f"p{i}" for i in fits[np.argsort(-cosine)[:5]]], hits.keys)
        lines = str(hits).split("\n")
        self.assertEqual(["rank", "key", "similarity", "labels", "year"], lines[0].split())
        self.assertEqual(6, len(lines))
        self.assertEqual(["cat", "pet"], hits[0].labels)
        self.assertEqual({"key", "distance", "score", "similarity", "labels", "fields"}, set(hits.to_dicts()[0]))
        self.assertEqual(hits.keys, [h.key for h in hits])

    def test_opened_again(self):
        self.collection(5)
        again = self.db.create("main", {"image": 8}, {"year": "int"}, exist_ok=True)
        self.assertEqual(5, len(again))
        self.refused(fddhdb.Exists, "another schema", self.db.create, "main", {"image": 9}, exist_ok=True)
        self.refused(fddhdb.Exists, "exists", self.db.create, "main", {"image": 8})
        self.db.close()
        self.refused(fddhdb.Error, "is closed", len, again)
        with fddhdb.open(self.path, create=False) as db:
            self.assertEqual((["main"], 5), (db.collections(), len(db.collection())))
            db.drop("main")
            self.assertEqual([], db.collections())

    def test_keys_of_odd_characters(self):
        c = self.collection()
        c.add(ODD_KEYS, self.vectors(len(ODD_KEYS)))
        for i, key in enumerate(ODD_KEYS):
            self.assertEqual(key, c.get(key).key)
            self.assertIn(key, c)
            self.assertEqual(key, c.put(key, self.vectors(len(ODD_KEYS))[i], labels=key))
            c.merge(key, fields={"year": i})
            self.assertEqual(([key], {"year": i}), (c.get(key).labels, c.get(key).fields))
            self.assertEqual(key, c.search(key=key, k=1)[0].key)
        self.assertEqual(sorted(ODD_KEYS, key=str.encode), list(c.keys()))
        self.assertEqual(ODD_KEYS, [it.key for it in c])
        for key in ODD_KEYS:
            self.assertEqual(1, c.delete(key))
        self.assertNotIn("0", c)
        for key in ("", None, 1.5, True, b"x"):
            self.refused(fddhdb.Invalid, "no key", c.get, key)
        for call in (lambda: c.get("x\udc80"), lambda: c.put("x\udc80"), lambda: c.add(["a", "x\udc80"]),
                     lambda: c.add(["a"], labels=["x\udc80"]), lambda: c.search(key="x\udc80")):
            self.refused(fddhdb.Invalid, "\\udc80", call)
        self.refused(fddhdb.Invalid, "bytes", c.put, "a" * 2000)
        self.assertEqual(("7", "0"), (c.put(np.int64(7)), c.put(vectors=[1] * 8)[:1]))

    def test_arrays(self):
        x = self.vectors(3000) * 100
        wide = np.zeros((3000, 16), "f4")
        wide[:, ::2] = x
        forms = {"f2": x.astype("f2"), "f8": x.astype("f8"), "big": x.astype(">f4"), "fortran": np.asfortranarray(x),
                 "strided": wide[:, ::2], "backwards": x[::-1], "int": x.astype("i2"), "bool": x > 0}
        for name, given in forms.items():
            with self.subTest(name):
                for keys in (None, range(3000)):
                    c = self.db.create(name + str(keys is None), {"image": 8})
                    self.assertEqual(3000, c.add(keys, given))
                    got = c.vectors()
                    self.assertEqual(("float32", (3000, 8)), (str(got.dtype), got.shape))
                    np.testing.assert_array_equal(given.astype("f4"), got)
        row = c.search(forms["f8"][3] > 0, k=1)
        self.assertEqual(1, len(row))

    def test_bad_arrays(self):
        c = self.collection()
        good, nan = self.vectors(4), self.vectors(4)
        nan[2, 1] = np.nan
        for keys in (None, list("abcd")):
            for x, text in ((good[0], "(n, dimensions)"), (good[None], "(n, dimensions)"), (nan, "in row 2"),
                            (good.astype("f8") * 1e300, "beyond float32 in row 0"), (good[:0], "is empty"),
                            (good[:, :0], "is empty"), (good[:, :5], "5 dimensions, where the modality has 8"),
                            (good.astype("c8"), "complex64"), (good.astype(str), "numbers are expected"),
                            (np.array([[None] * 8] * 4), "object")):
                self.refused(fddhdb.Invalid, text, c.add, keys, x)
                self.refused(ValueError, 'vectors["image"]', c.add, keys, {"image": x})
        self.refused(fddhdb.NotFound, '"sound"', c.add, None, {"sound": good})
        self.refused(fddhdb.Invalid, 'labels has 3, vectors["image"] has 4', c.add, None, good, labels=list("abc"))
        self.refused(fddhdb.Invalid, "keys[1]: 1.5 is no key", c.add, ["a", 1.5], good[:2])
        self.refused(fddhdb.Invalid, "labels[1]: 1.5", c.add, None, good[:2], labels=["a", [1.5]])
        self.refused(fddhdb.Invalid, 'fields["year"][0]', c.add, None, good[:1], fields={"year": [object()]})
        self.refused(fddhdb.Invalid, "list or an array", c.add, "ab", good[:2])
        self.refused(fddhdb.Invalid, "nothing is given", c.add)
        self.refused(fddhdb.Invalid, 'field "size"', c.add, ["a"], good[:1], fields={"size": [1]})
        e = self.refused(fddhdb.Invalid, "row 1", c.add, ["a", "b"], good[:2], fields={"year": [1, "x"]})
        self.assertEqual(("invalid", 400), (e.code, e.status))
        for x, text in ((nan[2], "NaN"), (good, "(dimensions,)"), ([], "is empty"), ([1, "x"], "numbers"),
                        ([1e39] * 8, "float32"), ([1.0, float("inf")], "infinity"), (good[0, :3], "3"), ({0: float("nan")}, "NaN"), ({"a": 1}, "index")):
            self.refused(fddhdb.Invalid, text, c.search, x)
            self.refused(fddhdb.Invalid, text, c.put, "a", {"image": x})
        self.refused(fddhdb.Invalid, "code", c.search, code=good[0])
        self.assertEqual(0, len(c))

    def test_no_value(self):
        c = self.collection(price="float", when="time", name="string", fine="bool")
        times = np.array(["2024-05-01T12:30", "NaT"], "M8[ns]")
        c.add(["a", "b"], {"image": [[1] * 8, None]}, labels=[None, ["x", 3]], payloads=[b"\0\xff", None], fields={
            "price": np.array([1.5, np.nan]), "when": times, "name": ["\u2028\"", None], "fine": [True, None],
            "year": [None, np.int16(3)]})
        a, b = c.get("a"), c.get("b")
        self.assertEqual({"price": 1.5, "when": "2024-05-01T12:30:00Z", "name": "\u2028\"", "fine": True}, a.fields)
        self.assertEqual(({"year": 3}, ["x", "3"], b"\0\xff", None), (b.fields, b.labels, a.payload, b.payload))
        self.assertEqual((["image"], []), (list(a.vectors), list(b.vectors)))
        np.testing.assert_array_equal([[1] * 8], c.vectors())
        self.assertEqual(1, c.count("when >= ? AND price < ?", [datetime.date(2024, 5, 1), np.float32(2)]))
        c.add(["a"], fields={"year": [9]}, merge=True)
        self.assertEqual((9, 1.5), (c.get("a").fields["year"], c.get("a").fields["price"]))
        self.assertEqual("a", c.put("a", fields={"when": datetime.datetime(2020, 1, 2, 3)}))
        self.assertEqual({"when": "2020-01-02T03:00:00Z"}, c.get("a").fields)

    def test_sparse(self):
        c = self.db.create("main", {"words": {"dim": 100, "sparse": True}})
        c.add(["a", "b"], {"words": [{3: 1.0, 1: 2}, {99: 1}]})
        csr = types.SimpleNamespace(indptr=np.array([0, 1, 3]), indices=np.array([5, 7, 6]), data=np.array([1., 2, 3]),
                                    shape=(2, 100))
        csr.tocsr = lambda: csr
        c.add(["c", "d"], csr)
        self.assertEqual([{1: 2, 3: 1}, {99: 1}, {5: 1}, {6: 3, 7: 2}], [it.vectors["words"] for it in c])
        self.assertEqual(["b"], c.search({99: 5}, k=1).keys)

    def test_items(self):
        c = self.collection(100)
        self.assertEqual([f"k{i}" for i in range(100)], [it.key for it in c.items()])
        self.assertEqual([f"k{i}" for i in range(1, 100, 2)], [it.key for it in c.items("label = ?", ["cat"])])
        self.assertEqual(5, len(list(c.items(sample=5, seed=3))))
        self.assertEqual(["k1", "k10", "k11"], list(c.keys("k1", limit=3)))
        self.assertEqual({"cat": 50, "dog": 50}, c.facets())
        self.assertEqual({2000: 5, 2001: 5}, c.facets("year", limit=2))
        np.testing.assert_array_equal(self.vectors(100)[::2], c.vectors(where="label = 'dog' OR label = 'no'"))
        for it in c:  # an iterator that is left early, beside other requests
            self.assertEqual(100, len(c))
            break
        self.assertEqual([10] * 10, [len(p) for p in c.search(key="k0", k=10).pages()])
        self.assertEqual(100, len({k for p in c.search(self.vectors(1)[0], k=30).pages() for k in p.keys}))
        self.assertEqual((3, 50), (c.delete(["k1", "k2", "k3"]), c.delete(where="label = ? OR key = ?"[:9], args=["dog"]) + 1))
        self.assertEqual(48, len(c))
        self.refused(fddhdb.Invalid, "column", c.count, "label = = 'cat'")
        self.refused(fddhdb.NotFound, "k1", c.get, "k1")
        self.refused(fddhdb.NotFound, "nowhere", self.db.collection, "nowhere")
        self.refused(fddhdb.NoModel, "", c.radius, 3, key="k5")
        self.refused(fddhdb.Invalid, "one of keys and where", c.delete)
        self.assertEqual("main", self.db.request("GET", "/collections/main")["name"])

    def test_words(self):
        c = self.db.create("captions", {"x": 2}, {"caption": {"type": "string", "words": True}})
        for key, x, caption in ("a", [1, 0], "A red star"), ("b", [0, 1], "a blue moon"), ("c", [.1, 1], "a red moon"):
            c.put(key, {"x": x}, fields={"caption": caption})
        self.assertEqual(["a", "c"], c.search(words="star red").keys)
        self.assertEqual("c", c.search([0, 1], from_="x", words="red moon").keys[0])
        self.assertEqual(2, c.count("caption CONTAINS 'RED'"))
        self.refused(fddhdb.Invalid, "words", self.collection(3).search, words="red")

    def test_codes(self):
        c = self.db.create("hashes", bits=16)
        codes = np.arange(200, dtype="u1").reshape(100, 2)
        self.assertEqual((100, 2), (c.add(codes=codes), c.add(["x", "y"], codes=codes[:2], labels=["a", "b"])))
        c.put("z", code=b"\1\2")
        np.testing.assert_array_equal(np.vstack([codes, codes[:2], [[1, 2]]]), c.codes())
        hits = c.radius(0, code=codes[0])
        self.assertEqual((["0", "x"], 2, 0), (hits.keys, hits.total, hits[0].distance))
        self.assertEqual(b"\1\2", c.get("z").code)
        self.assertEqual(["z"], c.search(code="0102", k=1).keys)
        same = [(p["key"], p["other"], p["distance"]) for p in c.pairs(0)]
        self.assertEqual([("x", "0", 0), ("y", "1", 0)], same)
        self.assertEqual([["y", "1"]], [[i["key"] for i in g["items"]] for g in c.groups(0, keep="newest", where="NOT label = 'a'")])
        self.refused(fddhdb.Invalid, "radius", list, c.pairs(-1))
        for bad in (codes.astype("i8"), codes[0], codes[:0]):
            self.refused(fddhdb.Invalid, "of uint8 is expected", c.add, codes=bad)
        self.refused(fddhdb.Invalid, "bits", c.add, codes=codes[:, :1])

    def test_hashes(self):
        c = self.db.create("texts", bits=64, hash="simhash", exist_ok=True)
        for key, text in ("a", "a few words about a cat"), ("b", "and others that are of dogs alone"):
            c.put(key, code=c.embed(text))
        self.assertEqual((["a"], 0), ((hits := c.search(text="A few words about a cat!", k=1)).keys, hits[0].distance))
        c = self.db.create("pictures", bits=256, hash="pdq")
        ramp = (np.add.outer(np.arange(64) ** 2, 7 * np.arange(64)) % 251).astype("u1")
        picture = b"\x89PNG\r\n\x1a\n"
        for kind, data in ((b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 0, 0, 0, 0)),
                           (b"IDAT", zlib.compress(b"".join(b"\0" + row.tobytes() for row in ramp))), (b"IEND", b"")):
            picture += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        c.put("ramp", code=c.embed(file=picture))
        path = os.path.join(os.path.dirname(self.path), "ramp.png")
        with io.open(path, "wb") as f:
            f.write(picture)
        for given in picture, path:
            self.assertEqual((["ramp"], 0), ((hits := c.search(picture=given)).keys, hits[0].distance))
        self.assertEqual(["ramp"], c.radius(0, picture=path).keys)
        self.refused(fddhdb.Invalid, "no JPEG, PNG, GIF or WebP", c.search, picture=b"GIF")
        self.refused(fddhdb.Exists, "another schema", self.db.create, "pictures", bits=256, hash="mine", exist_ok=True)

    def test_many(self):
        c, x = self.collection(1500), self.vectors(1500)
        for include in ("labels", "fields"), ():
            many = c.search_many(x, k=2, where="year > 2001", include=include)  # more than a request takes
            self.assertEqual(1500, len(many))
            for i in range(0, 1500, 100):
                alone = c.search(x[i], k=2, where="year > 2001", include=include)
                self.assertEqual(alone.to_dicts(), many[i].to_dicts())
                pages, other = alone.pages(), many[i].pages()
                self.assertEqual([next(pages).keys, next(pages).keys], [next(other).keys, next(other).keys])
        self.assertEqual([["k7"], ["k0"]], [h.keys for h in c.search_many([list(x[7]), x[0]], k=1)])
        self.assertEqual([], c.search_many([]))
        self.refused(fddhdb.Invalid, "row 1", c.search_many, [x[0], x[1] * np.nan])
        self.refused(fddhdb.Invalid, "from row 1 on: ", c.search_many, [x[0], x[1][:5]])
        hashes = self.db.create("two", {"a": 8})
        hashes.add(vectors=x)
        hashes.train(method="itq", bits=8, progress=False)
        near = hashes.search_many(x[:5], radius=1)
        self.assertEqual([hashes.radius(1, v).keys for v in x[:5]], [h.keys for h in near])
        self.assertEqual(hashes.radius(1, x[0]).total, near[0].total)

    def test_jobs(self):
        c = self.db.create("main", {"image": 8, "text": 6})
        rng = np.random.default_rng(2)
        labels = [str(i % 4) for i in range(400)]
        one = np.eye(8)[[int(v) for v in labels]] + rng.normal(0, .1, (400, 8))
        two = np.eye(6)[[int(v) for v in labels]] + rng.normal(0, .1, (400, 6))
        c.add(range(400), {"image": one, "text": two}, labels=labels)
        heard = []
        trained = c.train(bits=16, anchors=50, progress=lambda *told: heard.append(told))
        self.assertEqual((1, True, 400), (trained["space"], trained["active"], trained["items"]))
        self.assertTrue(heard and all(isinstance(stage, str) for stage, _, _ in heard))
        hits = c.search(two[1], from_="text", to="image", k=20)
        self.assertEqual({"1"}, {h.labels[0] for h in hits})
        self.assertIsNotNone(hits[0].distance)
        self.assertEqual((400, 2), c.codes().shape)
        self.assertEqual([1], [s["space"] for s in c.spaces()])
        self.refused(fddhdb.Invalid, "name the modality; there are image, text", c.search, one[0])
        self.assertEqual(400, c.index("image")["entries"])
        self.assertEqual(10, len(c.search(one[0], from_="image", recall=.9)))
        self.assertIn("revised", c.update())
        self.assertEqual(2, c.reindex()["space"])
        self.assertEqual(([], 400), (self.db.verify(deep=True)["findings"], self.db.stats()["items"]))
        self.db.compact()
        self.assertIn("id", self.db.backup("file://" + self.path + "-backups"))
        self.refused(fddhdb.Invalid, "bitz", c.train, bitz=3)
        self.assertEqual(400, c.stats()["items"])

    def test_interrupted_job(self):
        c = self.collection(30_000)

        def interrupt(*_):
            raise KeyboardInterrupt
        with self.assertRaises(KeyboardInterrupt):
            c.train(progress=interrupt, anchors=2000, bits=128)
        eventually(lambda: all(j["state"] != "running" for j in self.db.request("GET", "/jobs")["jobs"]), "the job has ended")
        self.assertEqual(["cancelled"], [j["state"] for j in self.db.request("GET", "/jobs")["jobs"]])
        self.assertEqual([], c.spaces())

    def test_batch(self):
        c = self.collection(3)
        with self.db.batch() as b:
            b.put(c, "new", labels=["x"])
            b.put(c, vectors={"image": [1] * 8})
            b.merge("main", "k0", fields={"year": 1})
            b.delete(c, "k1")
            b.expect(c, "k2", c.get("k2"))
        self.assertEqual(["new", "0", "k0"], b.keys)
        self.assertEqual({"new", "0", "k0", "k2"}, set(c.keys()))
        with self.assertRaises(fddhdb.Conflict):
            with self.db.batch() as b:
                b.delete(c, "k0")
                b.expect(c, "k2", None)
        with self.assertRaises(ZeroDivisionError):
            with self.db.batch() as b:
                b.delete(c, "k0")
                1 / 0
        self.assertIn("k0", c)

    def test_what_people_see(self):
        c = self.collection(name="string")
        c.put("<b>\x1b[2J", [1] * 8, fields={"name": "x" * 99})
        hits = c.search([1] * 8)
        page = hits._repr_html_()
        self.assertIn("&lt;b&gt;", page)
        self.assertIn("<th>rank</th><th>key</th>", page)
        self.assertNotIn("\x1b", str(hits) + page)
        self.assertLess(len(str(hits).split("\n")[1]), 99)
        self.assertEqual("no hits", str(c.search([1] * 8, where="label = 'no'")))
        self.assertIn("labels=[]", repr(c.get("<b>\x1b[2J")))
        frame = types.SimpleNamespace(DataFrame=lambda rows: rows)
        with mock.patch.dict(sys.modules, {"pandas": frame}):
            self.assertEqual("x" * 99, hits.to_pandas()[0]["name"])

    def test_bars(self):
        terminal = io.StringIO()
        terminal.isatty = lambda: True
        clock = iter(range(1000))
        with mock.patch.object(sys, "stderr", terminal), mock.patch.object(fddhdb.time, "monotonic", lambda: next(clock)):
            bar = fddhdb._Bar("train", None)
            bar("encode", 1, 2)
            bar.end()
        self.assertEqual("\r[##########..........] train: encode  50% of 2\x1b[K\r\x1b[K", terminal.getvalue())
        said = []

        class ZMQInteractiveShell:
            pass
        handle = types.SimpleNamespace(update=said.append)
        display = types.SimpleNamespace(HTML=str, display=lambda page, display_id: handle)
        notebook = types.SimpleNamespace(get_ipython=ZMQInteractiveShell, display=display)
        clock = iter(range(1000))
        with mock.patch.dict(sys.modules, {"IPython": notebook}), \
                mock.patch.object(fddhdb.time, "monotonic", lambda: next(clock)):
            bar = fddhdb._Bar("<train>", None)
            bar("encode", 1, 2)
            bar.end()
        self.assertEqual(["<progress max=1 value=0.5></progress> &lt;train&gt;: encode  50% of 2", ""], said)

    def test_threads(self):
        c = self.collection(50)
        failed = []

        def work(n):
            try:
                for i in range(20):
                    c.put(f"t{n}-{i}", self.vectors(1)[0])
                    self.assertEqual(5, len(c.search(self.vectors(50)[i], k=5)))
                    self.assertGreaterEqual(sum(1 for _ in c.items()), 50)
            except BaseException as e:
                failed.append(e)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual([], failed)
        self.assertEqual(50 + 120, len(c))

    def test_without_numpy(self):
        said = python("""
sys.modules["numpy"] = None
with fddhdb.open(sys.argv[1]) as db:
    c = db.create("main", {"image": 2}, {"year": "int"})
    c.add(["a", "b"], {"image": [[1, 0], [0, 1]]}, labels=["x", None], fields={"year": [1, 2]})
    print(c.search([0, 2], k=1).keys, c.get("a").labels, len(c))
    try:
        c.vectors()
    except fddhdb.Error as e:
        print(e)
""", self.path).communicate()[0]
        self.assertEqual("['b'] ['x'] 2\nthis needs numpy: pip install numpy\n", said)


class Processes(Base):
    """Processes that end at any time."""

    def child(self, db=None):
        return (db or self.db)._server.child.process.pid

    def test_killed_child(self):
        c = self.collection(20)
        os.kill(self.child(), signal.SIGKILL)
        self.assertEqual(20, len(c))
        os.kill(self.child(), signal.SIGKILL)
        self.assertEqual("new", c.put("new"))
        items = c.items()
        next(items)
        os.kill(self.child(), signal.SIGKILL)
        eventually(lambda: c.count() == 21, "all are there")
        c.add(range(100), self.vectors(100))
        self.assertEqual(121, len(c))

    def test_killed_python_takes_its_child_along(self):
        p = python("""
db = fddhdb.open(sys.argv[1])
db.create("b", bits=8)
print(db._server.child.process.pid, flush=True)
sys.stdin.read()
""", os.path.join(os.path.dirname(self.path), "b.db"))
        self.addCleanup(p.__exit__, None, None, None)
        self.addCleanup(p.kill)
        pid = int(p.stdout.readline())
        self.assertTrue(runs(pid))
        p.kill()
        p.wait()
        eventually(lambda: not runs(pid), "the child of a killed process ends")

    def test_collected(self):
        pid = self.child(db := fddhdb.open(self.path + "2"))
        items = db.create("b", bits=8).items()
        del db
        self.assertEqual([], list(items))  # it keeps its database
        del items
        eventually(lambda: not runs(pid), "the child of a database that nobody has ends")

    def test_two_on_one_folder(self):
        folder = self.path + "2"
        p = python("""
db = fddhdb.open(sys.argv[1])
c = db.create("main", {"image": 2}, exist_ok=True)
c.put("theirs", [1, 2])
print(db._server.child.process.pid, flush=True)
for line in sys.stdin:
    print(len(c), flush=True)
""", folder)
        self.addCleanup(p.__exit__, None, None, None)
        self.addCleanup(p.kill)
        owner = int(p.stdout.readline())
        db = fddhdb.open(folder)
        self.addCleanup(db.close)
        c = db.collection()
        self.assertEqual(["theirs"], list(c.keys()))
        c.put("ours", [3, 4])
        os.kill(owner, signal.SIGKILL)
        self.assertEqual({"theirs", "ours"}, set(c.keys()))
        c.put("more", [3, 4])
        p.kill()
        p.wait()
        self.assertEqual(3, len(c))

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork")
    def test_fork(self):
        c = self.collection(10)
        pid = os.fork()
        if not pid:
            code = 1
            try:
                c.put("forked", labels=["x"])
                code = 0 if len(c) == 11 else 2
            finally:
                os._exit(code)
        self.assertEqual(0, os.waitpid(pid, 0)[1])
        self.assertEqual(11, len(c))

    def test_mistakes_of_open(self):
        self.refused(fddhdb.Error, "not a database", fddhdb.open, self.path + "none", create=False)
        self.assertFalse(os.path.exists(self.path + "none"))
        with io.open(self.path + "file", "w"):
            pass
        self.refused(fddhdb.Error, "is a file", fddhdb.open, self.path + "file")
        self.refused(fddhdb.Invalid, "connect opens it", fddhdb.open, "http://127.0.0.1/a")
        self.collection(3)
        self.db.close()
        with fddhdb.open(self.path, readonly=True) as db:
            self.assertEqual(3, len(db.collection()))
            self.refused(fddhdb.Forbidden, "write", db.collection().put, "x")
        with mock.patch.dict(os.environ, {"FDDHDB_BINARY": self.path + "none"}):
            self.refused(fddhdb.Error, "there is no such file", fddhdb.open, self.path)
        with mock.patch.dict(os.environ, {"FDDHDB_BINARY": sys.executable}):
            self.refused(fddhdb.Error, "serve", fddhdb.open, self.path)
        with mock.patch.dict(os.environ, {"FDDHDB_BINARY": "", "PATH": ""}):
            self.refused(fddhdb.Error, "FDDHDB_BINARY", fddhdb.open, self.path)

    def test_a_child_serves_its_parent_alone(self):
        child = self.db._server.child
        base = child.url.rsplit("/", 1)[0]
        for path in ("/v1", "/openapi.json", "/metrics", "/client/fddhdb.py"):
            with self.assertRaises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(base + path)
            self.assertEqual(401, caught.exception.code)
            caught.exception.close()

    def test_server(self):
        self.collection(10)
        self.db.close()
        binary, tokens = os.environ["FDDHDB_BINARY"], self.path + ".tokens"
        token = {scope: subprocess.check_output([binary, "token", tokens, "--name", scope, "--scope", scope], text=True).strip()
                 for scope in ("read", "admin")}
        server = subprocess.Popen([binary, "serve", self.path, "--address", "127.0.0.1:0", "--tokens", tokens, "--json"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        url = json.loads(server.stdout.readline())["url"]
        with urllib.request.urlopen(url + "/client/fddhdb.py") as r:
            self.assertTrue(r.headers["Content-Type"].startswith("text/x-python"))
            with io.open(fddhdb.__file__, "rb") as f:
                self.assertEqual(f.read(), r.read())
        with fddhdb.connect(url + "/a", token=token["admin"]) as db:
            self.assertEqual(10, len(db.collection()))
            self.assertEqual(5, db.collection().add(vectors=self.vectors(5)))
            self.refused(fddhdb.TooLarge, "10000", db.collection().search, key="k1", k=20_000)
        with fddhdb.connect(url + "/a", token=token["read"]) as db:
            self.assertEqual(15, len(db.collection()))
            self.refused(fddhdb.Forbidden, "needs write", db.collection().delete, "k1")
            # a body that the server refuses without reading it
            self.refused(fddhdb.Forbidden, "needs write", db.collection().add, range(300_000), np.ones((300_000, 8)))
            self.refused(fddhdb.Forbidden, "needs write", db.collection().add, None, np.ones((3_000_000, 8), "f4"))
        self.refused(fddhdb.Unauthorized, "token", fddhdb.connect(url + "/a").collections)
        with mock.patch.dict(os.environ, {"FDDHDB_TOKEN": token["read"]}):
            self.assertEqual(["main"], fddhdb.connect(url + "/a").collections())
        for bad in ("127.0.0.1:7070/a", "http://127.0.0.1", "http://127.0.0.1/a/b", "ftp://x/a", "http://u:p@x/a",
                    "http://x/a b"):
            self.refused(fddhdb.Invalid, "http://HOST:PORT/NAME", fddhdb.connect, bad)
        server.terminate()
        server.wait()
        with mock.patch.object(fddhdb._Server, "patience", .1):
            self.refused(fddhdb.Unreachable, "cannot be reached", fddhdb.connect(url + "/a").collections)


class Connections(Base):
    """A server that answers as it is told, one request a connection: None cuts the connection."""

    def answers(self, *answers):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        self.heard = []

        def serve():
            for answer in answers:
                with listener.accept()[0] as conn:
                    self.heard.append(conn.recv(1 << 16).split(b" ")[0].decode())
                    if answer:
                        status, body = answer
                        head = f"HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
                        conn.sendall((head + body).encode())
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 60)
        db = fddhdb.connect("http://127.0.0.1:%d/a" % listener.getsockname()[1])
        self.addCleanup(db.close)
        return fddhdb.Collection(db, {"name": "main", "schema": {"modalities": [{"name": "image", "dim": 2}]}})

    def test_what_may_be_done_twice_is_sent_again(self):
        closing = 503, '{"code": "closing", "detail": "fddhdb: server is closing", "status": 503}'
        c = self.answers(None, (502, "a proxy"), closing, (200, '{"count": 3}'), None, (200, '{"keys": ["k"]}'), closing,
                         (200, '{"keys": ["0"]}'))
        self.assertEqual((3, "k", "0"), (len(c), c.put("k"), c.put()))
        self.assertEqual(["POST"] * 4 + ["PUT"] * 2 + ["POST"] * 2, self.heard)

    def test_what_may_not_be_done_twice_is_not(self):
        c = self.answers(None, None, None, (200, "event: progress"), (418, "tea"))
        self.refused(fddhdb.Unknown, "not known whether this was written", c.put)
        self.refused(fddhdb.Unknown, "not known", c.add, None, [[1, 2]])
        with self.assertRaises(fddhdb.Unknown):
            with c.db.batch() as b:
                b.put(c)
        self.refused(fddhdb.Unknown, "not known whether this was done", c.train)
        self.refused(fddhdb.Error, "not as a server of fddhdb does", c.put)
        self.assertEqual(["POST"] * 5, self.heard)

    def test_half_an_answer(self):
        c = self.answers((200, '{"key": "a"}\n{"error": {"code": "corrupt", "detail": "damage"}}\n'))
        items = iter(c)
        self.assertEqual("a", next(items).key)
        self.assertEqual("corrupt", self.refused(fddhdb.Error, "damage", next, items).code)
        c = self.answers((200, "\x93NUMPY"))
        self.refused(fddhdb.Unreachable, "do it again", c.vectors)


if __name__ == "__main__":
    unittest.main()
