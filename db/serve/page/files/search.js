// The search: one request for the hits, one for what the page shows of them, and behind these the histogram.

import { at, latest, picture, post, view } from "./api.js";
import { distances, histogram, shade } from "./chart.js";
import { collectionOf, mayChange } from "./database.js";
import { chosen, facets } from "./facets.js";
import { file } from "./files.js";
import { $, count, failed, h, list, plural, svg, time } from "./dom.js";
import { cards, prose, tags, title } from "./hits.js";
import { about, actions, cardsOf, create, downloads } from "./item.js";
import { address, asked, directed, nearest, ranged, similar } from "./state.js";

const newestHistogram = latest();
let drawn = ""; // what the histogram is of
let distribution = null; // that it shows

// ofState returns the query of a state, as the server reads it.
async function ofState(state) {
  const least = similar(state);
  const query = {
    from: directed(state) ? state.from || undefined : undefined, to: state.to || undefined, where: state.where || undefined,
    ...(least !== "" && { min_similarity: Number(least) || -1e-45, rerank: state.rerank }), // 0 is none: the number next to it
  };
  switch (state.by) {
    case "picture": {
      const chosen = file(state.picture);
      if (!chosen) throw new Error("The picture is not here any more: choose it again.");
      return { ...query, ...chosen.asks };
    }
    case "row": {
      const chosen = file(state.upload);
      if (!chosen) throw new Error("The file is not here any more: choose it again.");
      return { ...query, ...(await chosen.row(state.row, !state.from)) };
    }
  }
  return { ...query, ...asked(state) };
}

// find answers a query: {hits, next, total, ..., entries, code, bits, took_us}. Entries are the hits with their
// items.
async function find(state, query, signal, after) {
  const asks = { ...query, k: state.k, rerank: state.rerank, radius: ranged(state) ? state.radius : undefined, after, include: state.explain && !after ? ["explain"] : undefined };
  const verb = ranged(state) ? ":radius" : ":search";
  const began = performance.now();
  let result;
  try {
    result = await post(at(state, verb), asks, signal);
  } catch (error) {
    if (!state.labelled || !query.text || !query.words || error.status !== 400) throw error;
    delete query.text; // items have the label, and the model has not learned it yet
    return find(state, query, signal, after);
  }
  const took = 1000 * (performance.now() - began);
  const keys = result.hits.map((hit) => hit.key);
  const coded = result.space && !after && (query.text || query.key || query.vector || query.code);
  const [shown, encoded] = await Promise.all([
    cardsOf(state, keys, false, signal),
    coded ? post(at(state, ":encode"), { from: query.from, text: query.text, key: query.key, vector: query.vector, code: query.code }, signal) : {},
  ]);
  const items = new Map(shown.map((card) => [card.key, card]));
  const entries = result.hits.map((hit) => ({ ...hit, ranked: Boolean(query.words), item: items.get(hit.key) }));
  return { ...result, entries, words: query.words, fused: Boolean(query.words && query.text), code: encoded.code ?? "", bits: encoded.bits ?? 0, took_us: took };
}

// show answers what the state asks for, or shows some items where it asks for nothing.
// ask is called with the changes of a search from a hit, written after a change of the database.
export async function show(state, database, ask, written) {
  const page = { state, database, ask, written, collection: collectionOf(database, state) };
  const searching = Object.keys(asked(state)).length > 0;
  $("content").classList.add("busy");
  if (searching) $("histogram").hidden = false; // its place is kept, so that nothing jumps when it comes
  const waiting = searching && !page.collection?.hashed && setTimeout(() => tellWaiting(state.by), 1000);
  let query = null;
  const { result, error } = await view(async (signal) => {
    if (!searching) return post(at(state, ":cards"), { where: state.where, limit: 36, seed: state.sample }, signal);
    query = await ofState(state);
    return find(state, query, signal);
  });
  clearTimeout(waiting);
  $("content").querySelector(".waiting")?.remove();
  if (!result && !error) return; // a later one has taken over
  $("content").classList.remove("busy");
  if (error?.status === 400 && state.by === "text" && state.labelled && !error.column) {
    const labels = nearest(state, state.text.trim());
    if (labels.length) error.message += ` (labels: ${labels.join(", ")}${labels.length < state.labels.size ? ", …" : ""})`;
  }
  showError(error);
  if (error) {
    if (!drawn) forget();
    const bad = $("content").querySelector(".bad p");
    if (bad && state.by === "text" && state.labelled) offerItem(bad, state, ask);
    // An item that cannot be searched from is shown all the same.
    if (state.by === "key" && !error.column) $("content").replaceChildren(head(page, null, [], ""), failed(error));
    return;
  }
  if (!searching) {
    first(page, result);
    forget();
    facets(page.collection, state, null, result.cards, ask);
    return;
  }
  answer(page, query, result);
  if (result.bits) {
    mark(state, result.entries);
    draw(state, query, result.entries);
  } else forget(); // codes have found nothing
  facets(page.collection, state, { ...query, k: state.k, radius: ranged(state) ? state.radius : undefined, rerank: state.rerank }, result.entries.map((e) => e.item), ask);
}

