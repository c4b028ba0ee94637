import { resolve } from 'node:path';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { fileRecords } from '../../lib/file-records.ts';
import { randomIds } from '../../lib/ids.ts';
import { member } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/records.ts';
import { submitDecision } from '../../standalone/decisions.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { isNamed, storedTools } from '../stored-tools.ts';
import { notFound } from './get.ts';

export interface DecideOptions {
  verb: 'Approve' | 'Deny' | 'Demote';
  target: string;
  reason: string;
  state: string;
  output: 'text' | 'json';
}

/** Writes a decision to the state folder. The process that has locked the folder applies it at once; without one, the next process does. */
export async function decide(options: DecideOptions, io: CliIo): Promise<number> {
  const records = fileRecords(resolve(io.cwd, options.state));
  if (options.verb === 'Demote') await assertTool(records, options.target);
  else await assertWaiting(records, options.target);
  const decision = await submitDecision(records, options, { clock: systemClock, ids: randomIds });
  if (options.output === 'json') writeJsonLine(io, { ...decision });
  else io.out(`${options.verb.toLowerCase()} ${options.target}: recorded by ${decision.by} in ${options.state}\n`);
  return EXIT.ok;
}

async function assertWaiting(records: RecordStore, name: string): Promise<void> {
  const all = await records.list('approvalrequests');
  const request = all.find((record) => record.name === name);
  if (request === undefined) throw notFound('approvalrequests', name, all);
  const decision = member(member(request.value, 'status'), 'decision');
  if (typeof decision !== 'string') return;
  throw new TemperError(
    'TEMPER_USAGE',
    `approvalrequest "${name}" is already decided: ${decision}; a decision is final`,
  );
}

async function assertTool(records: RecordStore, target: string): Promise<void> {
  const all = await storedTools(records);
  if (!all.some((tool) => isNamed(tool, target))) throw notFound('tools', target, all);
}
