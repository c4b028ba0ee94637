import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aMessage } from '../../gateway-client/inbox.testing.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import type { DeliveryTokenClaims } from '../delivery/token.ts';
import { createTaskRecorder } from './recorder.ts';

/** `isAway`: no record can be stored. */
function recorded(setup = { isAway: false }) {
  const written: string[] = [];
  const logged: string[] = [];
  const recorder = createTaskRecorder({
    records: {
      end: async (_agent, { message }) => void written.push(`end ${message}`),
      use: async (_agent, message, category) => {
        if (setup.isAway) throw new TemperError('TEMPER_BUS_UNAVAILABLE', 'no response');
        written.push(`use ${message} ${category}`);
      },
      called: async (_agent, { message }) => void written.push(`called ${message}`),
    },
    peers: { ended: async () => undefined },
    clock: systemClock,
    log: createLogger({
      level: 'warn',
      destination: { write: (line) => void logged.push(line) },
      secrets: createSecretRedactor(),
    }),
  });
  return { written, logged, recorder };
}

const claims = (message: string, isCall?: true): DeliveryTokenClaims => ({
  agentUid: 'a-1',
  agent: 'analyst',
  namespace: 'team-a',
  podUid: 'p-1',
  message,
  session: 's-1',
  root: message,
  depth: 0,
  deadline: '2026-01-01T00:00:00Z',
  source: 'User',
  ...(isCall === undefined ? {} : { isCall }),
  at: { streamSequence: 1, deliveries: 1 },
});

describe('the records of tasks', () => {
  it('a call of a program is no task of the agent, whether it is answered or dead-lettered', async () => {
    const { written, recorder } = recorded();
    const letter = { id: '1-1', agentUid: 'a-1', time: '', deliveries: 1, code: 'TEMPER_TIMEOUT', reason: '' } as const;
    const call = { tool: 'double_it', input: {} };
    await recorder.answered(claims('m-call', true), 'complete');
    await recorder.deadLettered({ ...letter, message: aMessage({ id: 'm-lost', source: 'User', call }) });
    assert.deepEqual(written, []);
    await recorder.answered(claims('m-text'), 'complete');
    await recorder.deadLettered({ ...letter, message: aMessage({ id: 'm-dead', source: 'User' }) });
    assert.deepEqual(written, ['end m-text', 'end m-dead']);
  });

  it('the category of a carried call counts once per task, and only for a message of a user', async () => {
    const { written, recorder } = recorded();
    const task = claims('m-text');
    await recorder.used(task, 'web');
    await recorder.used(task, 'web');
    await recorder.used(task, 'database');
    await recorder.used(claims('m-call', true), 'web');
    await recorder.used({ ...claims('m-nested'), depth: 1 }, 'web');
    await recorder.used({ ...claims('m-run'), source: 'Schedule' }, 'web');
    await recorder.used({ ...claims('m-peer'), source: 'Peer' }, 'web');
    const { source: _source, ...older } = claims('m-older');
    await recorder.used(older, 'mcp');
    assert.deepEqual(written, ['use m-text web', 'use m-text database', 'use m-older mcp']);
  });

  it('a category that cannot be stored is logged, fails no call, and is stored with the next call', async () => {
    const setup = { isAway: true };
    const { written, logged, recorder } = recorded(setup);
    await recorder.used(claims('m-text'), 'web');
    assert.equal(logged.length, 1);
    assert.match(logged[0] ?? '', /a task was not recorded.*/);
    setup.isAway = false;
    await recorder.used(claims('m-text'), 'web');
    assert.deepEqual(written, ['use m-text web']);
  });

  it('the failures of a forged tool count in a call of a program too', async () => {
    const { written, recorder } = recorded();
    const digest = `sha256:${'0'.repeat(64)}` as const;
    await recorder.called(claims('m-call', true), [{ digest, calls: 1, failures: 1 }]);
    assert.deepEqual(written, ['called m-call']);
  });
});