// extremes returns the least and the most distance of entries, which some orders do not sort by it.
function extremes(entries) {
  const all = entries.map((e) => e.distance).filter((d) => d !== null);
  return [Math.min(...all), Math.max(...all)];
}

// mark shows in the histogram where the entries are, or the radius.
function mark(state, entries) {
  shade($("histogram"), ...(ranged(state) ? [0, state.radius] : extremes(entries)));
}

// tellWaiting says what takes so long with words and pictures.
function tellWaiting(by) {
  const what = { text: "words", picture: "pictures" }[by];
  if (!what) return;
  const text = `Waiting for the program that encodes ${what}. It may take minutes for the first ones, while it loads a model.`;
  $("status").textContent = text;
  $("content").querySelector(".waiting")?.remove();
  $("content").prepend(h("p", { class: "notice waiting" }, text));
}

// showError tells of an error where it belongs. What was found before stays.
function showError(error) {
  const where = error?.column ? error.message : "";
  $("whereError").textContent = where;
  $("whereError").hidden = !where;
  if (where) $("rest").open = true; // it stands there
  $("where").setAttribute("aria-invalid", Boolean(where));
  $("content").querySelector(".bad")?.remove();
  if (!error) return;
  $("status").textContent = error.message;
  const before = $("content").querySelector("h1");
  if (!where || !before) $("content").prepend(failed(error, before ? null : "No answer"));
}

function forget() {
  drawn = "";
  distribution = null;
  $("histogram").replaceChildren();
  $("histogram").hidden = true;
  $("numbers").hidden = true;
}

const longest = 4096; // bits of a code

// draw fetches the histogram where it is another one than the one that is shown. More entries
// may have been appended when it arrives.
async function draw(state, query, entries) {
  const of = JSON.stringify([state.collection, state.space, query]);
  if (of === drawn) {
    tellNearest();
    return;
  }
  drawn = of;
  distribution = null;
  // What is counted at each distance depends on the order only with a least similarity.
  const all = { rerank: "none", ...query, words: undefined, radius: longest, k: 1, include: ["distances"] };
  const { result, error } = await newestHistogram((signal) => post(at(state, ":radius"), all, signal));
  if (error) forget();
  if (!result) return;
  distribution = result.distances ?? [];
  tellNearest();
  const form = { items: result.total ?? 0, bits: distribution.length - 1, distances: distribution };
  histogram($("histogram"), form);
  $("distances").replaceChildren(distances(form));
  $("numbers").hidden = false;
  mark(state, entries);
}

// tellNearest says, where nothing is within the radius, how far there is something.
function tellNearest() {
  const nearest = distribution?.findIndex((n) => n) ?? -1;
  const nothing = $("content").querySelector(".nothing");
  if (nothing && nearest >= 0) nothing.textContent = `The nearest item is ${plural(nearest, "bit", "bits")} away.`;
}

// tellWhy says why nothing was found: what no item has of what the state asks for, the widest first.
async function tellWhy({ state, ask }, words) {
  const nothing = $("content").querySelector(".nothing");
  const has = state.to && `has("${state.to.replaceAll('"', '""')}")`;
  const reasons = [
    ["NOT label = ''", "The collection is empty."],
    [state.where, "No item matches the filter."],
    [state.where && has ? `(${state.where}) AND ${has}` : has, `No item${state.where ? " that matches the filter" : ""} has a vector of ${state.to}.`],
  ];
  for (const [where, reason] of reasons.filter(([where]) => where)) {
    const { count: items } = await post(at(state, ":count"), { where }).catch(() => ({}));
    if (items === 0) {
      nothing.textContent = reason;
      return;
    }
    if (items === undefined) return;
  }
  if (words) {
    nothing.textContent = state.where ? "No item that matches the filter has these words." : "No item has these words.";
    await offerItem(nothing, state, ask);
  } else if (similar(state) !== "") nothing.textContent ||= `None has a similarity of ${similar(state)}.`;
  else if (!ranged(state) && state.to) nothing.textContent ||= "No item has a code here: a training gives them one.";
}

