// Spaces of codes, their trainings, how revisions drift, and jobs.

import { at, base, get, post, send, view } from "./api.js";
import { lines } from "./chart.js";
import { collectionOf, mayChange, mayTrain } from "./database.js";
import { $, bytes, count, failed, h, list, notice, number, plural, table, when } from "./dom.js";

// picker is a choice of the collection, where there are several.
export function picker(state, database, change) {
  if (database.collections.length < 2) return null;
  return h("div", { class: "pair" }, h("label", { for: "of" }, "Collection"),
    h("select", { id: "of", onchange: (e) => change({ collection: e.target.value, space: "", from: "", to: "", key: "", modality: "", codes: false, keep: "", radius: "", directed: false }, "go") },
      database.collections.map((c) => h("option", { value: c.name, selected: c.name === state.collection }, c.name))));
}

export async function models(state, database, change, written) {
  const { result, error } = await view((signal) => get(at({ ...state, space: "" }, "/spaces"), signal));
  if (!result && !error) return;
  const panel = jobs(state, database, written);
  const title = h("div", { class: "title" }, h("h1", {}, "Models"), picker(state, database, change));
  if (error) $("content").replaceChildren(title, failed(error));
  else if (!result.spaces.length) $("content").replaceChildren(title, panel, notice("There is no model yet: a training makes one, of items with labels."));
  else $("content").replaceChildren(title, panel, ...[...result.spaces].reverse().map(space));
  $("status").textContent = error ? error.message : plural(result.spaces.length, "space", "spaces");
}

// jobs shows what runs on the collection, and begins trainings.
function jobs(state, database, written) {
  const running = h("div", { class: "stack", "aria-live": "polite" });
  const wrong = h("div", {});
  const bits = h("select", { id: "bits" }, [16, 32, 64, 128, 256].map((n) => h("option", { value: n, selected: n === 64 }, String(n))));
  const begin = async (verb, body) => {
    try {
      await post(at({ ...state, space: "" }, verb), body);
      wrong.replaceChildren();
    } catch (error) {
      wrong.replaceChildren(failed(error));
    }
    follow(state, database, running, written);
  };
  follow(state, database, running, written);
  return h("section", { class: "panel", "aria-label": "Jobs" }, h("h2", {}, "Jobs"),
    mayTrain(database, collectionOf(database, state)) && h("div", { class: "tools" },
      h("label", { for: "bits" }, "Bits"), bits,
      h("button", { type: "button", class: "button", onclick: () => begin(":train", { bits: Number(bits.value), activate: true }) }, "Train"),
      h("button", { type: "button", class: "button", onclick: () => begin(":update", {}) }, "Learn from new items")),
    wrong, running);
}

const recent = 5; // jobs that are shown
let following = 0;

// follow shows the last jobs, again and again while one of them runs.
async function follow(state, database, list, written) {
  const mine = ++following;
  let before = null;
  for (;;) {
    const all = await get(`${base(state)}/jobs`).then((r) => r.jobs.filter((j) => j.collection === state.collection), () => []);
    if (mine !== following || (before !== null && !list.isConnected)) return;
    list.replaceChildren(...all.slice(-recent).reverse().map((j) => job(state, database, j)));
    if (!all.length) list.replaceChildren(h("p", { class: "hint" }, "No job has run since the server began."));
    const active = all.filter((j) => j.state === "running").length;
    if (before > 0 && active < before) {
      written();
      return;
    }
    before = active;
    if (!active) return;
    await new Promise((wake) => setTimeout(wake, 500));
  }
}

function job(state, database, j) {
  const cancel = (event) => send("DELETE", `${base(state)}/jobs/${j.id}`).catch((error) => event.target.replaceWith(failed(error)));
  const bar = j.state === "running" && h("progress", { max: j.total || null, value: j.total ? j.done : null, "aria-label": `Progress of ${j.kind}` });
  const text = j.state === "running" ? `${j.stage ?? "begins"}${j.total ? `, ${count(j.done ?? 0)} of ${count(j.total)}` : ""}` : j.error?.detail ?? j.state;
  return h("div", { class: "job" }, h("b", {}, j.kind), bar, h("span", { class: j.error && j.state === "failed" && "wrong" }, text), h("span", { class: "hint" }, when(j.began)),
    bar && mayChange(database) && h("button", { type: "button", class: "button", onclick: cancel }, "Cancel"));
}

