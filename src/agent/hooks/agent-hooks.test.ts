import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { Hook } from '../../api/v1alpha1/agent/hooks.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { CallerContext, ToolDescriptor } from '../../tools/contract.ts';
import type { AgentEvent } from '../../tools/events.ts';
import { IN_FORGE } from '../../tools/forge-test-call.ts';
import { isHookCall } from '../../tools/hooks/call-hooks.ts';
import { nestedCaller } from '../../tools/nested/nested-calls.ts';
import { createAgentHooks } from './agent-hooks.ts';

const caller: CallerContext = {
  agent: 'a',
  namespace: 'n',
  session: 's',
  rootMessage: 'm',
  stack: [],
  origin: 'Agent',
};
const CALL = { type: 'tool-call', tool: 'file_write', args: {} } as const;

type HookTool = (input: Json, op: CallOptions) => Promise<Json> | Json;
type Forged = ToolDescriptor['forged'];

function anOp(): CallOptions {
  return { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + 10_000, key: 'call-1' };
}

/** Hooks with the tools of a test; `calls` are their names, callers and keys. */
function someHooks(hooks: Hook[], tools: Record<string, HookTool>, forged: Record<string, Forged> = {}) {
  const events: AgentEvent[] = [];
  const calls: { name: string; caller: CallerContext; key: string }[] = [];
  const agentHooks = createAgentHooks({
    hooks,
    clock: systemClock,
    events: (event) => void events.push(event),
    async invoke(name, input, by, op) {
      calls.push({ name, caller: by, key: op.key });
      try {
        return { ok: true, tool: name, output: (await tools[name]?.(input, op)) ?? null, milliseconds: 1 };
      } catch (error) {
        if (!(error instanceof TemperError)) throw error;
        return { ok: false, tool: name, error: { code: error.code, message: error.message }, milliseconds: 1 };
      }
    },
    describe(name) {
      if (tools[name] === undefined && forged[name] === undefined) return undefined;
      const of = forged[name] === undefined ? {} : { forged: forged[name] };
      return { ...DESCRIPTOR, name, ...of };
    },
  });
  return { hooks: agentHooks, events, calls };
}

const DESCRIPTOR: ToolDescriptor = {
  name: '',
  description: '',
  inputSchema: { type: 'object' },
  category: 'other',
  action: 'code:read',
  sideEffects: false,
  locality: 'Local',
};

const broken: HookTool = () => {
  throw new TemperError('TEMPER_TOOL_FAILED', 'it broke');
};

describe('the hooks of an agent', () => {
  it('hooks run in the order of the manifest, up to the first that refuses', async () => {
    const { hooks, calls } = someHooks(
      [
        { events: ['ToolCall'], tool: 'permits' },
        { events: ['ToolCall'], tool: 'refuses' },
        { events: ['ToolCall'], tool: 'never' },
      ],
      { permits: () => ({ allow: true }), refuses: () => ({ deny: 'not today' }), never: () => null },
    );
    assert.deepEqual(await hooks.ask(CALL, caller, anOp()), { deny: 'not today' });
    assert.deepEqual(
      calls.map(({ name, key }) => [name, key]),
      [
        ['permits', 'call-1/hook-0-tool-call'],
        ['refuses', 'call-1/hook-1-tool-call'],
      ],
    );
  });

  it('a hook receives only the events that it names', async () => {
    const { hooks, calls } = someHooks([{ events: ['TurnEnd'], tool: 'ends' }], { ends: () => null });
    await hooks.ask(CALL, caller, anOp());
    assert.deepEqual([calls.length, hooks.has('tool-call'), hooks.has('turn-end')], [0, false, true]);
  });

  it('the calls of a hook and the tests of a forge run no hooks', async () => {
    const { hooks, calls } = someHooks([{ events: ['ToolCall'], tool: 'refuses' }], { refuses: () => ({ deny: 'x' }) });
    await hooks.ask(CALL, caller, anOp());
    const nested = calls[0]?.caller ?? assert.fail('the hook was not called');
    const below = nestedCaller({ descriptor: { ...DESCRIPTOR, name: 'guard' } }, nested);
    assert.deepEqual([caller, nested, below].map(isHookCall), [false, true, true]);
    for (const by of [nested, below]) assert.equal(await hooks.ask(CALL, by, anOp()), undefined);
    assert.equal(await hooks.ask(CALL, { ...caller, ...IN_FORGE }, anOp()), undefined);
    assert.equal(calls.length, 1);
  });

  it('every run of a hook is an event, with its directive or the code of its failure', async () => {
    const { hooks, events } = someHooks(
      [
        { events: ['ToolCall'], tool: 'broken', onFailure: 'Ignore' },
        { events: ['ToolCall'], tool: 'refuses' },
      ],
      { broken, refuses: () => ({ deny: 'x' }) },
    );
    await hooks.ask(CALL, caller, anOp());
    const [first, warning, second] = events;
    assert.ok(first?.type === 'hook' && first.code === 'TEMPER_TOOL_FAILED' && first.directive === undefined);
    assert.ok(warning?.type === 'warning' && /"broken" failed at tool-call: it broke/.test(warning.message));
    assert.ok(second?.type === 'hook' && second.directive === 'deny' && second.code === undefined);
  });
});

