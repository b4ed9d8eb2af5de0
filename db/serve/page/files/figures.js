// Figures of the database, and how searches of a collection are done.

import { get, latest } from "./api.js";
import { $, bytes, count, failed, h, list, notice, number, plural, table, time } from "./dom.js";
import { picker } from "./models.js";

const newest = latest();
const newestPlans = latest();

export async function figures(state, database, change) {
  const { result: s, error } = await newest((signal) => get("stats", {}, signal));
  if (!s && !error) return;
  const title = h("div", { class: "title" }, h("h1", {}, "Figures"), picker(state, database, change));
  if (error) {
    $("content").replaceChildren(title, failed(error));
    return;
  }
  const plans = h("section", { class: "panel", "aria-label": "How searches are done" });
  $("content").replaceChildren(title,
    list([
      ["items", count(s.items)], ["on disk", bytes(s.disk_bytes)], ["in memory", bytes(s.memory_bytes)],
      ["commits", count(s.sequence)], ["kernel", s.kernel], ["format", s.format],
    ], { class: "tiles" }),
    collection(s.collections.find((c) => c.name === state.collection)), plans,
    h("p", { class: "hint" }, `fddhdb ${database.version}${s.uuid ? `, database ${s.uuid}` : ""}`));
  $("status").textContent = `Figures of ${plural(s.items, "item", "items")}`;
  tiers(state, plans);
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

// tiers shows which way searches go, by those for the first item.
async function tiers(state, panel) {
  const to = state.to || undefined;
  const { result, error } = await newestPlans((signal) => get("plans", { collection: state.collection, space: state.space, to }, signal));
  if (!result && !error) return;
  panel.replaceChildren(h("h2", {}, "How searches are done"));
  if (error || !result.plans.length) {
    panel.append(error ? failed(error) : notice("There are no codes to search yet."));
    return;
  }
  const names = [...new Set(result.plans.flatMap((p) => Object.keys(p.explain.predicted_us)))].sort();
  panel.append(
    h("p", { class: "hint" }, "For the first item: the way that was taken, what finding the codes took, and what each way is predicted to take."),
    table(["search", "way", "#took", "#codes found", ...names.map((n) => `#${n}`)], result.plans.map((p) => [
      p.op === "knn" ? `nearest ${p.k}` : `within ${plural(p.radius, "bit", "bits")}`, p.explain.plan, time(p.explain.search_us), count(p.explain.codes),
      ...names.map((n) => (n in p.explain.predicted_us ? time(p.explain.predicted_us[n]) : null)),
    ]), "Searches and their ways"));
}
