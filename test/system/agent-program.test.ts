import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { AgentEvent } from '../../src/tools/events.ts';
import { jsonLines } from '../support/json-lines.ts';
import { ROOT, temper, temporaryFolder } from './command.ts';

const AGENTS = `
agents:
  - name: fixture
    folder: ${ROOT}
    program: test/fixtures/acp-agent/agent.ts
`;

const MANIFESTS = `
apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: analyst}
spec:
  trustPolicyRef: {name: strict}
  model: {primary: default/default, agent: fixture, maxOutputTokens: 500}
  prompt: {system: You answer.}
  grants: {tools: [file_read]}
---
apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: strict}
spec:
  level: {initial: restricted, ceiling: restricted}
`;

const SCRIPT = `
rules:
  - when: {lastUser: "please look", turn: 1}
    answer: {text: "I look.", usage: {inputTokens: 40, outputTokens: 4}, toolCalls: [{id: text, name: file_read, arguments: {path: note.txt}}]}
  - when: {lastUser: "please look"}
    answer: {text: "It says {{toolCall.text.text}}.", usage: {inputTokens: 60, outputTokens: 6}}
  - when: {lastUser: "please change", turn: 1}
    answer: {toolCalls: [{name: file_write, arguments: {path: note.txt, text: changed}}]}
  - answer: {text: "Done."}
`;

type EventOf<K extends AgentEvent['type']> = Extract<AgentEvent, { type: K }>;

function eventsOf<K extends AgentEvent['type']>(events: readonly AgentEvent[], type: K): EventOf<K>[] {
  return events.filter((event): event is EventOf<K> => event.type === type);
}

describe('temper run with an agent program', () => {
  it('the program has the model and the granted tools of its agent, and nothing else of the machine', async () => {
    await using folder = await temporaryFolder();
    const [project, config] = [join(folder.path, 'project'), join(folder.path, 'config')];
    await mkdir(project);
    await mkdir(join(config, 'temper'), { recursive: true });
    await writeFile(join(config, 'temper', 'agents.yaml'), AGENTS, { mode: 0o600 });
    await writeFile(join(project, 'agent.yaml'), MANIFESTS);
    await writeFile(join(project, 'script.yaml'), SCRIPT);
    await writeFile(join(project, 'note.txt'), 'hello');
    const words = ['please look', 'please change', '!read', '!write', '!probe'].flatMap((text) => ['-m', text]);
    const args = ['run', '-f', 'agent.yaml', '--model-script', 'script.yaml', '--output', 'json', ...words];
    const environment = { XDG_CONFIG_HOME: config, SECRET_TOKEN: 'do-not-show' };
    const { code, stdout, stderr } = await temper(args, { cwd: project, environment });
    assert.equal(code, 0, stderr);
    const events = jsonLines<AgentEvent>(stdout);
    const ends = eventsOf(events, 'session-end');
    assert.deepEqual(
      ends.slice(0, 3).map(({ reply, turns, toolCalls }) => [reply, turns, toolCalls]),
      [
        ['It says hello.', 2, 1],
        ['Done.', 2, 1],
        ['hello', 0, 1],
      ],
    );
    assert.deepEqual([ends[0]?.inputTokens, ends[0]?.outputTokens], [100, 10]);
    assert.deepEqual(
      eventsOf(events, 'tool-result').map((result) => [result.tool, result.ok ? 'ok' : result.code]),
      [
        ['file_read', 'ok'],
        ['file_write', 'TEMPER_POLICY_DENIED'],
        ['file_read', 'ok'],
        ['file_write', 'TEMPER_POLICY_DENIED'],
      ],
    );
    assert.equal(await readFile(join(project, 'note.txt'), 'utf8'), 'hello');
    assert.match(ends.at(-1)?.reply ?? '', /"socket":"ERR_ACCESS_DENIED"/);
    assert.doesNotMatch(stdout, /SECRET_TOKEN|do-not-show/);
  });
});
