import { isJsonObject, type Json, member, textAt } from '../../lib/json.ts';
import { type CliIo, writeJsonLine } from '../io.ts';
import { formatAge, formatCell, table } from '../table.ts';

export type EventsOutput = 'text' | 'json';

/** Prints events of a namespace with what they caused. `place`: where there are none. */
export function printEvents(all: readonly Json[], place: string, output: EventsOutput, io: CliIo): void {
  const found = all.filter(isJsonObject);
  if (output === 'json') {
    for (const event of found) writeJsonLine(io, event);
    return;
  }
  if (found.length === 0) {
    io.out(`No events in ${place}.\n`);
    return;
  }
  const now = new Date();
  const rows = found.map((event) => [
    textAt(event, ['subject']),
    textAt(event, ['source']),
    textAt(event, ['agent']),
    formatCell(member(event, 'messages')),
    formatCell(member(event, 'refused')),
    formatAge(textAt(event, ['time']), now),
    textAt(event, ['excerpt']).slice(0, 60),
  ]);
  io.out(table(['SUBJECT', 'SOURCE', 'AGENT', 'MESSAGES', 'REFUSED', 'AGE', 'DATA'], rows));
}