// offerItem adds a link to the item whose key is typed where words belong.
async function offerItem(to, state, ask) {
  const key = state.text.trim();
  const [item] = await cardsOf(state, [key]).catch(() => []);
  if (!item) return;
  const onclick = (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    ask(from(state, key));
  };
  to.append(" ", h("a", { href: address({ ...state, ...from(state, key) }), onclick }, `Item ${key}`));
}

export const from = (state, key) => ({ by: "key", key, from: state.to || state.from, view: "search" });

export function grid(state, entries, code, ask) {
  let ul = $("content").querySelector(":scope > .cards");
  // Another collection may have other items under the same keys.
  if (ul?.dataset.of !== state.collection) ul = h("ul", { class: "cards", "aria-label": "Items", "data-of": state.collection });
  cards(ul, entries, {
    code, state,
    href: (e) => address({ ...state, ...from(state, e.key) }),
    onask: (e) => ask(from(state, e.key)),
  });
  return ul;
}

// first shows items by which to ask: some at random where there are many.
function first(page, result) {
  const { state, ask } = page;
  const entries = result.cards.map((item) => ({ key: item.key, item }));
  const all = state.where ? `${plural(result.total, "item matches", "items match")} the filter` : plural(result.total, "item", "items");
  const some = entries.length < result.total;
  const text = !result.total ? (state.where ? "Take something away from it." : "The collection is empty: fddhdb import brings items in.")
    : `${some ? `${count(entries.length)} of them, at random. ` : ""}Choose one to see what is like it.`;
  const others = some && h("button", { type: "button", class: "button others", onclick: () => ask({ sample: state.sample + 1 }) }, "Show others");
  $("status").textContent = `${all}. ${text}`;
  $("content").replaceChildren(h("div", { class: "headline" }, h("h1", {}, all), h("p", {}, text), h("div", { class: "tools" }, tools(page, entries), others)),
    chosen(state, ask), grid(state, entries, "", ask));
}

// tools are what can be done beside asking.
function tools(page, entries) {
  const opened = page.state.by === "picture" && file(page.state.picture);
  return [mayChange(page.database, page.collection) && h("button", { type: "button", class: "button", onclick: () => create(page, opened) }, opened ? "Store this picture" : "New item"),
    entries.length > 0 && downloads(page.state, entries)];
}

function answer(page, query, result) {
  const { state, ask } = page;
  const { entries } = result;
  const ul = grid(state, entries, result.code, ask);
  const summary = found(state, result, entries);
  $("status").textContent = summary;
  const more = result.next && moreButton(page, query, result);
  $("content").replaceChildren(...[head(page, result, entries, summary), chosen(state, ask), result.explain && explained(result.explain), entries.length ? ul : h("p", { class: "nothing" }), more].filter(Boolean));
  if (!entries.length) tellWhy(page, result.words);
}

const moreButton = (page, query, result) => h("button", { type: "button", class: "more", onclick: () => append(page, query, result) }, "More");

function found(state, result, entries) {
  const n = entries.length;
  if (ranged(state)) {
    const all = `${plural(result.total ?? 0, "item", "items")} within ${plural(state.radius, "bit", "bits")}`;
    return result.total > n ? `The first ${count(n)} of ${all}` : all;
  }
  if (!n) return "No items";
  if (result.fused) {
    const other = state.labelled ? "labels" : state.from ? "vectors" : "codes";
    return `The ${n === 1 ? "best item" : `${count(n)} best`} by words and ${other} together`;
  }
  if (result.words) return `${plural(n, "item", "items")} with these words, the best first`;
  if (!result.bits) return n === 1 ? "The most similar item" : `The ${count(n)} most similar items`; // vectors were compared
  const [least, most] = extremes(entries);
  const away = least === most ? plural(least, "bit", "bits") : `${least} to ${plural(most, "bit", "bits")}`;
  const order = state.rerank === "asymmetric" ? "best" : "nearest";
  return n === 1 ? `The ${order} item, ${away} away` : `The ${order} ${count(n)} items, ${away} away`;
}

const summed = (summary, result) => `${summary} · ${time(result.took_us)}`;

let asker = { of: "", item: null }; // the item that was asked by, the last time

