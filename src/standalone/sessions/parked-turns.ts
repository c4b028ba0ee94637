import { unfinishedMessage } from '../../agent/session/resume.ts';
import type { SessionStore } from '../../agent/ports.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { callIdOf } from '../../tools/approvals.ts';
import { type ParkedTurns, requestsOfCalls } from '../approvals.ts';

/** A message that waits for the decisions about some of its calls. Handle it again, with its id, to resume it. */
export interface ParkedTurn {
  message: string;
  text: string;
  /** The names of its requests. */
  requests: readonly string[];
}

export interface ParkedTurnsOfAgent extends ParkedTurns {
  find(session: string): Promise<ParkedTurn | undefined>;
  /** The message of the session that has not ended, with the requests that it waits for, if any. */
  unended(session: string): Promise<ParkedTurn | undefined>;
}

/** Finds parked turns by what the state folder has of them: the calls without a result, and the requests for these calls. */
export function createParkedTurns(deps: {
  records: RecordStore;
  sessions: Pick<SessionStore, 'load'>;
  agent: { name: string; namespace: string };
}): ParkedTurnsOfAgent {
  const { records, sessions, agent } = deps;
  const unfinished = async (session: string) => {
    try {
      return unfinishedMessage(session, await sessions.load(session));
    } catch (error) {
      // A damaged session is reported where it is used; nothing of it can be resumed.
      if (isTemperError(error)) return undefined;
      throw error;
    }
  };
  const unended = async (session: string): Promise<ParkedTurn | undefined> => {
    const found = await unfinished(session);
    if (found === undefined) return undefined;
    const requests = await requestsOfCalls(records, found.callKeys.map(callIdOf));
    return { message: found.id, text: found.text, requests };
  };
  return {
    agent: agent.name,
    namespace: agent.namespace,
    async has(session, callId) {
      const found = await unfinished(session);
      return found !== undefined && found.callKeys.map(callIdOf).includes(callId);
    },
    unended,
    async find(session) {
      const found = await unended(session);
      return found === undefined || found.requests.length === 0 ? undefined : found;
    },
  };
}
