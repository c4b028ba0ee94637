import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { describe, it } from 'node:test';
import type { AgentProgram } from '../../../src/acp/process/agent-command.ts';
import { localPrograms } from '../../../src/acp/process/agent-process.ts';
import { ProgramProviders } from '../../../src/acp/provider/program-providers.ts';
import { says, scriptedLedger, scriptedLoop, scriptedModel } from '../../../src/agent/loop/scripted-loop.testing.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { ulids } from '../../../src/lib/ids.ts';
import { meteredStub } from '../../../src/models/pipeline.testing.ts';
import { startReplay } from '../../../src/models/replay/server.ts';
import type { ReplayRule } from '../../../src/models/replay/script/script.ts';
import type { AgentEvent } from '../../../src/tools/events.ts';
import { tool } from '../../cluster/tools.ts';
import { jsonLines } from '../../support/json-lines.ts';
import { temper, temporaryFolder } from '../../system/command.ts';

const MANIFESTS = `
apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: analyst}
spec:
  trustPolicyRef: {name: strict}
  model: {primary: default/default, agent: qwen-code}
  prompt: {system: You answer about notes.}
  grants: {tools: [file_read]}
  limits: {turns: 6}
---
apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: strict}
spec:
  level: {initial: restricted, ceiling: restricted}
`;

/** A call at the first answer to a message with this word. */
function calls(word: string, name: string, input: Record<string, string>): ReplayRule {
  const answer = { text: 'I try.', usage: CALL, toolCalls: [{ id: `for-${word}`, name, arguments: input }] };
  return { when: { lastUser: word, turn: 1, tools: ['mcp__temper__file_read'] }, answer };
}

const CALL = { inputTokens: 40, outputTokens: 4 };
const ANSWER = { inputTokens: 60, outputTokens: 6 };

const RULES: ReplayRule[] = [
  calls('look', 'mcp__temper__file_read', { path: 'note.txt' }),
  calls('leave', 'mcp__temper__file_read', { path: '../secret.txt' }),
  calls('change', 'mcp__temper__file_write', { path: 'note.txt', text: 'changed' }),
  calls('start', 'run_shell_command', { command: 'touch started' }),
  calls('write', 'write_file', { file_path: '/tmp/note.txt', content: 'changed' }),
  { answer: { text: 'Done.', usage: ANSWER } },
];

type EventOf<K extends AgentEvent['type']> = Extract<AgentEvent, { type: K }>;

function eventsOf<K extends AgentEvent['type']>(events: readonly AgentEvent[], type: K): EventOf<K>[] {
  return events.filter((event): event is EventOf<K> => event.type === type);
}

/** The package as the reference page configures it. */
async function qwenCode(): Promise<AgentProgram> {
  const path = await tool('qwen-code');
  const folder = dirname(path);
  return {
    name: 'qwen-code',
    folder,
    program: join(path, 'cli.js'),
    arguments: ['--acp', '--auth-type', 'openai'],
    environment: {
      OPENAI_MODEL: 'temper',
      QWEN_CODE_LEGACY_MCP_BLOCKING: '1',
      QWEN_CODE_NO_RELAUNCH: '1',
      QWEN_CODE_SYSTEM_SETTINGS_PATH: join(folder, 'settings.json'),
    },
  };
}

describe('Qwen Code as the program of an agent', () => {
  it('it has the model and the granted tools, is refused the others, and is charged for what was served', async () => {
    const { folder, program, ...agent } = await qwenCode();
    const agents = [{ ...agent, folder, program: relative(folder, program) }];
    await using home = await temporaryFolder();
    await using replay = await startReplay({ script: { rules: RULES }, clock: systemClock });
    const [project, config] = [join(home.path, 'project'), join(home.path, 'config')];
    await mkdir(project);
    await mkdir(join(config, 'temper'), { recursive: true });
    await writeFile(join(config, 'temper', 'agents.yaml'), JSON.stringify({ agents }), { mode: 0o600 });
    await writeFile(join(project, 'agent.yaml'), MANIFESTS);
    await writeFile(join(project, 'note.txt'), 'hello');
    await writeFile(join(home.path, 'secret.txt'), 'do-not-show');
    const words = ['look', 'leave', 'change', 'start', 'write'].flatMap((word) => ['-m', `please ${word}`]);
    const environment = { XDG_CONFIG_HOME: config, OPENAI_API_KEY: 'key', OPENAI_BASE_URL: `${replay.url}/v1` };
    const run = ['run', '-f', 'agent.yaml', '--output', 'json', ...words];
    const { code, stdout, stderr } = await temper(run, { cwd: project, environment });
    assert.equal(code, 0, stderr);
    const events = jsonLines<AgentEvent>(stdout);
    assert.deepEqual(
      eventsOf(events, 'tool-result').map((result) => [result.tool, result.ok ? 'ok' : result.code]),
      [
        ['file_read', 'ok'],
        ['file_read', 'TEMPER_POLICY_DENIED'],
      ],
    );
    const ends = eventsOf(events, 'session-end');
    assert.deepEqual(
      ends.map(({ reply, turns, toolCalls }) => [reply, turns, toolCalls]),
      [
        ['Done.', 2, 1],
        ['Done.', 2, 1],
        ['I try.Done.', 2, 0],
        ['I try.Done.', 2, 0],
        // Its question for permission is rejected, and it ends its prompt.
        ['I try.', 1, 0],
      ],
    );
    assert.equal(replay.requests.length, 9);
    const charged = (of: 'inputTokens' | 'outputTokens'): number => ends.reduce((sum, end) => sum + end[of], 0);
    assert.deepEqual(
      [charged('inputTokens'), charged('outputTokens')],
      [5 * CALL.inputTokens + 4 * ANSWER.inputTokens, 5 * CALL.outputTokens + 4 * ANSWER.outputTokens],
    );
    assert.equal(await readFile(join(project, 'note.txt'), 'utf8'), 'hello');
    assert.doesNotMatch(JSON.stringify(replay.requests), /do-not-show/);
  });

  it('it loads a session whose process ended for another one', async () => {
    const ledger = scriptedLedger();
    const model = scriptedModel([says('one'), says('two'), says('three')]);
    await using providers = new ProgramProviders({
      host: localPrograms(await qwenCode()),
      clock: systemClock,
      ids: ulids,
      maxProcesses: 1,
    });
    const provider = providers.create(meteredStub(model, { ledger, ids: ulids }));
    const loop = scriptedLoop([], {}, { provider, ledger });
    for (const [text, session] of [
      ['first', 'a'],
      ['other', 'b'],
      ['second', 'a'],
    ] as const)
      await loop.send(text, { session, milliseconds: 120_000 });
    const [prompt, ...rest] = model.requests[2]?.messages ?? [];
    assert.equal(prompt?.role, 'user');
    assert.match(prompt.text, /answer now:\n\nfirst$/);
    assert.deepEqual(
      rest.map((message) => `${message.role}: ${message.text}`),
      ['assistant: one', 'user: second'],
    );
  });
});
