import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SESSION_IDLE_MS } from '../../agent/session/session-age.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { NatsSessionStore, UnusedSession } from '../../nats/sessions/port.ts';
import { closeIdleSessions, type IdleSessionDeps } from './idle-sessions.ts';

const LONG_AGO = '2020-01-01T00:00:00.000Z';
const unused = (session: string, isClosed = false): UnusedSession => ({ session, lastUsedAt: LONG_AGO, isClosed });

/** Agents by name, with their unused sessions or the error of reading them. */
function setup(
  agents: Record<string, readonly UnusedSession[] | Error>,
  unended: readonly string[] = [],
  sessionIdleMs = SESSION_IDLE_MS,
) {
  const done: string[] = [];
  const warnings: unknown[] = [];
  const asked: number[] = [];
  const storeOf = (uid: string): Pick<NatsSessionStore, 'unused' | 'discard'> => ({
    unused: async (since) => {
      asked.push(Math.round((Date.now() - since.open) / 60_000));
      const found = agents[uid];
      if (found === undefined || found instanceof Error) throw found ?? new Error(uid);
      return [...found];
    },
    async discard(session, _since, removeRest) {
      await removeRest();
      done.push(`${uid}/${session}`);
      return true;
    },
  });
  const deps: IdleSessionDeps = {
    agents: () => Object.keys(agents).map((name) => ({ namespace: 'team-a', name, uid: name, sessionIdleMs })),
    sessionsOf: (uid) => storeOf(uid) as NatsSessionStore,
    closeTools: async () => 2,
    inbox: { unendedSessions: async () => new Set(unended) },
    audit: {
      append: async (_scope, { subject, facts }) =>
        done.push(`audit ${subject} ${JSON.stringify(facts['tools'])} tools`),
    },
    clock: systemClock,
    log: { info: () => undefined, warn: (fields: unknown) => void warnings.push(fields) } as IdleSessionDeps['log'],
  };
  return { deps, done, warnings, asked };
}

describe('idle sessions', () => {
  it('a session with a message that has not ended stays, and the record of a closed one is not repeated', async () => {
    const { deps, done } = setup({ analyst: [unused('idle'), unused('parked'), unused('closed', true)] }, ['parked']);
    await closeIdleSessions(deps, new AbortController().signal);
    assert.deepEqual(done, ['audit idle 2 tools', 'analyst/idle', 'analyst/closed']);
  });

  it('the agent says after how long its sessions are idle', async () => {
    const { deps, asked } = setup({ analyst: [] }, [], 2 * 3_600_000);
    await closeIdleSessions(deps, new AbortController().signal);
    assert.deepEqual(asked, [120]);
  });

  it('an agent whose sessions cannot be read delays no other, and a lost NATS ends the round', async () => {
    const one = setup({ broken: new Error('damaged'), analyst: [unused('idle')] });
    await closeIdleSessions(one.deps, new AbortController().signal);
    assert.deepEqual([one.done.at(-1), one.warnings.length], ['analyst/idle', 1]);
    const away = setup({ first: new TemperError('TEMPER_BUS_UNAVAILABLE', 'away'), analyst: [unused('idle')] });
    await closeIdleSessions(away.deps, new AbortController().signal);
    assert.deepEqual([away.done, away.warnings.length], [[], 1]);
  });

  it('an agent with many idle sessions has 200 of them closed in one round', async () => {
    const many = Array.from({ length: 500 }, (_, index) => unused(`s-${index}`, true));
    const { deps, done } = setup({ analyst: many });
    await closeIdleSessions(deps, new AbortController().signal);
    assert.equal(done.length, 200);
  });
});
