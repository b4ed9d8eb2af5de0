// What the page knows of the database: its collections, and what the token may do.

import { at, base, get } from "./api.js";

const near = 8; // bits within which items are alike, where no hash says it
const mostLabels = 10_000; // that the page reads

// open asks for the databases of the server and the figures of one: {names, name, version, scope, collections}.
export async function open(name) {
  const server = await get("/v1");
  const chosen = name || server.databases[0];
  if (!chosen) throw new Error("The server has no databases for this token.");
  const database = { names: server.databases, name: chosen, version: server.version, scope: server.scope };
  await refresh(database);
  return database;
}

// refresh asks for the figures again. What is known of collections beyond them stays.
export async function refresh(database) {
  const before = new Map((database.collections ?? []).map((c) => [c.name, c]));
  const figures = await get(base({ database: database.name }));
  database.figures = figures;
  database.collections = figures.collections.map((c) => {
    const known = before.get(c.name);
    // Else a training has made another space, or an item has brought a label.
    const same = known?.space === c.space && known?.spaces.length === c.spaces && known?.labels === c.labels;
    return { ...c, modalities: c.modalities ?? [], fields: c.fields ?? [], loaded: same && known.loaded,
      encoders: known?.encoders ?? [], pictures: known?.pictures ?? [], hashed: known?.hashed ?? "", near: known?.near ?? near, spaces: known?.spaces ?? [], names: known?.names ?? new Set() };
  });
}

// load asks for what the form needs to know of a collection.
export async function load(database, collection) {
  const of = { database: database.name, collection: collection.name };
  const [{ texts, files, hashed, near: advised }, { spaces }] = await Promise.all([get(at(of)), get(at(of, "/spaces"))]);
  Object.assign(collection, { encoders: texts ?? [], pictures: files ?? [], hashed: hashed ?? "", near: advised ?? near, spaces, names: new Set() });
  if (searchesLabels(collection) && collection.labels <= mostLabels) collection.names = new Set((await get(at(of, "/labels"))).labels);
  collection.loaded = true;
}

// Words are read by an encoder or a hash, are found in the texts of fields, or are labels that a model has learned.
export const readsWords = (collection) => collection.hashed === "text" || collection.encoders.length > 0;

export const findsWords = (collection) => collection.fields.some((f) => f.words);

export const knowsLabels = (collection) => collection.trained && collection.modalities.length > 0 && collection.labels > 0;

// searchesLabels reports whether the server makes a code of labels that somebody types.
export const searchesLabels = (collection) => !readsWords(collection) && knowsLabels(collection);

// takesWords and takesPictures say what the page can ask by.
export const takesWords = (collection) => readsWords(collection) || findsWords(collection) || knowsLabels(collection);

export const takesPictures = (collection) => collection.hashed === "file" || collection.pictures.length > 0;

export const collectionOf = (database, state) => database.collections.find((c) => c.name === state.collection);

export const spaceOf = (collection, state) =>
  collection?.spaces.find((s) => String(s.space) === state.space) ?? collection?.spaces.find((s) => s.space === collection.space);

// mayChange and mayTrain say what this sender may do, and what this collection takes. A copy of an index is never
// changed, and items that bring codes teach nothing.
export const mayChange = (database, collection) => ["write", "admin"].includes(database.scope) && !collection?.index_only;

export const mayTrain = (database, collection) => mayChange(database, collection) && collection.modalities.length > 0;
