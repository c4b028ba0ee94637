import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Hook } from '../api/v1alpha1/agent/hooks.ts';
import { systemClock } from '../lib/clock.ts';
import type { Json } from '../lib/json.ts';
import type { ModelEvent } from '../models/port.ts';
import { createSupervisor, type Supervisor } from '../sandbox/supervisor.ts';
import { storePendingImport } from '../tempering/packages/pending-imports.ts';
import { anEngine as createTestEngine, anOp, type EngineChanges } from './engine.testing.ts';

/** A forged tool for hooks: it refuses reads of secrets and wants a second look at the first answer. */
const GUARD = {
  name: 'guard',
  description: 'Decides about an event of the loop.',
  inputSchema: {
    type: 'object',
    properties: { type: { type: 'string' }, tool: { type: 'string' }, args: {}, turnNumber: { type: 'integer' } },
    required: ['type'],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: { deny: { type: 'string' }, continue: { type: 'boolean' }, message: { type: 'string' } },
    additionalProperties: false,
  },
  implementation: {
    mode: 'sandbox',
    code: [
      'function execute(input) {',
      "  if (input.type === 'tool-call' && JSON.stringify(input.args).includes('secret')) return { deny: 'secrets stay closed' };",
      "  if (input.type === 'turn-end' && input.turnNumber === 1) return { continue: true, message: 'Check it.' };",
      '  return {};',
      '}',
    ].join('\n'),
    allowlist: [],
  },
  testCases: [
    {
      input: { type: 'tool-call', tool: 'file_read', args: { path: 'secret.txt' } },
      expectedOutput: { deny: 'secrets stay closed' },
    },
    { input: { type: 'turn-end', turnNumber: 2 }, expectedOutput: {} },
  ],
};
const HOOKS: Hook[] = [{ events: ['ToolCall', 'TurnEnd'], tool: 'guard', timeout: '30s' }];
const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0 };

function answered(text: string): ModelEvent[] {
  return [
    { type: 'text', text },
    { type: 'end', stopReason: 'stop', usage, model: 'x' },
  ];
}

describe('the hooks of an engine', () => {
  let workspace: string;
  let sandbox: Supervisor;
  before(async () => {
    workspace = await mkdtemp(join(tmpdir(), 'temper-hooks-'));
    await writeFile(join(workspace, 'secret.txt'), 'a secret');
    await writeFile(join(workspace, 'plain.txt'), 'plain');
    sandbox = await createSupervisor({ clock: systemClock });
  });
  after(async () => {
    await sandbox[Symbol.asyncDispose]();
    await rm(workspace, { recursive: true, force: true });
  });

  const anEngine = (changes: EngineChanges = {}) =>
    createTestEngine({ workspace, sandbox }, { ...changes, agent: { hooks: HOOKS, ...changes.agent } });

  /** An engine whose agent has the guard as an imported tool. */
  async function guarded(changes: EngineChanges = {}) {
    const setup = await anEngine(changes);
    const pending = { digest: `sha256:${'0'.repeat(64)}` as const, request: GUARD, importedAt: '' };
    await storePendingImport(setup.records, { agent: 'a', namespace: 'n', name: 'guard', ...pending });
    await setup.engine.submitPendingImports('s-1', anOp());
    return setup;
  }

  it('an imported tool in the sandbox decides about the calls of the agent', async () => {
    const { call, registry } = await guarded();
    const refused = await call('file_read', { path: 'secret.txt' });
    assert.equal(!refused.ok && refused.error.code, 'TEMPER_HOOK_DENIED');
    assert.match(refused.ok ? '' : refused.error.message, /secrets stay closed/);
    assert.ok((await call('file_read', { path: 'plain.txt' })).ok);
    const [guard] = registry.all();
    const { totalUses } = await registry.statistics(guard?.digest ?? assert.fail('the guard is missing'), 'n');
    assert.equal(totalUses, 0, 'a run of a hook is no evidence for its tool');
  });

  it('an agent without the tool of its hook can call nothing', async () => {
    const { call } = await anEngine();
    const refused = await call('file_read', { path: 'plain.txt' });
    assert.match(
      refused.ok ? '' : refused.error.message,
      /hook "guard" failed at tool-call: the agent has no such tool/,
    );
  });

  it('an agent cannot forge the tool of its hook in its session and be its own guard', async () => {
    const open: Json = {
      ...GUARD,
      implementation: { ...GUARD.implementation, code: 'function execute() { return {}; }' },
    };
    const { call } = await anEngine({ agent: { hooks: [{ events: ['ToolResult', 'ToolCall'], tool: 'guard' }] } });
    const forged = await call('forge_tool', {
      ...(open as object),
      testCases: [{ input: { type: 'x' }, expectedOutput: {} }],
    });
    assert.equal(
      !forged.ok && forged.error.code,
      'TEMPER_HOOK_DENIED',
      'forging is a call too, and the guard is missing',
    );
  });

  it('a hook lets the first answer be checked', async () => {
    let answers = 0;
    const { engine, events } = await guarded({ answer: () => answered(`answer ${(answers += 1)}`) });
    const { reply } = await engine.handle({ session: 's-1', text: 'go' }, anOp());
    assert.equal(reply, 'answer 2');
    const said = events.flatMap((event) => (event.type === 'hook' ? [`${event.event} ${event.directive ?? '-'}`] : []));
    assert.deepEqual(said, ['turn-end continue', 'turn-end -']);
  });
});
