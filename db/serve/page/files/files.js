// Files that somebody has chosen: pictures, whose vectors or codes the server makes, and files of vectors, of which the
// browser reads the row that is asked for.

import { at, post } from "./api.js";

const kept = new Map(); // by id
let last = 0;

export const file = (id) => kept.get(id);

function keep(entry) {
  kept.set(String(++last), entry);
  if (kept.size > 8) {
    const [oldest, entry] = kept.entries().next().value;
    if (entry.url) URL.revokeObjectURL(entry.url);
    kept.delete(oldest);
  }
  return String(last);
}

export function base64(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(text);
}

const packed = (numbers) => base64(new Uint8Array(Float32Array.from(numbers).buffer));

// openPicture has the server make of a picture what finds others: its vector, or its code.
export async function openPicture(chosen, state, from) {
  const bytes = new Uint8Array(await chosen.arrayBuffer());
  const { vector, code } = await post(at({ ...state, space: "" }, ":embed"), { from, file: base64(bytes) });
  return keep({ name: chosen.name, asks: { vector, code }, from, url: URL.createObjectURL(chosen), drawn: () => drawn(chosen) });
}

// drawn returns what import --pictures stores of a picture: a JPEG of at most 256 pixels a side, as base64, and
// fields. What the browser cannot draw has only bytes.
async function drawn(chosen) {
  const fields = { bytes: chosen.size };
  const image = await createImageBitmap(chosen).catch(() => null);
  if (!image) return { fields };
  const scale = Math.min(1, 256 / Math.max(image.width, image.height));
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height].map((n) => Math.max(1, Math.round(n * scale)));
  const drawing = canvas.getContext("2d");
  drawing.fillStyle = "white"; // behind what is transparent
  drawing.fillRect(0, 0, canvas.width, canvas.height);
  drawing.drawImage(image, 0, 0, canvas.width, canvas.height);
  const payload = canvas.toDataURL("image/jpeg", 0.8).split(",")[1];
  return { payload, fields: { ...fields, width: image.width, height: image.height } };
}

const types = { f8: ["getFloat64", 8], f4: ["getFloat32", 4], i8: ["getBigInt64", 8], i4: ["getInt32", 4], i2: ["getInt16", 2], i1: ["getInt8", 1], u1: ["getUint8", 1] };

// openVectors reads the head of a .npy, or the rows of a .csv.
export async function openVectors(chosen) {
  if (/\.npy$/i.test(chosen.name)) return keep(await npy(chosen));
  if (!/\.csv$/i.test(chosen.name)) throw new Error(`${chosen.name} is no .npy and no .csv of vectors: fddhdb search reads others`);
  const lines = (await chosen.text()).split(/\r?\n/).filter(Boolean);
  const row = (i) => lines[i].split(",").map(Number);
  if (lines.length && row(0).some(Number.isNaN)) lines.shift(); // names of columns
  if (!lines.length) throw new Error(`${chosen.name} has no rows`);
  return keep({ name: chosen.name, rows: lines.length, row: async (i) => {
    const x = row(i);
    if (x.some((v) => !Number.isFinite(v))) throw new Error(`row ${i} of ${chosen.name} is not all numbers`);
    return { vector: packed(x) };
  } });
}

async function npy(chosen) {
  const head = new DataView(await chosen.slice(0, 64 << 10).arrayBuffer());
  const bad = (why) => new Error(`${chosen.name}: ${why}`);
  if (head.byteLength < 12 || head.getUint32(0) !== 0x934e554d) throw bad("it is no .npy");
  const long = head.getUint8(6) > 1;
  const begin = long ? 12 : 10;
  const size = long ? head.getUint32(8, true) : head.getUint16(8, true);
  const text = new TextDecoder("latin1").decode(new Uint8Array(head.buffer, begin, Math.min(size, head.byteLength - begin)));
  const [, kind] = /'descr':\s*'[<|]([fiu]\d)'/.exec(text) ?? [];
  const [, shape] = /'shape':\s*\(\s*(\d+\s*,\s*\d+)\s*,?\s*\)/.exec(text) ?? [];
  if (!types[kind]) throw bad("numbers of 4 or 8 bytes, or whole numbers, little endian, are read here");
  if (!shape) throw bad("a matrix is expected, a vector a row");
  if (/'fortran_order':\s*True/.test(text)) throw bad("its numbers are stored column by column: numpy.ascontiguousarray stores rows");
  const [rows, cols] = shape.split(",").map(Number);
  const [read, wide] = types[kind];
  if (!rows || !cols || begin + size + rows * cols * wide > chosen.size) throw bad("it is empty, or cut off");
  return { name: chosen.name, rows, row: async (i, codes) => {
    const start = begin + size + i * cols * wide;
    const bytes = await chosen.slice(start, start + cols * wide).arrayBuffer();
    if (codes) {
      if (kind !== "u1") throw bad("codes are bytes: for a file of vectors, choose what they are from");
      return { code: [...new Uint8Array(bytes)].map((b) => b.toString(16).padStart(2, "0")).join("") };
    }
    const view = new DataView(bytes);
    return { vector: packed(Array.from({ length: cols }, (_, j) => Number(view[read](j * wide, true)))) };
  } };
}
