// Facets: how many items have which label or value. A click adds it to the filter.

import { get, latest } from "./api.js";
import { $, count, h } from "./dom.js";

const newest = latest();
const shown = 8; // values of each

// facets counts what a state shows by labels and by indexed fields, and shows it above the items. A field
// without an index is left out, as every item would have to be read for it. query has the parameters
// of the search, or of the filter alone; ask is called with the filter.
export async function facets(collection, state, query, ask) {
  const by = ["label", ...collection.fields.filter((f) => f.indexed && f.type !== "float").map((f) => (f.name === "label" ? '"label"' : f.name))];
  const { result } = await newest((signal) => get("facets", { ...query, by: by.join(","), limit: shown }, signal));
  $("content").querySelector(".facets")?.remove();
  const told = result?.facets.filter((f) => f.distinct > 1 && f.distinct < f.items) ?? [];
  if (!told.length) return;
  const rows = told.map((f) => h("div", { class: "facet" }, h("dt", {}, f.by.replaceAll('"', "")),
    h("dd", {}, f.counts.map((n) => chip(state, f, n.value, n.items, ask)),
      f.missing > 0 && chip(state, f, null, f.missing, ask),
      f.distinct > f.counts.length && h("span", { class: "rest" }, `${count(f.distinct - f.counts.length)} more`))));
  $("content").querySelector(".headline, .query")?.after(h("dl", { class: "facets" }, rows));
}

function chip(state, facet, value, items, ask) {
  const test = condition(facet.by, value);
  const where = state.where ? `(${state.where}) AND ${test}` : test;
  return h("button", { type: "button", title: `only where ${test}`, onclick: () => ask({ where }) },
    value === null ? "none" : String(value), h("span", {}, count(items)));
}

// condition is the filter for a value of a facet, null for the items that have none.
function condition(by, value) {
  if (value === null) return by === "label" ? "NOT has(label)" : `${quoted(by)} IS NULL`;
  return `${quoted(by)} = ${typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : value}`;
}

// Fields stand in quotes, as some have the names of words of the language.
const quoted = (name) => (name === "label" || name.startsWith('"') ? name : `"${name.replaceAll('"', '""')}"`);
