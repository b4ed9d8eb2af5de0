// Facets: how many items have which label or value. A click adds it to the filter, another click takes it
// away.

import { at, latest, post } from "./api.js";
import { $, count, h } from "./dom.js";
import { parse } from "./state.js";

const newest = latest();
const shown = 8; // values of each
const many = 100_000; // items
let pressed = ""; // the condition of the button that was used last, which has the focus again

// chosen returns the list above the items, with the conditions of the filter. The counts in it stay
// until facets brings those of the state.
export function chosen(state, ask) {
  const list = $("content").querySelector(".facets") ?? h("dl", { class: "facets" });
  if (list.dataset.collection !== state.collection) list.replaceChildren(); // they are of another one
  list.dataset.collection = state.collection;
  list.querySelector(".filter")?.remove();
  const all = conditions(state.where);
  const buttons = all.map((test) => button("chosen", test, (now) => without(now, test), ask,
    h("span", { class: "unseen" }, "Take away "), test, h("span", { "aria-hidden": true }, "×")));
  if (all.length) list.prepend(row("only", buttons, "filter"));
  return list;
}

// facets counts what a state shows by labels and by indexed fields, and shows it above the items. query is that
// of the search, null for the filter alone; items are those that are shown; ask is
// called with the filter. Fields are left out whose counts would take long and tell little: floats and
// times, of which few come twice; fields without an index, for which every item would have to be read;
// and of many items those fields that differ in all items that are shown.
export async function facets(collection, state, query, items, ask) {
  const fields = collection.fields.filter((f) => f.indexed && !["float", "time"].includes(f.type) && (collection.items < many || repeats(f.name, items)));
  const by = ["label", ...fields.map((f) => (f.name === "label" ? '"label"' : f.name))];
  const { result, error } = await newest(async (signal) => {
    if (!query) return Promise.all(by.map((b) => post(at(state, ":facets"), { by: b, where: state.where, limit: shown }, signal)));
    const verb = query.radius === undefined ? ":search" : ":radius";
    return (await post(at(state, verb), { ...query, facets: by, facet_limit: shown }, signal)).facets;
  });
  if (!result && !error) return; // a later one has taken over
  const list = $("content").querySelector(".facets");
  if (!list) return;
  const all = conditions(state.where);
  const rows = (result ?? []).filter((f) => f.distinct > 1 && f.distinct < f.items).map((f) => {
    const counts = [...f.counts, ...(f.missing ? [{ value: null, items: f.missing }] : [])]
      .map((n) => ({ ...n, test: condition(f.by, n.value) })).filter((n) => !all.includes(n.test));
    return counts.length > 0 && row(f.by.replaceAll('"', ""), [
      counts.map((n) => button("", n.test, (now) => [...without(now, n.test), n.test], ask, n.value === null ? "none" : String(n.value), h("span", {}, count(n.items)))),
      f.distinct > f.counts.length && h("span", { class: "rest" }, `${count(f.distinct - f.counts.length)} more`)]);
  });
  list.replaceChildren(...[list.querySelector(".filter"), ...rows].filter(Boolean));
  refocus(list);
}

const row = (name, children, kind = "") => h("div", { class: `facet ${kind}` }, h("dt", {}, name), h("dd", {}, children));

const without = (all, test) => all.filter((t) => t !== test);

// button changes the filter by a condition. changed gets the conditions of the filter as it is at the click,
// which may be another than that of the counts, as these stay until the next ones come.
function button(kind, test, changed, ask, ...children) {
  const onclick = () => {
    pressed = test;
    ask({ where: changed(conditions(parse(new URL(location)).where)).join(" AND ") });
  };
  return h("button", { type: "button", class: kind, "data-test": test, title: kind ? `take away ${test}` : `only where ${test}`, onclick }, children);
}

// refocus gives the focus, which has gone with the button that was used, to that for the same condition.
function refocus(list) {
  if (pressed && document.activeElement === document.body) {
    const all = [...list.querySelectorAll("button")];
    (all.find((b) => b.dataset.test === pressed) ?? all[0] ?? $("view")).focus({ preventScroll: true });
  }
  pressed = "";
}

// conditions splits a filter at its ANDs, but for those in quotes and parentheses. One that has an OR
// beside them is a single condition.
function conditions(where) {
  const parts = [""];
  let depth = 0;
  for (const [token] of where.matchAll(/'(?:[^']|'')*'|"(?:[^"]|"")*"|[\p{L}_][\p{L}\p{Nd}_.-]*|./gsu)) {
    if (token === "(") depth++;
    if (token === ")") depth--;
    if (depth === 0 && /^or$/i.test(token)) return [`(${where.trim()})`];
    if (depth === 0 && /^and$/i.test(token)) parts.push("");
    else parts[parts.length - 1] += token;
  }
  return parts.map((p) => p.trim()).filter(Boolean);
}

// repeats reports whether two items have one value of a field, or whether few have any.
function repeats(field, items) {
  const values = items.map((item) => item?.fields?.[field]).filter((v) => v !== undefined);
  return values.length < 12 || new Set(values).size < values.length;
}

// condition is the filter for a value of a facet, null for the items that have none.
function condition(by, value) {
  if (value === null) return by === "label" ? "NOT has(label)" : `${quoted(by)} IS NULL`;
  return `${quoted(by)} = ${typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : value}`;
}

// Fields stand in quotes, as some have the names of words of the language.
const quoted = (name) => (name === "label" || name.startsWith('"') ? name : `"${name.replaceAll('"', '""')}"`);
