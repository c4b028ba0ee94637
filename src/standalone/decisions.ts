import { userInfo } from 'node:os';
import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import type { Ids } from '../lib/ids.ts';
import { isJsonObject, type Json, type JsonObject } from '../lib/json.ts';
import type { RecordStore } from '../lib/records.ts';

/**
 * What a person decided, on its way to the process that holds the state folder. A decision is one file in `decisions/`,
 * written whole by any terminal; the holder applies it and then removes it, so that a crash between the two repeats it harmlessly.
 */
export interface PersonDecision {
  id: string;
  verb: 'Approve' | 'Deny' | 'Demote';
  /** Name of the ApprovalRequest, or name or digest of the tool. */
  target: string;
  reason: string;
  by: string;
  /** RFC 3339. */
  time: string;
}

const COLLECTION = 'decisions';
const INVALID = 'decisions-invalid';

export async function submitDecision(
  records: RecordStore,
  decision: Omit<PersonDecision, 'id' | 'by' | 'time'>,
  deps: { clock: Clock; ids: Ids },
): Promise<PersonDecision> {
  const whole: PersonDecision = {
    ...decision,
    id: deps.ids.next('decision'),
    by: `person/${printable(userInfo().username, 64)}`,
    time: deps.clock.now().toISOString(),
  };
  await records.put(COLLECTION, whole.id, whole as unknown as JsonObject);
  return whole;
}

/** Applies what waits, oldest first. What is no decision is put aside in `decisions-invalid/`, told of, and holds up no other. */
export async function applyDecisions(
  records: RecordStore,
  apply: (decision: PersonDecision) => Promise<void>,
  onInvalid: (problem: TemperError) => void = () => undefined,
): Promise<void> {
  for (const { name, value } of await records.list(COLLECTION)) {
    const decision = parseDecision(name, value);
    if (decision === undefined) {
      await records.put(INVALID, name, value);
      onInvalid(invalid(name));
    } else await apply(decision);
    await records.delete(COLLECTION, name);
  }
}

function parseDecision(id: string, value: Json): PersonDecision | undefined {
  const { verb, target, reason, by, time } = isJsonObject(value) ? value : {};
  if (verb !== 'Approve' && verb !== 'Deny' && verb !== 'Demote') return undefined;
  if (typeof target !== 'string' || typeof reason !== 'string') return undefined;
  if (typeof by !== 'string' || typeof time !== 'string') return undefined;
  return { id, verb, target, reason, by, time };
}

function invalid(id: string): TemperError {
  return new TemperError(
    'TEMPER_STATE_CORRUPT',
    `decisions/${id}.json is not a decision; it was put aside in decisions-invalid/ and nothing was done`,
  );
}
