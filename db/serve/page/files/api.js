// Requests to the server of the page: docs/SERVE.md describes them.

export class ApiError extends Error {
  constructor(problem, status) {
    super((problem.column ? `column ${problem.column}: ${problem.reason}` : problem.detail ?? `the server answers with ${status}`).replace(/^fddhdb: (invalid argument: )?/, ""));
    this.status = status;
    this.code = problem.code;
    this.column = problem.column;
  }
}

// The token stays in this tab.
const store = (() => {
  try {
    return window.sessionStorage;
  } catch {
    return null; // the browser keeps nothing
  }
})();
let token = store?.getItem("token") ?? "";

export const signedIn = () => token !== "";

export function signIn(text) {
  token = text.trim();
  store?.setItem("token", token);
}

// send sends a request. A body that is text has a value of JSON a line; others become JSON.
export async function send(method, path, body, { signal, headers = {} } = {}) {
  const request = { method, signal, headers: { ...headers } };
  if (token) request.headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) {
    request.body = typeof body === "string" ? body : JSON.stringify(body);
    request.headers["Content-Type"] = typeof body === "string" ? "application/x-ndjson" : "application/json";
  }
  const response = await fetch(path, request);
  if (!response.ok) throw new ApiError(await response.json().catch(() => ({})), response.status);
  return response;
}

export const get = async (path, signal) => (await send("GET", path, undefined, { signal })).json();
export const post = async (path, body, signal) => (await send("POST", path, body, { signal })).json();

// exactly reads JSON in which whole numbers keep all their digits, for what is to be stored again.
export function exactly(text) {
  return JSON.parse(text, (_, v, context) => {
    if (typeof v !== "number" || !Number.isInteger(v) || Number.isSafeInteger(v)) return v;
    if (!JSON.rawJSON) throw new Error("This browser rounds a number of the item: change the item by fddhdb put.");
    return JSON.rawJSON(context.source);
  });
}

const name = encodeURIComponent;

// base is the path of a database, at that of something in the collection of a state, in its space.
export const base = (state) => `/v1/${name(state.database)}`;

export function at(state, rest = "", more = {}) {
  const parameters = new URLSearchParams(Object.entries({ space: state.space, ...more }).filter(([, v]) => v !== "" && v !== undefined));
  const query = parameters.toString();
  return `${base(state)}/collections/${name(state.collection)}${rest}${query && (rest.includes("?") ? "&" : "?") + query}`;
}

export const itemPath = (key) => `/items/${name(key)}`;

// picture makes an element of a picture that the server has. With a token the page has to fetch it.
const fetched = new Map();

export function picture(state, key, place, props) {
  const img = document.createElement("img");
  for (const [k, v] of Object.entries({ alt: "", decoding: "async", ...props })) img.setAttribute(k, v);
  const path = `${base(state)}/collections/${name(state.collection)}${itemPath(key)}/${place}`;
  if (!token) {
    img.src = path;
    return img;
  }
  if (!fetched.has(path)) {
    if (fetched.size >= 300) {
      const [oldest, url] = fetched.entries().next().value;
      url.then(URL.revokeObjectURL, () => {});
      fetched.delete(oldest);
    }
    fetched.set(path, send("GET", path).then((r) => r.blob()).then((b) => URL.createObjectURL(b)));
  }
  fetched.get(path).then((url) => (img.src = url), () => fetched.delete(path));
  return img;
}

// latest returns a function that runs the newest of the tasks that it is given: the one
// before is aborted, and what that still finds is dropped.
export function latest() {
  let current = null;
  return async (task) => {
    const before = current;
    const mine = (current = new AbortController());
    const begun = task(mine.signal);
    before?.abort();
    try {
      const result = await begun;
      return mine === current ? { result } : {};
    } catch (error) {
      return mine === current && error.name !== "AbortError" ? { error } : {};
    }
  };
}

// view is the latest of what the middle of the page shows: one view drops what another has asked for.
export const view = latest();
