import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import type { Digest } from '../lib/canonical.ts';
import type { JsonObject } from '../lib/json.ts';
import type { ModelEvent } from '../models/port.ts';
import { createSupervisor, type Supervisor } from '../sandbox/supervisor.ts';
import { storePendingImport } from '../tempering/packages/pending-imports.ts';
import { builtInDescriptors, builtInNames } from './built-in.ts';
import { anEngine as createTestEngine, anOp, type EngineChanges, type EngineSetup } from './engine.testing.ts';

const TWICE: JsonObject = {
  name: 'twice',
  description: 'Doubles a number.',
  inputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'], additionalProperties: false },
  outputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'], additionalProperties: false },
  implementation: { mode: 'sandbox', code: 'function execute(input) { return { n: input.n * 2 }; }', allowlist: [] },
  testCases: [{ input: { n: 2 }, expectedOutput: { n: 4 } }],
};

/** Reads three files, one per turn, and then ends. */
function readThrice(): () => ModelEvent[] {
  let turn = 0;
  const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0 };
  return () => {
    turn += 1;
    if (turn > 3)
      return [
        { type: 'text', text: 'done' },
        { type: 'end', stopReason: 'stop', usage, model: 'x' },
      ];
    const call = { id: `call-${turn}`, name: 'file_read', arguments: JSON.stringify({ path: `data/n${turn}.txt` }) };
    return [
      { type: 'tool-call', call },
      { type: 'end', stopReason: 'tool-calls', usage, model: 'x' },
    ];
  };
}

/** Counts longer than any limit for large numbers. */
const COUNTING: JsonObject = {
  ...TWICE,
  implementation: {
    mode: 'sandbox',
    code: 'function execute(input) { let n = 0; for (let i = 0; i < input.n; i += 1) n += 2; return { n }; }',
    allowlist: [],
  },
};
const MANY = 1_000_000_000_001;

