import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../../test/support/stubs.ts';
import { isTemperError } from '../../../lib/errors.ts';
import { createSchemaCompiler } from '../../../tools/json-schema/compiler.ts';
import type { CallContext } from '../../../tools/contract.ts';
import { MessagesInWork } from '../../host/messages-in-work.ts';
import { anAgent } from '../../loop/scripted-loop.testing.ts';
import { nestedAgent, runRequest } from './nested-agent.ts';
import { runContext } from './run-context.ts';
import { runTool } from './run-tool.ts';

const CALLER: CallContext = {
  agent: 'a',
  namespace: 'n',
  session: 's-1',
  rootMessage: 'm-1',
  stack: ['agent_run'],
  origin: 'Agent',
  op: { signal: NEVER_ABORTED, deadline: Number.POSITIVE_INFINITY, key: 'k' },
  invoke: () => Promise.reject(new Error('not used')),
};

describe('who may start a nested agent', () => {
  const tool = runTool({
    messages: new MessagesInWork(),
    schemas: createSchemaCompiler(),
    resolve: (name) => name,
    runtime: () => {
      throw new Error('no run starts');
    },
  });
  const refusals: readonly (readonly [who: string, change: Partial<CallContext>])[] = [
    ['a hook', { origin: 'Hook' }],
    ['the test of a tool', { origin: 'ForgeTest' }],
    ['another tool', { stack: [`sha256:${'0'.repeat(64)}`, 'agent_run'] }],
    ['a call outside of a message', {}],
  ];
  for (const [who, change] of refusals) {
    it(`${who} starts no nested agent`, async () => {
      await assert.rejects(
        tool.call({ prompt: 'x' }, { ...CALLER, ...change }),
        (error) => isTemperError(error, 'TEMPER_POLICY_DENIED') && error.message.includes(`by ${who};`),
      );
    });
  }
});

describe('the place of a nested agent', () => {
  const place = { spec: anAgent().spec, key: 'k' };

  it('a name is the same place in each message of a session, and a call without a name is its own', () => {
    const named = (rootMessage: string, key: string) =>
      runContext({ ...CALLER, rootMessage }, { ...runRequest({ prompt: 'x' }), name: 'notes' }, { ...place, key }).id;
    assert.equal(named('m-1', 'k-1'), named('m-2', 'k-2'));
    const unnamed = (key: string) => runContext(CALLER, runRequest({ prompt: 'x' }), { ...place, key }).id;
    assert.notEqual(unnamed('k-1'), unnamed('k-2'));
  });

  it('nested agents are at most three deep', () => {
    let caller = CALLER;
    for (let depth = 1; depth <= 3; depth += 1) {
      const run = runContext(caller, runRequest({ prompt: 'x' }), place);
      assert.equal(run.ancestors.length, depth);
      caller = { ...caller, run };
    }
    assert.throws(
      () => runContext(caller, runRequest({ prompt: 'x' }), place),
      (error) => isTemperError(error, 'TEMPER_TOOL_RECURSION'),
    );
  });
});

describe('the agent of a run', () => {
  const same = (name: string): string => name;

  it('a nested agent has the limits of its agent where they are lower than the defaults', () => {
    const { spec } = nestedAgent(runRequest({ prompt: 'x' }), anAgent({ turns: 3 }), same);
    assert.deepEqual([spec.limits?.turns, spec.limits?.steps, spec.prompt.system], [3, 30, 'x']);
  });

  it('memory without code mode, and too much of it, are refused', () => {
    const refused = (memory: object, agent = anAgent()) =>
      assert.throws(
        () => nestedAgent(runRequest({ prompt: 'x', memory: { ...memory } }), agent, same),
        (error) => isTemperError(error, 'TEMPER_TOOL_INPUT_INVALID'),
      );
    refused({ n: 1 });
    const agent = anAgent();
    refused({ text: 'x'.repeat(70_000) }, { ...agent, spec: { ...agent.spec, invocation: 'Code' } });
  });
});
