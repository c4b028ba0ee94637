import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { anEngine } from '../../engine/engine.testing.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import { createSupervisor, type Supervisor } from '../../sandbox/supervisor.ts';
import type { Tool } from '../../tools/contract.ts';

/** A tool from outside, as MCP servers and services of the user give them. */
const LOOK_UP: Tool = {
  descriptor: {
    name: 'look_up',
    description: 'Looks up an id.',
    inputSchema: { type: 'object', properties: { id: { type: 'number' } }, required: ['id'] },
    category: 'database',
    action: 'db:query',
    sideEffects: false,
    locality: 'Brokered',
  },
  call: async (input) => {
    if ((input as { id: number }).id < 0) throw new TemperError('TEMPER_DATABASE_QUERY_FAILED', 'no such id');
    return { row: 'one' };
  },
};

const CHAIN: JsonObject = {
  name: 'chain',
  description: 'Looks up an id.',
  inputSchema: { type: 'object', properties: { id: { type: 'number' } }, required: ['id'] },
  implementation: { mode: 'compose', steps: [{ name: 'row', tool: 'look_up', inputMapping: { id: '$input.id' } }] },
  testCases: [{ input: { id: 1 } }, { input: { id: 2 } }],
};

describe('the tool categories that temper run observes', () => {
  let workspace: string;
  let sandbox: Supervisor;
  before(async () => {
    workspace = await mkdtemp(join(tmpdir(), 'temper-categories-'));
    await mkdir(join(workspace, 'data'));
    await writeFile(join(workspace, 'data/n.txt'), '21');
    sandbox = await createSupervisor({ clock: systemClock });
  });
  after(async () => {
    await sandbox[Symbol.asyncDispose]();
    await rm(workspace, { recursive: true, force: true });
  });

  it('each call that succeeded has the category of its own tool, also one by a forged tool, and no test of a forge has one', async () => {
    const seen: string[] = [];
    const { call } = await anEngine(
      { workspace, sandbox },
      {
        agent: { grants: { tools: ['*'] } },
        policy: { autonomy: 'Full', tools: { allow: ['look_up'] } },
        agents: { externalTools: () => [LOOK_UP] },
        onSucceeded: (category, session) => void seen.push(`${session} ${category}`),
      },
    );
    const observed = async (...asked: Parameters<typeof call>): Promise<string[]> => {
      await call(...asked);
      return seen.splice(0);
    };
    assert.deepEqual(await observed('file_read', { path: 'data/n.txt' }), ['s-1 file_system']);
    assert.deepEqual(await observed('look_up', { id: 1 }, 's-2'), ['s-2 database']);
    assert.deepEqual(await observed('look_up', { id: -1 }), []);
    assert.deepEqual(await observed('look_up', { id: 'x' }), []);
    assert.deepEqual(await observed('forge_tool', CHAIN), ['s-1 code_execution']);
    assert.deepEqual(await observed('chain', { id: 1 }), ['s-1 database', 's-1 code_execution']);
  });
});
