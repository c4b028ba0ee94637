import { CLOSED_SESSION_MS } from '../../agent/session/session-age.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { UnusedSession } from '../../nats/sessions/port.ts';
import type { GatewayDeps } from '../deps.ts';

export interface SessionOwner {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Its sessions are closed when they were not used for this long. */
  readonly sessionIdleMs: number;
}

export interface IdleSessionDeps extends Pick<GatewayDeps, 'sessionsOf' | 'closeTools' | 'clock'> {
  /** The agents that this gateway serves. */
  agents(): readonly SessionOwner[];
  readonly inbox: Pick<GatewayDeps['inbox'], 'unendedSessions'>;
  readonly audit: Pick<GatewayDeps['audit'], 'append'>;
  readonly log: Pick<GatewayDeps['log'], 'info' | 'warn'>;
}

const ROUND_INTERVAL_MS = 3_600_000;
/** Of one agent in one round: an agent with many idle sessions delays the others no longer than this. */
const MAX_PER_ROUND = 200;

/** Closes idle sessions in the background until it is disposed. Every replica does: of two that close one session, one has an effect. */
export function startIdleSessions(deps: IdleSessionDeps): AsyncDisposable {
  const stopping = new AbortController();
  const running = repeat(deps, stopping.signal);
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await running;
    },
  };
}

async function repeat(deps: IdleSessionDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await closeIdleSessions(deps, signal);
    await deps.clock.sleep(ROUND_INTERVAL_MS, signal).catch(() => undefined);
  }
}

/** One look at the sessions of all agents. Never throws: what fails for one agent waits for the next round. */
export async function closeIdleSessions(deps: IdleSessionDeps, signal: AbortSignal): Promise<void> {
  for (const agent of deps.agents()) {
    if (signal.aborted) return;
    try {
      await closeSessionsOf(agent, deps, signal);
    } catch (error) {
      if (signal.aborted) return;
      const { namespace, name } = agent;
      deps.log.warn({ error, namespace, agent: name }, 'idle sessions could not be closed; the next round tries again');
      if (isTemperError(error, 'TEMPER_BUS_UNAVAILABLE')) return;
    }
  }
}

async function closeSessionsOf(agent: SessionOwner, deps: IdleSessionDeps, signal: AbortSignal): Promise<void> {
  const now = deps.clock.now().getTime();
  const since = { open: now - agent.sessionIdleMs, closed: now - CLOSED_SESSION_MS };
  const unused = await deps.sessionsOf(agent.uid).unused(since);
  if (unused.length === 0) return;
  // A message that is delivered after this look marks its session as used, which `discard` notices.
  const unended = await deps.inbox.unendedSessions(agent.uid);
  const idle = unused.filter(({ session }) => !unended.has(session)).slice(0, MAX_PER_ROUND);
  for (const session of idle) {
    if (signal.aborted) return;
    await discard(agent, session, session.isClosed ? since.closed : since.open, deps);
  }
}

async function discard(
  agent: SessionOwner,
  { session, lastUsedAt, isClosed }: UnusedSession,
  since: number,
  deps: IdleSessionDeps,
): Promise<void> {
  const { uid: agentUid, namespace, name } = agent;
  let tools = 0;
  const isGone = await deps.sessionsOf(agentUid).discard(session, since, async () => {
    tools = await deps.closeTools(agentUid, session);
    // The record of a closed session was written when a user closed it.
    if (isClosed) return;
    const facts = { agent: name, tools, lastUsedAt, reason: 'Idle' };
    await deps.audit.append(
      { namespace, agentUid },
      { action: 'session.closed', actor: 'system', evidence: 'observed', subject: session, facts },
      `session-idle/${agentUid}/${session}/${lastUsedAt}`,
    );
  });
  if (isGone && !isClosed)
    deps.log.info({ namespace, agent: name, session, tools, lastUsedAt }, 'closed an idle session');
}