// head names the query: by an item it shows that one, and what can be done with it.
function head(page, result, entries, summary) {
  const { state } = page;
  const named = file(state.by === "picture" ? state.picture : state.upload);
  const names = { text: `“${state.text.trim()}”`, code: "A code", picture: named?.name ?? "A picture", row: `Row ${state.row} of ${named?.name ?? "the file"}` };
  const box = h("div", { class: "query" }, h("div", { class: "what" },
    h("h1", {}, names[state.by] ?? `Item ${state.key}`), h("p", {}, result && summed(summary, result))));
  if (state.by === "picture" && named) box.prepend(h("img", { src: named.url, alt: "" }));
  box.append(h("div", { class: "tools" }, tools(page, entries)));
  if (state.by !== "key") return box;
  const fill = (item) => {
    if (!item) return;
    box.querySelector("h1").textContent = title(item, `Item ${state.key}`);
    const text = prose(item);
    box.querySelector(".what").append(...[text && h("p", { class: "prose", tabindex: 0 }, text), tags(item, Infinity)].filter(Boolean));
    if (item.picture) box.prepend(picture(state, item.key, item.picture));
    box.querySelector(".tools").prepend(...[actions(page, item)].flat().filter(Boolean));
    box.append(about(page, item));
  };
  const of = JSON.stringify([state.database, state.collection, state.space, state.key]);
  if (asker.of === of) fill(asker.item);
  else cardsOf(state, [state.key], true).then(([item]) => fill((asker = { of, item }).item), () => {}); // what is wrong, the search tells
  return box;
}

// forgetItem has the next search ask for the item again, which has changed.
export const forgetItem = () => (asker = { of: "", item: null });

async function append(page, query, result) {
  const { state, ask } = page;
  const button = $("content").querySelector(".more");
  button.disabled = true;
  const { result: next, error } = await view((signal) => find(state, query, signal, result.next));
  if (error) button.replaceWith(failed(error));
  if (!next) return;
  const { entries } = result;
  const begin = entries.length;
  entries.push(...next.entries);
  const ul = grid(state, entries, result.code, ask);
  $("status").textContent = `${count(entries.length)} items are shown`;
  $("content").querySelector(".query p").textContent = summed(found(state, result, entries), result);
  if (result.bits) mark(state, entries);
  ul.children[begin]?.querySelector("a").focus();
  if (next.next) button.replaceWith(moreButton(page, query, { ...result, next: next.next }));
  else button.remove();
}

function explained(x) {
  if (x.plan === "vectors") { // nothing is trained
    return h("section", { class: "panel", "aria-label": "How it was found" },
      h("h2", {}, "Found by a scan of vectors"),
      h("div", { class: "split" },
        list([["metric", x.metric], ["vectors of", x.modalities.join(", ")], ["vectors compared", count(x.scanned)], ["of them exactly", count(x.compared)], ["items", count(x.hits)]]),
        h("div", {}, h("h3", {}, "Took"), meter([["items, in order", x.resolve_us]]))));
  }
  return h("section", { class: "panel", "aria-label": "How it was found" },
    h("h2", {}, `Found by ${planNames[x.plan] ?? x.plan}`),
    h("div", { class: "split" },
      list([
        ["order", x.rerank],
        ["codes found", `${count(x.codes)} of ${count(x.distinct)}`],
        ["items", count(x.hits)],
        ["lookups", x.probes ? `${count(x.probes)} in ${x.substrings?.join(" + ") || "no"} tables` : ""],
        ["candidates", x.probes ? `${count(x.candidates)}, ${count(x.compared)} compared` : ""],
        ["codes read", x.scanned ? count(x.scanned) : ""],
        ["not indexed yet", x.tail ? count(x.tail) : ""],
        ["given up", x.abandoned ? "lookups, for a scan" : ""],
      ]),
      h("div", {}, h("h3", {}, "Took"), meter([["encode", x.encode_us], ["find codes", x.search_us], ["items, in order", x.resolve_us]])),
      h("div", {}, h("h3", {}, "Predicted, to find the codes"), meter(Object.entries(x.predicted_us).sort((a, b) => a[1] - b[1]), x.plan))));
}

const planNames = {
  memory: "substring tables in memory", scan: "a scan of the codes in memory", filter: "the codes of the items that match",
  disk: "substring postings on disk", blockscan: "a scan of the codes on disk",
};

// meter shows times as bars of a logarithmic scale.
function meter(pairs, chosen) {
  const log = (us) => Math.log10(1 + Math.max(us, 0));
  const most = Math.max(...pairs.map(([, us]) => log(us)), 1e-9);
  return h("div", { class: "meter" }, pairs.flatMap(([name, us]) => {
    const mark = name === chosen ? "chosen" : null;
    return [h("span", { class: mark }, name),
      svg("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("rect", { class: mark, width: (100 * log(us)) / most, height: 8, rx: 1 })),
      h("span", { class: mark }, time(us))];
  }));
}
