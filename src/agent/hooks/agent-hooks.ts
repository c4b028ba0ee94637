import { parseDuration } from '../../api/quantities.ts';
import type { Hook, HookEventName } from '../../api/v1alpha1/agent/hooks.ts';
import { type CallOptions, withTimeout } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, messageOf, TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { CallerContext, ToolDescriptor, ToolResult } from '../../tools/contract.ts';
import type { AgentEvent, EventSink } from '../../tools/events.ts';
import { isForgeTestCall } from '../../tools/forge-test-call.ts';
import { type CallHooks, isHookCall } from '../../tools/hooks/call-hooks.ts';
import { runIds } from '../../tools/nested/nested-calls.ts';
import {
  EVENT_TYPES,
  hookArguments,
  type HookDirective,
  type HookEvent,
  type HookEventType,
  MAX_EVENT_CHARACTERS,
  parseDirective,
} from './hook-event.ts';

/** The hooks of one agent. */
export interface AgentHooks extends CallHooks {
  /** Whether a hook receives events of this type. */
  has(type: HookEventType): boolean;
  /**
   * Runs the hooks for an event, in the order of the manifest, and returns the first directive that ends, continues or refuses something.
   * Throws TEMPER_HOOK_FAILED when a hook with `onFailure: Fail` fails; at `tool-call` such a hook refuses the call.
   */
  ask(event: HookEvent, caller: CallerContext, op: CallOptions): Promise<HookDirective | undefined>;
}

export interface AgentHooksDeps {
  hooks: readonly Hook[];
  clock: Clock;
  events: EventSink;
  /** Calls a tool of the agent with every check. */
  invoke(tool: string, input: Json, caller: CallerContext, op: CallOptions): Promise<ToolResult>;
  /** The tool of this name that the agent has in its session. */
  describe(name: string, caller: CallerContext): ToolDescriptor | undefined;
}

const DEFAULT_TIMEOUT = '5s';

interface CompiledHook {
  tool: string;
  types: ReadonlySet<HookEventType>;
  timeoutMs: number;
  mustSucceed(type: HookEventType): boolean;
}

/** What one hook said, or why it failed. */
type HookAnswer = { directive?: HookDirective } | { failure: string; code: ErrorCode };

export function createAgentHooks(deps: AgentHooksDeps): AgentHooks {
  const hooks = deps.hooks.map(compile);
  const ask: AgentHooks['ask'] = async (event, caller, op) => {
    if (isHookCall(caller) || isForgeTestCall(caller)) return undefined;
    const { type } = event;
    for (const [index, hook] of hooks.entries()) {
      if (!hook.types.has(type)) continue;
      const key = `${op.key}/hook-${index}-${type}`;
      const answer = await askOne(deps, hook, event, hookCaller(caller), { ...op, key });
      if ('failure' in answer) {
        const refusal = onFailure(deps, hook, type, caller, answer.failure);
        if (refusal !== undefined) return refusal;
      } else if (answer.directive !== undefined && !('allow' in answer.directive)) return answer.directive;
    }
    return undefined;
  };
  return {
    has: (type) => hooks.some(({ types }) => types.has(type)),
    ask,
    async beforeCall({ tool, input, caller }, op) {
      const directive = await ask({ type: 'tool-call', tool, args: input, ...runIds(caller) }, caller, op);
      if (directive !== undefined && 'deny' in directive) throw callDenied(tool, directive.deny);
    },
    async afterCall({ tool, input, caller }, result, op) {
      const shown: Json = result.ok ? { output: result.output } : { error: { ...result.error } };
      await ask({ type: 'tool-result', tool, args: input, result: shown, ...runIds(caller) }, caller, op);
    },
  };
}

/** A hook is a tool of the agent, also where it guards a run of `agent_run` with fewer tools. */
function hookCaller({ run: _run, ...caller }: CallerContext): CallerContext {
  return { ...caller, stack: [], origin: 'Hook' };
}

