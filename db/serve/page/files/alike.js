// Duplicates: groups of items that are alike, and the choice of which to keep.

import { at, send, view } from "./api.js";
import { collectionOf, mayChange, spaceOf } from "./database.js";
import { $, count, failed, h, notice, plural } from "./dom.js";
import { cards, title } from "./hits.js";
import { cardsOf, remove } from "./item.js";
import { picker, withoutLabels } from "./models.js";
import { from } from "./search.js";
import { address } from "./state.js";

const together = 12; // groups that are shown at a time
const most = 50; // items of a group that are shown
const many = 20_000; // items: to compare the vectors of more takes minutes, so they have to be asked for
const alikeFrom = "0.95"; // least similarity

export async function alike(state, database, change, written) {
  const collection = collectionOf(database, state);
  const page = { state, database, collection, ...compared(collection, state), written, ask: (changes) => change(changes, "go"), kept: new Map(), groups: [] };
  const taught = page.codes && spaceOf(collection, state)?.training;
  const head = [h("div", { class: "title" }, h("h1", {}, "Duplicates"), picker(state, database, change)), form(page)];
  if (taught && !withoutLabels(taught)) head.push(h("p", { class: "hint" }, "Items with the same labels have the same code; these need not be copies."));
  if (!page.codes && !page.modality) {
    $("content").replaceChildren(...head, notice("Nothing compares these items: they have neither codes nor dense vectors."));
    return;
  }
  const { result, error } = await view((signal) => more(page, "", signal));
  if (!result && !error) return;
  const list = h("div", { class: "groups" });
  const next = h("button", { type: "button", class: "button more", hidden: true }, "Show more groups");
  const bar = h("div", { class: "headline", id: "going" });
  next.onclick = async () => {
    next.disabled = true;
    const answer = await view((signal) => more(page, page.groups.at(-1).cursor, signal));
    if (answer.error) next.replaceWith(failed(answer.error));
    if (answer.result) add(page, list, next, bar, answer.result);
  };
  $("content").replaceChildren(...head, bar, list, next);
  if (error) bar.replaceChildren(failed(error));
  else add(page, list, next, bar, result);
}

// compared returns what is compared: {modality, codes}, of which one counts. Codes that are learned say that
// items are of one kind, not that they are copies.
function compared(collection, state) {
  const first = collection.modalities.find((m) => !m.sparse)?.name ?? "";
  const codes = collection.bits > 0 && !state.modality && (state.codes || !first || collection.items > many);
  return { codes, modality: codes ? "" : state.modality || first };
}

// form asks what is alike, and which item of a group to keep.
function form(page) {
  const { state, collection, ask } = page;
  const dense = collection.modalities.filter((m) => !m.sparse);
  const by = h("select", { id: "alikeBy", onchange: (e) => ask({ modality: e.target.value, codes: !e.target.value }) },
    collection.bits > 0 && h("option", { value: "" }, `codes of ${collection.bits} bits`),
    dense.map((m) => h("option", { value: m.name, selected: m.name === page.modality }, `vectors of ${m.name}`)));
  const { codes } = page;
  const near = h("input", codes ? { id: "near", type: "number", min: 0, max: collection.bits, value: state.radius } : { id: "near", type: "number", step: "any", value: state.least || alikeFrom });
  const fields = collection.fields.filter((f) => f.type !== "string");
  const keeps = [["oldest", "the first one"], ["newest", "the last one"], ...fields.flatMap((f) => [[`max ${f.name}`, `greatest ${f.name}`], [`min ${f.name}`, `least ${f.name}`]])];
  const keep = h("select", { id: "keep" }, keeps.map(([value, name]) => h("option", { value, selected: value === state.keep }, name)));
  const where = h("input", { type: "search", class: "mono", id: "alikeWhere", placeholder: "label = 'cat'", value: state.where });
  const go = (event) => {
    event?.preventDefault();
    ask({ ...(codes ? { radius: Number(near.value), codes } : { least: near.value }), keep: keep.value, where: where.value });
  };
  near.onchange = keep.onchange = () => go();
  const pair = (name, input) => h("div", { class: "pair" }, h("label", { for: input.id }, name), input);
  return h("form", { class: "alike", onsubmit: go }, pair("Compare", by), pair(codes ? "Within bits" : "Similarity", near), pair("Keep", keep), pair("Only where", where),
    h("button", { class: "button" }, "Find"));
}

// more returns the next groups, with the cards of their items.
async function more({ state, modality, groups }, after, signal) {
  const query = { where: state.where, keep: state.keep, limit: together, after,
    ...(modality ? { modality, min_similarity: Number(state.least || alikeFrom) } : { radius: state.radius }) };
  const text = await (await send("POST", at(state, ":groups"), query, { signal })).text();
  const found = text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  const wrong = found.find((line) => line.error);
  if (wrong) throw new Error(wrong.error.detail);
  const shown = found.flatMap((g) => g.items.slice(0, most).map((x) => x.key));
  const items = new Map((await cardsOf(state, shown, false, signal)).map((card) => [card.key, card]));
  return found.map((g, i) => ({ number: groups.length + i + 1, cursor: g.cursor, size: g.items.length,
    entries: g.items.slice(0, most).map((x) => ({ key: x.key, item: items.get(x.key), distance: x.distance < 0 ? null : x.distance, score: null, similarity: x.similarity ?? null })) }));
}

// add shows further groups.
function add(page, list, next, bar, found) {
  page.groups.push(...found);
  for (const g of found) list.append(group(page, g, bar));
  next.hidden = found.length < together;
  next.disabled = false;
  going(page, bar);
}

function group(page, { number, size, entries }, bar) {
  const { state, ask, database, collection, kept } = page;
  const ul = h("ul", { class: "cards", "aria-label": `Group ${number}` });
  cards(ul, entries, {
    code: entries[0].item?.code, state,
    href: (e) => address({ ...state, ...from(state, e.key) }),
    onask: (e) => ask(from(state, e.key)),
  });
  if (mayChange(database, collection)) {
    for (const [i, li] of [...ul.children].entries()) {
      const { key, item } = entries[i];
      const choose = (keep) => kept.set(JSON.stringify([number, key]), { key, item, keep });
      choose(i === 0);
      const box = h("input", { type: "checkbox", checked: i === 0, "aria-label": `Keep ${title(item, key)}` });
      box.onchange = () => {
        choose(box.checked);
        li.classList.toggle("going", !box.checked);
        going(page, bar);
      };
      li.classList.toggle("going", i > 0);
      li.append(h("label", { class: "check keep" }, box, h("span", {}, "Keep")));
    }
  }
  return h("section", { "aria-label": `Group ${number}` }, h("h2", {}, plural(size, "item", "items"), size > most && `, the first ${most} of them`), ul);
}

// going says how many items are not to be kept, and deletes them. An item may have come into a second group
// while the first one was shown: it is kept if it is to be kept in one of them.
function going(page, bar) {
  const all = [...page.kept.values()];
  const stay = new Set(all.filter((x) => x.keep).map((x) => x.key));
  const go = new Map(all.filter((x) => !stay.has(x.key)).map((x) => [x.key, x.item]));
  const keys = [...go.keys()];
  const shown = page.groups.length ? `${plural(page.groups.length, "group", "groups")} shown` : "No two items are alike.";
  const named = keys.length === 1 ? keys[0] : `${count(keys.length)} items`;
  bar.replaceChildren(h("p", {}, shown), keys.length > 0 && h("button", { type: "button", class: "button", onclick: () => remove(page, keys, named, go) }, `Delete ${plural(keys.length, "item", "items")}`) || "");
  $("status").textContent = shown;
}
