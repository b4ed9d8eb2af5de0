// The form at the side: it shows a state, and tells of what is changed in it.

import { at, get } from "./api.js";
import { collectionOf, findsWords, readsWords, searchesLabels, spaceOf, takesPictures, takesWords } from "./database.js";
import { $, h } from "./dom.js";
import { file, openPicture, openVectors } from "./files.js";
import { asked, directed, named, similar } from "./state.js";

const wait = 200; // ms after the last letter before words are searched for

// orders say what comes first. Codes are compared in all but those that name something else.
const orders = {
  auto: "The fewest bits apart; among items with the same code those most like the query, by vectors where the collection is small.",
  projection: "The fewest bits apart; among items with the same code the one whose projection is most like that of the query.",
  none: "The fewest bits apart; items with the same code come by age.",
  asymmetric: "The best score: how well the projection of the query agrees with the code, whatever the distance.",
};

// orderOf says what comes first in the answer to a query.
function orderOf(query, collection, state) {
  if (query.words) return query.text ? "Items near the top of two lists come first: by words, and by vectors or codes." : "Items with more and with rarer of the words come first.";
  if (!collection.modalities.length) return orders.none; // there is nothing else to compare
  return collection.trained || state.rerank !== "auto" ? orders[state.rerank] ?? "" : "The nearest vectors, as nothing is learned.";
}

// complete sets what a state leaves open, and mends what the database does not have.
export function complete(database, state) {
  const collection = collectionOf(database, state) ?? database.collections.find((c) => c.name === "main") ?? database.collections[0];
  if (!collection) return state;
  state.collection = collection.name;
  state.trained = collection.trained;
  [state.reads, state.indexed] = [readsWords(collection), findsWords(collection)];
  [state.labels, state.labelled] = [collection.names, searchesLabels(collection)];
  if (!collection.spaces.some((s) => String(s.space) === state.space)) state.space = "";
  const names = collection.modalities.map((m) => m.name);
  const { encoders, pictures } = collection;
  if (state.radius === "") state.radius = collection.near;
  state.by ||= takesWords(collection) ? "text" : "key";
  if (!names.includes(state.from)) state.from = state.directed || !names.length ? "" : encoders[0] ?? names[0];
  if (!names.includes(state.to)) state.to = state.directed || names.length < 2 ? "" : names.find((n) => n !== state.from) ?? names[0];
  if (state.by === "text" && encoders.length && !encoders.includes(state.from)) state.from = encoders[0] ?? state.from;
  if (state.by === "picture" && !pictures.includes(state.from)) state.from = pictures[0] ?? state.from;
  if (!spaceOf(collection, state) && names.length) state.within = false; // nothing is so many bits away
  state.directed = true;
  return state;
}

