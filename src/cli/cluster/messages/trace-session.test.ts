import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { jsonLines } from '../../../../test/support/json-lines.ts';
import { aTerminal } from '../../io.testing.ts';
import { isTemperError } from '../../../lib/errors.ts';
import { type FakeCluster, installedCluster } from '../api-server.testing.ts';
import { traceSession } from './trace-session.ts';

const lines = (...values: object[]): string => values.map((value) => `${JSON.stringify(value)}\n`).join('');
const event = (seq: number, rest: object) => ({
  seq,
  kind: 'event',
  event: { time: '2026-01-01T00:00:00Z', agent: 'analyst', session: 's-1', rootMessage: 'm-1', ...rest },
});
const of = ({ kubeconfig }: FakeCluster) => ({ kubeconfig, agent: 'analyst', session: 's-1', output: 'text' }) as const;

describe('the trace of a session on a cluster', () => {
  it('trace prints what is stored of a session, also when the connection breaks, and each line once', async () => {
    const stored = [
      event(1, { type: 'message-received', text: 'Write the report.' }),
      { seq: 2, kind: 'failed', message: 'm-0', code: 'TEMPER_TIMEOUT', text: 'too\u001b[1m long' },
      event(3, { type: 'tool-call', id: 'c', tool: 'csv_rows', input: {} }),
      event(4, { type: 'session-end', reply: 'what the pod claims', turns: 1, toolCalls: 1 }),
      { seq: 5, kind: 'reply', message: 'm-1', text: 'West fell most.', finishReason: 'complete' },
    ];
    await using cluster = await installedCluster(({ path }) => {
      if (!path.includes('/agents/analyst/sessions/s-1/events?')) return undefined;
      const after = Number(new URLSearchParams(path.split('?')[1]).get('after'));
      const behind = stored.filter(({ seq }) => seq > after);
      if (after > 0) return { status: 200, body: lines(...behind) };
      return async (response) => {
        response.writeHead(200);
        response.end(`${lines(...behind.slice(0, 2))}{"seq":3,"kind":"ev`);
      };
    });
    const io = aTerminal();
    assert.equal(await traceSession(of(cluster), io), 0);
    assert.match(io.printed(), /▸ You: Write the report\.[^]*csv_rows[^]*◂ analyst: West fell most\./);
    assert.equal(io.printed().match(/Write the report/g)?.length, 1);
    assert.match(io.errors(), /✗ TEMPER_TIMEOUT: too/);
    assert.ok(!`${io.printed()}${io.errors()}`.includes('\u001b[1m'));
    assert.ok(!io.printed().includes('what the pod claims'));
    const json = aTerminal();
    assert.equal(await traceSession({ ...of(cluster), output: 'json' }, json), 0);
    assert.deepEqual(
      jsonLines<{ seq: number }>(json.printed()).map(({ seq }) => seq),
      [1, 2, 3, 4, 5],
    );
  });

  it('trace refuses a session without events, and one without an agent', async () => {
    await using cluster = await installedCluster(({ path }) =>
      path.includes('/events?') ? { status: 200, body: '' } : undefined,
    );
    await assert.rejects(traceSession(of(cluster), aTerminal()), (error) => isTemperError(error, 'TEMPER_NOT_FOUND'));
    const { agent: _agent, ...unnamed } = of(cluster);
    await assert.rejects(traceSession(unnamed, aTerminal()), /--agent/);
  });
});
