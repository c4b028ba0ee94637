import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { createSupervisor, type Supervisor } from '../../sandbox/supervisor.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { builtInDescriptors } from '../built-in.ts';
import { anEngine } from '../engine.testing.ts';
import { compileToolSettings } from './tool-settings.ts';

const compile = (toolSettings: AgentSpec['toolSettings'], toolTimeout = '60s') =>
  compileToolSettings(
    { limits: { toolTimeout }, ...(toolSettings === undefined ? {} : { toolSettings }) },
    builtInDescriptors(),
    createSchemaCompiler(),
  );

describe('settings of single tools', () => {
  let workspace: string;
  let sandbox: Supervisor;
  before(async () => {
    workspace = await mkdtemp(join(tmpdir(), 'temper-settings-'));
    await writeFile(join(workspace, 'a.txt'), 'one');
    await writeFile(join(workspace, 'b.txt'), 'two');
    sandbox = await createSupervisor({ clock: systemClock });
  });
  after(async () => {
    await sandbox[Symbol.asyncDispose]();
    await rm(workspace, { recursive: true, force: true });
  });

  it('a call gets the defaults that it leaves out, before the policy and the schema see it', async () => {
    const toolSettings = [{ name: 'file_read', defaults: '{"path":"a.txt"}' }];
    const grants = { tools: ['file_read'] };
    const pins = [{ tool: 'file_read', argument: 'path', allow: ['a.txt'] }];
    const { call } = await anEngine({ workspace, sandbox }, { agent: { grants, toolSettings, arguments: pins } });
    const read = await call('file_read', {});
    assert.ok(read.ok, JSON.stringify(read));
    assert.equal((read.output as { text: string }).text, 'one');
    const other = await call('file_read', { path: 'b.txt' });
    assert.equal(!other.ok && other.error.rule, 'arguments', 'a stated argument stands, and the pins restrict it');
  });

  it('defaults never allow what the policy denies', async () => {
    const toolSettings = [{ name: 'file_write', defaults: '{"path":"c.txt","text":"x"}' }];
    const { call } = await anEngine({ workspace, sandbox }, { agent: { grants: { tools: [] }, toolSettings } });
    const written = await call('file_write', {});
    assert.equal(!written.ok && written.error.rule, 'grant.tools');
  });

  it('the timeout of a tool is at most that of all tools, and defaults do not reach the tests of a forge', () => {
    const settings = compile([{ name: 'memory_search', timeout: '10s', defaults: '{"limit":5}' }], '5s');
    assert.equal(settings.timeoutOf({ name: 'memory_search' }), 5_000);
    assert.equal(settings.timeoutOf({ name: 'file_read' }), 5_000);
    assert.equal(settings.timeoutOf({ name: 'forge_tool' }), 300_000);
    assert.equal(compile([{ name: 'memory_search', timeout: '1s' }]).timeoutOf({ name: 'memory_search' }), 1_000);
    assert.deepEqual(settings.withDefaults('memory_search', { text: 'a' }, { origin: 'Code' }), {
      limit: 5,
      text: 'a',
    });
    assert.deepEqual(settings.withDefaults('memory_search', { limit: 1 }, { origin: 'Agent' }), { limit: 1 });
    assert.deepEqual(settings.withDefaults('memory_search', {}, { origin: 'ForgeTest' }), {});
    assert.equal(settings.withDefaults('memory_search', 'no object', { origin: 'Agent' }), 'no object');
  });

  it('defaults that a built-in tool cannot take are refused with the name of the argument', () => {
    for (const [name, defaults, problem] of [
      ['agent_message', '{"urgency":5}', /no argument "urgency"/],
      ['agent_message', '{"wait":"long"}', /wait/],
      ['agent_message', '[]', /not a JSON object/],
    ] as const) {
      assert.throws(
        () => compile([{ name, defaults }]),
        (error) => isTemperError(error, 'TEMPER_MANIFEST_INVALID') && problem.test(error.message),
      );
    }
    compile([{ name: 'a_forged_tool', defaults: '{"anything":1}' }]);
  });
});
