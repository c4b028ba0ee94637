import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { type CliIo, writeJsonLine } from '../io.ts';
import { table } from '../table.ts';
import { type LifeEvent, type LifeRecord, toolLife } from './tool-life.ts';

/** Prints the life of one tool from the records of a chain. Throws TEMPER_NOT_FOUND when it has none. */
export function showToolLife(records: readonly LifeRecord[], tool: string, output: 'text' | 'json', io: CliIo): void {
  const life = toolLife(records, tool);
  if (life.length === 0)
    throw new TemperError(
      'TEMPER_NOT_FOUND',
      `the chain has no record of a tool "${printable(tool, 80)}"; give its name or its whole digest`,
    );
  if (output === 'json') for (const event of life) writeJsonLine(io, { ...event });
  else io.out(table(['SEQ', 'TIME', 'ACTION', 'ACTOR', 'DIGEST', 'WHAT'], life.map(rowOf)));
}

function rowOf({ from, to, time, action, actor, digest, text }: LifeEvent): string[] {
  const place = from === to ? String(from) : `${from}-${to}`;
  return [place, time, action, actor, digest.replace('sha256:', '').slice(0, 12), text];
}