// withoutLabels reports whether a training has learned codes without labels.
export const withoutLabels = (training) => ["itq", "cca-itq"].includes(training?.method);

function space(s) {
  const t = s.training;
  const free = withoutLabels(t); // no sweeps, and nothing that items teach later
  return h("section", { class: "panel", "aria-label": `Space ${s.space}` },
    h("h2", {}, `Space ${s.space}`, h("span", { class: `badge ${s.state}` }, s.previous ? `${s.state}, was active` : s.state)),
    h("div", { class: "split" },
      list([
        ["made", when(s.created)],
        ["from", s.parent ? `space ${s.parent}, by reindex` : t ? `training on ${plural(t.train_items, "item", "items")}` : "codes that items bring"],
        ["bits", s.bits],
        ["items", count(s.items)],
        ["distinct codes", count(s.distinct_codes)],
        ["revision", s.revision || ""],
      ]),
      t && list([
        ["labels", free ? "none" : `${count(t.labels)} in ${plural(t.label_sets, "combination", "combinations")}`],
        ["method", free ? t.method : `${t.method}, ${plural(t.sweeps, "sweep", "sweeps")}`],
        ["bit balance", number(t.bit_balance)],
        ["constant bits", count(t.constant_bits)],
        ["took", `${number(t.seconds?.total ?? 0)} s`],
        ["model", bytes(s.model_bytes)],
      ]),
      s.revisions.length > 0 && list(free ? [["checksum", s.checksum]] : [["learned from", plural(s.taught, "item", "items")], ["not seen yet", plural(s.pending, "item", "items")], ["checksum", s.checksum]]),
      t && !free && lines("Objective by sweep", [{ name: "Objective", points: t.objective.map((y, i) => [i + 1, y]) }], "sweep")),
    t?.chosen && [h("h3", {}, "Chosen for each modality"), chosen(t)],
    s.revisions.length > 0 && [h("h3", {}, "Revisions: how far the items that came are from what was learned"), h("p", { class: "hint" }, meaning), drift(s), revisions(s)]);
}

const limit = 0.2; // db.DriftLimit

const meaning = "drift: how much worse the model fits the new items than the items that it learned from. "
  + `It is near 0 for items like those; above ${limit} it is time to train again.`;

function chosen(t) {
  return table(["modality", "features", "map", "#anchors", "#gamma", "#mAP", "#± error"],
    Object.entries(t.chosen).map(([name, c]) => {
      const choice = t.choices?.[name];
      return [name, c.feature_map, c.map, c.anchors ? count(c.anchors) : null, number(c.gamma), choice && !choice.unfit ? choice.map_tie.toFixed(3) : null, choice && !choice.unfit ? choice.stderr.toFixed(3) : null];
    }), "Chosen for each modality");
}

function drift(s) {
  const names = [...new Set(s.revisions.flatMap((r) => Object.keys(r.drift ?? {})))].sort();
  return lines("Drift", names.map((name) => ({
    name, points: s.revisions.map((r) => [r.revision, r.drift?.[name]]).filter((p) => p[1] !== undefined),
  })), "revision");
}

function revisions(s) {
  const rows = s.revisions.flatMap((r) => {
    const names = Object.keys(r.drift ?? { "": 0 }).sort();
    return names.map((name, i) => {
      const x = r.drift?.[name];
      const first = i === 0;
      const note = [first && r.revision === s.revision && "in use", x > limit && "train again"].filter(Boolean).join(", ");
      return [String(r.revision), first ? when(r.created) : "", first ? r.teacher || (r.parent ? "" : "training") : "", first ? count(r.items) : "", name, x?.toFixed(3), note];
    });
  });
  return table(["#revision", "made", "teacher", "#items", "modality", "#drift", "note"], rows, "Revisions");
}