// connect calls change(changes, how) when anything is changed: how is "move" while a slider
// moves, "type" while words are typed, else "go". current returns the state.
export function connect(change, database, current) {
  const form = $("form");
  let typing = 0;
  const value = (id, how = "go") => change({ [id]: $(id).value }, how);
  for (const id of ["from", "to", "rerank", "code", "key", "where"]) $(id).addEventListener("change", () => value(id));
  $("collection").addEventListener("change", () =>
    change({ collection: $("collection").value, space: "", from: "", to: "", key: "", code: "", where: "", radius: "", directed: false }, "go"));
  $("databases").addEventListener("change", () => (location.href = `/?${new URLSearchParams({ database: $("databases").value })}`));
  $("space").addEventListener("change", () => value("space"));
  // Of labels alone the first letters find nothing.
  const unfinished = () => current().labelled && !current().indexed && !named(current(), $("text").value.trim());
  $("text").addEventListener("input", () => {
    clearTimeout(typing);
    if (!unfinished()) typing = setTimeout(() => value("text", "type"), wait);
  });
  $("min-similarity").addEventListener("input", () => $("min-similarity").validity.valid && value("min-similarity", "type"));
  $("k").addEventListener("input", () => change({ k: Number($("k").value) }, "move"));
  $("radius").addEventListener("input", () => change({ radius: Number($("radius").value), within: true }, "move"));
  $("within").addEventListener("change", () => change({ within: $("within").checked }, "go"));
  $("explain").addEventListener("change", () => change({ explain: $("explain").checked }, "go"));
  $("row").addEventListener("input", () => $("row").validity.valid && change({ row: Number($("row").value) }, "move"));
  $("swap").addEventListener("click", () => change({ from: current().to, to: current().from }, "go"));
  for (const radio of form.elements.by) radio.addEventListener("change", () => change({ by: radio.value }, "go"));
  for (const id of ["text", "key", "code", "where"]) $(id).addEventListener("search", () => submit(id));
  const submit = (id) => {
    clearTimeout(typing);
    if (current()[id] !== $(id).value) value(id);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const by = current().by;
    if ($(by)?.type === "search") submit(by);
    submit("where");
  });
  const take = async (chosen, by) => {
    if (!chosen) return;
    if (current().view !== "search") await change({ view: "search" }, "go");
    mode(by);
    const collection = collectionOf(database, current());
    if (by === "picture" && !(collection && takesPictures(collection))) return;
    const { pictures } = collection ?? {};
    const from = pictures?.includes(current().from) ? current().from : pictures?.[0];
    read(change, chosen, by, current(), from);
  };
  for (const [id, by] of [["file", "row"], ["picture", "picture"]]) {
    $(id).addEventListener("change", () => {
      take($(id).files[0], by);
      $(id).value = ""; // the same one may be sent again
    });
  }
  // A file may be dropped anywhere: the browser would leave the page for it.
  document.addEventListener("dragover", (event) => event.dataTransfer.types.includes("Files") && event.preventDefault());
  document.addEventListener("drop", (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    if (document.querySelector("dialog[open]")) return;
    const dropped = event.dataTransfer.files[0];
    take(dropped, /\.(npy|csv)$/i.test(dropped?.name) ? "row" : "picture");
  });
  for (const id of ["where", "text"]) $(id).addEventListener("focus", () => offerLabels(current()));
  document.addEventListener("keydown", (event) => {
    const writing = event.target.closest("input:not([type=range],[type=checkbox],[type=radio]), select, textarea");
    if (event.key !== "/" || writing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const { by, upload } = current();
    $(by !== "row" ? by : upload ? "row" : "file").focus();
  });
  const narrow = matchMedia("(max-width: 820px)");
  const fold = () => ($("rest").open = !narrow.matches || $("where").value !== "");
  narrow.addEventListener("change", fold);
  fold();
}

const largest = 32; // MiB of a picture

// read takes in a file, and searches by it.
async function read(change, chosen, by, state, from) {
  tell(by, `Reading ${chosen.name} …`);
  try {
    if (by === "row") {
      const upload = await openVectors(chosen);
      $("row").max = file(upload).rows - 1;
      await change({ view: "search", by, upload, row: 0 }, "go");
      return;
    }
    if (chosen.size > largest * 2 ** 20) throw new Error(`at most ${largest} MiB can be sent`);
    await change({ view: "search", by, picture: await openPicture(chosen, state, from) }, "go");
  } catch (error) {
    tell(by, error.message.includes(chosen.name) ? error.message : `${chosen.name}: ${error.message}`, true);
    $("status").textContent = error.message;
  }
}

// tell writes on the button for a file.
function tell(by, text, wrong = false) {
  const name = $(by === "row" ? "fileName" : "pictureName");
  name.textContent = text;
  name.classList.toggle("wrong", wrong);
}

// mode shows what is asked by.
function mode(by) {
  $("form").elements.by.value = by;
  $("ask").dataset.mode = by;
}

let labelsOf = "";

// offerLabels lists labels for the filter, once somebody is about to write one.
async function offerLabels(state) {
  const of = `${state.collection} ${state.labels.size}`;
  if (labelsOf === of) return;
  labelsOf = of;
  try {
    const labels = state.labels.size ? [...state.labels] : (await get(at(state, "/labels"))).labels;
    const offered = labels.slice(0, 200);
    $("labels").replaceChildren(...offered.map((l) => h("option", { value: `label = '${l.replaceAll("'", "''")}'` })));
    $("words").replaceChildren(...(state.labelled ? offered : []).map((value) => h("option", { value })));
  } catch {
    labelsOf = ""; // it is an offer
  }
}

function options(id, list, chosen) {
  const key = JSON.stringify(list);
  if ($(id).dataset.list !== key) {
    $(id).replaceChildren(...list.map(([value, text]) => h("option", { value }, text)));
    $(id).dataset.list = key;
  }
  $(id).value = chosen;
}

