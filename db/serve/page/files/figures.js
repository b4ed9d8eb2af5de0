// Figures of the database and of a collection.

import { base, get, view } from "./api.js";
import { $, bytes, count, failed, h, list, plural, table } from "./dom.js";
import { picker } from "./models.js";

export async function figures(state, database, change) {
  const { result: s, error } = await view((signal) => get(base(state), signal));
  if (!s && !error) return;
  const title = h("div", { class: "title" }, h("h1", {}, "Figures"), picker(state, database, change));
  if (error) {
    $("content").replaceChildren(title, failed(error));
    return;
  }
  $("content").replaceChildren(title,
    list([
      ["items", count(s.items)], ["on disk", bytes(s.disk_bytes)], ["in memory", bytes(s.memory_bytes)],
      ["commits", count(s.sequence)], ["kernel", s.kernel], ["format", s.format],
    ], { class: "tiles" }),
    collection(s.collections.find((c) => c.name === state.collection)),
    h("p", { class: "hint" }, `fddhdb ${database.version}${s.uuid ? `, database ${s.uuid}` : ""}`));
  $("status").textContent = `Figures of ${plural(s.items, "item", "items")}`;
}

function collection(c) {
  return h("section", { class: "panel", "aria-label": `Collection ${c.name}` },
    h("h2", {}, `Collection ${c.name}`, c.index_only && h("span", { class: "badge" }, "index-only")),
    h("div", { class: "split" },
      list([
        ["items", count(c.items)], ["labels", count(c.labels)],
        ["codes", c.trained ? `${c.bits} bits, ${count(c.distinct_codes)} distinct` : "none: not trained"],
        ["items with a code", c.trained ? count(c.coded_items) : ""],
        ["space", c.space ? `${c.space}, revision ${c.revision || 1}, of ${plural(c.spaces, "space", "spaces")}` : ""],
      ]),
      list([
        ["in memory", bytes(c.memory_bytes)], ["of it substring tables", bytes(c.index_bytes)],
        ["drift", Object.entries(c.drift ?? {}).map(([name, x]) => `${name} ${x.toFixed(3)}`).join(", ")],
        ["learned from", c.taught ? `${plural(c.taught, "item", "items")}, ${count(c.pending)} not seen yet` : ""],
        ["queries found", c.query_distances ? `the nearest at ${c.query_distances.p50} bits in the median, of ${plural(c.query_distances.queries, "query", "queries")}` : ""],
      ])),
    c.modalities?.length > 0 && [h("h3", {}, "Modalities"), table(["name", "#dimensions", "#items", "form", "metric", "the model"],
      c.modalities.map((m) => [m.name, count(m.dim), count(m.items), m.sparse ? "sparse" : "dense", (m.metric ?? "cosine") + (m.space_of ? `, in the space of ${m.space_of}` : ""), m.learned ? "knows it" : "does not know it"]), "Modalities")],
    c.fields?.length > 0 && [h("h3", {}, "Fields"), table(["name", "type", "index"], c.fields.map((f) => [f.name, f.type, f.indexed ? "yes" : "no"]), "Fields")]);
}
