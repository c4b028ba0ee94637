import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createRecordSessionStore } from '../../../src/agent/session/session-store.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { fileRecordStore } from '../../../src/lib/file-record-store.ts';
import { poll, StopPolling } from '../../support/poll.ts';
import type { RunningCommand } from '../command.ts';
import { openProject, type Project } from '../project.ts';

/** A run is due each minute at this second, a few seconds after the start of the process. */
const soon = (): number => (new Date().getUTCSeconds() + 6) % 60;

const manifests = (schedule: string): string => `apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: p}
spec: {level: {initial: standard}, autonomy: Full}
---
apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: reporter}
spec:
  trustPolicyRef: {name: p}
  model: {primary: default/default}
  prompt: {system: "You are reporter."}
  grants: {tools: ["*"], schedules: 1}
  schedule: ${schedule}
`;
const SCRIPT = `rules:
  - when: {turn: 1}
    answer: {toolCalls: [{id: note, name: file_read, arguments: {path: note.txt}}]}
  - when: {turn: 2}
    answer: {text: "{{toolCall.note.text}}", delayMilliseconds: 1000}
`;

const aProject = (): Promise<Project> => {
  const schedule = `{mode: Periodic, cron: "${soon()} * * * * *", session: daily, message: "report for {{time}}"}`;
  return openProject({ manifests: manifests(schedule), script: SCRIPT }, 'json');
};

/** The user messages and the answers of the session of the runs. */
async function conversation({ path }: Project) {
  const store = createRecordSessionStore(fileRecordStore(join(path, '.temper')), systemClock, {
    agent: 'reporter',
    namespace: 'default',
  });
  const { items } = await store.load('daily');
  return {
    asked: items.flatMap((item) => (item.role === 'user' ? [item.text] : [])),
    answered: items.flatMap((item) => (item.role === 'assistant' && item.toolCalls.length === 0 ? [item.text] : [])),
  };
}

/** Waits for a line of the output. */
async function seen(command: RunningCommand, pattern: RegExp): Promise<void> {
  let isEnded = false;
  void command.ended.then(() => (isEnded = true));
  await poll(
    `output that matches ${pattern}`,
    () => {
      if (pattern.test(command.printed())) return true;
      if (isEnded) throw new StopPolling(command.printed());
      return false;
    },
    { timeoutMs: 120_000 },
  );
}

describe('temper run --serve', () => {
  it('a serving process starts the runs of schedules; a killed run goes on in the next process, once, and an interrupt ends the process', async () => {
    await using project = await aProject();
    await using running = new AsyncDisposableStack();
    const start = (): RunningCommand => {
      const command = project.run('--serve');
      running.defer(() => void command.child.kill('SIGKILL'));
      return command;
    };
    const first = start();
    await seen(first, /"type":"tool-result"/);
    first.child.kill('SIGKILL');
    await first.ended;
    assert.equal((await conversation(project)).asked.length, 1);
    const second = start();
    await seen(second, /"type":"session-end"/);
    second.child.kill('SIGINT');
    const { code, stderr } = await second.ended;
    assert.equal(code, 130, stderr);
    assert.match(stderr, /serving reporter/);
    const { asked, answered } = await conversation(project);
    assert.equal(new Set(asked).size, asked.length, 'no due time has two messages');
    assert.match(asked[0] ?? '', /^report for [0-9]{4}-/);
    assert.equal(answered[0], 'hello');
    assert.ok(asked.length - answered.length <= 1, 'every run has its answer, but for one that the interrupt ended');
  });

  it('an agent makes a schedule in a run that ends, the user gets to know, and the next process has it', async () => {
    const make = 'name: report, times: every 10m, message: look';
    const script = `rules:
  - when: {lastUser: "list", turn: 1}
    answer: {toolCalls: [{id: own, name: schedule_list, arguments: {}}]}
  - when: {turn: 1}
    answer: {toolCalls: [{id: made, name: schedule_create, arguments: {${make}}}]}
  - when: {turn: 2}
    answer: {text: "done"}
`;
    await using project = await openProject({ manifests: manifests('{mode: Reactive}'), script }, 'json');
    const made = await project.run('-m', 'make').ended;
    assert.equal(made.code, 0, made.stderr);
    assert.match(
      made.stdout,
      /TEMPER_SCHEDULE_NOT_SERVED.*schedule \\"report\\" starts runs only while temper run --serve/,
    );
    const listed = await project.run('-m', 'list').ended;
    assert.match(listed.stdout, /"tool-result".*every 10m/);
  });

  it('a run with a message of the user starts no schedule and says so; --serve takes no message', async () => {
    await using project = await aProject();
    const { code, stderr } = await project.run('-m', 'go', '--session', 's-1').ended;
    assert.equal(code, 0, stderr);
    assert.match(stderr, /the schedules of reporter start runs only with temper run --serve/);
    const both = await project.run('--serve', '-m', 'go').ended;
    assert.equal(both.code, 2, both.stderr);
    assert.match(both.stderr, /--serve.*--message/s);
  });
});
