import type { UsageBreakdown } from '../../gateway-api/user-api.ts';
import { DEFAULT_PRICE } from '../../models/price.ts';
import { dollars } from '../run/model-usage.ts';
import { table } from '../table.ts';
import { type CliIo, writeJsonLine } from '../io.ts';

export type BreakdownOutput = 'text' | 'wide' | 'json';

/** Prints usage by agent, team, root message, model or day, and names the models whose price is not known. */
export function printBreakdown(
  { by, since, rows, complete }: UsageBreakdown,
  output: BreakdownOutput,
  io: CliIo,
): void {
  if (output === 'json') {
    for (const row of rows) writeJsonLine(io, { by, since, ...row, unpriced: [...row.unpriced] });
    return;
  }
  if (rows.length === 0) {
    io.out(`No usage since ${since}.\n`);
    return;
  }
  const isWide = output === 'wide';
  const count = (value: number): string => value.toLocaleString('en-US');
  const headings = [
    by.toUpperCase(),
    'CALLS',
    'INPUT-TOKENS',
    'OUTPUT-TOKENS',
    'COST',
    ...(isWide ? ['UNPRICED'] : []),
  ];
  const cells = rows.map(({ name, calls, inputTokens, outputTokens, costMicros, unpriced }) => [
    name,
    ...[calls, inputTokens, outputTokens].map(count),
    `${dollars(costMicros)}${unpriced.length > 0 ? '*' : ''}`,
    ...(isWide ? [unpriced.join(', ') || '-'] : []),
  ]);
  io.out(table(headings, cells));
  if (rows.some(({ unpriced }) => unpriced.length > 0)) io.out(unpricedNote());
  if (!complete) io.out(`Only the first ${rows.length} rows.\n`);
}

function unpricedNote(): string {
  const { inputPrice, outputPrice } = DEFAULT_PRICE;
  return `* with models without a configured price: $${inputPrice} per million input tokens, $${outputPrice} output; -o wide names them.\n`;
}
