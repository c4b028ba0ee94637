import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Makes the CSV files of the quick start: six months of orders, from a seeded generator, so that anyone can make them again.
 * They look like real exports: quoted fields with commas and quotes in them, money with two decimals, cancelled orders.
 */

const REGIONS = ['North', 'South', 'East', 'West', 'Central'];
const CUSTOMERS = [
  'Acme, Inc.',
  'Blue "Sky" Ltd',
  'Cobalt GmbH',
  'Dune & Sons',
  'Évora SA',
  'Fjord AS',
  'Granite LLC',
  'Harbor, Co.',
];
const PRODUCTS = [
  { name: 'anvil', cents: 12_950 },
  { name: 'bellows', cents: 8_499 },
  { name: 'chisel', cents: 1_925 },
  { name: 'file set', cents: 3_310 },
  { name: 'hammer, 2 lb', cents: 2_480 },
  { name: 'tongs', cents: 4_175 },
];
/** Quarter → region → how busy it is. West loses the most in the third quarter, Central a little. */
const WEIGHTS = { q2: [20, 22, 24, 26, 14], q3: [24, 27, 27, 18, 13] } as const;
const MONTHS = [
  { month: 4, rows: 391, weights: WEIGHTS.q2 },
  { month: 5, rows: 402, weights: WEIGHTS.q2 },
  { month: 6, rows: 411, weights: WEIGHTS.q2 },
  { month: 7, rows: 447, weights: WEIGHTS.q3 },
  { month: 8, rows: 455, weights: WEIGHTS.q3 },
  { month: 9, rows: 475, weights: WEIGHTS.q3 },
] as const;

/** A small generator of numbers in [0, 1): mulberry32. */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function pick<T>(values: readonly T[], at: number): T {
  return values[Math.min(values.length - 1, Math.floor(at * values.length))] as T;
}

function pickWeighted<T>(values: readonly T[], weights: readonly number[], at: number): T {
  let rest = at * weights.reduce((sum, weight) => sum + weight, 0);
  for (const [index, weight] of weights.entries()) {
    rest -= weight;
    if (rest < 0) return values[index] as T;
  }
  return values.at(-1) as T;
}

function csvField(text: string): string {
  return text.includes(',') || text.includes('"') ? `"${text.replaceAll('"', '""')}"` : text;
}

function monthOf({ month, rows, weights }: (typeof MONTHS)[number]): string {
  const random = generator(20_260_000 + month);
  const days = new Date(Date.UTC(2026, month, 0)).getUTCDate();
  const lines = ['order_id,date,region,customer,product,quantity,unit_price,status'];
  for (let row = 0; row < rows; row += 1) {
    const day = 1 + Math.floor((row / rows) * days);
    const product = pick(PRODUCTS, random());
    const fields = [
      `${month}-${String(row + 1).padStart(4, '0')}`,
      new Date(Date.UTC(2026, month - 1, day)).toISOString().slice(0, 10),
      pickWeighted(REGIONS, weights, random()),
      pick(CUSTOMERS, random()),
      product.name,
      String(1 + Math.floor(random() * 6)),
      (product.cents / 100).toFixed(2),
      random() < 0.06 ? 'cancelled' : 'paid',
    ];
    lines.push(fields.map(csvField).join(','));
  }
  return `${lines.join('\n')}\n`;
}

/** Writes `orders-2026-04.csv` to `orders-2026-09.csv` below `folder`. */
export async function writeOrders(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const month of MONTHS) await writeFile(join(folder, `orders-2026-0${month.month}.csv`), monthOf(month));
}

if (import.meta.main) await writeOrders(join(import.meta.dirname, 'data'));
