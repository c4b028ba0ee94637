import type { SessionHistory } from '../../agent/ports.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { SessionRegistry } from '../../nats/sessions/session-registry.ts';
import type { NatsSessionStore } from '../../nats/sessions/port.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import { type Demotions, inService } from '../cluster/demotions.ts';

/** What a pod needs of a session before it starts on a message. */
interface SessionContent {
  /** Absent when it is large: the pod reads it with a request of its own, which is limited. */
  history?: SessionHistory;
  tools: RegisteredTool[];
}

export interface SessionContentDeps {
  sessionsOf: (agentUid: string) => Pick<NatsSessionStore, 'open' | 'loadBelow'>;
  registry: Pick<SessionRegistry, 'tools'>;
  demotions: Demotions;
  /** Called when the content could not be read or the session could not be opened. */
  onError: (error: unknown) => void;
}

export type ReadSessionContent = (
  pod: { agentUid: string; namespace: string },
  session: string,
) => Promise<SessionContent | undefined>;

/** Stored bytes of a history that is delivered with its message. */
const MAX_DELIVERED_BYTES = 256 * 1_024;

/**
 * Reads what a delivery brings with it, and opens the session: each session of a delivered message exists from then on. After an error the
 * pod reads the content itself, and the first append opens the session; until then events of it are refused. Throws only
 * TEMPER_SESSION_CLOSED.
 */
export function createSessionContent({
  sessionsOf,
  registry,
  demotions,
  onError,
}: SessionContentDeps): ReadSessionContent {
  return async (pod, session) => {
    const { agentUid } = pod;
    const isOut = (digest: Digest): boolean => demotions.reason(pod, digest) !== undefined;
    const historyOf = async (): Promise<SessionHistory | undefined> => {
      const sessions = sessionsOf(agentUid);
      const history = await sessions.loadBelow(session, MAX_DELIVERED_BYTES);
      if (history?.seq === 0) await sessions.open(session);
      return history;
    };
    try {
      const [history, tools] = await Promise.all([historyOf(), registry.tools(agentUid, session)]);
      return { ...(history === undefined ? {} : { history }), tools: inService(tools, isOut) };
    } catch (error) {
      if (isTemperError(error, 'TEMPER_SESSION_CLOSED')) throw error;
      onError(error);
      return undefined;
    }
  };
}
