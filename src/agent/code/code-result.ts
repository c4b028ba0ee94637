import type { ErrorCode } from '../../lib/error-codes.ts';
import type { Json } from '../../lib/json.ts';
import type { RunOutcome } from '../../sandbox/session-port.ts';
import { truncate } from '../history/tool-result-text.ts';
import type { StoredMemory } from './stored-memory.ts';

/** What the model gets for one run of code. */
export interface CodeResult {
  value: Json | undefined;
  error: { code: ErrorCode; message: string } | undefined;
  log: string;
  /** Words of Temper about the run. */
  notes: readonly string[];
}

/** The result as text: the value or the error as JSON, then what the code printed, then the notes. */
export function codeResultText({ value, error, log, notes }: CodeResult, limit: number): string {
  const head = error === undefined ? JSON.stringify(value ?? null) : JSON.stringify({ error });
  const printed = log === '' ? '' : `\n[The code printed:]\n${log.trimEnd()}`;
  return [truncate(`${head}${printed}`, limit), ...notes.map((note) => `[${note}]`)].join('\n');
}

export interface RunNotes {
  outcome: RunOutcome;
  /** `memory` at the start of the run. */
  before: StoredMemory;
  /** The run started with the stored memory: functions and globals of earlier runs were lost. */
  isNew: boolean;
  notices: readonly string[];
  /** The calls with effects that the code made. */
  effects: string | undefined;
}

export function notesOn({ outcome, before, isNew, notices, effects }: RunNotes): string[] {
  const notes = notices.map((notice) => `LOOP GUARD: ${notice}`);
  if (!outcome.ok && effects !== undefined) notes.push(effects);
  if (outcome.isLogCut) notes.push('The code printed more than is shown.');
  if (outcome.unawaited > 0) {
    notes.push(
      `Calls that the code did not await: ${outcome.unawaited}. They ended before the code. Await every call.`,
    );
  }
  if (isNew && before.omitted.length > 0) {
    notes.push(
      `The runner of the session was started again. These members of memory were lost: ${before.omitted.join(', ')}.`,
    );
  }
  const { memory } = outcome;
  if (memory === undefined) {
    notes.push('The run ended the runner of the session. memory is as it was before the run, without functions.');
    return notes;
  }
  const known = new Set(before.omitted);
  const fresh = memory.omitted.filter(({ name }) => isNew || !known.has(name));
  if (fresh.length > 0) {
    const shown = fresh.map(({ name, reason }) => `${name} (${reason})`).join('; ');
    notes.push(`These members of memory are not JSON and are lost when the session moves: ${shown}.`);
  }
  return notes;
}
