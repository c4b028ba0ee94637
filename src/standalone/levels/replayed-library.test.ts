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
import {
  HARMFUL_TOOLS,
  isHarmful,
  LIBRARY_TOOLS,
  LIBRARY_TURNS,
  ReplayedLibrary,
} from '../../tempering/hygiene/replayed-library.testing.ts';
import { deactivateHarmfulTools } from '../../tempering/hygiene/tool-hygiene.ts';
import { IMPORTS_SESSION } from '../../tempering/registry/visibility.ts';
import { aCaller, anAcceptance, anArtifact } from '../../tempering/tempering.testing.ts';
import { localToolTasks } from './local-tasks.ts';
import { LocalTaskRecorder } from './task-recorder.ts';

const MAX_USES = 10;
/** Each session begins with a new process of the sandbox. */
const TURNS_OF_A_SESSION = 10;
/** One library in which the assessment makes no error; `make bench` measures how often it does. */
const LIBRARY = { seed: 3, minHarmPercent: 95, basePercent: 8 };
const OWNER = { agent: 'a', namespace: 'n' };
const LIMITS = { sessionTools: 0, agentTools: 100 };
const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0 };

/** Calls the tools that the message names, and then answers, or refuses to when the message says so. */
function answer({ messages }: ModelRequest): ModelEvent[] {
  const last = messages.at(-1);
  const asked = messages.findLast(({ role }) => role === 'user')?.text ?? '';
  const [ending = '', ...tools] = asked.split(' ');
  const isAnswering = last?.role === 'tool' || tools.length === 0;
  if (isAnswering) {
    const stopReason = ending === 'well' ? 'stop' : 'refusal';
    return [
      { type: 'text', text: 'done' },
      { type: 'end', stopReason, usage, model: 'x' },
    ];
  }
  return [
    ...tools.map((name): ModelEvent => ({ type: 'tool-call', call: { id: name, name, arguments: '{"value":1}' } })),
    { type: 'end', stopReason: 'tool-calls', usage, model: 'x' },
  ];
}

describe('a library of 60 tools with 20 harmful ones', () => {
  let workspace: string;
  let sandbox: Supervisor;
  before(async () => {
    workspace = await mkdtemp(join(tmpdir(), 'temper-library-'));
    sandbox = await createSupervisor({ clock: systemClock });
  });
  after(async () => {
    await sandbox[Symbol.asyncDispose]();
    await rm(workspace, { recursive: true, force: true });
  });

  it('within 500 turns every harmful tool leaves the active tools within ten uses, and no useful tool leaves', async () => {
    let recorder: LocalTaskRecorder | undefined;
    const uses = new Map<string, number>();
    const { engine, registry, records, events } = await anEngine(
      { workspace, sandbox },
      {
        answer,
        agent: { grants: { tools: ['*'] } },
        policy: { autonomy: 'Full', promotion: { toAgent: { minSuccessfulUses: 10_000 } } },
        onUse: (digest, session) => recorder?.used(digest, session),
      },
    );
    const caller = aCaller({ ...OWNER, session: IMPORTS_SESSION });
    for (let tool = 0; tool < LIBRARY_TOOLS; tool += 1)
      await registry.register(anAcceptance(anArtifact(`tool_${tool}`)), caller, LIMITS);
    const deps = { registry, events: () => undefined, owner: OWNER, policy: {} };
    recorder = new LocalTaskRecorder({
      records,
      clock: systemClock,
      ids: ulids,
      agent: { name: OWNER.agent, namespace: OWNER.namespace },
    });
    const recorded = recorder.recorded(engine, async () => {
      const agent = { name: OWNER.agent, namespace: OWNER.namespace };
      await deactivateHarmfulTools(deps, await localToolTasks(records, agent));
    });

    const library = new ReplayedLibrary(LIBRARY);
    for (let turn = 0; turn < LIBRARY_TURNS; turn += 1) {
      const session = `s-${Math.floor(turn / TURNS_OF_A_SESSION)}`;
      const active = registry.resolve(OWNER.agent, OWNER.namespace, session).map(({ artifact }) => artifact.name);
      const chosen = library.chooseTools(active.map((name) => Number(name.slice('tool_'.length))));
      const names = chosen.map((tool) => `tool_${tool}`);
      for (const name of names) uses.set(name, (uses.get(name) ?? 0) + 1);
      const ending = library.endsWell(chosen) ? 'well' : 'badly';
      await recorded.handle({ session, text: [ending, ...names].join(' ') }, anOp());
    }
    await engine.settled();

    const tools = Array.from({ length: LIBRARY_TOOLS }, (_, tool) => tool);
    const isActive = new Set(
      registry.resolve(OWNER.agent, OWNER.namespace, 's-0').map(({ artifact }) => artifact.name),
    );
    const out = tools.filter((tool) => !isActive.has(`tool_${tool}`));
    assert.deepEqual(
      out.filter((tool) => !isHarmful(tool)),
      [],
    );
    const late = tools.filter((tool) => isHarmful(tool) && (uses.get(`tool_${tool}`) ?? 0) > MAX_USES);
    assert.deepEqual(late, []);
    // The others were used too rarely to show what they are.
    assert.ok(out.length >= HARMFUL_TOOLS - 3, `${out.length} harmful tools left`);
    assert.equal(events.filter(({ type }) => type === 'error').length, 0);
  });
});