function slide(id, value, most) {
  const slider = $(id);
  slider.max = most;
  slider.value = value;
  slider.style.setProperty("--full", `${(100 * (slider.value - slider.min)) / (slider.max - slider.min)}%`);
}

// show makes the form that of a state; anew: also what somebody is writing.
export function show(database, state, anew) {
  const collection = collectionOf(database, state);
  $("layout").classList.toggle("wide", state.view !== "search");
  options("databases", database.names.map((n) => [n, n]), database.name);
  $("databasePair").hidden = database.names.length < 2;
  if (!collection) return;
  const space = spaceOf(collection, state);
  const names = collection.modalities.map((m) => m.name);
  const { encoders, pictures } = collection;
  options("collection", database.collections.map((c) => [c.name, c.name]), state.collection);
  $("collectionPair").hidden = database.collections.length < 2;
  const usable = collection.spaces.filter((s) => s.state !== "building");
  options("space", [["", collection.space ? `active (${collection.space})` : "none"], ...usable.map((s) => [String(s.space), `${s.space}: ${s.bits} bits, ${s.state}`])], state.space);
  $("spacePair").hidden = usable.length < 2;
  mode(state.by);
  const [words, files] = [takesWords(collection), takesPictures(collection)];
  const asks = { text: words, picture: files };
  // Items that bring codes have no vectors, so no program would help.
  for (const radio of $("form").elements.by) radio.parentElement.hidden = !names.length && asks[radio.value] === false;
  $("noEncoder").hidden = words;
  $("noPictureEncoder").hidden = files;
  $("picture").parentElement.hidden = !files;
  $("text").disabled = !words;
  for (const id of ["text", "key", "code", "where"]) if (anew || document.activeElement !== $(id) || !$(id).value) $(id).value = state[id];
  $("text").placeholder = state.labelled ? (state.indexed ? "Words or labels to search for" : "Labels to search for") : "Words to search for";
  $("direction").hidden = names.length < 2 && (state.by !== "row" || !names.length); // rows may be codes
  const makers = { text: state.reads && encoders, picture: pictures }[state.by];
  options("from", makers ? makers.map((n) => [n, n]) : [...names.map((n) => [n, n]), ["", { row: "codes", text: "words" }[state.by] ?? "its code"]], directed(state) ? state.from : "");
  $("from").disabled = $("swap").disabled = !directed(state);
  options("to", [...names.map((n) => [n, n]), ["", "anything"]], state.to);
  $("rowPair").hidden = !state.upload;
  if (document.activeElement !== $("row")) $("row").value = state.row;
  tell("row", file(state.upload)?.name ?? "Choose a .npy or .csv of vectors, or drop one here");
  tell("picture", file(state.picture)?.name ?? "Choose a picture, or drop one here");
  slide("k", state.k, Math.max(100, state.k));
  $("kValue").textContent = state.k;
  const bits = space?.bits ?? 64;
  slide("radius", state.radius, bits);
  $("within").checked = state.within;
  $("radiusValue").textContent = state.within ? `${state.radius} of ${bits} bits` : "any distance";
  $("radius").parentElement.hidden = !space && names.length > 0; // without codes nothing is so many bits away
  $("radius").parentElement.classList.toggle("off", !state.within);
  const query = asked(state);
  // Of nothing, and of words alone, there are no distances.
  $("radius").parentElement.classList.toggle("unasked", Object.keys(query).every((name) => name === "words"));
  $("radius").setAttribute("aria-valuetext", `${state.radius} bits${state.within ? "" : ", not in use"}`);
  options("rerank", Object.keys(orders).map((name) => [name, name]), state.rerank);
  $("orderHint").textContent = orderOf(query, collection, state);
  const by = !collection.trained && collection.modalities.find((m) => m.name === state.from)?.metric;
  $("min-similarity").min = by === "dot" ? "" : "-1"; // inner products have no bounds
  $("min-similarity").max = by === "dot" ? "" : "1";
  if (anew || document.activeElement !== $("min-similarity")) $("min-similarity").value = state["min-similarity"];
  $("min-similarity").disabled = similar({ ...state, "min-similarity": "any" }) === "";
  $("explain").checked = state.explain;
}
