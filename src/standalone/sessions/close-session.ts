import { createRecordSessionStore } from '../../agent/session/session-store.ts';
import { openAudit } from '../../audit/recorded-trail.ts';
import { builtInNames } from '../../engine/built-in.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { openRegistry } from '../../tempering/registry/registry.ts';
import { openSourceStore } from '../../tempering/withheld/source-store.ts';
import type { SessionScope } from '../../tools/session-path.ts';
import { expireAbandonedRequests } from '../approvals.ts';
import { lockState } from '../lock.ts';
import { createParkedTurns } from './parked-turns.ts';
import { ensureStateFormat } from '../state-format.ts';
import type { StateKeys } from '../trust/state-key.ts';
import { trustedKey } from '../trust/trust.ts';

export interface CloseSessionOptions {
  /** Absolute path of the state folder. */
  folder: string;
  keys: StateKeys;
  clock: Clock;
  session: SessionScope;
  /** Close the session also when a message of it has not ended. */
  endWork: boolean;
}

export interface ClosedSession {
  /** The session was closed already. */
  closedBefore: boolean;
  /** Session tools that were removed. */
  tools: number;
  /** Messages that were ended without an answer. */
  endedMessages: string[];
}

/**
 * Closes a session of a state folder that no run uses. Throws TEMPER_STATE_LOCKED while one does, TEMPER_SESSION_BUSY without `endWork`
 * when a message of the session waits for an approval or was interrupted, and what a run throws for a folder that it cannot trust.
 */
export async function closeStateSession(options: CloseSessionOptions): Promise<ClosedSession> {
  const { folder, keys, clock, session: scope } = options;
  const lock = await lockState(folder, 'temper sessions close');
  try {
    const records = fileRecordStore(folder);
    const key = await trustedKey({ folder, records, keys });
    await ensureStateFormat(records, folder);
    const audit = await openAudit({ records, clock, key });
    const sources = await openSourceStore({ records, clock, derive: (purpose) => key.derive(purpose) });
    const registry = await openRegistry({ records, audit, clock, builtIn: builtInNames(), sources });
    const { agent, namespace, session } = scope;
    const sessions = createRecordSessionStore(records, clock, { agent, namespace });
    const turns = createParkedTurns({ records, sessions, agent: { name: agent, namespace } });
    const unended = await turns.unended(session);
    if (unended !== undefined && !options.endWork) throw busy(session, unended.requests);
    const tools = registry.all().filter((tool) => tool.tier === 'Session' && isOf(tool.owner, scope)).length;
    // The closed document first: from then on the session takes no message.
    const isNew = await sessions.closePermanently(session);
    await registry.closeSession(scope);
    await expireAbandonedRequests(records, [turns]);
    await audit.flush();
    return { closedBefore: !isNew, tools, endedMessages: unended === undefined ? [] : [unended.message] };
  } finally {
    lock.release();
  }
}

function isOf(owner: SessionScope, { agent, namespace, session }: SessionScope): boolean {
  return owner.agent === agent && owner.namespace === namespace && owner.session === session;
}

function busy(session: string, requests: readonly string[]): TemperError {
  const why = requests.length === 0 ? 'was interrupted' : `waits for ${requests.join(', ')}`;
  return new TemperError(
    'TEMPER_SESSION_BUSY',
    `the last message of session "${session}" has not ended: it ${why}; continue it with temper run --session ${session}, or end it with --end-work`,
  );
}
