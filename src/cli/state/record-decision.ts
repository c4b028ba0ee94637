import { resolve } from 'node:path';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { ulids } from '../../lib/ids.ts';
import { member } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { submitDecision } from '../../standalone/decision-files.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { matchesTool, listStateTools } from './state-tools.ts';
import { notFound } from './get.ts';

export interface RecordDecisionOptions {
  verb: 'Approve' | 'Deny' | 'Demote';
  target: string;
  reason: string;
  state: string;
  output: 'text' | 'json';
}

/** Writes a decision to the state folder. The process that has locked the folder applies it at once; without one, the next process does. */
export async function recordDecision(options: RecordDecisionOptions, io: CliIo): Promise<number> {
  const records = fileRecordStore(resolve(io.cwd, options.state));
  if (options.verb === 'Demote') await assertTool(records, options.target);
  else await assertWaiting(records, options.target);
  const decision = await submitDecision(records, options, { clock: systemClock, ids: ulids });
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
  const all = await listStateTools(records);
  if (!all.some((tool) => matchesTool(tool, target))) throw notFound('tools', target, all);
}
