import type { Audit, AuditRecord } from '../audit/port.ts';
import { abortable } from '../lib/async/abort.ts';
import { digestOf } from '../lib/canonical.ts';
import { suggestName } from '../lib/suggest.ts';
import type { Clock } from '../lib/clock.ts';
import { isTemperError, messageOf, TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';
import type { Json, JsonObject } from '../lib/json.ts';
import { type CallOptions, withTimeout } from '../lib/call-options.ts';
import type { Ledger } from '../ledger/port.ts';
import type { Decider, Decision, PolicyRequest } from '../policy/types.ts';
import { ATTRIBUTES, inSpan, SPANS } from '../telemetry/spans.ts';
import type { Approvals } from './approvals.ts';
import { authorize, policyDenied, toolRequest } from './authorize.ts';
import type { CallerContext, Invoker, Tool, ToolFailure, ToolResult, ToolView } from './contract.ts';
import { isForgeTestCall } from './forge-test-call.ts';
import { assertInput } from './input-check.ts';
import type { EventSink } from './events.ts';
import { type LoopGuard, NO_LOOP_GUARD } from './loop-guard.ts';
import type { SchemaCompiler } from './json-schema/compiler.ts';

/** Maximum depth of nested tool calls. */
const MAX_DEPTH = 5;

/** One completed call, for the records of tool use. */
export interface CompletedCall {
  tool: Tool['descriptor'];
  input: Json;
  result: ToolResult;
  caller: CallerContext;
}

export interface InvokerDeps {
  /** The current tools of the agent. */
  view(caller: CallerContext): ToolView;
  /** The current policy of the agent. */
  decider(caller: CallerContext): Decider;
  loopGuard(caller: CallerContext): LoopGuard;
  ledger: Ledger;
  approvals: Approvals;
  audit: Audit;
  schemas: SchemaCompiler;
  events: EventSink;
  clock: Clock;
  /** Time limit of one call of this tool, in milliseconds. */
  timeoutOf(tool: Tool['descriptor']): number;
  /** Receives each call that reached its tool, before the caller gets the result. Must return quickly. */
  observe(call: CompletedCall): void;
}

/**
 * The only way to call a tool. Each call passes these steps:
 *
 *   look-up -> may it be listed? -> input schema -> authorize (policy for these arguments, quota, approval)
 *     -> loop guard -> call with a copy of the arguments and a timeout -> settle the reservation -> observe -> audit
 *
 * The calls that a forge makes to test a tool skip the loop guard and the reservation: the agent did not choose them, and
 * the forge bounds them itself. After a wait for an approval, the look-up and the policy are repeated, so that a demotion
 * or a changed policy takes effect.
 *
 * A failure of any step up to the call becomes a result with `ok: false`. The call counts as a use of the tool (`observe`)
 * only when it passed the loop guard. Only a failed audit record makes `invoke` throw.
 */
export function createInvoker(deps: InvokerDeps): Invoker {
  const invoker: Invoker = {
    async invoke(name, input, caller, op) {
      const started = deps.clock.monotonic();
      const attributes = { [ATTRIBUTES.operation]: 'execute_tool', [ATTRIBUTES.tool]: printable(name, 80) };
      const outcome = await inSpan(SPANS.executeTool(printable(name, 80)), { attributes }, async (span) => {
        const attempted = await attempt(deps, invoker, { name, input, caller, op });
        if (!attempted.answer.ok) span.setAttribute(ATTRIBUTES.errorType, attempted.answer.error.code);
        return attempted;
      });
      const milliseconds = deps.clock.monotonic() - started;
      const result: ToolResult = { ...outcome.answer, milliseconds };
      if (outcome.tool !== undefined && outcome.reached) {
        deps.observe({ tool: outcome.tool.descriptor, input, result, caller });
      }
      const record: AuditRecord = {
        action: result.ok ? 'tool.called' : 'tool.call-failed',
        actor: `agent/${caller.agent}`,
        evidence: 'observed',
        subject: outcome.tool?.descriptor.forged?.digest ?? printable(name, 80),
        facts: auditFacts(result, input, caller),
      };
      await deps.audit.append(record, 'written');
      return result;
    },
    visible(caller) {
      const decider = deps.decider(caller);
      return deps
        .view(caller)
        .list()
        .filter((descriptor) => decider.decide(toolRequest(descriptor)).effect !== 'Deny');
    },
  };
  return invoker;
}

/** The call of a tool as its caller asked for it. */
interface RequestedCall {
  name: string;
  input: Json;
  caller: CallerContext;
  op: CallOptions;
}

/** How far a call came; known also when it failed. */
interface CallProgress {
  tool?: Tool;
  /** Whether the call reached the tool itself. Only then it counts as a use. */
  reached: boolean;
}

interface Attempt extends CallProgress {
  answer: { ok: true; tool: string; output: Json; notice?: string } | { ok: false; tool: string; error: ToolFailure };
}

async function attempt(deps: InvokerDeps, invoker: Invoker, call: RequestedCall): Promise<Attempt> {
  const progress: CallProgress = { reached: false };
  try {
    const answer = await admitAndRun(deps, invoker, call, progress);
    return { ...progress, answer };
  } catch (error) {
    return { ...progress, answer: { ok: false, tool: printable(call.name, 80), error: failureOf(error) } };
  }
}

/** Runs the steps of a call in their order. The first step that fails throws. */
async function admitAndRun(
  deps: InvokerDeps,
  invoker: Invoker,
  call: RequestedCall,
  progress: CallProgress,
): Promise<Attempt['answer']> {
  const { name, input, caller, op } = call;
  const tool = lookUp(deps, name, caller);
  progress.tool = tool;
  const decide = (request: PolicyRequest): Decision => deps.decider(caller).decide(request);
  const listed = decide(toolRequest(tool.descriptor));
  if (listed.effect === 'Deny') throw policyDenied(listed);
  assertInput(deps.schemas, tool.descriptor, input);
  const authorized = await authorize(
    tool.descriptor,
    input,
    {
      decide,
      assertAvailable: () => assertSameTool(tool, lookUp(deps, name, caller)),
      ledger: isForgeTestCall(caller) ? undefined : deps.ledger,
      approvals: deps.approvals,
      events: deps.events,
      agent: caller.agent,
    },
    op,
  );
  try {
    return await runGuarded(deps, invoker, tool, call, progress);
  } finally {
    await authorized.commit();
  }
}

/** Calls the tool unless the loop guard refuses, and reports the result to the guard. */
async function runGuarded(
  deps: InvokerDeps,
  invoker: Invoker,
  tool: Tool,
  { input, caller, op }: RequestedCall,
  progress: CallProgress,
): Promise<Attempt['answer']> {
  const { name } = tool.descriptor;
  const guard = isForgeTestCall(caller) ? NO_LOOP_GUARD : deps.loopGuard(caller);
  const warning = checkLoop(guard, name, input);
  progress.reached = true;
  try {
    const output = await execute(deps, invoker, tool, structuredClone(input), caller, op);
    guard.record(name, input, output);
    if (warning === undefined) return { ok: true, tool: name, output };
    deps.events({ type: 'warning', code: 'TEMPER_LOOP_DETECTED', message: warning });
    return { ok: true, tool: name, output, notice: warning };
  } catch (error) {
    guard.record(name, input, { error: messageOf(error, 200) });
    throw error;
  }
}

/** Finds a tool by name, or a forged tool by name and required digest: `name@sha256:…`. */
function lookUp(deps: InvokerDeps, name: string, caller: CallerContext): Tool {
  const view = deps.view(caller);
  const [bare, pinned] = splitPin(name);
  const tool = view.find(bare);
  if (tool === undefined || (pinned !== undefined && tool.descriptor.forged?.digest !== pinned)) {
    throw notFound(bare, pinned, view);
  }
  const identity = tool.descriptor.forged?.digest ?? bare;
  if (caller.stack.includes(identity)) {
    throw new TemperError(
      'TEMPER_TOOL_RECURSION',
      `"${bare}" is already running in this chain of calls; call it outside the chain`,
    );
  }
  if (caller.stack.length >= MAX_DEPTH) {
    throw new TemperError(
      'TEMPER_TOOL_RECURSION',
      `nested tool calls are limited to a depth of ${MAX_DEPTH}; "${bare}" would exceed it`,
    );
  }
  return tool;
}

function splitPin(name: string): [string, string?] {
  const at = name.indexOf('@');
  return at === -1 ? [name] : [name.slice(0, at), name.slice(at + 1)];
}

function notFound(name: string, pinned: string | undefined, view: ToolView): TemperError {
  const shown = printable(name, 80);
  if (pinned !== undefined && view.find(name) !== undefined) {
    return new TemperError(
      'TEMPER_TOOL_NOT_FOUND',
      `the version of "${shown}" that this step is pinned to is no longer active; forge the tool again`,
    );
  }
  const known = view.list().map((descriptor) => descriptor.name);
  const near = suggestName(name, known);
  const hint = near === undefined ? 'use a listed tool or forge one' : `did you mean "${near}"?`;
  return new TemperError('TEMPER_TOOL_NOT_FOUND', `no tool is named "${shown}"; ${hint}`);
}

/** Refuses the call when the tool was replaced during the wait for the approver, whose approval is for the first tool only. */
function assertSameTool(approved: Tool, current: Tool): void {
  if (approved.descriptor.forged?.digest === current.descriptor.forged?.digest) return;
  throw new TemperError(
    'TEMPER_TOOL_NOT_FOUND',
    `"${approved.descriptor.name}" was replaced by another tool while the call waited for approval; call it again`,
  );
}

function checkLoop(guard: LoopGuard, name: string, input: Json): string | undefined {
  const { verdict, message } = guard.check(name, input);
  if (verdict === 'block' || verdict === 'break') {
    throw new TemperError('TEMPER_LOOP_DETECTED', message, { details: { rule: `loop-guard.${verdict}` } });
  }
  return verdict === 'warn' ? message : undefined;
}

async function execute(
  deps: InvokerDeps,
  invoker: Invoker,
  tool: Tool,
  input: Json,
  caller: CallerContext,
  op: CallOptions,
): Promise<Json> {
  const { name, forged } = tool.descriptor;
  const nested: CallerContext = { ...caller, stack: [...caller.stack, forged?.digest ?? name] };
  return withTimeout(op, deps.clock, deps.timeoutOf(tool.descriptor), (inner) => {
    const work = tool.call(input, {
      ...nested,
      op: inner,
      invoke: (target, argument, stepOp) => invoker.invoke(target, argument, nested, stepOp),
    });
    return abortable(work, inner.signal, () => abortError(op.signal, name));
  });
}

/** The error of a tool that did not end before the signal of its call aborted; `caller` is the signal of the caller. */
function abortError(caller: AbortSignal, name: string): TemperError {
  return caller.aborted
    ? new TemperError('TEMPER_CANCELLED', `the call of "${name}" was cancelled`)
    : new TemperError('TEMPER_TOOL_TIMEOUT', `"${name}" did not answer in time and was stopped`);
}

function failureOf(error: unknown): ToolFailure {
  if (!isTemperError(error)) return { code: 'TEMPER_TOOL_FAILED', message: printable(messageOf(error)) };
  const { rule } = error.details;
  return { code: error.code, message: error.message, ...(typeof rule === 'string' ? { rule } : {}) };
}

function auditFacts(result: ToolResult, input: Json, caller: CallerContext): JsonObject {
  return {
    tool: result.tool,
    session: caller.session,
    rootMessage: caller.rootMessage,
    inputDigest: safeDigest(input),
    milliseconds: Math.round(result.milliseconds),
    depth: caller.stack.length,
    ...(result.ok
      ? {}
      : { code: result.error.code, ...(result.error.rule === undefined ? {} : { rule: result.error.rule }) }),
  };
}

/** A model may write arguments that canonical JSON refuses; the call is recorded anyway. */
function safeDigest(input: Json): string {
  try {
    return digestOf(input);
  } catch (error) {
    if (error instanceof RangeError) return 'none';
    throw error;
  }
}
