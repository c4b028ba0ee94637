import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../../src/lib/clock.ts';
import { fileRecordStore } from '../../../src/lib/file-record-store.ts';
import { ulids } from '../../../src/lib/ids.ts';
import type { RecordStore } from '../../../src/lib/record-store.ts';
import { type ReplayServer, startReplay } from '../../../src/models/replay/server.ts';
import { readReplayScript } from '../../../src/models/replay/script/read-script.ts';
import { submitDecision } from '../../../src/standalone/decision-files.ts';
import { type CommandResult, type RunningCommand, startTemper, temporaryFolder } from '../command.ts';

/** What each answer of the model counts, input and output together. */
export const ANSWER_TOKENS = 5_200;
export const SESSION = 's-1';

const agent = (name: string, policy: string, rest: string): string => `---
apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: ${name}}
spec:
  trustPolicyRef: {name: ${policy}}
  model: {primary: default/default}
  prompt: {system: "You are ${name}."}
  grants: {tools: ["*"], ${rest}}
`;
const policy = (name: string, rules: string): string => `---
apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: ${name}}
spec: {level: {initial: standard}, autonomy: Full, rules: {${rules}}}
`;
const MANIFESTS = [
  policy('careful', 'allow: ["org:hire"], requireApproval: ["code:write"]'),
  policy('free', ''),
  `${agent('lead', 'careful', 'messages: [reader, writer, coder]')}  children: {inherit: true}\n`,
  `${agent('writer', 'careful', 'memory: {}')}  invocation: Code\n`,
  agent('reader', 'free', 'memory: {}'),
  `${agent('coder', 'free', 'memory: {}')}  invocation: Code\n`,
].join('');

const rule = (when: string, answer: string, milliseconds = 20): string =>
  `  - when: {${when}}\n    answer: {${answer}, delayMilliseconds: ${milliseconds}, usage: {inputTokens: 5000, outputTokens: 200}}\n`;
const calls = (...all: readonly string[]): string => `toolCalls: [${all.map((call) => `{${call}}`).join(', ')}]`;
/** A program that reads, writes each of these files, and returns what it knows about each write. */
const program = (...paths: readonly string[]): string =>
  JSON.stringify(`const text = JSON.stringify(await ctx.manager.invoke('file_read', { path: 'note.txt' }));
const outcomes = [];
for (const path of ${JSON.stringify(paths)}) {
  try {
    await ctx.manager.invoke('file_write', { path, text });
    outcomes.push('written');
  } catch (error) {
    outcomes.push(error.code);
  }
}
return outcomes;`);
const lead = 'system: "You are lead"';
const FIRST = calls(
  'id: child, name: agent_spawn, arguments: {name: helper, prompt: "You are helper.", tools: [file_read]}',
  'id: now, name: agent_message, arguments: {to: reader, text: read}',
  'id: later, name: agent_message, arguments: {to: writer, text: write, wait: 0}',
  'id: coded, name: agent_message, arguments: {to: coder, text: code}',
  'id: nested, name: agent_run, arguments: {prompt: "You are nested.", message: work, allowedTools: [file_read]}',
  'id: held, name: file_write, arguments: {path: lead.txt, text: lead}',
);
const SCRIPT = `rules:
${[
  rule(`${lead}, lastUser: "Answer of agent"`, 'text: Noted.'),
  rule(`${lead}, turn: 1`, FIRST),
  rule(
    `${lead}, turn: 2`,
    calls('id: asked, name: agent_message, arguments: {to: "{{toolCall.child.name}}", text: help}'),
  ),
  rule(`${lead}, turn: 3`, calls('id: ended, name: agent_kill, arguments: {agent: "{{toolCall.child.name}}"}')),
  rule(
    `${lead}, turn: 4`,
    'text: "{{toolCall.now.answer}}, {{toolCall.coded.answer}}, {{toolCall.nested}}, {{toolCall.asked.answer}}."',
  ),
  rule(
    'system: "You are reader", turn: 1',
    calls('id: free, name: file_write, arguments: {path: reader.txt, text: reader}'),
  ),
  rule('system: "You are reader"', 'text: read'),
  rule(
    'system: "You are writer", turn: 1',
    calls(`id: held, name: invoke, arguments: {code: ${program('writer.txt')}}`),
    60,
  ),
  rule('system: "You are writer"', 'text: written'),
  rule(
    'system: "You are coder", turn: 1',
    calls(`id: free, name: invoke, arguments: {code: ${program('coder-1.txt', 'coder-2.txt')}}`),
  ),
  rule('system: "You are coder"', 'text: coded'),
  rule('system: "You are helper", turn: 1', calls('id: note, name: file_read, arguments: {path: note.txt}')),
  rule('system: "You are helper"', 'text: helped'),
  rule('system: "You are nested", turn: 1', calls('id: note, name: file_read, arguments: {path: note.txt}')),
  rule('system: "You are nested"', 'text: nested'),
].join('')}`;

/** A team whose models are a server of this process, so that the requests of killed processes are counted too. */
export interface KilledTeam extends AsyncDisposable {
  readonly path: string;
  readonly records: RecordStore;
  readonly replay: ReplayServer;
  run(...rest: string[]): RunningCommand;
  approve(request: string): Promise<void>;
}

export async function openKilledTeam(): Promise<KilledTeam> {
  await using opening = new AsyncDisposableStack();
  const { path } = opening.use(await temporaryFolder());
  const replay = opening.use(await startReplay({ script: readReplayScript(SCRIPT, 'the script'), clock: systemClock }));
  const providers = { providers: [{ name: 'p', type: 'openai', baseUrl: `${replay.url}/v1` }] };
  const files = {
    'agents.yaml': MANIFESTS,
    'note.txt': 'hello',
    'providers.yaml': JSON.stringify({ ...providers, aliases: { 'default/default': 'p/m' } }),
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(path, name), text);
  const options = ['-f', 'agents.yaml', '--providers', 'providers.yaml', '--output', 'json', '--session', SESSION];
  const records = fileRecordStore(join(path, '.temper'));
  const stack = opening.move();
  return {
    path,
    records,
    replay,
    run: (...rest) =>
      startTemper(['run', ...options, '--agent', 'lead', ...rest], {
        cwd: path,
        environment: { OPENAI_API_KEY: 'none' },
      }),
    async approve(target) {
      await submitDecision(records, { target, verb: 'Approve', reason: 'fine' }, { clock: systemClock, ids: ulids });
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

export interface TeamHooks {
  /** Waits for the end of a run, which it may kill. */
  ended(running: RunningCommand): Promise<CommandResult>;
  /** Whether the session has nothing stored. */
  isNew(): Promise<boolean>;
  /** The requests for approval that are not decided. */
  requests(): Promise<readonly string[]>;
}

/** Runs that one message may need, kills included. */
const MAX_RUNS = 15;

/** Sends one message, and runs and approves until the team has nothing left to do. */
export async function finishWork(team: KilledTeam, hooks: TeamHooks): Promise<void> {
  let message = ['-m', 'go'];
  for (let runs = 0; runs < MAX_RUNS; runs += 1) {
    const { code, stderr } = await hooks.ended(team.run(...message));
    if (code === 0) return;
    const isNew = await hooks.isNew();
    // Standard input has no message either, so a run without work ends with 2.
    if (code === 2 && !isNew) return;
    assert.ok(code === null || code === 2 || code === 3, stderr);
    // The user sends a message again that was not stored.
    message = code === 2 ? ['-m', 'go'] : [];
    for (const request of code === 3 ? await hooks.requests() : []) await team.approve(request);
  }
  assert.fail('the team does not come to an end');
}
