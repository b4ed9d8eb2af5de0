"""The client of fddhdb for Python 3.9 and later: a database for cross-modal retrieval and vector search.

    import fddhdb
    db = fddhdb.open("photos.db")                       # or fddhdb.connect("http://host:7070/photos", token="...")
    photos = db.create("photos", {"image": 512}, {"year": "int"}, exist_ok=True)
    photos.add(keys, {"image": array}, labels=labels, fields={"year": years})
    print(photos.search(array[0], k=5, where="label = ? AND year > 2020", args=["cat"]))

It needs the standard library alone; functions that take or return arrays import numpy. All objects may be used by
several threads at a time, and after a fork. docs/PYTHON.md explains them.
"""
from __future__ import annotations

import base64, binascii, collections, contextlib, datetime, html, http.client, io, json, logging, math, numbers, os
import random, re, select, shutil, socket, ssl, struct, subprocess, sys, sysconfig, threading, time, weakref
import urllib.parse
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple, cast

if TYPE_CHECKING:
    from typing import Union
    import numpy as np
    Array = np.ndarray[Any, Any]
    Body = Union[bytes, Callable[[], Iterator[Any]]]  # a callable begins the body anew when it is sent again
    Progress = Union[None, bool, Callable[[str, int, int], None]]
    Column = Tuple[int, Callable[[int, int], List[str]]]  # its length, and JSON of a range of it; "" is nothing

__version__ = "0.dev0"
JSON = Dict[str, Any]
_log = logging.getLogger("fddhdb")
_quoted: Callable[[str], str] = getattr(json.encoder, "encode_basestring")

class Error(Exception):
    """An error of a database. code is its name for programs, such as "not_found"; status is that of HTTP, or 0."""
    def __init__(self, text: str, code: str = "", status: int = 0, problem: JSON | None = None) -> None:
        super().__init__(text[8:] if text.startswith("fddhdb: ") else text)
        self.code = code or next((c for c, kind in _kinds.items() if kind is type(self)), "error")
        self.status = status
        self.problem: JSON = problem or {}  # all that the server says
        self.stored = int(self.problem.get("stored", 0))  # items that an import has stored before the error

class Invalid(Error, ValueError): """A value that is not possible: the text says which, and what is."""
class NotFound(Error, LookupError): """There is no such item, collection, database or space."""
class Conflict(Error): """Something has changed, or is not as the call expects it."""
class Exists(Conflict): """There is one already."""
class Busy(Conflict): """Another job of this kind is running."""
class Unauthorized(Error): """The token is missing or unknown."""
class Forbidden(Error): """The token does not allow this."""
class ReadOnly(Forbidden): """The database was opened for reading only."""
class NoModel(Error): """There are no codes yet: train first."""
class TooLarge(Error): """It is beyond a limit of the server."""
class Unreachable(Error, ConnectionError): """There is no connection to the server. You may do the same again."""
class Unknown(Error, ConnectionError): """The connection has failed: look whether the change was made."""
_kinds = {"invalid": Invalid, "not_found": NotFound, "conflict": Conflict, "precondition_failed": Conflict,
          "exists": Exists, "busy": Busy, "unauthorized": Unauthorized, "forbidden": Forbidden, "read_only": ReadOnly,
          "no_model": NoModel, "too_large": TooLarge, "unreachable": Unreachable, "unknown": Unknown}

def _problem(p: JSON) -> Error:
    code = str(p.get("code"))
    kind = cast("Callable[..., Error]", _kinds.get(code, Error))
    return kind(str(p.get("detail", code)), code, int(p.get("status", 0)), p)

# ---- The process that serves the database of open
def _binary() -> str:
    """Returns the path of fddhdb."""
    given = os.environ.get("FDDHDB_BINARY")
    if given and not os.path.isfile(given): raise Error(f"FDDHDB_BINARY is {given}, and there is no such file")
    schemes = [os.name + "_user"] if os.name + "_user" in sysconfig.get_scheme_names() else []
    folders = [sysconfig.get_path("scripts"), *(sysconfig.get_path("scripts", scheme) for scheme in schemes)]
    if os.path.basename(__file__).startswith("__init__."):  # as pip install --target puts it
        folders.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin"))
    paths = (os.path.join(folder, "fddhdb" + ".exe" * (os.name == "nt")) for folder in folders)
    found = given or next((p for p in paths if os.path.isfile(p)), None) or shutil.which("fddhdb")
    if found: return found
    raise Error("the program fddhdb is neither beside this Python nor on the PATH: set FDDHDB_BINARY to its path")

class _Child:
    """A process that serves a folder. If it has ended, it begins again when it is needed."""
    def __init__(self, path: str, create: bool, readonly: bool) -> None:
        self.path, self.flags = path, ["--readonly"] if readonly else ["--create"] if create else []
        self.process: subprocess.Popen[bytes] | None = None  # ends when its standard input does, and so with this one
        self.lock, self.starts, self.closed, self.url, self.token = threading.Lock(), 0, False, "", ""
        self.said: collections.deque[str] = collections.deque(maxlen=100)

    def address(self) -> Tuple[str, str]:
        """Returns URL and token of the process, which runs."""
        with self.lock:
            if self.closed: raise Error(f"{self.path} is closed", "closed")
            if self.process is None or self.process.poll() is not None:
                self._end()
                try:
                    self._start()
                except BaseException:
                    self._end()
                    raise
            return self.url, self.token
    def _start(self) -> None:
        args = [_binary(), "serve", self.path, "--child", "--max-k=1000000", "--max-body=1024", "--timeout=1h"]
        apart: JSON = {"creationflags": 0x200} if os.name == "nt" else {"start_new_session": True}  # of Ctrl-C
        self.said.clear()
        try:
            p: Any = subprocess.Popen(args + self.flags, bufsize=0, stdin=-1, stdout=-1, stderr=-1, **apart)
        except OSError as e: raise Error(f"{args[0]} does not start: {e}") from e
        self.process = p
        listener = threading.Thread(target=self._listen, args=(p.stderr,), daemon=True)
        listener.start()
        line = p.stdout.readline()
        if not line:
            listener.join(5)
            raise Error("\n".join(self.said) or f"{args[0]} has ended at once, with exit code {p.wait()}")
        said = json.loads(line)
        self.url, self.token, self.starts = said["url"], said["token"], self.starts + 1
        self.flags = [flag for flag in self.flags if flag != "--create"]

    def _listen(self, stderr: Any) -> None:
        with io.BufferedReader(stderr) as lines:
            for line in lines:
                self.said.append(line.decode("utf-8", "replace").rstrip())
                if self.url or "warning: " in self.said[-1]: _log.warning("%s", self.said[-1])

    def _end(self) -> None:
        p, self.process, self.url = cast(Any, self.process), None, ""
        if p is not None:
            p.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                p.wait(20)
            p.kill()  # if it is there still
            p.wait()
            p.stdout.close()

    def close(self) -> None:
        with self.lock:
            self.closed = True
            self._end()

    def forget(self) -> None:  # the process belongs to that which this one was forked from
        p, self.process, self.lock = cast(Any, self.process), None, threading.Lock()
        if p is not None:
            p.stdin.close()
            p.stdout.close()
            p.returncode = 0  # not ours to wait for

