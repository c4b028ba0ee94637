import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import { isJsonObject, member, textAt } from '../../../lib/json.ts';
import { ulids } from '../../../lib/ids.ts';
import { openCluster } from '../cluster.ts';
import type { ClusterOptions } from '../options.ts';
import { GatewayUserClient } from '../gateway-user-client.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import { formatAge, formatCell, table } from '../../table.ts';

export interface DeadLettersOptions extends ClusterOptions {
  /** `retry` or `drop`; lists dead letters when absent. */
  action?: string | undefined;
  id?: string | undefined;
  output: 'text' | 'json';
}

/** Lists dead letters, or sends one again, or drops one. */
export async function deadLetters(options: DeadLettersOptions, io: CliIo): Promise<number> {
  const { action, id } = options;
  if (action !== undefined && action !== 'retry' && action !== 'drop') {
    throw new TemperError(
      'TEMPER_USAGE',
      `"${printable(action, 40)}" is not an action on dead letters; known: retry, drop`,
    );
  }
  if (action !== undefined && id === undefined)
    throw new TemperError('TEMPER_USAGE', `${action} needs the id of a dead letter`);
  await using cluster = await openCluster(options, io);
  const gateway = new GatewayUserClient(cluster, io.signal);
  if (action === undefined || id === undefined) return await list(gateway, cluster.location, options, io);
  const path = `deadletters/${encodeURIComponent(id)}`;
  const idempotencyKey = ulids.next('cli');
  if (action === 'retry') await gateway.call({ method: 'POST', path: `${path}/retry`, idempotencyKey });
  else await gateway.call({ method: 'DELETE', path, idempotencyKey });
  const done = action === 'retry' ? 'sent again' : 'dropped';
  if (options.output === 'json') writeJsonLine(io, { id, done, location: cluster.location });
  else io.out(`deadletter/${printable(id, 128)} ${done} in ${cluster.location}\n`);
  return EXIT.ok;
}

async function list(
  gateway: GatewayUserClient,
  location: string,
  { output }: DeadLettersOptions,
  io: CliIo,
): Promise<number> {
  const response = await gateway.call({ method: 'GET', path: 'deadletters' });
  const letters = (Array.isArray(response) ? response : []).filter(isJsonObject);
  if (output === 'json') {
    for (const letter of letters) writeJsonLine(io, letter);
    return EXIT.ok;
  }
  if (letters.length === 0) {
    io.out(`No dead letters in ${location}.\n`);
    return EXIT.ok;
  }
  const now = new Date();
  const rows = letters.map((letter) => [
    textAt(letter, ['id']),
    textAt(letter, ['agent']),
    formatCell(member(letter, 'deliveries')),
    textAt(letter, ['code']),
    formatAge(textAt(letter, ['time']), now),
    textAt(letter, ['excerpt']).slice(0, 60),
  ]);
  io.out(table(['ID', 'AGENT', 'DELIVERIES', 'CODE', 'AGE', 'TEXT'], rows));
  return EXIT.ok;
}
