import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { anEngine, anOp } from '../../engine/engine.testing.ts';
import { systemClock } from '../../lib/clock.ts';
import { ulids } from '../../lib/ids.ts';
import type { ModelEvent, ModelRequest } from '../../models/port.ts';
import { createSupervisor, type Supervisor } from '../../sandbox/supervisor.ts';
import { IMPORTS_SESSION } from '../../tempering/registry/visibility.ts';
import { aCaller, anAcceptance, anArtifact } from '../../tempering/tempering.testing.ts';
import { localToolTasks } from '../levels/local-tasks.ts';
import { LocalTaskRecorder } from '../levels/task-recorder.ts';
import { LocalUsedTogether } from './local-used-together.ts';

const OWNER = { agent: 'a', namespace: 'n' };
const AGENT = { name: OWNER.agent, namespace: OWNER.namespace };
const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0 };
const CALLS: Record<string, string> = {
  okapi_sum: '{"value":1}',
  plot: '{"value":1}',
  discover_capabilities: '{"query":"okapi"}',
};

/** Calls the tools that the message names, and then repeats what the last one returned. */
function answer({ messages }: ModelRequest): ModelEvent[] {
  const last = messages.at(-1);
  const names = (messages.findLast(({ role }) => role === 'user')?.text ?? '').split(' ');
  const text = last?.role === 'tool' ? JSON.stringify(last) : '';
  if (text !== '')
    return [
      { type: 'text', text },
      { type: 'end', stopReason: 'stop', usage, model: 'x' },
    ];
  return [
    ...names.map(
      (name): ModelEvent => ({ type: 'tool-call', call: { id: name, name, arguments: CALLS[name] ?? '{}' } }),
    ),
    { type: 'end', stopReason: 'tool-calls', usage, model: 'x' },
  ];
}

describe('the tools that an agent of temper run uses together', () => {
  let workspace: string;
  let sandbox: Supervisor;
  before(async () => {
    workspace = await mkdtemp(join(tmpdir(), 'temper-together-'));
    sandbox = await createSupervisor({ clock: systemClock });
  });
  after(async () => {
    await sandbox[Symbol.asyncDispose]();
    await rm(workspace, { recursive: true, force: true });
  });

  it('after three tasks with both tools a search in any session finds one with the other', async () => {
    const together = new LocalUsedTogether();
    let recorder: LocalTaskRecorder | undefined;
    const { engine, registry, records } = await anEngine(
      { workspace, sandbox },
      {
        answer,
        agent: { grants: { tools: ['*'] } },
        policy: { autonomy: 'Full' },
        onUse: (digest, session) => recorder?.used(digest, session),
        agents: { usedTogether: () => together.pairs },
      },
    );
    const importer = aCaller({ ...OWNER, session: IMPORTS_SESSION });
    for (const [name, description] of [
      ['okapi_sum', 'Sums up an okapi.'],
      ['plot', 'Draws a picture.'],
    ] as const)
      await registry.register(anAcceptance(anArtifact(name, { description })), importer, {
        sessionTools: 0,
        agentTools: 10,
      });
    recorder = new LocalTaskRecorder({ records, clock: systemClock, ids: ulids, agent: AGENT });
    const recorded = recorder.recorded(engine, async () => together.count(await localToolTasks(records, AGENT)));
    const say = async (session: string, text: string) => (await recorded.handle({ session, text }, anOp())).reply;
    const finds = async () => /"?plot/.test(await say('s-9', 'discover_capabilities'));

    for (const session of ['s-1', 's-2']) await say(session, 'okapi_sum plot');
    assert.equal(await finds(), false);
    await say('s-3', 'okapi_sum plot');
    assert.equal(await finds(), true);
    await engine.settled();
  });
});
