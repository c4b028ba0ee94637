import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** One region's revenue in cents, before and after. */
export interface RegionChange {
  region: string;
  before: number;
  after: number;
}

const QUARTERS = { before: ['04', '05', '06'], after: ['07', '08', '09'] } as const;

/**
 * The answer of the quick start, worked out without any of the agent's code: a scanner over the raw lines and sums in integer cents.
 * The region that fell most comes first.
 */
export async function independentAnswer(folder: string): Promise<RegionChange[]> {
  const sums = new Map<string, RegionChange>();
  for (const period of ['before', 'after'] as const) {
    for (const month of QUARTERS[period]) {
      for (const { region, cents } of await paidOrders(join(folder, `orders-2026-${month}.csv`))) {
        const sum = sums.get(region) ?? { region, before: 0, after: 0 };
        sum[period] += cents;
        sums.set(region, sum);
      }
    }
  }
  return [...sums.values()].sort((a, b) => a.after - a.before - (b.after - b.before));
}

/** How many orders of a file were paid, and what they are worth in cents. */
export async function independentMonth(file: string): Promise<{ orders: number; revenue: number }> {
  const paid = await paidOrders(file);
  return { orders: paid.length, revenue: paid.reduce((sum, { cents }) => sum + cents, 0) };
}

async function paidOrders(file: string): Promise<{ region: string; cents: number }[]> {
  const lines = (await readFile(file, 'utf8')).split('\n').slice(1);
  return lines.flatMap((line) => {
    const [, , region = '', , , quantity = '', price = '', status = ''] = splitLine(line);
    return status === 'paid' ? [{ region, cents: Number(quantity) * Number(price.replace('.', '')) }] : [];
  });
}

/** Splits at commas outside quotes; the data has no line breaks inside quotes. */
function splitLine(line: string): string[] {
  const parts = line.split('"');
  return parts
    .map((part, index) => (index % 2 === 0 ? part.replaceAll(',', '\u0000') : part))
    .join('')
    .split('\u0000');
}

/** `$1,234.50` from cents. */
export function dollars(cents: number): string {
  return `$${(cents / 100).toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}
