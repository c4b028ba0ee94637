import { userInfo } from 'node:os';
import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';
import type { IdGenerator } from '../lib/ids.ts';
import { isJsonObject, type Json, type JsonObject } from '../lib/json.ts';
import type { RecordStore } from '../lib/record-store.ts';

/**
 * A pending decision of a user. A CLI process writes it atomically as one file in `decisions/`. The process that holds the state
 * folder applies it and then removes the file; a crash in between repeats it, which is harmless because decisions are idempotent.
 */
export interface UserDecision {
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
  decision: Omit<UserDecision, 'id' | 'by' | 'time'>,
  deps: { clock: Clock; ids: IdGenerator },
): Promise<UserDecision> {
  const complete: UserDecision = {
    ...decision,
    id: deps.ids.next('decision'),
    by: `user/${printable(userInfo().username, 64)}`,
    time: deps.clock.now().toISOString(),
  };
  await records.put(COLLECTION, complete.id, complete as unknown as JsonObject);
  return complete;
}

/** Applies the pending decisions, oldest first. An invalid file is moved to `decisions-invalid/` and reported; it does not block the others. */
export async function applyDecisions(
  records: RecordStore,
  apply: (decision: UserDecision) => Promise<void>,
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

function parseDecision(id: string, value: Json): UserDecision | undefined {
  const { verb, target, reason, by, time } = isJsonObject(value) ? value : {};
  if (verb !== 'Approve' && verb !== 'Deny' && verb !== 'Demote') return undefined;
  if (typeof target !== 'string' || typeof reason !== 'string') return undefined;
  if (typeof by !== 'string' || typeof time !== 'string') return undefined;
  return { id, verb, target, reason, by, time };
}

function invalid(id: string): TemperError {
  return new TemperError(
    'TEMPER_STATE_CORRUPT',
    `decisions/${id}.json is not a valid decision; it was moved to decisions-invalid/ and not applied`,
  );
}
