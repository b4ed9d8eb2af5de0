import pl from 'nodejs-polars'; // 0.x, with nodejs-polars-linux-x64-gnu
import * as duckdb from '@duckdb/node-api';
import * as arrow from 'apache-arrow';
import init, * as wasm from 'parquet-wasm/esm'; // arrow-rs
import fs from 'fs';

const rows = [...Array(12).keys()];
const key = rows.map(i => 'k' + i);
const labels = rows.map(i => i == 4 ? [] : ['l' + i % 3, 'x']);
const image = rows.map(i => i == 5 ? null : [.25 * i + 1, -i, .001]);
const year = rows.map(i => i % 5 == 0 ? null : i);

const c = await (await duckdb.DuckDBInstance.create(':memory:')).connect();
await c.run(`create table t as select 'k' || i as key,
  case when i = 4 then []::varchar[] else ['l' || (i % 3), 'x'] end as labels, encode('p' || i) as payload,
  case when i <> 5 then [(.25 * i + 1)::float, (-i)::float, .001::float] end as image,
  [(.25 * i + 1)::float, (-i)::float, .001::float]::float[3] as fixed,
  [i::integer, 300 - i::integer] as ints,
  {'i': [1::uinteger, (3 + i % 5)::uinteger], 'v': [1.5::float, i::float + 1]} as bag,
  case when i % 5 <> 0 then i::bigint end as year, i % 2 = 0 as even, i / 4.0::double as x, 'title ' || i as title
  from range(12) r(i)`);
for (const [codec, version] of [['snappy', 'v1'], ['zstd', 'v2'], ['brotli', 'v2'], ['lz4_raw', 'v1'], ['gzip', 'v1']])
  await c.run(`copy t to 'duckdb_${codec}.parquet' (format parquet, compression ${codec}, parquet_version ${version})`);

let df = pl.DataFrame({ key, labels, year: pl.Series('year', year, pl.Int64) });
df = df.withColumn(pl.Series('image', image, pl.List(pl.Float32)));
df.writeParquet('polars.parquet', { compression: 'zstd' });

await init({ module_or_path: fs.readFileSync(new URL(import.meta.resolve('parquet-wasm/esm/parquet_wasm_bg.wasm'))) });
const column = (values, type) => {
  const b = arrow.makeBuilder({ type, nullValues: [null] });
  values.forEach(v => b.append(v));
  return b.finish().toVector();
};
const item = type => new arrow.Field('item', type, true);
const table = new arrow.Table({
  key: column(key, new arrow.Utf8()),
  labels: column(labels, new arrow.List(item(new arrow.Utf8()))),
  image: column(image, new arrow.List(item(new arrow.Float32()))),
  fixed: column(image, new arrow.FixedSizeList(3, item(new arrow.Float32()))),
  half: column(rows.map(i => [.5 * i, -i]), new arrow.List(item(new arrow.Float16()))),
  year: column(year.map(y => y === null ? null : BigInt(y)), new arrow.Int64()),
});
for (const [codec, version] of [['SNAPPY', 'V1'], ['ZSTD', 'V2'], ['UNCOMPRESSED', 'V2']])
  fs.writeFileSync(`arrowrs_${codec.toLowerCase()}.parquet`, wasm.writeParquet(wasm.Table.fromIPCStream(arrow.tableToIPC(table, 'stream')),
    new wasm.WriterPropertiesBuilder().setCompression(wasm.Compression[codec]).setWriterVersion(wasm.WriterVersion[version])
      .setMaxRowGroupSize(5).build()));
