import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FakeClock, flushPromises } from '../../../lib/fake-clock.testing.ts';
import { isTemperError, TemperError } from '../../../lib/errors.ts';
import { ulids } from '../../../lib/ids.ts';
import type { Json } from '../../../lib/json.ts';
import type { PollResult } from '../../../gateway-client/bus.ts';
import type { GatewayRequest } from '../../../gateway-client/gateway-client.ts';
import type { Assignment } from '../../../gateway-api/pod-api.ts';
import { createLogger } from '../../../telemetry/log.ts';
import { createSecretRedactor } from '../../../telemetry/secret-redactor.ts';
import { quickstartAssignment } from '../../pod.testing.ts';
import { AssignmentWatch } from './assignment-watch.ts';
import { Readiness } from './readiness.ts';

/** A watch whose requests wait until the test answers them, and a poll for messages that waits as well. */
class WatchFixture implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly state = new Readiness(() => Promise.resolve());
  readonly requests: GatewayRequest[] = [];
  readonly watch: AssignmentWatch;
  toolChanges = 0;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  #answer: (assignment: Assignment | undefined) => void = () => undefined;

  constructor() {
    const call = (request: GatewayRequest): Promise<Json | undefined> => {
      this.requests.push(request);
      return new Promise((resolve, reject) => {
        this.#answer = (assignment) => resolve(assignment as unknown as Json | undefined);
        request.op.signal.addEventListener('abort', () => reject(new TemperError('TEMPER_CANCELLED', 'stopped')));
      });
    };
    this.watch = new AssignmentWatch({
      client: { call },
      state: this.state,
      onTools: () => (this.toolChanges += 1),
      clock: this.clock,
      ids: ulids,
      log: createLogger({ level: 'silent', destination: { write: () => {} }, secrets: createSecretRedactor() }),
    });
    this.#running = this.watch.run(this.#stopping.signal);
  }

  /** Answers the request in progress. */
  async answer(assignment: Assignment | undefined): Promise<void> {
    this.#answer(assignment);
    await flushPromises();
  }

  /** Begins a poll for messages; the result ends it with what the gateway answers. */
  beginPoll(): (result: PollResult | Error) => Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<PollResult>();
    const ended = this.watch.duringPoll(() => promise);
    return async (result) => {
      if (result instanceof Error) reject(result);
      else resolve(result);
      const end = await ended.catch((error: unknown) => error);
      await flushPromises();
      return end;
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }
}

async function assigned(): Promise<WatchFixture> {
  const fixture = new WatchFixture();
  await flushPromises();
  await fixture.answer(await quickstartAssignment());
  return fixture;
}

describe('the assignment of a pod', () => {
  it('a poll for messages that waits takes the place of a request for the assignment', async () => {
    await using fixture = await assigned();
    for (let polls = 0; polls < 3; polls += 1) {
      const end = fixture.beginPoll();
      await fixture.clock.advance(50_000);
      await end({ watchesAssignment: true });
    }
    assert.equal(fixture.requests.length, 1);
    assert.deepEqual(fixture.requests[0]?.query, { wait: '0' });
  });

  it('a poll for messages brings another assignment', async () => {
    await using fixture = await assigned();
    const before = fixture.toolChanges;
    const changed = await quickstartAssignment({ version: '2', tools: 'other' });
    await fixture.beginPoll()({ watchesAssignment: true, assignment: changed });
    assert.equal(fixture.state.assignment?.version, '2');
    assert.equal(fixture.toolChanges, before + 1);
    const { agent } = changed;
    const foreign = { ...changed, agent: { ...agent, uid: 'another-agent' } };
    const end = await fixture.beginPoll()({ watchesAssignment: true, assignment: foreign });
    assert.ok(isTemperError(end, 'TEMPER_POD_INVALID'));
    assert.equal(fixture.state.assignment?.version, '2');
  });

  it('a pod that polls for no messages requests its assignment, after a second without a poll', async () => {
    await using fixture = await assigned();
    await fixture.beginPoll()({ watchesAssignment: true });
    await fixture.clock.advance(900);
    const end = fixture.beginPoll();
    await fixture.clock.advance(30_000);
    assert.equal(fixture.requests.length, 1, 'a poll that follows within a second leaves no gap');
    await end({ watchesAssignment: true });
    await fixture.clock.advance(1_000);
    assert.deepEqual(fixture.requests.at(-1)?.query, { wait: '50', version: '1' });
    await fixture.answer(await quickstartAssignment({ version: '2', suspended: true }));
    assert.equal(fixture.state.assignment?.suspended, true);
    await fixture.clock.advance(1_000);
    assert.equal(fixture.requests.length, 3, 'a suspended pod requests it again');
  });

  it('a pod of a gateway that does not watch the assignment requests it while it polls for messages', async () => {
    await using fixture = await assigned();
    await fixture.beginPoll()({ watchesAssignment: false });
    fixture.beginPoll();
    await flushPromises();
    await fixture.clock.advance(1_000);
    assert.equal(fixture.requests.length, 2);
  });

  it('a poll that fails watches nothing', async () => {
    await using fixture = await assigned();
    await fixture.clock.advance(500);
    await fixture.beginPoll()(new TemperError('TEMPER_GATEWAY_UNAVAILABLE', 'away'));
    const end = fixture.beginPoll();
    await fixture.clock.advance(1_000);
    assert.equal(fixture.requests.length, 2);
    await fixture.answer(undefined);
    assert.equal(fixture.requests.length, 3, 'until a poll has watched again');
    await end({ watchesAssignment: true });
    fixture.beginPoll();
    await fixture.answer(undefined);
    await fixture.clock.advance(60_000);
    assert.equal(fixture.requests.length, 3);
  });
});
