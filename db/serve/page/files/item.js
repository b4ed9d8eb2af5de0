// One item: what can be done with it, a form that changes it, and hits as files.

import { ApiError, at, base, exactly, get, itemPath, post, send, signedIn } from "./api.js";
import { mayChange } from "./database.js";
import { $, bytes, failed, h, list } from "./dom.js";
import { base64 } from "./files.js";
import { prose, title } from "./hits.js";
import { forgetItem } from "./search.js";
import { similar } from "./state.js";

const atATime = 500; // cards

// cardsOf returns what the page shows of items, in the order of their keys; whole: with long texts.
export async function cardsOf(state, keys, whole, signal) {
  const cards = [];
  for (let i = 0; i < keys.length; i += atATime) {
    cards.push(...(await post(at(state, ":cards"), { keys: keys.slice(i, i + atATime), whole }, signal)).cards);
  }
  return cards;
}

// actions are buttons that change an item.
export const actions = (page, item) => mayChange(page.database, page.collection) && [
  h("button", { type: "button", class: "button", onclick: () => change(page, item.key) }, "Edit"),
  h("button", { type: "button", class: "button", onclick: () => remove(page, [item.key], title(item, item.key)) }, "Delete"),
];

// about shows all fields of an item, and how to ask for the same elsewhere.
export function about(page, item) {
  const { state } = page;
  const fields = Object.entries(item.fields ?? {}).filter(([, v]) => !String(v).startsWith("data:") && v !== prose(item));
  const json = h("pre", { class: "code", tabindex: 0 }, "…");
  const whole = h("details", { ontoggle: () => whole.open && fill(json, state, item.key) }, h("summary", {}, "JSON"), json);
  return h("div", { class: "about" },
    list([["key", item.key], ...fields.map(([k, v]) => [k, String(v)]),
      ["vectors", (item.modalities ?? []).join(", ")],
      ["payload", item.payload_bytes ? `${bytes(item.payload_bytes)}, ${item.payload_type}` : ""],
      ["code", item.code ? h("code", { class: "break" }, item.code) : ""]]),
    h("details", {}, h("summary", {}, "As a command, with curl, in Python"), commands(state).map(command)),
    whole);
}

async function fill(pre, state, key) {
  try {
    const item = await get(at(state, itemPath(key)));
    for (const [name, x] of Object.entries(item.vectors ?? {})) if (x.length > 16) item.vectors[name] = [...x.slice(0, 16), `… ${x.length} numbers`];
    if (item.payload?.length > 200) item.payload = `${item.payload.slice(0, 200)}… ${item.payload.length} letters of base64`;
    pre.textContent = JSON.stringify(item, null, 2);
  } catch (error) {
    pre.textContent = error.message;
  }
}

// commands are the search of a state for other doors.
function commands(state) {
  const shell = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;
  const least = similar(state);
  const given = (all) => Object.entries(all).filter(([, v]) => v !== "" && v !== undefined);
  const asks = { key: state.key, from: state.from, to: state.to, where: state.where, k: state.k, radius: state.within ? state.radius : "",
    min_similarity: least === "" ? "" : Number(least), rerank: state.rerank === "auto" ? "" : state.rerank };
  const flags = given({ collection: state.collection === "main" ? "" : state.collection, space: state.space, ...asks })
    .map(([k, v]) => (k === "k" ? `-k ${v}` : `--${k.replace("_", "-")}=${shell(v)}`));
  const { radius, ...rest } = Object.fromEntries(given(asks));
  const python = Object.entries(rest).map(([k, v]) => `${k === "from" ? "from_" : k}=${JSON.stringify(v)}`);
  const call = radius === undefined ? `search(${python.join(", ")})` : `radius(${[radius, ...python].join(", ")})`;
  const database = `${location.origin}/${encodeURIComponent(state.database)}`;
  const path = at(state, radius === undefined ? ":search" : ":radius");
  return [
    ["Command", `${signedIn() ? "FDDHDB_TOKEN=... " : ""}fddhdb search ${shell(database)} ${flags.join(" ")}`],
    ["curl", `curl ${signedIn() ? '-H "Authorization: Bearer $FDDHDB_TOKEN" ' : ""}-d ${shell(JSON.stringify(Object.fromEntries(given(asks))))} ${shell(location.origin + path)}`],
    // The client for Python looks at the active space.
    ...(state.space ? [] : [["Python", `import fddhdb\ndb = fddhdb.connect(${JSON.stringify(database)}${signedIn() ? ", token=..." : ""})\nprint(db.collection(${JSON.stringify(state.collection)}).${call})`]]),
  ];
}

