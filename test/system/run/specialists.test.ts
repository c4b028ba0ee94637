import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createRecordSessionStore } from '../../../src/agent/session/session-store.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { fileRecordStore } from '../../../src/lib/file-record-store.ts';
import { textAt } from '../../../src/lib/json.ts';
import { openProject, type Project } from '../project.ts';

/** `make chaos` sets more. */
const MOMENTS = Number(process.env['KILLS'] ?? 4);
const LANES = 2;

const MANIFESTS = `apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: p}
spec: {rules: {allow: ["org:hire"]}, children: {perAgent: 2}, models: {judge: default/judge}}
---
apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: lead}
spec:
  trustPolicyRef: {name: p}
  model: {primary: default/default}
  prompt: {system: "You are lead."}
  grants: {tools: [spawn_specialist]}
  children: {inherit: true}
`;
const verdict = (approved: boolean): string =>
  `'{"nonce": "{{user | after "-----BEGIN " | before "-----"}}", "lines": [1], "fits": ${approved}, "harmless": true, "approved": ${approved}, "reasoning": "seen"}'`;
const SCRIPT = `rules:
  - when: {system: "You are lead", turn: 1}
    answer:
      toolCalls:
        - id: asked
          name: spawn_specialist
          arguments: {role: counter, instructions: "You count.", task: "Count {{user}}.", reason: "Counting is hard."}
  - when: {system: "You are lead", turn: 2, lastTool: {isError: true}}
    answer: {text: "None: {{lastTool}}"}
  - when: {system: "You are lead", turn: 2}
    answer: {text: "{{toolCall.asked.answer}}"}
  - when: {system: "You review a helper agent", lastUser: "Count wrong"}
    answer: {text: ${verdict(false)}}
  - when: {system: "You review a helper agent"}
    answer: {text: ${verdict(true)}}
  - when: {system: "You count"}
    answer: {text: "Three.", delayMilliseconds: 100}
`;

const aProject = (): Promise<Project> => openProject({ manifests: MANIFESTS, script: SCRIPT }, 'json');

async function stored({ path }: Project) {
  const records = fileRecordStore(join(path, '.temper'));
  const store = createRecordSessionStore(records, systemClock, { agent: 'lead', namespace: 'default' });
  const { items } = await store.load('s-1');
  const children = await records.list('children/default');
  return {
    asked: items.flatMap((item) => (item.role === 'user' ? [item.text] : [])),
    answered: items.flatMap((item) => (item.role === 'assistant' && item.toolCalls.length === 0 ? [item.text] : [])),
    verdicts: (await records.list('specialists/default')).length,
    children: children.length,
    ended: children.filter(({ value }) => textAt(value, ['endedAt']) !== '').length,
    sessions: (await records.list('sessions')).length,
  };
}

describe('specialists in one process', () => {
  it('a specialist does its task, its answer comes to the call, and it is gone with what it stored', async () => {
    await using project = await aProject();
    const { code, stderr } = await project.run('--session', 's-1', '-m', 'sheep').ended;
    assert.equal(code, 0, stderr);
    assert.deepEqual(await stored(project), {
      asked: ['sheep'],
      answered: ['Three.'],
      verdicts: 1,
      children: 1,
      ended: 1,
      sessions: 1,
    });
  });

  it('a specialist that the judge refuses does not start, and the model gets the reason', async () => {
    await using project = await aProject();
    const { code, stderr } = await project.run('--session', 's-1', '-m', 'wrong').ended;
    assert.equal(code, 0, stderr);
    const { answered, children, verdicts } = await stored(project);
    assert.match(answered[0] ?? '', /the judge refused: it does not fit its reason; seen/);
    assert.deepEqual([children, verdicts], [0, 1]);
  });

  it(`after a kill at any moment there is one verdict, one specialist and one answer, and the specialist ends (${MOMENTS} kills)`, async () => {
    let whole = 4_000;
    let [started, cutShort] = [0, 0];
    const kill = async (): Promise<void> => {
      await using project = await aProject();
      const after = Math.random() * whole;
      const running = project.run('--session', 's-1', '-m', 'sheep');
      const startedAt = performance.now();
      await Promise.race([sleep(after), running.ended]);
      running.child.kill('SIGKILL');
      const killed = await running.ended;
      if (killed.code === null) cutShort += 1;
      else whole = Math.min(whole, performance.now() - startedAt);
      let next = await project.run('--session', 's-1').ended;
      // The message was not stored, so the user sends it again; or there was nothing left to do.
      if (next.code === 2 && (await stored(project)).asked.length === 0)
        next = await project.run('--session', 's-1', '-m', 'sheep').ended;
      assert.ok(next.code === 0 || next.code === 2, next.stderr);
      const { sessions, ...left } = await stored(project);
      const expected = { asked: ['sheep'], answered: ['Three.'], verdicts: 1, children: 1, ended: 1 };
      assert.deepEqual(left, expected, `killed after ${after.toFixed(0)} ms of ${whole.toFixed(0)}: ${killed.stdout}`);
      assert.ok(sessions >= 1);
    };
    const lane = async (): Promise<void> => {
      while (started < MOMENTS) {
        started += 1;
        await kill();
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    assert.ok(cutShort > 0, 'no run was cut short');
  });
});
