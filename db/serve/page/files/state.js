// What the page shows is in its address: back, forward, reload and bookmarks work.

const views = { "/map": "map", "/duplicates": "alike", "/models": "models", "/stats": "stats" };

const paths = { search: "/", map: "/map", alike: "/duplicates", models: "/models", stats: "/stats" };
const texts = ["database", "collection", "space", "from", "to", "text", "key", "code", "rerank", "min-similarity", "where", "modality", "least", "keep"];

const defaults = { k: 24, rerank: "auto" };

// parse reads a state from an address.
export function parse(url) {
  const v = url.searchParams;
  const state = { view: views[url.pathname] ?? "search", explain: v.get("explain") === "true" };
  for (const name of texts) state[name] = v.get(name) ?? "";
  state.rerank ||= defaults.rerank;
  state.k = whole(v.get("k"), defaults.k);
  state.radius = whole(v.get("radius"), ""); // that of the collection, see complete
  state.within = state.view === "search" && v.has("radius");
  state.codes = state.view === "alike" && v.has("radius"); // duplicates by codes are asked for
  state.row = whole(v.get("row"), 0);
  state.sample = whole(v.get("sample"), 0);
  state.labels = new Set(); // see complete
  state.picture = state.upload = ""; // ids of files, which a page has only as long as it is open
  state.by = state.text ? "text" : state.code ? "code" : state.key ? "key" : "";
  state.directed = v.has("from") || v.has("to");
  return state;
}

function whole(text, byDefault) {
  const n = Number(text);
  return text !== null && text !== "" && Number.isInteger(n) && n >= 0 ? n : byDefault;
}

// address is what parse reads again; what is as by default is left out.
export function address(state) {
  const v = new URLSearchParams();
  const set = (name, value) => value !== "" && value !== undefined && v.set(name, value);
  if (!state.alone) set("database", state.database);
  if (state.collection !== "main") set("collection", state.collection);
  set("space", state.space);
  if (state.view === "search") {
    const query = asked(state);
    for (const name of ["key", "code"]) set(name, query[name]);
    if (state.by === "text") set("text", state.text.trim());
    if (Object.keys(query).length) {
      v.set("from", state.from);
      v.set("to", state.to);
      if (state.k !== defaults.k) set("k", state.k);
      if (state.within) set("radius", state.radius);
      if (state.rerank !== defaults.rerank) set("rerank", state.rerank);
      set("min-similarity", state["min-similarity"]);
      if (state.explain) set("explain", "true");
    }
    else if (state.sample) set("sample", state.sample);
  }
  if (state.view === "alike") {
    if (state.codes && !state.modality) set("radius", state.radius);
    else set("least", state.least);
    for (const name of ["modality", "keep"]) set(name, state[name]);
  }
  if (["search", "map", "alike"].includes(state.view)) set("where", state.where);
  const path = paths[state.view];
  const query = v.toString();
  return query ? `${path}?${query}` : path;
}

// named reports whether a text is a label that items have, or each of its words is one.
export const named = (state, text) => state.labels.has(text) || text.split(/\s+/).every((word) => state.labels.has(word));

// nearest returns the few labels that are most like a text, by the pairs of letters that they share.
export function nearest(state, text) {
  const pairs = (s) => [...` ${s.toLowerCase()}`].map((letter, i, all) => letter + (all[i + 1] ?? ""));
  const wanted = new Set(pairs(text));
  const likeness = (own) => own.filter((pair) => wanted.has(pair)).length / (own.length + wanted.size);
  const all = [...state.labels].filter((label) => label !== text).map((label) => [label, likeness(pairs(label))]);
  return all.sort((a, b) => b[1] - a[1]).slice(0, 8).map(([label]) => label);
}

// directed reports whether a query is of a modality: a code is not, nor are words that no encoder reads.
export const directed = (state) => state.by !== "code" && (state.by !== "text" || state.reads);

// similar returns the least similarity that a state asks for, "" where nothing is compared, or where
// the order does not say what. Without codes vectors are compared.
export function similar(state) {
  const says = state.trained ? !["auto", "none"].includes(state.rerank) : state.rerank === "auto";
  const compared = says && directed(state) && state.from !== "";
  return compared ? state["min-similarity"] : "";
}

// findable reports whether words can be looked for in the texts of fields.
function findable(state, text) {
  const words = text.match(/[\p{L}\p{M}\p{N}]+/gu)?.length ?? 0;
  return state.indexed && words > 0 && words <= 16;
}

// ranged reports whether a state asks for a radius. Items that words alone find have no distance.
export const ranged = (state) => state.within && !asked(state).words;

// asked returns the parameters of what a state asks for; none where it asks for nothing.
export function asked(state) {
  switch (state.by) {
    case "text": {
      const text = state.text.trim();
      if (!text) return {};
      const near = state.reads || named(state, text); // then there is a vector or a code, and a distance
      if (!findable(state, text) || (near && (state.within || similar(state) !== ""))) return { text };
      return near ? { text, words: text } : { words: text };
    }
    case "key":
      return state.key ? { key: state.key } : {};
    case "code":
      return state.code.trim() ? { code: state.code.trim() } : {};
    case "picture":
      return state.picture ? { picture: state.picture } : {};
    case "row":
      return state.upload ? { upload: state.upload, row: state.row } : {};
  }
  return {};
}