describe('a hook that fails', () => {
  const failing: [string, Hook['onFailure'], HookTool | undefined][] = [
    ['throws', undefined, broken],
    ['gives no directive', undefined, () => ({ allow: false })],
    ['does not exist', undefined, undefined],
    ['must not fail', 'Fail', broken],
  ];
  for (const [what, onFailure, tool] of failing) {
    it(`a hook that ${what} refuses the tool call`, async () => {
      const settings = onFailure === undefined ? {} : { onFailure };
      const hook: Hook = { events: ['ToolCall'], tool: 'guard', ...settings };
      const { hooks } = someHooks([hook], tool === undefined ? {} : { guard: tool });
      await assert.rejects(
        hooks.beforeCall({ tool: 'file_write', input: {}, caller }, anOp()),
        (error) => isTemperError(error, 'TEMPER_HOOK_DENIED') && error.message.includes('hook "guard" failed'),
      );
    });
  }

  it('a hook that does not answer in time refuses the tool call', async () => {
    const stuck: HookTool = (_, op) =>
      new Promise((_resolve, reject) =>
        op.signal.addEventListener('abort', () => reject(new TemperError('TEMPER_TOOL_TIMEOUT', 'too late'))),
      );
    const { hooks } = someHooks([{ events: ['ToolCall'], tool: 'guard', timeout: '10ms' }], { guard: stuck });
    assert.match(JSON.stringify(await hooks.ask(CALL, caller, anOp())), /too late/);
  });

  it('another event goes on without a hook that fails, unless the hook must not fail', async () => {
    const event = { type: 'turn-start', turnNumber: 1 } as const;
    const lenient = someHooks([{ events: ['TurnStart'], tool: 'broken' }], { broken });
    assert.equal(await lenient.hooks.ask(event, caller, anOp()), undefined);
    const strict = someHooks([{ events: ['TurnStart'], tool: 'broken', onFailure: 'Fail' }], { broken });
    await assert.rejects(strict.hooks.ask(event, caller, anOp()), (error) =>
      isTemperError(error, 'TEMPER_HOOK_FAILED'),
    );
  });

  it('a call too large to be shown is refused, whatever the hook would say', async () => {
    const { hooks, calls } = someHooks([{ events: ['ToolCall'], tool: 'guard' }], { guard: () => ({ allow: true }) });
    const large = { ...CALL, args: { text: 'x'.repeat(300_000) } };
    assert.match(JSON.stringify(await hooks.ask(large, caller, anOp())), /more than 262144 characters/);
    assert.equal(calls.length, 0);
  });
});

describe('a tool that the agent forged in its session', () => {
  const session: Forged = { digest: `sha256:${'a'.repeat(64)}`, tier: 'Session' };
  const guard: HookTool = () => ({ allow: true });
  const asked = (name: string, forged: Forged) =>
    someHooks([{ events: ['ToolCall'], tool: name }], { [name]: guard }, { [name]: forged }).hooks.ask(
      CALL,
      caller,
      anOp(),
    );

  it('a tool of the session is no hook, because the model would be its own guard', async () => {
    assert.match(JSON.stringify(await asked('guard', session)), /tier Session/);
  });

  it('a tool of the session that the manifest pins, an imported one and one of a wider tier are hooks', async () => {
    assert.equal(await asked(`guard@${session.digest}`, session), undefined);
    assert.equal(await asked('guard', { ...session, imported: true }), undefined);
    assert.equal(await asked('guard', { ...session, tier: 'Agent' }), undefined);
  });
});
