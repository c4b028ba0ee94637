import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { openAudit } from '../../audit/recorded-trail.ts';
import type { Digest } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { memoryRecordStore } from '../../lib/record-store.ts';
import type { AgentEvent } from '../../tools/events.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { createDemotion } from '../promotion/demotion.ts';
import { promotionRules } from '../promotion/promotion-rules.ts';
import { openRegistry } from '../registry/registry.ts';
import { aCaller, anAcceptance, anArtifact, aSourceStore } from '../tempering.testing.ts';
import type { TestReport } from '../types.ts';
import { BackgroundTasks } from './background-tasks.ts';
import { Reverification } from './reverification.ts';

const HOUR = 3_600_000;
const OWNER = { agent: 'analyst', namespace: 'team-a' };
const LIMITS = { sessionTools: 10, agentTools: 50 };
const PASSED: TestReport = { passed: 1, failed: 0, problems: [] };
const FAILED: TestReport = { passed: 0, failed: 1, problems: ['wrong'] };

/** A state with one tool of tier Agent for each name, and one of tier Session. */
async function aState(names: readonly string[]) {
  const clock = new FakeClock();
  const records = memoryRecordStore();
  const open = async () =>
    openRegistry({
      records,
      audit: await openAudit({ records, clock }),
      clock,
      builtIn: new Set(),
      sources: await aSourceStore(records),
    });
  const registry = await open();
  const digests: Digest[] = [];
  for (const name of [...names, 'of_the_session']) {
    const tool = anAcceptance(anArtifact(name));
    await registry.register(tool, aCaller());
    if (name === 'of_the_session') continue;
    digests.push(tool.digest);
    const order = { digest: tool.digest, owner: OWNER, to: 'Agent', verdicts: [], actor: 'system' } as const;
    await registry.promote({ ...order, limits: LIMITS, sourceWithheld: false });
  }
  return { clock, records, registry, digests, open };
}

/** Starts the schedule, with a verifier that answers from `answers` by the name of the tool. */
function start(
  { clock, registry }: Pick<Awaited<ReturnType<typeof aState>>, 'clock' | 'registry'>,
  answers: Record<string, () => Promise<TestReport>> = {},
) {
  const [runs, events]: [string[], AgentEvent[]] = [[], []];
  const background = new BackgroundTasks((error) => assert.fail(String(error)));
  const sink = (event: AgentEvent): void => void events.push(event);
  const demotion = createDemotion({
    registry,
    verifier: {
      tests: async ({ name }) => {
        runs.push(name);
        return (await answers[name]?.()) ?? PASSED;
      },
      outputs: async () => assert.fail('inputs decide nothing'),
      replay: async () => assert.fail('inputs decide nothing'),
    },
    schemas: createSchemaCompiler(),
    events: sink,
    rules: () => promotionRules({}),
  });
  new Reverification({ registry, demotion, background, clock, events: sink, owner: OWNER, everyMs: 2 * HOUR }).start();
  return { runs, events, background };
}

describe('scheduled runs of tests in temper run', () => {
  it('a tool runs its tests again when the interval has passed, and a session tool never', async () => {
    const state = await aState(['double']);
    const { runs, background } = start(state);
    await background.settled();
    assert.deepEqual(runs, []);
    await state.clock.advance(2 * HOUR);
    await background.settled();
    assert.deepEqual(runs, ['double']);
    await state.clock.advance(HOUR);
    assert.deepEqual(runs, ['double']);
    await state.clock.advance(HOUR);
    await background.settled();
    assert.deepEqual(runs, ['double', 'double']);
    await background.stop();
    await state.clock.advance(10 * HOUR);
    assert.equal(runs.length, 2);
  });

  it('the time of the last verification survives a restart', async () => {
    const state = await aState(['double']);
    await state.clock.advance(3 * HOUR);
    const first = start(state);
    await first.background.stop();
    assert.deepEqual(first.runs, ['double']);
    const restarted = start({ clock: state.clock, registry: await state.open() });
    await restarted.background.stop();
    assert.deepEqual(restarted.runs, []);
  });

  it('a failed test demotes the tool with an event and a record, and the others go on', async () => {
    const state = await aState(['double', 'triple']);
    await state.clock.advance(3 * HOUR);
    const { runs, events, background } = start(state, { double: async () => FAILED });
    await background.settled();
    await background.stop();
    assert.deepEqual(runs, ['double', 'triple']);
    const [demoted, kept] = state.digests;
    assert.deepEqual(
      events.map((event) => [event.type, 'reason' in event ? event.reason : '']),
      [['demotion', '1 of 1 tests failed in a fresh runner']],
    );
    const restored = await state.open();
    assert.equal(restored.get(demoted ?? 'sha256:')?.active, false);
    assert.equal(restored.get(kept ?? 'sha256:')?.active, true);
  });

  it('a run that could not start is a warning and is repeated, and the tool stays in service', async () => {
    const state = await aState(['double']);
    await state.clock.advance(3 * HOUR);
    let isBroken = true;
    const { runs, events, background } = start(state, {
      double: async () => {
        if (isBroken) throw new TemperError('TEMPER_SANDBOX_UNAVAILABLE', 'no sandbox');
        return PASSED;
      },
    });
    await background.settled();
    assert.deepEqual([runs.length, events[0]?.type], [1, 'warning']);
    assert.equal(state.registry.get(state.digests[0] ?? 'sha256:')?.active, true);
    isBroken = false;
    await state.clock.advance(HOUR / 6);
    await background.stop();
    assert.equal(runs.length, 2);
    assert.equal(events.length, 1);
  });

  it('one tool runs at a time', async () => {
    const state = await aState(['double', 'triple']);
    await state.clock.advance(3 * HOUR);
    const gate = Promise.withResolvers<TestReport>();
    const { runs, background } = start(state, { double: () => gate.promise });
    await state.clock.advance(0);
    assert.deepEqual(runs, ['double']);
    gate.resolve(PASSED);
    await background.settled();
    assert.deepEqual(runs, ['double', 'triple']);
    await background.stop();
  });
});
