import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TemperError } from '../../lib/errors.ts';
import { ApiError } from '../client/kube-client.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import { Controller, type ControllerOptions } from './controller.ts';
import { FakeClock, flushPromises } from '../../lib/fake-clock.testing.ts';
import { RecordingMetrics } from '../metrics.testing.ts';
import { TerminalError } from './result.ts';
import { createRateLimiter } from './rate-limiter.ts';
import { WorkQueue } from './work-queue.ts';

const DONE = { kind: 'done' } as const;

function aController(reconcile: ControllerOptions['reconcile'], more: Partial<ControllerOptions> = {}) {
  const clock = new FakeClock();
  const metrics = new RecordingMetrics();
  const lines: string[] = [];
  const destination = { write: (line: string) => lines.push(line) };
  const log = createLogger({ level: 'info', destination, secrets: createSecretRedactor() });
  const queue = new WorkQueue({ name: 'agents', clock, limiter: createRateLimiter(clock), metrics });
  const newId = (): string => 'r-1';
  const controller = new Controller({ name: 'agents', queue, reconcile, clock, log, metrics, newId, ...more });
  controller.start();
  return { clock, metrics, lines, queue, controller };
}

const failing = (reason: unknown) => async () => ({ kind: 'failed', error: reason }) as const;

describe('the controller', () => {
  it('the controller initialises every metric series with zero', async () => {
    const { metrics, controller } = aController(() => Promise.resolve(DONE), { concurrency: 3 });
    assert.equal(metrics.counts['controller_runtime_reconcile_total{error}'], 0);
    assert.equal(metrics.gauges['controller_runtime_max_concurrent_reconciles'], 3);
    assert.equal(await controller.stop(), true);
  });

  it('a failed key is requeued with increasing delay until it succeeds', async () => {
    let runs = 0;
    const { clock, metrics, queue, lines, controller } = aController(async () => {
      runs += 1;
      return runs < 3 ? { kind: 'failed', error: new Error('not yet') } : DONE;
    });
    queue.add('team/a');
    await clock.advance(4);
    assert.equal(runs, 1);
    await clock.advance(1);
    assert.equal(runs, 2);
    assert.equal(queue.numRequeues('team/a'), 2);
    await clock.advance(10);
    assert.equal(runs, 3);
    assert.equal(queue.numRequeues('team/a'), 0);
    assert.equal(metrics.counts['controller_runtime_reconcile_errors_total'], 2);
    assert.equal(metrics.counts['controller_runtime_reconcile_total{success}'], 1);
    assert.equal(metrics.counts['controller_runtime_reconcile_panics_total'], 0);
    assert.match(lines[0] ?? '', /"key":"team\/a","reconcile":"r-1"/);
    await controller.stop();
  });

  it('a terminal error is counted and not retried', async () => {
    const { clock, metrics, queue, controller } = aController(failing(new TerminalError('wrong spec')));
    queue.add('a');
    await clock.advance(2_000_000);
    assert.equal(metrics.counts['controller_runtime_terminal_reconcile_errors_total'], 1);
    assert.equal(metrics.counts['controller_runtime_reconcile_total{error}'], 1);
    assert.equal(queue.numRequeues('a'), 0);
    await controller.stop();
  });

  it('a write conflict requeues the key without counting an error', async () => {
    const { clock, metrics, queue, controller } = aController(failing(Object.assign(new Error('x'), { status: 409 })));
    queue.add('a');
    await clock.advance(5);
    assert.equal(metrics.counts['controller_runtime_reconcile_total{requeue}'], 2);
    assert.equal(metrics.counts['controller_runtime_reconcile_errors_total'], 0);
    await controller.stop();
  });

  it('the controller requeues the key after the requested delay', async () => {
    const { clock, metrics, queue, controller } = aController(async () => ({ kind: 'requeueAfter', afterMs: 5_000 }));
    queue.add('a');
    await clock.advance(4_999);
    assert.equal(metrics.counts['controller_runtime_reconcile_total{requeue_after}'], 1);
    await clock.advance(1);
    assert.equal(metrics.counts['controller_runtime_reconcile_total{requeue_after}'], 2);
    await controller.stop();
  });

  for (const [what, error] of [
    ['the API server', new ApiError(503, 'ServiceUnavailable', 'it starts')],
    ['another service', new TemperError('TEMPER_KUBE_UNREACHABLE', 'no connection', { retry: 'backoff' })],
  ] as const) {
    it(`a thrown error of ${what} requeues the key and is no panic`, async () => {
      const { clock, metrics, queue, controller } = aController(() => {
        throw error;
      });
      queue.add('a');
      await clock.advance(5);
      assert.equal(metrics.counts['controller_runtime_reconcile_errors_total'], 2);
      assert.equal(metrics.counts['controller_runtime_reconcile_panics_total'], 0);
      assert.equal(queue.numRequeues('a'), 2);
      await controller.stop();
    });
  }

  it('a defect of the program is counted as a panic and the key is requeued', async () => {
    const { clock, metrics, queue, controller } = aController(() => {
      throw new TypeError('a defect');
    });
    queue.add('a');
    await clock.advance(5);
    assert.equal(metrics.counts['controller_runtime_reconcile_panics_total'], 2);
    assert.equal(metrics.counts['controller_runtime_reconcile_total{error}'], 2);
    assert.equal(metrics.gauges['controller_runtime_active_workers'], 0);
    await controller.stop();
  });

  it('a reconcile is aborted after 90 seconds and its key is requeued', async () => {
    const { clock, metrics, queue, controller } = aController(async (_key, { signal }) => {
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
      return DONE;
    });
    queue.add('a');
    await clock.advance(89_999);
    assert.equal(metrics.counts['controller_runtime_reconcile_timeouts_total'], 0);
    await clock.advance(1);
    assert.equal(metrics.counts['controller_runtime_reconcile_timeouts_total'], 1);
    assert.equal(metrics.counts['controller_runtime_reconcile_panics_total'], 0);
    assert.equal(queue.numRequeues('a'), 1);
    await controller.stop(0);
  });

  it('the controller reconciles at most `concurrency` keys at once, and never one key twice at once', async () => {
    const running = new Set<string>();
    let maxRunning = 0;
    const { clock, queue, controller } = aController(
      async (key) => {
        assert.ok(!running.has(key));
        running.add(key);
        maxRunning = Math.max(maxRunning, running.size);
        await flushPromises();
        running.delete(key);
        return DONE;
      },
      { concurrency: 2 },
    );
    for (const key of ['a', 'b', 'c', 'a']) queue.add(key);
    await flushPromises();
    queue.add('a');
    await clock.advance(0);
    assert.equal(await controller.stop(), true);
    assert.equal(maxRunning, 2);
  });

  it('reconciles that wait for nothing leave turns of the event loop for other work', async () => {
    const counter = { runs: 0 };
    const reconcile = async () => {
      counter.runs += 1;
      return DONE;
    };
    const { queue, controller } = aController(reconcile, { concurrency: 8 });
    for (let key = 0; key < 400; key += 1) queue.add(`team/${key}`);
    const perTurn: number[] = [];
    while (counter.runs < 400) {
      const before = counter.runs;
      await new Promise((resolve) => setImmediate(resolve));
      perTurn.push(counter.runs - before);
    }
    assert.ok(Math.max(...perTurn) <= 50, perTurn.join(', '));
    assert.equal(await controller.stop(), true);
  });

  it('the controller reconciles all queued keys before it stops', async () => {
    const seen: string[] = [];
    const { queue, controller } = aController(async (key) => {
      await flushPromises();
      seen.push(key);
      return DONE;
    });
    for (const key of ['a', 'b', 'c']) queue.add(key);
    assert.equal(await controller.stop(), true);
    assert.deepEqual(seen, ['a', 'b', 'c']);
  });

  it('a reconcile that exceeds the grace period is aborted, and the rest of the queue is skipped', async () => {
    let wasAborted = false;
    const seen: string[] = [];
    const { clock, queue, controller } = aController(async (key, { signal }) => {
      seen.push(key);
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      wasAborted = true;
      return DONE;
    });
    queue.add('a');
    queue.add('b');
    await flushPromises();
    const stopped = controller.stop(1_000);
    await clock.advance(1_000);
    assert.equal(await stopped, false);
    await flushPromises();
    assert.equal(wasAborted, true);
    assert.deepEqual(seen, ['a']);
  });
});
