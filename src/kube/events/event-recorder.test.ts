import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createLogger } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import { ApiError } from '../client/kube-client.ts';
import type { EventSubject } from './event-note.ts';
import { createEventRecorder, type EventRecorderOptions } from './event-recorder.ts';
import { FakeClock, flushPromises } from '../../lib/fake-clock.testing.ts';
import { RecordingMetrics } from '../metrics.testing.ts';

interface Written {
  readonly verb: 'create' | 'patch';
  readonly name: string;
  readonly namespace: string;
  readonly body: Record<string, unknown>;
}

const WIDGET: EventSubject = {
  apiVersion: 'example.dev/v1',
  kind: 'Widget',
  metadata: { name: 'a', namespace: 'team', uid: 'u-1' },
};

function aRecorder(more: Partial<EventRecorderOptions> = {}) {
  const written: Written[] = [];
  const failures: (Error | undefined)[] = [];
  const clock = new FakeClock();
  const metrics = new RecordingMetrics();
  const fail = (): void => {
    const failure = failures.shift();
    if (failure !== undefined) throw failure;
  };
  const client = {
    create: async (_type: unknown, object: { metadata: { name: string; namespace: string } }) => {
      fail();
      written.push({ verb: 'create', ...object.metadata, body: object as unknown as Record<string, unknown> });
    },
    patch: async (_type: unknown, ref: { name: string; namespace: string }, body: Record<string, unknown>) => {
      fail();
      written.push({ verb: 'patch', ...ref, body });
    },
  } as unknown as EventRecorderOptions['client'];
  const log = createLogger({ level: 'silent', destination: { write: () => {} }, secrets: createSecretRedactor() });
  const options = { client, clock, log, metrics, component: 'tester', instance: 'tester-1', ...more };
  return { recorder: createEventRecorder(options), written, failures, clock, metrics };
}

const note = (message: string, reason = 'Started') => ({ type: 'Normal', reason, message }) as const;