# ---- Requests
class _Lost(Exception):
    """A connection has failed. unsent says that the server has not seen the request."""
    def __init__(self, cause: BaseException, unsent: bool = False) -> None:
        super().__init__(str(cause) or type(cause).__name__)
        self.unsent, self.hopeless = unsent, isinstance(cause, ssl.SSLError)

def _readable(sock: socket.socket) -> bool:
    """Reports whether something has come over a connection, or its end."""
    with contextlib.suppress(ValueError):  # of more open files than select knows
        return bool(select.select([sock], [], [], 0)[0])
    return False

class _Server:
    """The way to a database: connections, which are kept, and how often a request is sent."""
    patience = 10.0  # seconds in which a request that was not carried out is sent again
    def __init__(self, url: str, token: str | None, child: _Child | None, timeout: float | None) -> None:
        self.child, self.timeout, self.place = child, timeout, child.path if child else url
        self.idle: List[Tuple[socket.socket, float]] = []  # connections, and since when
        self.context = ssl.create_default_context() if url.startswith("https:") else None
        self._at(url, token)
        _servers.add(self)
        weakref.finalize(self, _end, self.idle, child, os.getpid())
    def _at(self, url: str, token: str | None) -> None:
        self.url, parts = url, urllib.parse.urlsplit(url)
        self.address = parts.hostname or "", parts.port or (443 if self.context else 80)
        self.base = "/v1" + parts.path
        self.headers = {"Host": parts.netloc, "User-Agent": "fddhdb-python/" + __version__}
        if token: self.headers["Authorization"] = "Bearer " + token
    def _connection(self) -> socket.socket:
        with contextlib.suppress(IndexError):
            while True:
                sock, since = self.idle.pop()
                if time.monotonic() - since < 60 and not _readable(sock): return sock
                sock.close()
        if self.child:
            url, token = self.child.address()
            if url != self.url: self._at(url, token)
        try:
            sock = socket.create_connection(self.address, self.timeout)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return self.context.wrap_socket(sock, server_hostname=self.address[0]) if self.context else sock
        except OSError as e: raise _Lost(e, unsent=True) from e
    def send(self, method: str, path: str, body: Body = b"", headers: Dict[str, str] | None = None, *,
             twice: bool = False, stream: bool = False) -> Any:
        """Sends a request until it is carried out. twice: it may be carried out twice. Returns JSON, or the stream."""
        deadline, pause, starts = 0.0, .002, self.child.starts if self.child else 0
        while True:
            again, cause = True, None  # type: Tuple[bool, BaseException | None]
            try:
                return self._once(method, path, body, headers or {}, stream)
            except _Lost as e:
                cause, again = e, (e.unsent or twice) and not e.hopeless
                if self.child and self.child.starts - starts > 1:
                    again = False  # the request ends the process each time
                error = _problem({"code": "unreachable", "detail": f"{self.place} cannot be reached: {e}"})
                if not (e.unsent or twice):
                    error = Unknown("it is not known whether this was written: the connection to "
                                    f"{self.place} has failed: {e}")
            except Error as e:
                if not (e.code in ("closing", "overloaded") and not e.stored or e.code == "interrupted" and twice):
                    raise
                error = e
            deadline = deadline or time.monotonic() + self.patience
            if not again or time.monotonic() > deadline: raise error from cause
            time.sleep(pause * (1 + random.random()))
            pause = min(2 * pause, .5)

    def _write(self, sock: socket.socket, method: str, path: str, body: Body, headers: Dict[str, str]) -> None:
        headers = {"Content-Type": "application/json", **self.headers, **headers}
        if isinstance(body, bytes): headers["Content-Length"] = str(len(body))
        chunked = "Content-Length" not in headers
        if chunked: headers["Transfer-Encoding"] = "chunked"
        if re.search(r"[\s\x7f]", method + path): raise Invalid(f"{path!r}: a path has no blanks: quote them")
        head = [f"{method} {self.base}{path} HTTP/1.1", *(f"{name}: {x}" for name, x in headers.items()), "", ""]
        sock.sendall("\r\n".join(head).encode("latin-1") + (body if isinstance(body, bytes) else b""))
        if isinstance(body, bytes): return
        with contextlib.suppress(ConnectionError):
            for part in body():
                if not self.context and _readable(sock): return  # the server refuses the body
                sock.sendall(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
            if chunked: sock.sendall(b"0\r\n\r\n")

    def _once(self, method: str, path: str, body: Body, headers: Dict[str, str], stream: bool) -> Any:
        sock = self._connection()
        r = http.client.HTTPResponse(sock, method=method)
        try:
            self._write(sock, method, path, body, headers)
            r.begin()
            if r.status < 300 and stream: return sock, r
            data = r.read()
        except BaseException as e:
            _end([(sock, 0), (r, 0)], None, 0)
            if isinstance(e, (OSError, http.client.HTTPException)): raise _Lost(e) from e
            raise
        if r.will_close or r.status >= 300 and not isinstance(body, bytes): sock.close()
        else: self.idle.append((sock, time.monotonic()))
        if r.status < 300: return json.loads(data) if data else None
        p: Any = None
        with contextlib.suppress(ValueError):
            p = json.loads(data)
        if isinstance(p, dict) and p.get("code"): raise _problem(p)
        odd = Error(f"{self.place} answers {r.status} {r.reason}, and not as a server of fddhdb does", status=r.status)
        raise _Lost(odd) if r.status in (502, 503, 504) else odd  # of a proxy that has lost the server

    def ask(self, method: str, path: str, body: Any = None, twice: bool = True) -> Any:
        return self.send(method, path, b"" if body is None else _json(body), twice=twice)

    @contextlib.contextmanager
    def stream(self, *request: Any, twice: bool = True) -> Iterator[http.client.HTTPResponse]:
        sock, r = self.send(*request, twice=twice, stream=True)
        try:
            yield r
        except (OSError, EOFError, ValueError, http.client.HTTPException) as e:
            if isinstance(e, Error): raise
            raise Unreachable(f"{self.place} has ended before all was read: do it again: {e}", "cut") from e
        finally:
            if r.isclosed() and not r.will_close: self.idle.append((sock, time.monotonic()))
            else:
                sock.close()
                r.close()

    def lines(self, *request: Any, twice: bool = True) -> Iterator[bytes]:
        """Yields the lines of an answer. A line {"error": ...} is the error that has ended it."""
        with self.stream(*request, twice=twice) as r:
            half = b""
            while data := r.read1(1 << 16):  # what has come: the events of a job come one by one
                *lines, half = (half + data).split(b"\n")
                for line in lines:
                    if line.startswith(b'{"error":'): raise _problem(json.loads(line)["error"])
                    yield line

    def close(self) -> None: _end(self.idle, self.child, os.getpid())

def _end(idle: List[Any], child: _Child | None, pid: int) -> None:
    while idle: idle.pop()[0].close()
    if child and pid == os.getpid(): child.close()  # a fork leaves it to its parent

_servers: weakref.WeakSet[_Server] = weakref.WeakSet()

def _after_fork() -> None:
    for s in list(_servers):
        _end(s.idle, None, 0)
        if s.child: s.child.forget()

if hasattr(os, "register_at_fork"): os.register_at_fork(after_in_child=_after_fork)

# ---- Values
def _numpy() -> Any:
    try:
        import numpy
        return numpy
    except ImportError as e: raise Error("this needs numpy: pip install numpy") from e

def _json(x: Any) -> bytes:
    try:
        return json.dumps(x, allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=_plain).encode()
    except (TypeError, ValueError) as e: raise Invalid(f"a value has no form in JSON: {e}") from e

def _plain(x: Any) -> Any:
    """Returns a value that JSON knows, for scalars of numpy, arrays and times."""
    if isinstance(x, datetime.date):  # and datetime
        return x.isoformat()
    if getattr(getattr(x, "dtype", None), "kind", "") == "M":
        return [None if t == "NaT" else t for t in x.astype("M8[us]").astype(str).tolist()] if x.ndim else str(x)
    if hasattr(x, "tolist"): return x.tolist()
    raise TypeError(f"{type(x).__name__} is none of text, number, bool, date and list of these")

def _escape(name: Any) -> str:
    try:
        return urllib.parse.quote(name, safe="").replace(".", "%2E")
    except (TypeError, UnicodeEncodeError) as e: raise Invalid(f"{name!r}: a name is text, in Unicode: {e}") from e

def _key(key: Any, where: str = "key") -> str:
    if isinstance(key, numbers.Integral) and not isinstance(key, bool): return str(int(key))
    if not isinstance(key, str) or not key:
        raise Invalid(f"{where}: {key!r} is no key: a key is text, or a whole number")
    return key

def _bytes(x: Any, where: str) -> str | None:
    """Returns bytes in their form in JSON."""
    if not isinstance(x, (bytes, bytearray, memoryview, type(None))):
        raise Invalid(f"{where}: {type(x).__name__} is no bytes: text.encode() makes them of a text")
    return None if x is None else base64.b64encode(x).decode()

def _labels(labels: Any, where: str = "labels") -> List[str]:
    """Returns the labels of an item: one or several, of which whole numbers are classes."""
    if isinstance(labels, str) or not hasattr(labels, "__iter__"): labels = [labels]
    for label in labels:
        if isinstance(label, bool) or not isinstance(label, (str, numbers.Integral)):
            raise Invalid(f"{where}: {label!r} is no label: a label is text, or the number of a class")
    return [str(label) for label in labels]

def _codes(codes: Any, ndim: int) -> Array:
    np, a = _numpy(), _numpy().asarray(codes)
    if a.ndim != ndim or a.dtype != np.uint8 or not a.size:
        shape = "(n, bits / 8)" if ndim == 2 else "(bits / 8,)"
        raise Invalid(f"codes: an array of the shape {a.shape} of {a.dtype}: {shape} of uint8 is expected")
    return cast("Array", a)

def _code(code: Any) -> str:
    """Returns a code, which is bytes, an array of uint8 or hexadecimal digits, as such digits."""
    if not isinstance(code, (str, bytes, bytearray)): code = _codes(code, 1).tobytes()
    return code if isinstance(code, str) else str(code.hex())

def _vector(x: Any, where: str) -> Any:
    """Returns a vector in its form in JSON."""
    if hasattr(x, "tocsr") and (x := x.tocsr()).shape[0] == 1:  # a row of scipy
        x = dict(zip(x.indices.tolist(), x.data.tolist()))
    if isinstance(x, Mapping):
        try:
            pairs = sorted((int(i), float(v)) for i, v in x.items())
        except (TypeError, ValueError) as e:
            raise Invalid(f"{where}: a sparse vector is {{index: number}}: {e}") from e
        if not all(math.isfinite(v) for _, v in pairs): raise Invalid(f"{where} has NaN or infinity")
        return {"i": [i for i, _ in pairs], "v": [v for _, v in pairs]}
    if not isinstance(x, (list, tuple)):
        return base64.b64encode(_floats(x, 1, where).astype("<f4", copy=False).tobytes()).decode()
    try:
        if x and all(map(math.isfinite, x)): return base64.b64encode(struct.pack(f"<{len(x)}f", *x)).decode()
    except (TypeError, struct.error, OverflowError) as e:
        raise Invalid(f"{where}: a vector has numbers of float32: {e}") from e
    raise Invalid(f"{where} has NaN or infinity" if x else f"{where} is empty")

def _floats(x: Any, ndim: int, where: str, dim: int = 0) -> Array:
    """Returns an array of numbers that has been looked through. Its type is still its own."""
    np, a = _numpy(), _numpy().asarray(x)
    if a.dtype.kind not in "biuf": raise Invalid(f"{where}: an array of {a.dtype}: numbers are expected, as float32")
    if a.ndim != ndim or not a.size:
        shape = "(n, dimensions): a row for each item" if ndim == 2 else "(dimensions,): one vector"
        raise Invalid(f"{where}: an array of the shape {a.shape}{'' if a.size else ' is empty'}: {shape} is expected")
    if dim and a.shape[-1] != dim: raise Invalid(f"{where}: {a.shape[-1]} dimensions, where the modality has {dim}")
    for i, rows in _blocks(a if ndim == 2 else a[None]):
        if not (fine := np.isfinite(rows).all(axis=1)).all():
            row = f" in row {i + int(fine.argmin())}" * (ndim - 1)
            raise Invalid(f"{where} has NaN, infinity or a number beyond float32{row}")
    return cast("Array", a)

def _blocks(a: Array) -> Iterator[Tuple[int, Array]]:
    """Yields the rows of a matrix as float32 in C order, by blocks of some MiB, with the number of the first row."""
    np, n = _numpy(), max(1, (1 << 20) // max(1, a.shape[1]))
    for i in range(0, len(a), n):
        with np.errstate(over="ignore"):
            rows = np.ascontiguousarray(a[i:i + n], dtype="<f4")
        yield i, rows

def _npy(a: Array, kind: str, bar: _Bar) -> Tuple[Callable[[], Iterator[Any]], Dict[str, str]]:
    """Returns a matrix as .npy: its parts, and the headers of the request."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {a.shape}, }}".encode()
    head = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + text.ljust(117) + b"\n"

    def parts() -> Iterator[Any]:
        yield head
        for i, rows in _blocks(a) if kind == "<f4" else [(0, _numpy().ascontiguousarray(a))]:
            bar("items", i, len(a))
            yield rows.data.cast("B")
    return parts, {"Content-Type": "application/x-npy", "Content-Length": str(len(head) + a.size * int(kind[-1]))}

def _vectors(x: Any, where: str, dim: int) -> Column:
    """Returns the vectors of many items: an array, a sparse matrix, or a list with None for those without."""
    if hasattr(x, "tocsr"):
        m = x.tocsr()
        x = [dict(zip(m.indices[a:b].tolist(), m.data[a:b].tolist())) for a, b in zip(m.indptr, m.indptr[1:])]
    if isinstance(x, (list, tuple)) and x and (x[0] is None or isinstance(x[0], (list, tuple, Mapping))):
        forms = ["" if v is None else _json(_vector(v, f"{where}, row {i},")).decode() for i, v in enumerate(x)]
        return len(x), lambda i, j: forms[i:j]
    a = _floats(x, 2, where, dim)

    def texts(i: int, j: int) -> List[str]:
        data = _numpy().ascontiguousarray(a[i:j], dtype="<f4").data.cast("B")
        return ['"' + binascii.b2a_base64(data[k:k + 4 * dim], newline=False).decode() + '"'
                for k in range(0, len(data), 4 * dim)]
    return len(a), texts

def _column(values: Any, where: str, form: Callable[[Any, str], str]) -> Column:
    """Returns the values of many items, each in its form."""
    if hasattr(values, "to_numpy"):  # a column of pandas or Polars
        values = values.to_numpy()
    if hasattr(values, "tolist"): values = _plain(values)
    if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__iter__"):
        raise Invalid(f"{where}: a list or an array is expected, with a value for each item")
    forms = [form(v, f"{where}[{i}]") for i, v in enumerate(values)]
    if bad := re.search("[\ud800-\udfff]", "".join(forms)):
        raise Invalid(f"{where}: {bad.string[max(0, bad.start() - 20):bad.end()]!r} is not Unicode")
    return len(forms), lambda i, j: forms[i:j]

def _field(v: Any, where: str) -> str:
    if v is None or v != v:  # NaN and NaT are how arrays have no value
        return ""
    try:
        return _quoted(v) if isinstance(v, str) else _json(v).decode()
    except Invalid as e: raise Invalid(f"{where}: {e}") from e

# ---- Progress
class _Bar:
    """A bar in a terminal or a notebook; nothing elsewhere, and nothing for what is done in half a second."""
    def __init__(self, title: str, show: Progress) -> None:
        self.title, self.tell, self.shown = title, show if callable(show) else None, cast(Any, None)
        self.began = self.last = time.monotonic()
        python: Any = sys.modules.get("IPython")
        self.notebook: Any = python.display if python and "ZMQ" in type(python.get_ipython()).__name__ else None
        self.on = not self.tell and show is not False and bool(show or self.notebook or sys.stderr.isatty())
    def __call__(self, stage: str, done: int, total: int) -> None:
        if self.tell: self.tell(stage, done, total)
        now = time.monotonic()
        if self.on and now - self.began > .5 and now - self.last > .1:
            self.last, share = now, min(done / total, 1) if total else 0
            self.show(share, f"{self.title}: {stage} {f'{share:4.0%} of {total:,}' if total else f'{done:,}'}")
    def show(self, share: float, text: str) -> None:
        if not self.notebook:
            self.shown = f"\r[{'#' * round(20 * share):.<20}] {text}\x1b[K" if text else "\r\x1b[K"
            print(self.shown, end="", file=sys.stderr, flush=True)
            return
        page = self.notebook.HTML(text and f"<progress max=1 value={share}></progress> {html.escape(text)}")
        self.shown = self.shown or self.notebook.display(page, display_id=True)
        self.shown.update(page)
    def end(self) -> None:
        if self.shown: self.show(0, "")

# ---- Answers
class Item:
    """An item as it was read. What a search does not bring is empty."""
    def __init__(self, form: JSON) -> None:
        self.form = form  # as the server has sent it
        self.key = str(form.get("key", ""))
        self.labels: List[str] = form.get("labels") or []
        self.fields: JSON = form.get("fields") or {}
        self.payload = base64.b64decode(form["payload"]) if "payload" in form else None
        self.code = bytes.fromhex(form["code"]) if "code" in form else None

    @property
    def vectors(self) -> Dict[str, Any]:
        """The vectors by modality: arrays of float32, and {index: number} if they are sparse."""
        return {name: dict(zip(x["i"], x["v"])) if isinstance(x, dict) else _numpy().array(x, dtype="f4")
                for name, x in self.form.get("vectors", {}).items()}
    def to_dict(self) -> JSON:
        parts = {"payload": self.payload, "code": self.code, "vectors": "vectors" in self.form and self.vectors or None}
        return {"key": self.key, "labels": self.labels, "fields": self.fields,
                **{name: x for name, x in parts.items() if x is not None}}
    def __repr__(self) -> str:
        parts = (f"{name}={x!r}" for name, x in vars(self).items() if name != "form" and x is not None)
        return f"{type(self).__name__}({', '.join(parts)})"

class Hit(Item):
    """One hit of a search. A figure that the search does not have is None."""
    def __init__(self, form: JSON) -> None:
        super().__init__(form.get("item") or form)
        self.distance: int | None = form.get("distance")  # of the codes, in bits
        self.score: float | None = form.get("score")
        self.similarity: float | None = form.get("similarity")
        self.cursor: str | None = form.get("cursor")
    def figures(self) -> JSON: return {"distance": self.distance, "score": self.score, "similarity": self.similarity}
    def to_dict(self) -> JSON: return {"key": self.key, **self.figures(), **super().to_dict()}

class Hits(Sequence[Hit]):
    """The hits of a search, the nearest first. They print as a table."""
    def __init__(self, form: JSON, more: Callable[[str], Hits]) -> None:
        self._hits, self._more = [Hit(h) for h in form["hits"]], more
        self.keys = [h.key for h in self._hits]
        self.next: str | None = form.get("next")  # the cursor for after=, behind these hits
        self.total = int(form.get("total", 0))  # of radius: the number of items within it
        self.facets: List[JSON] = form.get("facets") or []
        self.approximate = bool(form.get("approximate"))
        self.distances, self.explain = form.get("distances"), form.get("explain")  # if include names them
    def pages(self) -> Iterator[Hits]:
        """Yields these hits and all that follow, by pages of this length."""
        page: Hits | None = self
        while page is not None:
            yield page
            page = self._more(page.next) if page.next else None
    def __getitem__(self, i: Any) -> Any: return self._hits[i]
    def __len__(self) -> int: return len(self._hits)
    def to_dicts(self) -> List[JSON]: return [h.to_dict() for h in self._hits]
    def to_pandas(self) -> Any:
        """Returns a pandas.DataFrame with a column for each figure and each field."""
        import pandas  # type: ignore
        return pandas.DataFrame([{**_columns((d := h.to_dict()).pop("fields")), **d} for h in self._hits])
    def _table(self) -> List[List[str]]:
        rows: List[JSON] = [{"rank": i, "key": h.key, **h.figures(), "labels": h.labels, "code": h.code,
                             **_columns(h.fields)} for i, h in enumerate(self._hits, 1)]
        names = [k for k in dict.fromkeys(k for r in rows for k in r) if any(r.get(k) not in (None, []) for r in rows)]
        return [names] + [[_cell(r.get(k)) for k in names] for r in rows]

    def __repr__(self) -> str:
        table = self._table()
        widths = [max(map(len, column)) for column in zip(*table)]
        numeric = [name in ("rank", "distance", "score", "similarity") for name in table[0]]
        return "\n".join("  ".join(c.rjust(w) if n else c.ljust(w) for c, w, n in zip(row, widths, numeric)).rstrip()
                         for row in table) if self._hits else "no hits"

    def _repr_html_(self) -> str:
        rows = ["".join(f"<td>{html.escape(c)}</td>" for c in row) for row in self._table()]
        return "<table><tr>" + "</tr><tr>".join(rows).replace("td>", "th>", 2 * len(self._table()[0])) + "</tr></table>"

def _columns(fields: JSON) -> JSON:
    """Returns fields as columns, with another name where a figure of a hit has theirs."""
    own = ("rank", "key", "distance", "score", "similarity", "labels", "code", "payload", "vectors")
    return {"fields." + k if k in own else k: v for k, v in fields.items()}

def _cell(x: Any) -> str:
    if isinstance(x, float): return f"{x:.4g}"
    text = "" if x is None else x.hex() if isinstance(x, bytes) else ", ".join(x) if isinstance(x, list) else str(x)
    text = "".join(c if c.isprintable() else "\ufffd" for c in text)
    return text if len(text) <= 40 else text[:39] + "\u2026"

# ---- Databases
def open(path: str | os.PathLike[str], create: bool = True, readonly: bool = False) -> Database:
    """Opens the database in a folder, and creates it if it is missing.

    Other processes may open the folder at the same time. A process of its own owns it, or works through the owner, and
    ends with this one.
    """
    place = os.fspath(path)
    if place.startswith(("http://", "https://")): raise Invalid(f"{place} is a URL: fddhdb.connect opens it")
    child = _Child(os.path.abspath(place), create, readonly)
    child.address()
    return Database(_Server("", None, child, None))

def connect(url: str, token: str | None = None, timeout: float | None = None) -> Database:
    """Opens a database of a server, http://HOST:PORT/NAME. FDDHDB_TOKEN has the default of token. timeout bounds, in
    seconds, how long the server may say nothing."""
    url, token = url.rstrip("/"), token or os.environ.get("FDDHDB_TOKEN", "").strip()
    if not re.fullmatch(r"https?://[^/?#@]+/[^/?#]+", url) or not re.fullmatch("[!-~]*", url + token):
        raise Invalid(f"{url!r}: the URL of a database, http://HOST:PORT/NAME, and a token without blanks are expected")
    return Database(_Server(url, token, None, timeout))

class Database:
    """A database, of open or connect. It may stand in a with statement."""
    def __init__(self, server: _Server) -> None: self._server = server
    def __enter__(self) -> Database: return self
    def __exit__(self, *_: object) -> None: self.close()
    def __repr__(self) -> str: return f"<fddhdb.Database {self._server.place}>"
    def close(self) -> None: self._server.close()
    def request(self, method: str, path: str, body: Any = None, twice: bool = False) -> Any:
        """Sends any request of /openapi.json, path from behind the database. twice: it may be carried out twice."""
        return self._server.ask(method, path, body, twice)
    def collections(self) -> List[str]: return list(self._server.ask("GET", "/collections")["collections"])
    def collection(self, name: str = "main") -> Collection:
        return Collection(self, self._server.ask("GET", "/collections/" + _escape(name)))
    def create(self, name: str = "main", modalities: Mapping[str, Any] | None = None,
               fields: Mapping[str, Any] | None = None, *, bits: int = 0, hash: str = "",
               exist_ok: bool = False) -> Collection:
        """Creates a collection.

        modalities has the dimensions of each, or such as {"dim": 512, "metric": "dot"}; fields has the type of each:
        string, int, float, bool or time, or such as {"type": "int", "indexed": True}. A collection of codes has bits in
        place of modalities; hash says what makes them, such as pdq. With exist_ok a collection of this name is opened,
        if it has these modalities and fields.
        """
        schema: JSON = {"bits": bits, "hash": hash}
        for part, kind, given in ("modalities", "dim", modalities or {}), ("fields", "type", fields or {}):
            schema[part] = [{"name": n, **(x if isinstance(x, Mapping) else {kind: x})} for n, x in given.items()]
        try:
            return Collection(self, self._server.ask("PUT", "/collections/" + _escape(name), schema, twice=False))
        except Exists:
            if not exist_ok: raise
        c = self.collection(name)
        def parts(of: JSON) -> Any:
            return {(x["name"], x.get("dim"), x.get("type"), bool(x.get("sparse")), x.get("metric") or "cosine")
                    for part in ("modalities", "fields") for x in of.get(part, [])}
        has = c._schema
        if not parts(schema) <= parts(has) or has.get("bits", 0) != bits or hash not in ("", has.get("hash")):
            raise Exists(f"collection {name!r} is there, and has another schema: {has}")
        return c
    def drop(self, name: str) -> None:
        """Deletes a collection with all of its items."""
        self._server.ask("DELETE", "/collections/" + _escape(name), twice=False)
    def batch(self) -> Batch: return Batch(self)
    def stats(self) -> JSON: return dict(self._server.ask("GET", ""))
    def backup(self, url: str, progress: Progress = None, **options: Any) -> JSON:
        """Makes a backup in a folder, or at such as s3://bucket/prefix."""
        return self._job(":backup", {"url": url, **options}, progress)
    def verify(self, deep: bool = False, progress: Progress = None) -> JSON:
        """Reads everything and looks for damage, which is in the findings of the result."""
        return self._job(":verify", {"deep": deep}, progress, twice=True)
    def compact(self, progress: Progress = None) -> None: self._job(":compact", {}, progress)
    def _job(self, path: str, body: JSON, progress: Progress, twice: bool = False) -> JSON:
        """Follows a job to its end. The job is cancelled if this is interrupted, as by Ctrl-C."""
        for tries in range(20):
            bar = _Bar(path.rpartition(":")[2], progress)
            try:
                data, accept = _json(body) if body else b"", {"Accept": "text/event-stream"}
                lines: Any = self._server.lines("POST", path, data, accept, twice=twice)
                with contextlib.closing(lines): return _followed(lines, bar)
            except Error as e:  # a server that closes takes back what the job has begun
                if tries < 19 and (e.code == "closing" or twice and e.code == "cut"): continue
                if e.code != "cut": raise
                raise Unknown(f"it is not known whether this was done: look, and do it again: {e}") from e
            finally: bar.end()
        raise AssertionError

def _followed(lines: Iterator[bytes], bar: _Bar) -> JSON:
    """Returns the result of a job, of its events."""
    event, findings = b"", []  # type: bytes, List[JSON]
    for line in lines:
        name, _, data = line.partition(b": ")
        event = data.strip() if name == b"event" else event
        if name != b"data": continue
        said: JSON = json.loads(data)
        if event == b"progress": bar(said["stage"], said["done"], said["total"])
        elif event != b"end": findings.append(said)
        elif said.get("error"): raise _problem(said["error"])
        else:
            result: JSON = said.get("result") or {}
            return {**result, "findings": findings} if "findings" in result else result
    raise Unreachable("the answer has ended before the job", "cut")

class Batch:
    """Changes that are made together, all or none, at the end of a with statement or by commit."""
    def __init__(self, db: Database) -> None:
        self._db, self._lines, self._twice = db, [], True  # type: Database, List[bytes], bool
        self.keys: List[str] = []  # of the items that were put and merged, after the commit
    def _add(self, collection: str | Collection, **change: Any) -> None:
        self._lines.append(_json({"collection": getattr(collection, "name", collection), **change}))
    def put(self, collection: str | Collection, key: str | None = None, **parts: Any) -> None:
        """Stores an item. parts are those of Collection.put, with vectors by the names of modalities."""
        self._twice = self._twice and key is not None
        self._add(collection, put=_item(key, **parts))
    def merge(self, collection: str | Collection, key: str, **parts: Any) -> None:
        self._add(collection, merge=_item(key, **parts))
    def delete(self, collection: str | Collection, key: str) -> None: self._add(collection, delete=_key(key))
    def expect(self, collection: str | Collection, key: str, item: Item | None) -> None:
        """Lets the batch fail with Conflict unless the item is as get has read it; None: there is none."""
        self._twice = False
        self._add(collection, expect={"key": _key(key), "item": item and item.form})
    def commit(self) -> None:
        body, self._lines = b"\n".join(self._lines), []
        if body:
            self.keys = self._db._server.send("POST", ":write", body, {"Content-Type": "application/x-ndjson"},
                                              twice=self._twice)["keys"]
    def __enter__(self) -> Batch: return self
    def __exit__(self, kind: object, *_: object) -> None: self.commit() if kind is None else None

def _item(key: str | None, vectors: Mapping[str, Any] | None = None, labels: Any = None,
          fields: Mapping[str, Any] | None = None, payload: bytes | None = None, code: Any = None) -> JSON:
    """Returns the JSON of an item."""
    if not isinstance(vectors or {}, Mapping): raise Invalid("vectors: {modality: vector} is expected")
    parts = {
        "key": None if key is None else _key(key), "labels": None if labels is None else _labels(labels),
        "vectors": vectors and {name: _vector(x, f'vectors["{name}"]') for name, x in vectors.items()},
        "fields": fields and {name: v for name, v in fields.items() if v is not None},
        "payload": _bytes(payload, "payload"),
        "code": None if code is None else _code(code)}
    return {name: x for name, x in parts.items() if x is not None}

class Collection:
    """A collection of items."""
    def __init__(self, db: Database, form: JSON) -> None:
        self.db, self.name, self._schema = db, str(form["name"]), cast(JSON, form["schema"])
        self._path = "/collections/" + _escape(self.name)
    def __repr__(self) -> str: return f"<fddhdb.Collection {self.name} of {self.db._server.place}>"
    def _ask(self, method: str, path: str, body: Any = None, twice: bool = True) -> Any:
        return self.db._server.ask(method, self._path + path, body, twice)
    def schema(self) -> JSON:
        self._schema = cast(JSON, self._ask("GET", "")["schema"])
        return self._schema
    def _one(self, what: str) -> str:
        """Returns the name of the only modality."""
        names = [str(m["name"]) for m in self._schema.get("modalities", [])]
        if len(names) != 1: raise Invalid(f"{what}: name the modality; there are {', '.join(names) or 'none'}")
        return names[0]
    def _dim(self, name: str) -> int:
        for schema in (lambda: self._schema), self.schema:
            for m in schema().get("modalities", []):
                if m["name"] == name: return int(m["dim"])
        raise NotFound(f'modality "{name}" of collection {self.name!r}')
    def add(self, keys: Any = None, vectors: Any = None, *, labels: Any = None,
            fields: Mapping[str, Any] | None = None, payloads: Any = None, codes: Any = None, merge: bool = False,
            progress: Progress = None) -> int:
        """Stores many items, and returns how many.

        vectors has an array for each modality, with a row for each item, or is the array if there is one modality. A
        row of labels is a label or several. Items without keys get the next free numbers. None, and NaN among fields,
        is no value. merge sets only the parts that are given. Items before an error stay stored: Error.stored.
        """
        given: Mapping[str, Any] = vectors if isinstance(vectors, Mapping) else {} if vectors is None else {
            self._one("vectors"): vectors}
        parts: Dict[str, Column] = {}
        if keys is not None: parts["key"] = _column(keys, "keys", lambda v, at: _quoted(_key(v, at)))
        if labels is not None:
            parts["labels"] = _column(labels, "labels", lambda v, at: "" if v is None else
                                      "[" + ",".join(map(_quoted, _labels(v, at))) + "]")
        if payloads is not None:
            parts["payload"] = _column(payloads, "payloads", lambda v, at: "" if v is None else
                                       _quoted(str(_bytes(v, at))))
        bar = _Bar("add", progress)
        try:
            if not (parts or fields or merge) and len(given) + (codes is not None) == 1:
                name, x = next(iter(given.items()), ("", None))
                if codes is not None: return self._import("codes=true", *_npy(_codes(codes, 2), "|u1", bar))
                if hasattr(x, "dtype") and not hasattr(x, "tocsr"):
                    a = _floats(x, 2, f'vectors["{name}"]', self._dim(name))
                    return self._import("vectors=" + _escape(name), *_npy(a, "<f4", bar))
            if codes is not None:
                c = _codes(codes, 2)
                parts["code"] = len(c), lambda i, j: ['"' + row.tobytes().hex() + '"' for row in c[i:j]]
            return self._add_lines(parts, {
                "fields": {n: _column(x, f'fields["{n}"]', _field) for n, x in (fields or {}).items()},
                "vectors": {n: _vectors(x, f'vectors["{n}"]', self._dim(n)) for n, x in given.items()},
            }, bar, "merge=true" if merge else "", keys is not None)
        finally: bar.end()
    def _import(self, what: str, body: Body, headers: Dict[str, str], twice: bool = False) -> int:
        answer = self.db._server.send("POST", f"{self._path}:import?{what}", body, headers, twice=twice)
        return int(answer["items"])
    def _add_lines(self, parts: Dict[str, Column], nested: Dict[str, Dict[str, Column]], bar: _Bar, what: str,
                   twice: bool) -> int:
        """Sends items as lines of JSON."""
        lengths = {name: c[0] for name, c in parts.items()}
        lengths.update((f'{part}["{name}"]', c[0]) for part, of in nested.items() for name, c in of.items())
        n = next(iter(lengths.values()), 0)
        if not n or len(set(lengths.values())) > 1:
            raise Invalid("add: a value for each of one item or more is expected: " + (", ".join(
                f"{name} has {n}" for name, n in lengths.items()) or "nothing is given"))
        def joined(of: Dict[str, Column], i: int, j: int) -> List[str]:
            names = [_quoted(name) + ":" for name in of]
            return [",".join([name + text for name, text in zip(names, row) if text])
                    for row in zip(*(c[1](i, j) for c in of.values()))] or [""] * (j - i)
        def body() -> Iterator[bytes]:
            for i in range(0, n, 1000):
                bar("items", i, n)
                j = min(i + 1000, n)
                columns = [joined(parts, i, j)] if parts else []
                columns += [[f'"{part}":{{{text}}}' for text in joined(of, i, j)] for part, of in nested.items() if of]
                yield "".join(["{" + ",".join(filter(None, row)) + "}\n" for row in zip(*columns)]).encode()
        return self._import(what, body, {"Content-Type": "application/x-ndjson"}, twice)
    def put(self, key: str | None = None, vectors: Any = None, *, labels: Any = None,
            fields: Mapping[str, Any] | None = None, payload: bytes | None = None, code: Any = None) -> str:
        """Stores an item in the place of what is under its key, and returns the key: without one the next number."""
        item = _item(key, self._by_name(vectors), labels, fields, payload, code)
        if key is None: return str(self._ask("POST", "/items", item, twice=False)["keys"][0])
        return str(self._ask("PUT", "/items/" + _escape(item["key"]), item)["keys"][0])
    def merge(self, key: str, vectors: Any = None, **parts: Any) -> None:
        """Sets the parts of an item that are given, those of put, and leaves the others as they are."""
        self._ask("PATCH", "/items/" + _escape(_key(key)), _item(key, self._by_name(vectors), **parts))
    def _by_name(self, vectors: Any) -> Mapping[str, Any] | None:
        if vectors is None or isinstance(vectors, Mapping) and not any(isinstance(k, int) for k in vectors):
            return cast("Mapping[str, Any] | None", vectors)
        return {self._one("vectors"): vectors}
    def get(self, key: str) -> Item: return Item(self._ask("GET", "/items/" + _escape(_key(key))))
    def delete(self, keys: str | Iterable[str] | None = None, *, where: str | None = None,
               args: Sequence[Any] = ()) -> int:
        """Deletes items by a key, by keys, or all that match, and returns how many there were."""
        if (keys is None) == (where is None): raise Invalid("delete: one of keys and where says what to delete")
        body: JSON = {"where": where, "args": list(args)}
        if isinstance(keys, (str, numbers.Integral)): keys = [keys]
        if keys is not None: body = {"keys": [_key(k) for k in keys]}
        return int(self._ask("POST", ":delete", body)["deleted"])
    def _get(self, path: str, **parameters: Any) -> Tuple[str, str]:
        """Returns a request with parameters."""
        parameters["args"] = _json(list(args)).decode() if len(args := parameters.get("args", ())) else ""
        given = {name: v for name, v in parameters.items() if v != "" and v != 0}
        return "GET", f"{self._path}{path}?{urllib.parse.urlencode(given, quote_via=urllib.parse.quote)}"
    def items(self, where: str = "", args: Sequence[Any] = (), *, sample: int = 0, seed: int = 0) -> Iterator[Item]:
        """Yields all items that match, or so many of them at random, in the order in which they were first put."""
        request = self._get(":export", where=where, args=args, sample=sample, seed=seed)
        return (Item(json.loads(line)) for line in self.db._server.lines(*request))
    def keys(self, prefix: str = "", limit: int = 0) -> Iterator[str]:
        """Yields the keys that begin so, in their order."""
        return map(json.loads, self.db._server.lines(*self._get("/keys", prefix=prefix, limit=limit)))
    def __iter__(self) -> Iterator[Item]: return self.items()
    def __len__(self) -> int: return self.count()
    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key != "" and list(self.keys(key, 1)) == [key]
    def vectors(self, modality: str | None = None, where: str = "", args: Sequence[Any] = ()) -> Array:
        """Returns vectors, an array of float32 a row for each item that matches and has one, in the order of items."""
        name = modality or self._one("vectors")
        has = 'has("' + name.replace('"', '""') + '")'
        return self._array(vectors=name, where=f"({where}) AND {has}" if where else has, args=args)
    def codes(self, where: str = "", args: Sequence[Any] = ()) -> Array:
        """Returns codes, an array of uint8 with a row for each item that matches, in the order of items."""
        return self._array(codes="true", where=where, args=args)
    def _array(self, **parameters: Any) -> Array:
        with self.db._server.stream(*self._get(":export", **parameters)) as r:
            out = _numpy().lib.format.read_array(r, allow_pickle=False)
            r.read()  # the end of the answer
            return cast("Array", out)
    def search(self, vector: Any = None, *, from_: str | None = None, to: str | None = None, key: str | None = None,
               code: Any = None, text: str | None = None, picture: Any = None, k: int = 10, where: str = "",
               args: Sequence[Any] = (), include: Sequence[str] = ("labels", "fields"), after: str | None = None,
               min_similarity: float = 0, recall: float = 0, rerank: str = "", exclude_self: bool = False,
               facets: Sequence[str] = (), words: str = "") -> Hits:
        """Returns the k items nearest to a vector or text, the item of a key, a code, or a picture: path or bytes.

        words finds texts, in fields made with words: alone, or fused with the nearest. from_ is the modality of the
        query, if there are several, and to that of the items. where filters: "label = ? AND year > 2020", with args. In
        include: labels, fields, payload, vectors, cursor. recall asks for an answer by vectors, 1 for an exact one.
        """
        query = {n: x for n, x in locals().items() if n not in ("self", "vector")}
        return self._find(":search", self._query(query, vector))
    def radius(self, radius: int, vector: Any = None, **query: Any) -> Hits:
        """Returns the first k items within so many bits, and their number: Hits.total. query is as for search."""
        return self._find(":radius", self._query({**query, "radius": radius}, vector))
    def search_many(self, vectors: Any, **query: Any) -> List[Hits]:
        """Returns the answer to each row of an array (n, dimensions) or a list. query is that of search or radius."""
        rows, out, i, n = list(vectors), cast("List[Hits]", []), 0, 1
        while i < len(rows):
            asked = [self._query(query, x, f"row {j}") for j, x in enumerate(rows[i:i + n], i)]
            body, kind = b"\n".join(map(_json, asked)), {"Content-Type": "application/x-ndjson"}
            try:
                lines = self.db._server.lines("POST", self._path + ":search-many", body, kind)
                out += (self._find(":radius" if "radius" in q else ":search", q, json.loads(line))
                        for line, q in zip(lines, asked))
            except Error as e:
                e.args = (f"from row {i} on: {e}",)
                raise
            i, n = i + n, min(1000, max(1, (len(asked) << 21) // len(body)))  # about 2 MiB at a time
        return out
    def _query(self, query: JSON, vector: Any, where: str = "vector") -> JSON:
        """Returns a query without what has its default."""
        if isinstance(vector, str): query, vector = {**query, "text": vector}, None
        query = {"include": ("labels", "fields"), **query}  # an array is never a default
        query = {n.rstrip("_"): v for n, v in query.items() if n in ("k", "radius", "code") and v is not None or v}
        if isinstance(file := query.pop("picture", None), (str, os.PathLike)):
            with io.open(file, "rb") as f: file = f.read()
        if file: query.update(self._ask("POST", ":embed", {"from": query.get("from"), "file": _bytes(file, "picture")}))
        if vector is not None: query["vector"] = _vector(vector, where)
        if "from" not in query and vector is not None: query["from"] = self._one("from_")
        if "code" in query: query["code"] = _code(query["code"])
        if "key" in query: query["key"] = _key(query["key"])
        return query
    def _find(self, path: str, query: JSON, form: JSON | None = None) -> Hits:
        return Hits(form or self._ask("POST", path, query), lambda after: self._find(path, {**query, "after": after}))
    def count(self, where: str = "", args: Sequence[Any] = ()) -> int:
        return int(self._ask("POST", ":count", {"where": where, "args": list(args)})["count"])
    def facets(self, by: str = "label", where: str = "", args: Sequence[Any] = (), limit: int = 0) -> Dict[Any, int]:
        """Returns the number of items of each label, or of each value of a field, the largest first."""
        body = {"by": by, "where": where, "args": list(args), "limit": limit}
        return {c["value"]: c["items"] for c in self._ask("POST", ":facets", body)["counts"]}
    def pairs(self, radius: int = 0, **query: Any) -> Iterator[JSON]:
        """Yields the pairs of items within so many bits: key, other, distance. query has the flags of fddhdb dups."""
        return self._alike(":pairs", radius=radius, **query)
    def groups(self, radius: int = 0, **query: Any) -> Iterator[JSON]:
        """Yields groups of items within so many bits: items with key and distance, the one to keep first."""
        return self._alike(":groups", radius=radius, **query)
    def _alike(self, path: str, **query: Any) -> Iterator[JSON]:
        return map(json.loads, self.db._server.lines("POST", self._path + path, _json(query)))
    def embed(self, text: str | None = None, *, file: bytes | None = None, from_: str | None = None) -> Any:
        """Returns the vector that an encoder makes of a text, or of the bytes of a file: array or {index: number}; or
        the code, as bytes, that the hash of the collection makes."""
        made = self._ask("POST", ":embed", {"from": from_, "text": text, "file": _bytes(file, "file")})
        if "code" in made: return bytes.fromhex(made["code"])
        if isinstance(x := made["vector"], dict): return dict(zip(x["i"], x["v"]))
        return cast("Array", _numpy().frombuffer(base64.b64decode(x), dtype="<f4").astype("f4"))
    def train(self, progress: Progress = None, **settings: Any) -> JSON:
        """Learns codes. settings of this and other jobs are those of the verbs of fddhdb, as bits=64, activate=True."""
        return self.db._job(self._path + ":train", settings, progress)
    def update(self, progress: Progress = None, **settings: Any) -> JSON:
        """Lets the model learn from the items since its training."""
        return self.db._job(self._path + ":update", settings, progress)
    def reindex(self, progress: Progress = None, **settings: Any) -> JSON:
        """Makes all codes again, in a new space."""
        return self.db._job(self._path + ":reindex", settings, progress)
    def index(self, modality: str | None = None, progress: Progress = None, **settings: Any) -> JSON:
        """Makes an index of the vectors of a modality, so that searches by them are fast."""
        settings["modality"] = modality or self._one("modality")
        return self.db._job(self._path + ":index", settings, progress, twice=True)
    def stats(self) -> JSON: return dict(self._ask("GET", "/stats"))
    def spaces(self) -> List[JSON]: return list(self._ask("GET", "/spaces")["spaces"])