function command([name, text]) {
  const copy = navigator.clipboard && h("button", { type: "button", class: "button", onclick: async (event) => {
    await navigator.clipboard.writeText(text);
    event.target.textContent = "Copied";
    $("status").textContent = `${name} is copied`;
  } }, `Copy`);
  return h("div", { class: "copy" }, h("h3", {}, name, copy), h("pre", { class: "code", tabindex: 0, "aria-label": name }, text));
}

// downloads are buttons that store hits as files, with the whole texts of their items.
export function downloads(state, entries) {
  const save = (kind, text) => {
    const url = URL.createObjectURL(new Blob([text], { type: kind === "csv" ? "text/csv" : "application/json" }));
    h("a", { href: url, download: `${state.collection}.${kind}` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };
  const begin = async (kind, event) => {
    const button = event.currentTarget;
    button.disabled = true;
    try {
      const items = new Map((await cardsOf(state, entries.map((e) => e.key), true)).map((card) => [card.key, card]));
      const rows = entries.map((e) => ({ key: e.key, distance: e.distance, similarity: e.similarity, labels: items.get(e.key)?.labels, fields: items.get(e.key)?.fields, text: items.get(e.key)?.text }));
      save(kind, kind === "csv" ? csv(rows) : JSON.stringify(rows, null, 2));
    } catch (error) {
      button.after(failed(error));
    }
    button.disabled = false;
  };
  return ["csv", "json"].map((kind) => h("button", { type: "button", class: "button", title: `Store what is shown as ${kind.toUpperCase()}`, onclick: (event) => begin(kind, event) }, kind.toUpperCase()));
}

// csv writes rows for spreadsheets. These run what begins like a formula: a quote before it keeps it text.
export function csv(all) {
  const own = ["key", "distance", "similarity", "labels", "text"];
  // A field with the name of another column has a longer one.
  const rows = all.map(({ fields, ...row }) => ({ ...row, ...Object.fromEntries(Object.entries(fields ?? {}).map(([k, v]) => [own.includes(k) ? `fields.${k}` : k, v])) }));
  const columns = [...new Set(rows.flatMap(Object.keys))].filter((c) => rows.some((r) => r[c] !== undefined && r[c] !== null));
  const cell = (v) => {
    let text = v === undefined || v === null ? "" : Array.isArray(v) ? v.join(";") : String(v);
    if (typeof v !== "number" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows.map((r) => columns.map((c) => r[c]))].map((r) => r.map(cell).join(",")).join("\r\n") + "\r\n";
}

// dialog shows a form until it is closed. act does what the button says, and gets the signal that the form is
// closed, and a function that tells how far it is; its error is shown.
function dialog(heading, verb, act, ...children) {
  const before = document.activeElement;
  const wrong = h("div", {});
  const far = h("p", { class: "hint", role: "status" });
  const closed = new AbortController();
  const box = h("dialog", { "aria-label": heading, onclose: () => {
    closed.abort();
    box.remove();
    if (before?.isConnected) before.focus();
  } });
  const go = h("button", { class: "button main" }, verb);
  box.append(h("form", { class: "stack", onsubmit: async (event) => {
    event.preventDefault();
    go.disabled = true;
    try {
      await act(closed.signal, (text) => (far.textContent = text));
      if (!closed.signal.aborted) box.close();
    } catch (error) {
      wrong.replaceChildren(failed(error));
      go.disabled = false;
    }
  } }, h("h2", {}, heading), children, far, wrong,
  h("div", { class: "tools" }, go, h("button", { type: "button", class: "button", onclick: () => box.close() }, "Cancel"))));
  document.body.append(box);
  box.showModal();
  return box;
}

// remove deletes items, once somebody has confirmed it. With the cards of the items it deletes only items whose
// code is still the one of the card.
export function remove(page, keys, what, cards) {
  dialog(`Delete ${what}?`, "Delete", async (signal, tell) => {
    const of = { ...page.state, space: "" };
    const step = cards ? together : 1000;
    for (let i = 0; i < keys.length && !signal.aborted; i += step) {
      const some = keys.slice(i, i + step);
      if (cards) await removeSame(of, some, cards, !page.state.space);
      else await post(at(of, ":delete"), { keys: some });
      tell(`${Math.min(i + step, keys.length)} of ${keys.length}`);
    }
    forgetItem();
    await page.written(page.state.by === "key" && keys.includes(page.state.key) ? { key: "", by: "" } : {});
  }, h("p", {}, "It cannot be undone."));
}

const together = 50; // items that are read, and changed in one batch

// readAll reads items; null is one that has been deleted.
const readAll = (of, keys) => Promise.all(keys.map((key) => send("GET", at(of, itemPath(key))).then((r) => r.text()).then(exactly, (error) => {
  if (error.status === 404) return null;
  throw error;
})));

async function removeSame(of, keys, cards, codes) {
  const lines = (await readAll(of, keys)).filter(Boolean).flatMap((item) => {
    if (codes && item.code !== cards.get(item.key)?.code) throw new Error(`${item.key} has changed since the page has shown it: find the groups again.`);
    return [{ collection: of.collection, expect: { key: item.key, item } }, { collection: of.collection, delete: item.key }];
  });
  if (lines.length) await send("POST", `${base(of)}:write`, lines.map((line) => JSON.stringify(line)).join("\n"));
}

// label adds a label to items, or takes it away. Items that are gone are left out, and those that somebody
// changes meanwhile are read again.
export function label(page, keys) {
  const input = h("input", { type: "search", id: "newLabel", required: true });
  const away = h("input", { type: "checkbox" });
  const box = dialog(`Label ${keys.length} items`, "Label", async (signal, tell) => {
    const of = { ...page.state, space: "" };
    for (let i = 0; i < keys.length && !signal.aborted; i += together) {
      await labelSome(of, keys.slice(i, i + together), input.value, !away.checked);
      tell(`${Math.min(i + together, keys.length)} of ${keys.length}`);
    }
    forgetItem();
    await page.written();
  }, h("label", { for: "newLabel" }, "Label"), input, h("label", { class: "check" }, away, h("span", {}, "Take it away")));
  box.querySelector("input").focus();
}

async function labelSome(of, keys, name, add) {
  for (let again = 3; ; again--) {
    const read = await readAll(of, keys);
    const lines = read.filter((item) => item && (item.labels ?? []).includes(name) !== add).flatMap((item) => {
      const labels = (item.labels ?? []).filter((l) => l !== name);
      return [{ collection: of.collection, expect: { key: item.key, item } }, { collection: of.collection, merge: { key: item.key, labels: add ? [...labels, name] : labels } }];
    });
    try {
      if (lines.length) await send("POST", `${base(of)}:write`, lines.map((line) => JSON.stringify(line)).join("\n"));
      return;
    } catch (error) {
      if (error.code !== "conflict" || !again) throw error;
    }
  }
}

// create shows the form of a new item; with a picture that was opened, it is stored with it.
export const create = (page, picture) => edit(page, null, null, picture);

async function change(page, key) {
  try {
    const response = await send("GET", at({ ...page.state, space: "" }, itemPath(key)));
    edit(page, exactly(await response.text()), response.headers.get("ETag"));
  } catch (error) {
    dialog("This item cannot be changed", "Close", async () => {}, failed(error));
  }
}

// edit shows the form of an item, or of a new one. etag is that of the item as it was read: if somebody else
// changes it meanwhile, storing it fails.
function edit(page, item, etag, picture) {
  const { collection } = page;
  const inputs = [];
  // row adds an input to the form; store puts its value into the item.
  const row = (name, input, hint, store) => {
    const id = `edit${inputs.length}`;
    input.id = id;
    inputs.push(store);
    return h("div", { class: "stack" }, h("label", { for: id }, name), input, hint && h("p", { class: "hint" }, hint));
  };
  const key = h("input", { type: "search", value: item?.key ?? picture?.name ?? "", disabled: item !== null, placeholder: "without one it gets a number" });
  const labels = h("textarea", { rows: 2 });
  const before = filled(labels, (item?.labels ?? []).join("\n"));
  const parts = [
    row("Key", key, null, (out) => key.value && (out.key = key.value)),
    row("Labels, one a line", labels, null, (out) => {
      if (labels.value !== before) out.labels = labels.value.split("\n").map((l) => l.trim()).filter(Boolean);
    }),
    ...(picture ? [h("img", { src: picture.url, alt: "" })] : []),
    ...(collection.modalities.length || picture ? [] : [code(row, collection, item?.code)]),
    ...collection.fields.map((f) => field(row, f, item?.fields?.[f.name])),
    ...collection.modalities.filter((m) => m.name !== picture?.from).map((m) => vector(row, page, m, item?.vectors?.[m.name] !== undefined)),
    ...(picture ? [] : [payload(row, item?.payload)]),
  ];
  dialog(item ? `Change item ${item.key}` : "New item", "Store", async () => {
    const out = { ...item, fields: { ...item?.fields }, vectors: { ...item?.vectors } };
    delete out.code_from;
    delete out.modalities;
    if (item?.code_from && item.code_from !== "given") delete out.code;
    for (const store of inputs) await store(out);
    if (picture) {
      if (picture.asks.code) out.code = picture.asks.code;
      else out.vectors[picture.from] = picture.asks.vector;
      const { payload, fields } = await picture.drawn();
      out.payload = payload;
      for (const f of collection.fields) if (f.type === "int" && fields[f.name] !== undefined) out.fields[f.name] ??= fields[f.name];
    }
    const of = { ...page.state, space: "" };
    let stored = out.key;
    if (item) await send("PUT", at(of, itemPath(out.key)), out, { headers: { "If-Match": etag } }).catch(elsewhere);
    else if (out.key) await send("PUT", at(of, itemPath(out.key)), out, { headers: { "If-None-Match": "*" } }).catch(elsewhere);
    else stored = (await (await send("POST", at(of, "/items"), out)).json()).keys[0];
    forgetItem();
    await page.written({ view: "search", by: "key", key: stored });
  }, ...parts);
}

function elsewhere(error) {
  if (error instanceof ApiError && error.code === "precondition_failed") error.message = "Somebody else has changed this item, or stored one with this key, since you began. Close the form and look at it again.";
  throw error;
}

// filled fills an input, and returns what it has then: browsers change ends of lines.
function filled(input, text) {
  input.value = text;
  return input.value;
}

// code is an input for the code of an item, in collections whose items bring them.
function code(row, collection, has) {
  const input = h("input", { type: "search", class: "mono", required: true });
  const before = filled(input, has ?? "");
  return row("Code", input, `${collection.bits / 4} hexadecimal digits`, (out) => {
    if (input.value !== before) out.code = input.value.trim();
  });
}

function field(row, f, value) {
  const text = value === undefined ? "" : String(value.rawJSON ?? value);
  const input = f.type === "bool" ? h("select", {}, ["", "true", "false"].map((v) => h("option", { value: v, selected: v === text }, v)))
    : text.length > 80 || /[\r\n]/.test(text) ? h("textarea", { rows: 4 }) : h("input", { type: "search", inputmode: ["int", "float"].includes(f.type) ? "decimal" : null });
  const before = f.type === "bool" ? text : filled(input, text);
  return row(f.name, input, f.type === "string" ? null : f.type, (out) => {
    if (input.value === before) return; // as it was, to the last digit and end of line
    if (input.value === "") {
      delete out.fields[f.name];
      return;
    }
    if (f.type === "bool") out.fields[f.name] = input.value === "true";
    else if (f.type === "int" || f.type === "float") {
      const x = Number(input.value);
      if (!Number.isFinite(x) || (f.type === "int" && !Number.isSafeInteger(x))) throw new Error(`${f.name}: ${input.value} is not ${f.type === "int" ? "a whole number" : "a number"}.`);
      out.fields[f.name] = x;
    } else out.fields[f.name] = input.value;
  });
}

// vector is an input for a vector: words or a picture, of which the server makes it, or its numbers.
function vector(row, page, m, has) {
  const words = page.collection.encoders.includes(m.name);
  const pictures = page.collection.pictures.includes(m.name);
  const input = pictures ? h("input", { type: "file", accept: "image/*" }) : h("input", { type: "search" });
  const hint = `${has ? "The item has one: leave this empty to keep it. " : ""}${pictures ? "Made of a picture" : words ? "Made of these words" : m.sparse ? 'As JSON, {"i": [...], "v": [...]}' : `${m.dim} numbers, with commas`}.`;
  return row(`Vector of ${m.name}`, input, hint, async (out) => {
    const chosen = input.files?.[0];
    if (chosen) {
      const file = base64(new Uint8Array(await chosen.arrayBuffer()));
      out.vectors[m.name] = (await (await send("POST", at({ ...page.state, space: "" }, ":embed"), { from: m.name, file })).json()).vector;
    } else if (pictures || input.value.trim() === "") return;
    else if (words) out.vectors[m.name] = (await (await send("POST", at({ ...page.state, space: "" }, ":embed"), { from: m.name, text: input.value })).json()).vector;
    else if (m.sparse) out.vectors[m.name] = JSON.parse(input.value);
    else {
      const x = input.value.replace(/^\s*\[|\]\s*$/g, "").split(",").map(Number);
      if (x.length !== m.dim || !x.every(Number.isFinite)) throw new Error(`${m.name}: ${m.dim} numbers are expected, with commas between them.`);
      out.vectors[m.name] = x;
    }
  });
}

function payload(row, has) {
  const input = h("input", { type: "file" });
  const none = h("input", { type: "checkbox" });
  return h("div", { class: "stack" }, row("Payload", input, has ? "The item has one: choose none to keep it." : "A picture or another file that is stored with the item.", async (out) => {
    if (input.files[0]) out.payload = base64(new Uint8Array(await input.files[0].arrayBuffer()));
    else if (none.checked) delete out.payload;
  }), has && h("label", { class: "check" }, none, h("span", {}, "Take the payload away")));
}
