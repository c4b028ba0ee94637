import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { ulids } from '../../lib/ids.ts';
import { type Json, textAt } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { submitDecision } from '../../standalone/decision-files.ts';
import { isStateLocked } from '../../standalone/lock.ts';
import { privateFiles } from '../../standalone/trust/private-folder.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { matchesTool, listStateTools } from './state-tools.ts';
import { notFound } from './state-records.ts';
import { stateFolder } from './state-folder.ts';

export interface RecordDecisionOptions {
  verb: 'Approve' | 'Deny' | 'Demote' | 'Reactivate';
  target: string;
  reason: string;
  state: string;
  output: 'text' | 'json';
}

/**
 * Writes a decision to the state folder. The process that has locked the folder applies it at once; without one, the next process
 * does before it handles a message. Throws TEMPER_USAGE for a request that is decided, and TEMPER_APPROVAL_TIMEOUT for a call that
 * parked no turn and whose run has ended: nothing waits for that decision any more.
 */
export async function recordDecision(options: RecordDecisionOptions, io: CliIo): Promise<number> {
  const folder = await stateFolder(io, options.state);
  // A decision in a folder that others may write to would not be this user's.
  privateFiles(folder);
  const records = fileRecordStore(folder);
  const isRunning = isStateLocked(folder);
  if (options.verb === 'Demote' || options.verb === 'Reactivate') await assertTool(records, options.target);
  else await assertUndecided(records, options.target, isRunning);
  const request = await records.get('approvalrequests', options.target);
  const session = textAt(request, ['spec', 'session']);
  // A run keeps the level that it starts with.
  const appliesNow = isRunning && textAt(request, ['spec', 'type']) !== 'RaiseTrust';
  const { target, verb, reason } = options;
  const decision = await submitDecision(records, { target, verb, reason }, { clock: systemClock, ids: ulids });
  if (options.output === 'json') writeJsonLine(io, { ...decision, applies: appliesNow ? 'now' : 'next run' });
  else {
    const next = `it applies when the next temper run starts${resumption(session)}`;
    const later = isRunning ? next : `no run uses this state folder now; ${next}`;
    const effect = appliesNow ? 'the running process applies it now' : later;
    io.out(
      `${verb.toLowerCase()} ${printable(target, 253)}: recorded by ${decision.by} in ${printable(options.state, 200)}; ${effect}\n`,
    );
  }
  return EXIT.ok;
}

/** A turn is resumed in its own session only. */
function resumption(session: string): string {
  return session === '' ? '' : `, and the call when one continues its session (temper run … --session ${session})`;
}

async function assertUndecided(records: RecordStore, name: string, isRunning: boolean): Promise<void> {
  const all = await records.list('approvalrequests');
  const request = all.find((record) => record.name === name);
  if (request === undefined) throw notFound('approvalrequests', name, all);
  const decision = textAt(request.value, ['status', 'decision']);
  const pending = await pendingDecision(records, name);
  const isResumable = isRunning || !isToolCall(request.value) || textAt(request.value, ['spec', 'session']) !== '';
  if (decision === 'Expired' || (decision === '' && !isResumable)) {
    throw new TemperError(
      'TEMPER_APPROVAL_TIMEOUT',
      `the run that requested "${printable(name, 253)}" has ended, so a decision has no effect; send the message again and decide while the run waits`,
    );
  }
  if (decision === '' && pending === undefined) return;
  const made = pending === undefined ? decision : `${pending}, which the process applies next`;
  throw new TemperError(
    'TEMPER_USAGE',
    `approvalrequest "${printable(name, 253)}" is already decided: ${printable(made, 120)}; a decision is final`,
  );
}

/** A decision about this request that no process has applied yet. */
async function pendingDecision(records: RecordStore, target: string): Promise<string | undefined> {
  const decisions = await records.list('decisions');
  const found = decisions.find(({ value }) => textAt(value, ['target']) === target);
  return found === undefined ? undefined : textAt(found.value, ['verb']);
}

function isToolCall(request: Json): boolean {
  return textAt(request, ['spec', 'type']) === 'ToolCall';
}

async function assertTool(records: RecordStore, target: string): Promise<void> {
  const all = await listStateTools(records);
  if (!all.some((tool) => matchesTool(tool, target))) throw notFound('tools', target, all);
}