describe('the event recorder', () => {
  it('a caller can wait until its events are written or dropped', async () => {
    const { recorder, written, failures } = aRecorder();
    await recorder.written();
    recorder.record(WIDGET, note('pod started'));
    recorder.record(WIDGET, note('another thing'));
    failures.push(new ApiError(403, 'Forbidden', 'no'));
    await recorder.written();
    assert.equal(written.length, 1);
  });

  it('a repeated event increments the count of the first one', async () => {
    const { recorder, written, clock } = aRecorder();
    recorder.record(WIDGET, note('pod started'));
    await clock.advance(5_000);
    recorder.record(WIDGET, note('pod started'));
    recorder.record(WIDGET, note('another thing'));
    await flushPromises();
    const [first, second, third] = written;
    assert.match(first?.name ?? '', /^a\.[0-9a-f]{16}$/);
    assert.deepEqual(first, {
      verb: 'create',
      namespace: 'team',
      name: first?.name,
      body: {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { namespace: 'team', name: first?.name },
        involvedObject: {
          ...WIDGET.metadata,
          apiVersion: 'example.dev/v1',
          kind: 'Widget',
          resourceVersion: undefined,
        },
        type: 'Normal',
        reason: 'Started',
        message: 'pod started',
        count: 1,
        firstTimestamp: '1970-01-01T00:00:00Z',
        lastTimestamp: '1970-01-01T00:00:00Z',
        source: { component: 'tester' },
        reportingComponent: 'tester',
        reportingInstance: 'tester-1',
      },
    });
    assert.deepEqual(second, {
      verb: 'patch',
      namespace: 'team',
      name: first?.name,
      body: { count: 2, lastTimestamp: '1970-01-01T00:00:05Z', message: 'pod started' },
    });
    assert.equal(third?.verb, 'create');
    assert.notEqual(third?.name, first?.name);
  });

  it('more than ten similar events are combined, until ten minutes pass without one', async () => {
    const { recorder, written, clock } = aRecorder();
    for (let index = 0; index < 13; index += 1) recorder.record(WIDGET, note(`try ${index}`));
    await flushPromises();
    const messages = written.map(({ verb, body }) => `${verb} ${String(body['message'])}`);
    assert.deepEqual(messages.slice(9), [
      'create try 9',
      'create (combined from similar events): try 10',
      'patch (combined from similar events): try 11',
      'patch (combined from similar events): try 12',
    ]);
    recorder.record(WIDGET, note('of another reason', 'Stopped'));
    await clock.advance(600_001);
    recorder.record(WIDGET, note('try 13'));
    await flushPromises();
    assert.deepEqual(
      written.slice(13).map(({ body }) => body['message']),
      ['of another reason', 'try 13'],
    );
  });

  it('each object and reason has a burst of 25 events, refilled with one event per five minutes', async () => {
    const { recorder, written, clock, metrics } = aRecorder();
    for (let index = 0; index < 30; index += 1) recorder.record(WIDGET, note('the same'));
    await flushPromises();
    assert.equal(written.length, 25);
    assert.equal(metrics.counts['events_dropped_total{spam}'], 5);
    recorder.record(WIDGET, note('of another reason', 'Lost'));
    recorder.record({ ...WIDGET, metadata: { ...WIDGET.metadata, uid: 'u-2' } }, note('recreated'));
    await clock.advance(299_999);
    recorder.record(WIDGET, note('the same'));
    await clock.advance(1);
    recorder.record(WIDGET, note('the same'));
    await flushPromises();
    assert.deepEqual(
      written.slice(25).map(({ body }) => [body['message'], body['count']]),
      [
        ['of another reason', 1],
        ['recreated', 1],
        ['the same', 32],
      ],
    );
  });

  it('an expired Event is created again', async () => {
    const { recorder, written, failures } = aRecorder();
    recorder.record(WIDGET, note('x'));
    await flushPromises();
    failures.push(new ApiError(404, 'NotFound', 'expired'));
    recorder.record(WIDGET, note('x'));
    await flushPromises();
    assert.deepEqual(
      written.map(({ verb, body }) => [verb, body['count']]),
      [
        ['create', 1],
        ['create', 2],
      ],
    );
  });

  it('an event is retried twice while the server is unavailable, dropped when it is rejected, and record never throws', async () => {
    const { recorder, written, failures, clock, metrics } = aRecorder();
    failures.push(new Error('unavailable'), new ApiError(503, '', 'busy'));
    recorder.record(WIDGET, note('one'));
    await clock.advance(3_000);
    assert.equal(written.length, 1);
    failures.push(new Error('unavailable'), new Error('unavailable'), new Error('unavailable'));
    recorder.record(WIDGET, note('two'));
    await clock.advance(3_000);
    failures.push(new ApiError(403, 'Forbidden', 'the namespace ends'));
    recorder.record(WIDGET, note('three'));
    failures.push(new ApiError(409, 'AlreadyExists', 'by an attempt whose response was lost'));
    recorder.record(WIDGET, note('four'));
    await flushPromises();
    assert.equal(metrics.counts['events_dropped_total{failed}'], 2);
    assert.equal(written.length, 1);
  });

  it('the queue holds ten thousand events, and further events are dropped', async () => {
    const never = new Promise<never>(() => {});
    const { recorder, metrics } = aRecorder({ client: { create: () => never, patch: () => never } });
    for (let index = 0; index < 10_100; index += 1) {
      recorder.record({ ...WIDGET, metadata: { name: `a${index}`, namespace: 'team' } }, note('x'));
    }
    assert.equal(metrics.counts['events_dropped_total{full}'], 99);
  });

  it('disposal writes the queued events; later events are dropped', async () => {
    const { recorder, written, metrics } = aRecorder();
    for (const name of ['a', 'b', 'c']) recorder.record({ ...WIDGET, metadata: { name } }, note('x'));
    await recorder[Symbol.asyncDispose]();
    assert.deepEqual(
      written.map(({ namespace }) => namespace),
      ['default', 'default', 'default'],
    );
    recorder.record(WIDGET, note('late'));
    assert.equal(metrics.counts['events_dropped_total{full}'], 1);
  });

  it('messages are redacted, escaped and truncated, and names stay valid', async () => {
    const { recorder, written } = aRecorder({ redact: (text) => text.replaceAll('hunter2', '***') });
    const name = `${'n'.repeat(230)}.${'m'.repeat(22)}`;
    recorder.record(
      { ...WIDGET, metadata: { name, namespace: 'team' } },
      note(`hunter2 \u001b[31m ${'x'.repeat(5_000)}`),
    );
    await flushPromises();
    const message = String(written[0]?.body['message']);
    assert.ok(message.startsWith('*** \\u{1b}[31m x'));
    assert.ok(message.length <= 1_024);
    assert.match(written[0]?.name ?? '', /^[a-z0-9]([-a-z0-9.]{0,251})?[a-z0-9]$/);
  });
});
