import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createRecordSessionStore } from '../../../src/agent/session/session-store.ts';
import { openAudit } from '../../../src/audit/recorded-trail.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { fileRecordStore } from '../../../src/lib/file-record-store.ts';
import { openRegistry } from '../../../src/tempering/registry/registry.ts';
import type { StampedEvent } from '../../../src/tools/events.ts';
import { jsonLines } from '../../support/json-lines.ts';
import { QUICKSTART, startTemper, temper, temporaryFolder } from '../command.ts';

/** `make chaos` sets more. */
const MOMENTS = Number(process.env['KILLS'] ?? 6);
const LANES = 2;
const QUESTIONS = ['How many orders were paid in April?', 'And in May and June?', "Which region's revenue fell most?"];

function runArguments(state: string): string[] {
  const manifests = ['agent.yaml', 'policy.yaml'].flatMap((file) => ['-f', join(QUICKSTART, file)]);
  const messages = QUESTIONS.flatMap((question) => ['-m', question]);
  const script = join(QUICKSTART, 'replay.yaml');
  return [
    'run',
    ...manifests,
    ...messages,
    '--model-script',
    script,
    '--workspace',
    QUICKSTART,
    '--state',
    state,
    '--output',
    'json',
  ];
}

/** The duration of an uninterrupted run; kills are spread randomly over it. */
async function undisturbedMilliseconds(): Promise<number> {
  await using folder = await temporaryFolder();
  const started = performance.now();
  const { code, stderr } = await temper(runArguments(folder.path));
  assert.equal(code, 0, stderr);
  return performance.now() - started;
}

async function killedRun(state: string, after: number): Promise<StampedEvent[]> {
  const running = startTemper(runArguments(state));
  await Promise.race([sleep(after), running.ended]);
  running.child.kill('SIGKILL');
  const { stdout } = await running.ended;
  return jsonLines<StampedEvent>(stdout);
}

/** Asserts that reported results are stored and that every active tool was accepted. */
async function checkState(state: string, reported: readonly StampedEvent[]): Promise<void> {
  const records = fileRecordStore(state);
  const audit = await openAudit({ records, clock: systemClock });
  const chain = await audit.records();
  const registry = await openRegistry({ records, audit, clock: systemClock, builtIn: new Set() });
  for (const tool of registry.all().filter((entry) => entry.active)) {
    const entered = chain.find(
      ({ action, subject }) => /^tool\.(accepted|promoted)$/.test(action) && subject === tool.digest,
    );
    assert.ok(entered !== undefined, `${tool.artifact.name} is active but was never accepted`);
    assert.ok(
      tool.verdicts.every((verdict) => verdict.approved),
      `${tool.artifact.name} is active despite a rejecting verdict`,
    );
  }
  for (const event of reported) {
    if (event.type === 'forge-accepted') {
      const kept = registry
        .all()
        .some((tool) => tool.digest === event.digest && (tool.active || tool.tier === 'Session'));
      assert.ok(kept, `${event.tool} was reported as accepted but is not stored`);
    }
    if (event.type === 'promotion' && event.state === 'Promoted') {
      const kept = registry.all().some((tool) => tool.digest === event.digest && tool.tier === event.to && tool.active);
      assert.ok(kept, `${event.tool} was reported as promoted but is not`);
    }
    if (event.type === 'session-end') {
      const owner = { agent: event.agent, namespace: 'default' };
      const { items } = await createRecordSessionStore(records, systemClock, owner).load(event.session);
      assert.ok(
        items.some((item) => item.role === 'assistant' && item.text === event.reply),
        'a reply was reported but is not in the history',
      );
    }
  }
}

/** Kills a run and asserts what it left behind. Returns whether the kill came before the end of the run. */
async function checkKill(after: number, isRepeated: boolean): Promise<boolean> {
  await using folder = await temporaryFolder();
  const reported = await killedRun(folder.path, after);
  await checkState(folder.path, reported);
  const listed = await temper(['get', 'tools,sessions,agents', '--state', folder.path, '--output', 'json']);
  assert.equal(listed.code, 0, listed.stderr);
  if (isRepeated) {
    const again = await temper(runArguments(folder.path));
    assert.equal(again.code, 0, again.stderr);
  }
  return reported.filter((event) => event.type === 'session-end').length < QUESTIONS.length;
}

describe('temper run killed at a random moment', () => {
  it(`the state stays readable, keeps reported results and has no active tool without acceptance (${MOMENTS} kills)`, async () => {
    let whole = await undisturbedMilliseconds();
    let [started, cutShort] = [0, 0];
    const lane = async (): Promise<void> => {
      while (started < MOMENTS) {
        const moment = (started += 1);
        const after = Math.random() * whole;
        const isCutShort = await checkKill(after, moment % 10 === 0).catch((error: unknown) => {
          throw new Error(`killed after ${after.toFixed(1)} ms of ${whole.toFixed(0)}`, { cause: error });
        });
        if (isCutShort) cutShort += 1;
        // The machine is less busy than it was, so a run takes less time.
        else whole = Math.min(whole, after);
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    assert.ok(cutShort > MOMENTS / 4, `only ${cutShort} runs were cut short; most kills came after the end of the run`);
  });
});
