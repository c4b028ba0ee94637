import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../../test/support/stubs.ts';
import { isTemperError } from '../../../lib/errors.ts';
import { FakeClock } from '../../../lib/fake-clock.testing.ts';
import { SessionPool } from './session-pool.ts';

class TestSession implements AsyncDisposable {
  isOpen = true;
  readonly name: string;
  readonly #closed: string[];

  constructor(name: string, closed: string[]) {
    this.name = name;
    this.#closed = closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.push(this.name);
    throw new Error('the server does not answer');
  }
}

describe('the MCP sessions of a gateway', () => {
  const LIMITS = { perAgent: 2, perNamespace: 3, all: 5, idleMs: 60_000 };
  let clock: FakeClock;
  let stop: AbortController;
  let pool: SessionPool<TestSession>;
  let closed: string[];
  let opened: number;

  beforeEach(() => {
    clock = new FakeClock();
    stop = new AbortController();
    pool = new SessionPool(clock, stop.signal, LIMITS);
    closed = [];
    opened = 0;
  });

  /** Calls with the session of `agent/session`, in the namespace that begins the name of the agent. */
  const call = async <R>(
    name: string,
    work: (session: TestSession) => Promise<R>,
    signal: AbortSignal = NEVER_ABORTED,
  ): Promise<R> => {
    const [agentUid = '', session = ''] = name.split('/');
    const owner = { agentUid, session, namespace: agentUid.slice(0, 1) };
    const open = async (): Promise<TestSession> => {
      opened += 1;
      return new TestSession(name, closed);
    };
    return pool.during(owner, 'https://mcp.example.com/mcp', open, work, { signal });
  };
  const touch = (name: string): Promise<string> => call(name, async (session) => session.name);
  /** A call that lasts until the function is called. */
  const hold = async (name: string): Promise<() => Promise<void>> => {
    const [started, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const running = call(name, async () => {
      started.resolve();
      await end.promise;
    });
    await started.promise;
    return async () => {
      end.resolve();
      await running;
    };
  };

  it('concurrent calls of a session share the one that the first of them opens', async () => {
    assert.deepEqual(await Promise.all(['a1/s', 'a1/s', 'a1/t'].map(touch)), ['a1/s', 'a1/s', 'a1/t']);
    assert.deepEqual([opened, pool.size], [2, 2]);
  });

  it('a session is closed when no call follows in time, and not while a call uses it', async () => {
    const end = await hold('a1/s');
    await clock.advance(600_000);
    assert.deepEqual(closed, []);
    await end();
    await clock.advance(59_000);
    await touch('a1/s');
    await clock.advance(59_000);
    assert.deepEqual(closed, []);
    await clock.advance(1_001);
    assert.deepEqual([closed, pool.size], [['a1/s'], 0]);
  });

  it('an agent displaces its own session that was used longest ago, and waits when both are in use', async () => {
    await touch('b1/x');
    for (const name of ['a1/s', 'a1/t', 'a1/s', 'a1/u']) await touch(name);
    assert.deepEqual(closed, ['a1/t']);
    const ends = [await hold('a1/s'), await hold('a1/u')];
    await assert.rejects(touch('a1/v'), (error) => isTemperError(error, 'TEMPER_RATE_LIMITED'));
    for (const end of ends) await end();
    await touch('a1/v');
    assert.deepEqual(closed, ['a1/t', 'a1/s']);
  });

  it('a namespace displaces its own sessions, and a full gateway those of the namespace with the most', async () => {
    await touch('b1/s');
    for (const name of ['a1/s', 'a2/s', 'a3/s', 'a4/s']) await touch(name);
    assert.deepEqual(closed, ['a1/s']);
    await touch('c1/s');
    await touch('d1/s');
    assert.deepEqual(closed, ['a1/s', 'a2/s']);
    assert.equal(pool.size, LIMITS.all);
  });

  it('a gateway whose sessions are all in use opens no further one', async () => {
    const ends = [];
    for (const name of ['a1/s', 'b1/s', 'c1/s', 'd1/s', 'e1/s']) ends.push(await hold(name));
    await assert.rejects(touch('f1/s'), (error) => isTemperError(error, 'TEMPER_RATE_LIMITED'));
    for (const end of ends) await end();
    assert.equal(await touch('f1/s'), 'f1/s');
  });

  it('a session that has failed is left, and the next call opens another one', async () => {
    await call('a1/s', async (session) => void (session.isOpen = false));
    assert.deepEqual([closed, pool.size], [['a1/s'], 0]);
    await touch('a1/s');
    assert.equal(opened, 2);
  });

  it('a session that does not open takes no place, and a call does not wait longer than it may', async () => {
    const owner = { agentUid: 'a1', session: 's', namespace: 'a' };
    const failing = pool.during(owner, 'x', () => Promise.reject(new Error('no')), touchNothing, {
      signal: NEVER_ABORTED,
    });
    await assert.rejects(failing, /no/);
    assert.equal(pool.size, 0);
    const slow = Promise.withResolvers<TestSession>();
    const gone = new AbortController();
    const waiting = pool.during(owner, 'x', () => slow.promise, touchNothing, { signal: gone.signal });
    gone.abort(new Error('enough'));
    await assert.rejects(waiting, (error) => isTemperError(error, 'TEMPER_MCP_SERVER_FAILED'));
    stop.abort(new Error('the gateway stops'));
    slow.resolve(new TestSession('slow', closed));
    await slow.promise;
    await Promise.resolve();
    assert.deepEqual(closed, ['slow']);
  });

  it('all sessions end with the gateway, and no further one opens', async () => {
    await touch('a1/s');
    stop.abort(new Error('the gateway stops'));
    assert.deepEqual([closed, pool.size], [['a1/s'], 0]);
    await assert.rejects(touch('a1/s'), /the gateway stops/);
  });
});

async function touchNothing(): Promise<void> {
  // The session is all that the test looks at.
}
