import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import type { ModelEvent, ModelRequest } from '../models/port.ts';
import { createSupervisor, type Supervisor } from '../sandbox/supervisor.ts';
import { anEngine as createTestEngine, anOp, type EngineChanges } from './engine.testing.ts';

const TWICE = {
  name: 'twice',
  description: 'Doubles a number.',
  inputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'], additionalProperties: false },
  outputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'], additionalProperties: false },
  implementation: { mode: 'sandbox', code: 'function execute(input) { return { n: input.n * 2 }; }', allowlist: [] },
  testCases: [{ input: { n: 2 }, expectedOutput: { n: 4 } }],
};

describe('an engine in code mode', () => {
  let workspace: string;
  let sandbox: Supervisor;
  before(async () => {
    workspace = await mkdtemp(join(tmpdir(), 'temper-code-'));
    await writeFile(join(workspace, 'n.txt'), '21');
    sandbox = await createSupervisor({ clock: systemClock, warm: 1 });
  });
  after(async () => {
    await sandbox[Symbol.asyncDispose]();
    await rm(workspace, { recursive: true, force: true });
  });

  /** An engine whose model runs the programs, one per turn, and then answers with the result of the last one. */
  async function running(programs: string[], changes: EngineChanges = {}) {
    const requests: ModelRequest[] = [];
    const answer = (request: ModelRequest): ModelEvent[] => {
      requests.push(request);
      const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0 };
      const code = programs[requests.length - 1];
      if (code === undefined) {
        const last = request.messages.at(-1);
        const text = last?.role === 'tool' ? last.text : 'nothing';
        return [
          { type: 'text', text },
          { type: 'end', stopReason: 'stop', usage, model: 'x' },
        ];
      }
      const call = { id: `call-${requests.length}`, name: 'invoke', arguments: JSON.stringify({ code }) };
      return [
        { type: 'tool-call', call },
        { type: 'end', stopReason: 'tool-calls', usage, model: 'x' },
      ];
    };
    const agent = { ...changes.agent, invocation: 'Code' as const };
    const fixture = await createTestEngine({ workspace, sandbox }, { ...changes, agent, answer });
    const handled = await fixture.engine.handle({ session: 's-1', text: 'go' }, anOp());
    return { ...fixture, requests, reply: handled.reply };
  }

  it('a program forges a tool and calls it, and both calls are audited as calls of code', async () => {
    const { reply, audit, engine } = await running([
      `await ctx.manager.invoke('forge_tool', ${JSON.stringify(TWICE)}); return await ctx.manager.invoke('twice', { n: 21 });`,
    ]);
    assert.equal(reply, '{"n":42}');
    const origins = (await audit.records()).flatMap(({ facts }) =>
      facts['tool'] === 'twice' ? [facts['origin']] : [],
    );
    assert.ok(origins.includes('Code'), JSON.stringify(origins));
    await engine.stop();
  });

  it('a call that the policy denies is an error that the program can catch, with the code of the policy', async () => {
    const { reply, engine } = await running(
      [
        `const codes = [];
         for (const [name, input] of [['file_write', { path: 'x', text: 'y' }], ['file_read', { path: '/etc/passwd' }], ['file_read', {}]])
           try { await ctx.manager.invoke(name, input); } catch (error) { codes.push(error.code); }
         return codes;`,
      ],
      { agent: { grants: { tools: ['file_read'] } } },
    );
    assert.deepEqual(JSON.parse(reply), ['TEMPER_POLICY_DENIED', 'TEMPER_POLICY_DENIED', 'TEMPER_TOOL_INPUT_INVALID']);
    await engine.stop();
  });

  it('explicit grants show every tool in the prompt, and a bare star shows the named ones and two tools to explore', async () => {
    const named = (request: ModelRequest | undefined): string[] =>
      [...(request?.system ?? '').matchAll(/^\{"name":"(\w+)"/gm)].map(([, name]) => name ?? '').toSorted();
    const explicit = await running([], { agent: { grants: { tools: ['file_*'] }, forge: { enabled: false } } });
    assert.deepEqual(named(explicit.requests[0]), [
      'discover_capabilities',
      'file_delete',
      'file_edit',
      'file_list',
      'file_read',
      'file_write',
    ]);
    await explicit.engine.stop();
    const star = await running(
      [
        `const { tools } = await ctx.manager.invoke('list_tools', { query: 'file_' });
         const { parameters } = await ctx.manager.invoke('load_tool', { name: 'file_list' });
         return [tools.map(({ name }) => name), typeof parameters];`,
      ],
      { agent: { grants: { tools: ['*', 'file_read'] }, forge: { enabled: false } }, level: 'standard' },
    );
    assert.deepEqual(named(star.requests[0]), ['file_read', 'list_tools', 'load_tool']);
    const [listed, schema] = JSON.parse(star.reply) as [string[], string];
    assert.ok(listed.includes('file_list') && listed.includes('file_write'), star.reply);
    assert.equal(schema, 'object');
    await star.engine.stop();
  });

  it('the runner of a session ends with its session, and with the engine', async () => {
    const { engine } = await running(['memory.a = 1;']);
    const open = sandbox.processes.length;
    await engine.closeSession('s-1');
    assert.equal(sandbox.processes.length, open - 1);
    await engine.handle({ session: 's-2', text: 'go' }, anOp());
    await engine.stop();
  });
});