describe('the engine', () => {
  let workspace: string;
  let sandbox: Supervisor;
  before(async () => {
    workspace = await mkdtemp(join(tmpdir(), 'temper-engine-'));
    await mkdir(join(workspace, 'data'));
    await writeFile(join(workspace, 'data/n.txt'), '21');
    sandbox = await createSupervisor({ clock: systemClock });
  });
  after(async () => {
    await sandbox[Symbol.asyncDispose]();
    await rm(workspace, { recursive: true, force: true });
  });

  const anEngine = (changes?: EngineChanges) => createTestEngine({ workspace, sandbox }, changes);

  it('a forged tool is callable immediately, and only in its own session', async () => {
    const { call } = await anEngine();
    const forged = await call('forge_tool', TWICE);
    assert.ok(forged.ok, JSON.stringify(forged));
    const here = await call('twice', { n: 21 });
    assert.deepEqual(here.ok && here.output, { n: 42 });
    const elsewhere = await call('twice', { n: 21 }, 's-10');
    assert.equal(!elsewhere.ok && elsewhere.error.code, 'TEMPER_TOOL_NOT_FOUND');
  });

  it('a session that read a shared key of the memory is tainted, and other sessions are not', async () => {
    const grants = { tools: ['forge_tool', 'memory_*'], memory: { read: ['*'], write: ['*'] } };
    const { call } = await anEngine({ agent: { grants } });
    assert.ok((await call('memory_set', { key: 'shared.plan', value: 'forge a tool' })).ok);
    assert.ok((await call('memory_get', { key: 'shared.plan' })).ok);
    const forged = await call('forge_tool', TWICE);
    assert.match(forged.ok ? '' : forged.error.message, /untrusted content/, JSON.stringify(forged));
    const other = await call('forge_tool', TWICE, 's-2');
    assert.ok(other.ok, JSON.stringify(other));
  });

  it('a message whose source the policy names taints its session before the model reads it', async () => {
    const { engine, call } = await anEngine({ policy: { tainted: { sources: ['Agent'] } }, respond: () => 'read' });
    const forgedAfter = async (source: 'User' | 'Agent' | 'Trigger', session: string): Promise<boolean> => {
      await engine.handle({ session, text: 'forge a tool', source }, anOp());
      return (await call('forge_tool', TWICE, session)).ok;
    };
    assert.equal(await forgedAfter('Agent', 's-1'), false);
    assert.equal(await forgedAfter('User', 's-1'), false, 'a tainted session stays tainted');
    assert.equal(await forgedAfter('Trigger', 's-2'), true, 'the policy does not name it');
  });

  it('a message with untrusted content taints its session, also from a schedule', async () => {
    const { engine, call } = await anEngine({ respond: () => 'read' });
    await engine.handle({ session: 's-1', text: 'forge a tool', source: 'Schedule', tainted: true }, anOp());
    assert.equal((await call('forge_tool', TWICE, 's-1')).ok, false);
    await engine.handle({ session: 's-2', text: 'forge a tool', source: 'Schedule' }, anOp());
    assert.equal((await call('forge_tool', TWICE, 's-2')).ok, true);
  });

  it('maxActionsPerRun limits the tool calls of a scheduled run, and of no other message', async () => {
    const schedule = { mode: 'Continuous', message: 'work', maxActionsPerRun: 1 } as const;
    const actionsOf = async (source: 'User' | 'Schedule'): Promise<number> => {
      const { engine, events } = await anEngine({
        agent: { schedule, grants: { tools: ['file_read'] } },
        answer: readThrice(),
      });
      await engine.handle({ session: 's-1', text: 'work', source }, anOp()).catch(() => undefined);
      return events.filter(({ type }) => type === 'tool-call').length;
    };
    assert.equal(await actionsOf('User'), 3);
    assert.equal(await actionsOf('Schedule'), 1);
  });

  it('a tool is promoted after uses in different messages and is available in later sessions', async () => {
    const { call, engine, registry, events } = await anEngine();
    await call('forge_tool', TWICE);
    for (const n of [1, 2, 3]) assert.ok((await call('twice', { n })).ok);
    await engine.settled();
    assert.deepEqual(
      registry
        .all()
        .filter((tool) => tool.active)
        .map(({ tier, artifact }) => `${artifact.name} ${tier}`),
      ['twice Agent'],
    );
    assert.ok(events.some((event) => event.type === 'promotion' && event.state === 'Promoted'));
    const later = await call('twice', { n: 4 }, 's-2');
    assert.deepEqual(later.ok && later.output, { n: 8 });
  });

  it('an imported tool is judged once and stays in every session of its agent, also after a restart', async () => {
    const first = await anEngine();
    const { records } = first;
    const digest = `sha256:${'0'.repeat(64)}` as const;
    const owner = { agent: 'a', namespace: 'n' };
    await storePendingImport(records, { ...owner, name: 'twice', digest, request: TWICE, importedAt: '' });
    await first.engine.submitPendingImports('s-1', anOp());
    const accepted = first.events.filter(({ type }) => type === 'forge-accepted').length;
    assert.equal(accepted, 1);
    await first.engine.closeSession('s-1');
    const second = await anEngine({ records });
    await second.engine.submitPendingImports('s-2', anOp());
    assert.equal(second.events.filter(({ type }) => type === 'forge-start').length, 0, 'it is not judged again');
    for (const session of ['s-1', 's-2']) {
      const used = await second.call('twice', { n: 21 }, session);
      assert.deepEqual(used.ok && used.output, { n: 42 });
    }
    const other = { ...TWICE, description: 'Another one.' };
    const refused = await second.call('forge_tool', other, 's-3');
    assert.equal(!refused.ok && refused.error.code, 'TEMPER_FORGE_NAME_TAKEN', 'no session replaces an imported tool');
  });

  it('an imported tool does not take the place of a tool of a session', async () => {
    const { call, engine, records } = await anEngine({
      policy: { forge: { limits: { sessionTools: 1, agentTools: 2 } } },
    });
    const owner = { agent: 'a', namespace: 'n' };
    const named = (name: string): JsonObject => ({ ...TWICE, name, description: `Doubles a number as ${name}.` });
    for (const [index, name] of ['one', 'two', 'three'].entries()) {
      const digest = `sha256:${String(index).repeat(64)}` as const;
      await storePendingImport(records, { ...owner, name, digest, request: named(name), importedAt: '' });
    }
    assert.ok((await call('forge_tool', TWICE)).ok, 'the session is full');
    await engine.submitPendingImports('s-1', anOp());
    const imported = await Promise.all(['one', 'two', 'three'].map(async (name) => (await call(name, { n: 1 })).ok));
    assert.deepEqual(imported, [true, true, false], 'the limit of the agent counts imports');
    assert.ok((await call('forge_tool', TWICE, 's-2')).ok, 'another session has its own capacity');
  });

  it('an agent replaces a bad tool of its own session by forging it again under its name', async () => {
    const { call, registry } = await anEngine();
    const code = 'function execute(input) { return { n: 4 }; }';
    const wrong = { ...TWICE, implementation: { mode: 'sandbox', code, allowlist: [] } };
    assert.ok((await call('forge_tool', wrong)).ok);
    const same = await call('forge_tool', wrong);
    assert.equal(!same.ok && same.error.code, 'TEMPER_FORGE_NAME_TAKEN');
    const forged = await call('forge_tool', TWICE);
    assert.ok(forged.ok, JSON.stringify(forged));
    const used = await call('twice', { n: 21 });
    assert.deepEqual(used.ok && used.output, { n: 42 });
    assert.equal(registry.all().length, 1);
  });

  it('an agent drops a tool of its session, learns which composed tools break, and forges the name again', async () => {
    const { call, registry } = await anEngine();
    assert.ok((await call('forge_tool', TWICE)).ok);
    const steps = [{ name: 'double', tool: 'twice', inputMapping: { n: '$input.n' } }];
    const chain = { ...TWICE, name: 'chain', implementation: { mode: 'compose', steps } };
    assert.ok((await call('forge_tool', chain)).ok);
    const digest = registry.byName('twice', { agent: 'a', namespace: 'n', session: 's-1' })?.digest;
    const elsewhere = await call('drop_tool', { name: 'twice' }, 's-2');
    assert.equal(!elsewhere.ok && elsewhere.error.code, 'TEMPER_TOOL_NOT_FOUND');
    const dropped = await call('drop_tool', { name: 'twice' });
    assert.deepEqual(dropped.ok && dropped.output, { dropped: 'twice', digest, brokenTools: ['chain'] });
    const used = await call('twice', { n: 21 });
    assert.equal(!used.ok && used.error.code, 'TEMPER_TOOL_NOT_FOUND');
    const again = await call('drop_tool', { name: 'twice' });
    assert.match(again.ok ? '' : again.error.message, /named "twice"; it forged chain/);
    assert.ok((await call('forge_tool', TWICE)).ok);
    const revived = await call('chain', { n: 21 });
    assert.deepEqual(revived.ok && revived.output, { n: 42 }, 'the same content is the same digest');
  });

  it('an agent cannot drop an imported tool', async () => {
    const { call, engine, records } = await anEngine();
    const pending = { digest: `sha256:${'0'.repeat(64)}` as const, request: TWICE, importedAt: '' };
    await storePendingImport(records, { agent: 'a', namespace: 'n', name: 'twice', ...pending });
    await engine.submitPendingImports('s-1', anOp());
    const refused = await call('drop_tool', { name: 'twice' });
    assert.equal(!refused.ok && refused.error.code, 'TEMPER_TOOL_NOT_DROPPABLE');
    assert.ok((await call('twice', { n: 1 })).ok);
  });

  it('calls that a forge makes to test a composed tool do not count as uses', async () => {
    const { call, engine, registry } = await anEngine();
    await call('forge_tool', TWICE);
    const cases = [1, 2, 3, 4, 5, 6].map((n) => ({ input: { n }, expectedOutput: { n: 2 * n } }));
    const steps = [{ name: 'double', tool: 'twice', inputMapping: { n: '$input.n' } }];
    const chain = { ...TWICE, name: 'chain', implementation: { mode: 'compose', steps }, testCases: cases };
    const forged = await call('forge_tool', chain);
    assert.ok(forged.ok, JSON.stringify(forged));
    await engine.settled();
    const twice = registry.all().find((tool) => tool.artifact.name === 'twice');
    assert.ok(twice !== undefined);
    assert.equal((await registry.statistics(twice.digest, 'n')).totalUses, 0);
    assert.ok((await call('chain', { n: 5 })).ok);
    await engine.settled();
    assert.equal(
      (await registry.statistics(twice.digest, 'n')).totalUses,
      1,
      'a call by a composed tool counts as a use',
    );
  });

  it('the tests of a composed tool neither use the tool calls of the agent nor look like a loop', async () => {
    const { call, events } = await anEngine({ quotas: { toolCallsPerMinute: 3 } });
    const cases = Array.from({ length: 18 }, (_, n) => ({ input: { n }, expectedOutput: { text: '21' } }));
    const steps = [{ name: 'read', tool: 'file_read', inputMapping: { path: 'data/n.txt' } }];
    const chain: JsonObject = {
      name: 'chain',
      description: 'Reads the number.',
      inputSchema: TWICE['inputSchema'] ?? null,
      implementation: { mode: 'compose', steps },
      testCases: cases.map(({ input }) => ({ input })),
    };
    const forged = await call('forge_tool', chain);
    assert.ok(forged.ok, JSON.stringify(forged));
    assert.deepEqual(
      events.filter(({ type }) => type === 'warning'),
      [],
    );
    assert.ok((await call('chain', { n: 1 })).ok);
    const third = await call('file_read', { path: 'data/n.txt' });
    assert.equal(!third.ok && third.error.code, 'TEMPER_QUOTA_EXCEEDED', 'the step of the ordinary call was counted');
  });

  it('the failure of a deep chain keeps the reason of its innermost call and shows no digest', async () => {
    const { call } = await anEngine({ agent: { grants: { tools: ['*'] } } });
    const code =
      'function execute(input) { if (input.n === 13) throw { code: 42, reason: "thirteen" }; return { n: input.n }; }';
    await call('forge_tool', {
      ...TWICE,
      name: 'level0',
      implementation: { mode: 'sandbox', code },
      testCases: [{ input: { n: 2 }, expectedOutput: { n: 2 } }],
    });
    const chained = (level: number) =>
      call('forge_tool', {
        ...TWICE,
        name: `level${level}`,
        implementation: {
          mode: 'compose',
          steps: [{ name: 'inner', tool: `level${level - 1}`, inputMapping: { n: '$input.n' } }],
        },
        testCases: [{ input: { n: 2 }, expectedOutput: { n: 2 } }],
      });
    const messages: string[] = [];
    for (const level of [1, 2, 3, 4]) {
      const forged = await chained(level);
      if (!forged.ok) messages.push(forged.error.message);
    }
    const failed = await call('level3', { n: 13 });
    assert.ok(!failed.ok);
    assert.match(
      failed.error.message,
      /^Step "inner" \(tool: "level2"\) failed: .*the tool threw \{"code":42,"reason":"thirteen"\}/,
    );
    messages.push(failed.error.message);
    const tooDeep = await chained(5);
    assert.ok(!tooDeep.ok);
    assert.match(tooDeep.error.message, /nested tool calls are limited to a depth of 5/);
    messages.push(tooDeep.error.message);
    for (const message of messages) assert.doesNotMatch(message, /[0-9a-f]{64}/);
  });

  it('a deactivated tool is reactivated when its tests pass again, and not when its name is taken', async () => {
    const { call, engine, registry, events } = await anEngine();
    await call('forge_tool', TWICE);
    const owner = { agent: 'a', namespace: 'n' };
    const [tool] = registry.all();
    assert.ok(tool);
    await registry.deactivate(tool.digest, owner, 'its tasks end badly');
    assert.equal((await call('twice', { n: 1 })).ok, false);
    await engine.reactivate(tool.digest, 'checked', 'user/kim');
    assert.ok((await call('twice', { n: 1 })).ok, JSON.stringify(events));

    await registry.deactivate(tool.digest, owner, 'its tasks end badly');
    await call('forge_tool', { ...TWICE, description: 'Doubles one number.' });
    await engine.reactivate(tool.digest, 'checked', 'user/kim');
    assert.ok(
      events.some((event) => event.type === 'warning' && event.code === 'TEMPER_FORGE_NAME_TAKEN'),
      JSON.stringify(events),
    );
  });

  it('a demoted tool is removed immediately, and its digest is never accepted again', async () => {
    const { call, engine, registry } = await anEngine();
    await call('forge_tool', TWICE);
    const [tool] = registry.all();
    assert.ok(tool !== undefined);
    await engine.demote(tool.digest, 'wrong', 'user/kim');
    const after = await call('twice', { n: 1 });
    assert.equal(!after.ok && after.error.code, 'TEMPER_TOOL_NOT_FOUND');
    const again = await call('forge_tool', TWICE);
    assert.equal(!again.ok && again.error.code, 'TEMPER_TOOL_DEMOTED');
  });

  it('a running call of a tool that is demoted ends where the policy says so, and finishes otherwise', async () => {
    for (const runningCalls of ['End', 'Finish'] as const) {
      const started = Promise.withResolvers<void>();
      const signalled: EngineSetup['sandbox'] = {
        openSession: (...session) => sandbox.openSession(...session),
        run: (job, host, op) => {
          const isLong = JSON.stringify(job).includes(String(MANY));
          if (isLong) setImmediate(started.resolve);
          return sandbox.run(job, host, op);
        },
      };
      const policy = { forge: { runningCalls, limits: { duration: '2s' } } };
      const { call, engine, registry } = await createTestEngine({ workspace, sandbox: signalled }, { policy });
      const forged = await call('forge_tool', COUNTING);
      assert.ok(forged.ok, JSON.stringify(forged));
      const running = call('twice', { n: MANY });
      await started.promise;
      await engine.demote(registry.all()[0]?.digest as Digest, 'wrong', 'user/kim');
      const result = await running;
      const code = result.ok ? 'ok' : result.error.code;
      assert.equal(
        code,
        runningCalls === 'End' ? 'TEMPER_TOOL_DEMOTED' : 'TEMPER_SANDBOX_TIMEOUT',
        JSON.stringify(result),
      );
    }
  });

  it('forge_tool refuses every tool when no judge is configured or the judge is the author', async () => {
    for (const judge of [undefined, 'test/author']) {
      const models = judge === undefined ? {} : { judge };
      const { call, registry } = await anEngine({ policy: { models } });
      const forged = await call('forge_tool', TWICE);
      assert.equal(!forged.ok && forged.error.code, 'TEMPER_JUDGE_UNAVAILABLE');
      assert.equal(registry.all().length, 0);
    }
  });

  it('a fallback model counts as an author', async () => {
    const agent = { model: { primary: 'test/author', fallbacks: ['test/judge'] } };
    const { call } = await anEngine({ agent });
    const forged = await call('forge_tool', TWICE);
    assert.equal(!forged.ok && forged.error.code, 'TEMPER_JUDGE_UNAVAILABLE');
  });

  it('a call that the policy escalates needs an approval, and a denial fails it', async () => {
    const { call, asked } = await anEngine({ policy: { rules: { requireApproval: ['code:read'] } } });
    const read = await call('file_read', { path: 'data/n.txt' });
    assert.equal(!read.ok && read.error.code, 'TEMPER_APPROVAL_DENIED');
    assert.equal(asked.length, 1);
  });

  it('no tool can open the state of the engine, neither by path nor through a link', async () => {
    const state = join(workspace, '.temper');
    await mkdir(join(state, 'audit'), { recursive: true });
    await writeFile(join(state, 'audit/records.jsonl'), 'the chain');
    await symlink(state, join(workspace, 'data/inside'));
    const { call } = await anEngine({ agent: { grants: { tools: ['file_*', 'text_search'] } } });
    for (const path of [
      '.temper/audit/records.jsonl',
      'data/inside/audit/records.jsonl',
      'data/../.temper/audit/records.jsonl',
    ]) {
      for (const [tool, input] of [
        ['file_read', { path }],
        ['file_write', { path, text: 'forged' }],
        ['file_write', { path: path.replace('records', 'new'), text: 'forged' }],
        ['file_list', { path: path.replace('/records.jsonl', '') }],
      ] as const) {
        const result = await call(tool, input);
        assert.ok(!result.ok, `${tool} ${path}`);
      }
    }
    assert.equal(await readFile(join(state, 'audit/records.jsonl'), 'utf8'), 'the chain');
    const listed = await call('file_list', { path: '.' });
    assert.ok(listed.ok && !JSON.stringify(listed.output).includes('.temper'));
    const found = await call('text_search', { text: 'the chain' });
    assert.ok(found.ok && !JSON.stringify(found.output).includes('records'), JSON.stringify(found));
    await rm(join(workspace, 'data/inside'));
  });

  it('an agent neither calls nor discovers a tool without a grant', async () => {
    const { call } = await anEngine({ agent: { grants: { tools: [] }, forge: { enabled: false } } });
    const ungranted = builtInDescriptors().filter(({ name }) => name !== 'discover_capabilities');
    for (const { name } of ungranted) {
      const result = await call(name, {});
      assert.equal(!result.ok && result.error.code, 'TEMPER_POLICY_DENIED', name);
      const found = await call('discover_capabilities', { query: name });
      assert.deepEqual(found.ok && found.output, { capabilities: [], more: 0 }, name);
    }
  });

  it('discovery needs no grant and finds forged tools and granted tools', async () => {
    const { call } = await anEngine({ agent: { grants: { tools: ['file_read'] } } });
    assert.ok((await call('forge_tool', TWICE)).ok);
    const found = await call('discover_capabilities', { query: 'read a file or double the numbers' });
    const names = found.ok ? (found.output as { capabilities: { id: string; available: boolean }[] }).capabilities : [];
    assert.deepEqual(
      names.map(({ id, available }) => `${id} ${available}`).toSorted((a, b) => (a < b ? -1 : 1)),
      ['emergent-tool:twice true', 'tool:file_read true', 'tool:forge_tool true'],
    );
    const none = await call('discover_capabilities', { query: 'double', category: 'emergent', kind: 'tool' });
    assert.deepEqual(none.ok && none.output, { capabilities: [], more: 0 });
  });

  it('a forged tool cannot have the name of a built-in tool', async () => {
    const { call, events } = await anEngine();
    for (const name of builtInNames()) {
      const forged = await call('forge_tool', { ...TWICE, name });
      assert.match(forged.ok ? 'ok' : forged.error.code, /^TEMPER_FORGE_(NAME_TAKEN|SHAPE)$/, name);
    }
    const early = ['normalization', 'shape'];
    const judged = events.filter((event) => event.type === 'forge-gate' && !early.includes(event.result.gate));
    assert.deepEqual(judged, [], 'no later gate runs');
    for (const name of ['invoke', 'finish', 'list_tools', 'load_tool']) {
      const forged = await call('forge_tool', { ...TWICE, name });
      assert.match(
        forged.ok ? 'ok' : forged.error.message,
        /(is reserved; choose another|a name of Temper's own tools; choose another name)/,
        name,
      );
    }
  });

  it('closing a session removes its tools only', async () => {
    const { call, engine } = await anEngine();
    await call('forge_tool', TWICE, 's-1');
    await call('forge_tool', TWICE, 's-10');
    await engine.closeSession('s-1');
    const closed = await call('twice', { n: 1 }, 's-1');
    assert.equal(!closed.ok && closed.error.code, 'TEMPER_TOOL_NOT_FOUND');
    assert.ok((await call('twice', { n: 1 }, 's-10')).ok);
  });

  it('every call has exactly one audit record, regardless of its result', async () => {
    const { call, audit } = await anEngine();
    await call('file_read', { path: 'data/n.txt' });
    await call('file_read', { path: '../../etc/passwd' });
    await call('no_such_tool', {});
    const calls = (await audit.records()).filter(({ action }) => action.startsWith('tool.call'));
    assert.deepEqual(
      calls.map(({ action }) => action),
      ['tool.called', 'tool.call-failed', 'tool.call-failed'],
    );
  });
});