function compile({ events, tool, timeout = DEFAULT_TIMEOUT, onFailure: policy }: Hook): CompiledHook {
  return {
    tool,
    types: new Set(events.map((name: HookEventName) => EVENT_TYPES[name])),
    timeoutMs: parseDuration(timeout),
    mustSucceed: (type) => (policy === undefined ? type === 'tool-call' : policy === 'Fail'),
  };
}

/** A failed hook at `tool-call` refuses the call, because it may be the one that would have. */
function onFailure(
  { events }: AgentHooksDeps,
  hook: CompiledHook,
  type: HookEventType,
  { session }: CallerContext,
  failure: string,
): HookDirective | undefined {
  const message = `hook "${hook.tool}" failed at ${type}: ${failure}`;
  if (!hook.mustSucceed(type)) {
    events({ type: 'warning', code: 'TEMPER_HOOK_FAILED', message }, session);
    return undefined;
  }
  if (type === 'tool-call') return { deny: message };
  throw new TemperError('TEMPER_HOOK_FAILED', `${message}; correct the tool, or set onFailure: Ignore`);
}

async function askOne(
  deps: AgentHooksDeps,
  hook: CompiledHook,
  event: HookEvent,
  caller: CallerContext,
  op: CallOptions,
): Promise<HookAnswer> {
  const started = deps.clock.monotonic();
  const answer = await runHook(deps, hook, event, caller, op);
  const ran: AgentEvent = {
    type: 'hook',
    tool: hook.tool,
    event: event.type,
    ...('failure' in answer ? { code: answer.code } : {}),
    ...('directive' in answer && answer.directive !== undefined ? { directive: nameOf(answer.directive) } : {}),
    milliseconds: deps.clock.monotonic() - started,
  };
  deps.events(ran, caller.session);
  return answer;
}

async function runHook(
  deps: AgentHooksDeps,
  hook: CompiledHook,
  event: HookEvent,
  caller: CallerContext,
  op: CallOptions,
): Promise<HookAnswer> {
  const tool = deps.describe(hook.tool, caller);
  const problem = tool === undefined ? 'the agent has no such tool' : sessionToolProblem(hook.tool, tool);
  if (tool === undefined || problem !== undefined) return failed(problem ?? '', 'TEMPER_TOOL_NOT_FOUND');
  const input = hookArguments(event, tool.inputSchema);
  if (input === undefined) return failed(`the event has more than ${MAX_EVENT_CHARACTERS} characters`);
  try {
    const result = await withTimeout(op, deps.clock, hook.timeoutMs, (inner) =>
      deps.invoke(hook.tool, input, caller, inner),
    );
    if (!result.ok) return failed(printable(result.error.message, 400), result.error.code);
    const parsed = parseDirective(event.type, result.output);
    return parsed.problem === undefined ? parsed : failed(parsed.problem);
  } catch (error) {
    if (op.signal.aborted || !isTemperError(error)) throw error;
    return failed(messageOf(error, 400), error.code);
  }
}

function failed(failure: string, code: ErrorCode = 'TEMPER_HOOK_FAILED'): HookAnswer {
  return { failure, code };
}

/** A model could forge a tool of this name in its session, and be its own guard. */
function sessionToolProblem(name: string, { forged }: ToolDescriptor): string | undefined {
  if (forged === undefined || forged.tier !== 'Session' || forged.imported === true || name.includes('@'))
    return undefined;
  return 'the tool is at tier Session; name it with its digest, import it, or promote it';
}

function nameOf(directive: HookDirective): string {
  return Object.keys(directive)[0] ?? '';
}

function callDenied(tool: string, reason: string): TemperError {
  return new TemperError('TEMPER_HOOK_DENIED', `a hook refused the call of "${tool}": ${reason}`, {
    details: { rule: 'hooks.deny' },
  });
}
