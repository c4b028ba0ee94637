import type { Audit, AuditRecord } from '../audit/port.ts';
import { abortable } from '../lib/async/abort.ts';
import { tryDigestOf } from '../lib/canonical.ts';
import { suggestName } from '../lib/suggest.ts';
import type { Clock } from '../lib/clock.ts';
import { isTemperError, messageOf, TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';
import type { Json, JsonObject } from '../lib/json.ts';
import { abortedByTimeout, type CallOptions, withTimeout } from '../lib/call-options.ts';
import type { Ledger } from '../ledger/port.ts';
import type { Decider, Decision, PolicyRequest } from '../policy/types.ts';
import { ATTRIBUTES, inSpan, SPANS } from '../telemetry/spans.ts';
import type { Approvals } from './approvals.ts';
import { assertCallable } from './checks/admission.ts';
import { type AuthorizedCall, authorize, hostsOf, type ParkedRequest, toolRequest } from './authorize.ts';
import type {
  ApprovedCall,
  CallerContext,
  Invoker,
  ParkedCall,
  Tool,
  ToolDescriptor,
  ToolFailure,
  ToolResult,
  ToolView,
} from './contract.ts';
import { isForgeTestCall } from './forge-test-call.ts';
import { type CallHooks, isHookCall } from './hooks/call-hooks.ts';
import { type EventSink, inSession } from './events.ts';
import { type LoopGuard, NO_LOOP_GUARD } from './loop-guard.ts';
import type { SchemaCompiler } from './json-schema/compiler.ts';
import {
  type EndedCall,
  isCallOfTool,
  nestedCaller,
  nestedCalls,
  NestedResults,
  type RunToEnd,
} from './nested/nested-calls.ts';
import type { ResultScan } from './output-scan/result-scan.ts';
import { createdFile } from './recording/created-file.ts';
import { CallRecorder } from './recording/call-recorder.ts';
import type { RunningCalls } from './running-calls.ts';
import type { CallRecording } from './recording/call-recording.ts';

/** Maximum depth of nested tool calls. */
const MAX_DEPTH = 5;

/** One completed call, for the records of tool use. */
export interface CompletedCall {
  tool: Tool['descriptor'];
  input: Json;
  result: ToolResult;
  caller: CallerContext;
  /** What a forged tool got from outside. Absent when its output depends on its input alone. */
  recording?: CallRecording;
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
  /** Absent for an agent without hooks. */
  hooks?: CallHooks | undefined;
  /** Absent when the calls of a tool that leaves service finish. */
  runningCalls?: RunningCalls | undefined;
  events: EventSink;
  clock: Clock;
  /** The arguments with which a call is made; absent: as its caller gives them. */
  withDefaults?(name: string, input: Json, caller: CallerContext): Json;
  /**
   * The result for models, programs, hooks, clients and events; absent: as the tool returned it. A tool that called the tool gets the real
   * result, and so does a forge.
   */
  resultScan?: ResultScan | undefined;
  /** Time limit of one call of this tool, in milliseconds. */
  timeoutOf(tool: Tool['descriptor']): number;
  /** Receives each call that reached its tool, before the caller gets the result. Must return quickly. */
  observe(call: CompletedCall): void;
}

/**
 * The only way to call a tool. Each call passes these steps:
 *
 *   look-up -> may it be listed? -> input schema -> authorize (policy for these arguments, loop guard, hooks, quota, approval)
 *     -> call with a copy of the arguments and a timeout -> settle the reservation -> observe -> audit -> scan of the output -> hooks
 *
 * The calls that a forge makes to test a tool skip the loop guard and the reservation: the agent did not choose them, and
 * the forge bounds them itself. After a wait for an approval, the look-up and the policy are repeated, so that a demotion
 * or a changed policy takes effect.
 *
 * A failure of any step becomes a result with `ok: false`. The call counts as a use of the tool (`observe`) only when it reached
 * the tool. Only a failed audit record makes `invoke` throw. A parked call has no result and ends before the call.
 */
export function createInvoker(deps: InvokerDeps): Invoker {
  const run = async (requested: RequestedCall): Promise<EndedCall | ParkedCall> => {
    const { name, caller } = requested;
    const input = deps.withDefaults?.(name, requested.input, caller) ?? requested.input;
    const nested = new NestedResults(requested.runToEnd);
    const call = { ...requested, input, runToEnd: nested.runToEnd };
    const started = deps.clock.monotonic();
    const spanName = shownName(name);
    const attributes = { [ATTRIBUTES.operation]: 'execute_tool', [ATTRIBUTES.tool]: spanName };
    const { tool, reached, answer, recording } = await inSpan(
      SPANS.executeTool(spanName),
      { attributes },
      async (span) => {
        const attempted = await attempt(deps, call);
        if (isFailed(attempted.answer)) span.setAttribute(ATTRIBUTES.errorType, attempted.answer.error.code);
        return attempted;
      },
    );
    const subject = tool?.descriptor.forged?.digest ?? printable(name, 80);
    const record = (action: string, facts: JsonObject): AuditRecord => ({
      action,
      actor: `agent/${caller.agent}`,
      evidence: 'observed',
      subject,
      facts,
    });
    if ('parked' in answer) {
      const { session, rootMessage, origin } = caller;
      const facts = { tool: answer.tool, session, rootMessage, origin, request: answer.parked };
      await deps.audit.append(record('tool.call-parked', facts), 'written');
      return answer;
    }
    const result: ToolResult = { ...answer, milliseconds: deps.clock.monotonic() - started };
    if (tool !== undefined && reached) {
      const recorded = recording === undefined ? {} : { recording };
      deps.observe({ tool: tool.descriptor, input, result, caller, ...recorded });
    }
    const facts = auditFacts(result, input, caller);
    await deps.audit.append(record(result.ok ? 'tool.called' : 'tool.call-failed', facts), 'written');
    if (tool === undefined) return { result, shown: result, isFromHost: false };
    const isFromHost = nested.areFromHost || deps.resultScan?.isFromHost(tool.descriptor) === true;
    return released(deps, tool, call, result, isFromHost);
  };
  const runToEnd: RunToEnd = async (name, input, caller, op) => {
    const ended = await run({ name, input, caller, op, runToEnd, mayPark: false });
    if ('parked' in ended) throw new TemperError('TEMPER_INTERNAL', 'a call that must wait was parked');
    return ended;
  };
  return {
    async invoke(name, input, caller, op) {
      const { result } = await runToEnd(name, input, caller, op);
      return result;
    },
    // A tool that calls others would start again from its first call, so only the call of the agent itself is parked.
    async invokeOrPark(name, input, caller, op) {
      const ended = await run({ name, input, caller, op, runToEnd, mayPark: caller.stack.length === 0 });
      return 'parked' in ended ? ended : ended.result;
    },
    visible: (caller) => visibleTools(deps, caller),
  };
}

function visibleTools(deps: InvokerDeps, caller: CallerContext): ToolDescriptor[] {
  const policy = deps.decider(caller);
  return deps
    .view(caller)
    .list()
    .filter((descriptor) => policy.decide(toolRequest(descriptor)).effect !== 'Deny');
}

/** The result as its caller gets it, and as hooks and events show it. What one tool passes to another, and the tests of a forge, stay as they are. */
async function released(
  deps: InvokerDeps,
  { descriptor }: Tool,
  { input, caller, op }: RequestedCall,
  result: ToolResult,
  isFromHost: boolean,
): Promise<EndedCall> {
  const scan = isForgeTestCall(caller) ? undefined : deps.resultScan;
  const shown = scan?.scan(descriptor, result, { caller, isFromHost }) ?? result;
  await deps.hooks?.afterCall({ tool: descriptor.name, input, caller }, shown, op);
  return { result: isCallOfTool(caller) ? result : shown, shown, isFromHost };
}

/** The call of a tool as its caller asked for it. */
interface RequestedCall {
  /** A name, or `name@sha256:…`. */
  name: string;
  input: Json;
  caller: CallerContext;
  op: CallOptions;
  /** Calls the tools that this tool calls. */
  runToEnd: RunToEnd;
  mayPark: boolean;
  /** What an approver permitted it. */
  approved?: ApprovedCall;
}

type FailedAnswer = { ok: false; tool: string; error: ToolFailure; approval?: string };
type Answer = { ok: true; tool: string; output: Json; notice?: string; approval?: string } | FailedAnswer | ParkedCall;

function isFailed(answer: Answer): answer is FailedAnswer {
  return 'ok' in answer && !answer.ok;
}

/** How far a call came, and its answer. */
interface Attempt {
  /** Absent when the look-up failed. */
  tool?: Tool;
  /** Whether the call reached the tool itself. Only then it counts as a use. */
  reached: boolean;
  answer: Answer;
  recording?: CallRecording | undefined;
}

/** Runs the steps of a call in their order, up to the first that fails. */
async function attempt(deps: InvokerDeps, call: RequestedCall): Promise<Attempt> {
  const found = await outcomeOf(call, async () => lookUp(deps, call.name, call.caller));
  if ('failure' in found) return { reached: false, answer: found.failure };
  const tool = found.value;
  const isGuarded = !isForgeTestCall(call.caller) && !isHookCall(call.caller);
  const guard = isGuarded ? deps.loopGuard(call.caller) : NO_LOOP_GUARD;
  const progress = new Progress(guard, tool.descriptor, call.input);
  const admitted = await outcomeOf(call, () => admit(deps, tool, progress, call));
  if ('failure' in admitted) {
    progress.record({ error: printable(admitted.failure.error.message, 200) }, { hasRun: false });
    return { tool, reached: false, answer: admitted.failure };
  }
  const permitted = admitted.value;
  if ('parked' in permitted) return { tool, reached: false, answer: { ...permitted, tool: tool.descriptor.name } };
  const recorder = tool.descriptor.forged === undefined ? undefined : new CallRecorder();
  const { approval, decision } = permitted;
  const approvedCall = { rule: decision.rule, hosts: hostsOf(tool.descriptor, call.input) };
  const made = approval === undefined ? call : { ...call, approved: approvedCall };
  const ran = await runRecorded(deps, tool, progress, made, recorder);
  const committed = await outcomeOf(call, () => permitted.commit());
  const approved = approval === undefined ? {} : { approval };
  const answer = { ...('failure' in committed ? committed.failure : ran), ...approved };
  return { tool, reached: true, answer, recording: recorder?.recording };
}

/** The loop guard's view of one call: it is recorded once it has passed the guard. */
class Progress {
  readonly #guard: LoopGuard;
  readonly #tool: ToolDescriptor;
  readonly #input: Json;
  #isChecked = false;
  /** The warning of the guard, for the model. */
  warning: string | undefined;

  constructor(guard: LoopGuard, tool: ToolDescriptor, input: Json) {
    this.#guard = guard;
    this.#tool = tool;
    this.#input = input;
  }

  /** Throws TEMPER_LOOP_DETECTED when the guard refuses the call. */
  check(): void {
    this.warning = checkLoop(this.#guard, this.#tool.name, this.#input);
    this.#isChecked = true;
  }

  /** `hasRun`: the tool ended with an output, so that it may have had its effects. */
  record(result: Json, { hasRun }: { hasRun: boolean }): void {
    const { name, sideEffects } = this.#tool;
    if (this.#isChecked) this.#guard.record(name, this.#input, result, hasRun && sideEffects);
  }
}

/** The value of one step, or the answer of a call that fails in it. */
async function outcomeOf<T>(
  call: RequestedCall,
  step: () => Promise<T>,
): Promise<{ value: T } | { failure: FailedAnswer }> {
  try {
    return { value: await step() };
  } catch (error) {
    return { failure: failedAnswer(call, error) };
  }
}

function failedAnswer({ name }: RequestedCall, error: unknown): FailedAnswer {
  return { ok: false, tool: shownName(name), error: failureOf(error) };
}

/** Checks that the policy lists the tool, the arguments, and the permission for them; reserves the call. */
async function admit(
  deps: InvokerDeps,
  tool: Tool,
  progress: Progress,
  { name, input, caller, op, mayPark }: RequestedCall,
): Promise<AuthorizedCall | ParkedRequest> {
  const decide = (request: PolicyRequest): Decision => deps.decider(caller).decide(request);
  assertCallable(tool.descriptor, input, { decide, schemas: deps.schemas });
  return authorize(
    tool.descriptor,
    input,
    {
      decide,
      assertAvailable: () => assertSameTool(tool, lookUp(deps, name, caller)),
      assertProgress: () => progress.check(),
      askHooks: async () => deps.hooks?.beforeCall({ tool: tool.descriptor.name, input, caller }, op),
      parkableIn: mayPark ? caller.session : undefined,
      ledger: isForgeTestCall(caller) ? undefined : deps.ledger,
      approvals: deps.approvals,
      events: inSession(deps.events, caller.session),
      agent: caller.agent,
    },
    op,
  );
}

/** Calls the tool and reports the result to the loop guard. */
async function runRecorded(
  deps: InvokerDeps,
  tool: Tool,
  progress: Progress,
  call: RequestedCall,
  recorder: CallRecorder | undefined,
): Promise<Exclude<Answer, ParkedCall>> {
  const { name } = tool.descriptor;
  try {
    const output = await execute(deps, tool, call, recorder);
    progress.record(output, { hasRun: true });
    const created = createdFile(tool.descriptor, output);
    if (created !== undefined && !isForgeTestCall(call.caller)) deps.events(created, call.caller.session);
    return { ok: true, tool: name, output, ...noticeOf(deps, call.caller, progress.warning) };
  } catch (error) {
    progress.record({ error: messageOf(error, 200) }, { hasRun: false });
    return failedAnswer(call, error);
  }
}

function noticeOf(
  { events }: InvokerDeps,
  { session }: CallerContext,
  warning: string | undefined,
): { notice?: string } {
  if (warning === undefined) return {};
  events({ type: 'warning', code: 'TEMPER_LOOP_DETECTED', message: warning }, session);
  return { notice: warning };
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
  if (tool.mayCallItself !== true && caller.stack.includes(identity)) {
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

/** The name of a requested tool for results and spans: bounded, printable and without the digest. */
function shownName(name: string): string {
  return printable(splitPin(name)[0], 80);
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

/** Calls the tool with a copy of the arguments, within its time. */
async function execute(
  deps: InvokerDeps,
  tool: Tool,
  { input, caller, op, runToEnd, approved }: RequestedCall,
  recorder: CallRecorder | undefined,
): Promise<Json> {
  const nested = nestedCaller(tool, caller);
  using running = deps.runningCalls?.start(tool.descriptor, caller);
  const interruptible = running === undefined ? op : { ...op, signal: AbortSignal.any([op.signal, running.signal]) };
  return await withTimeout(interruptible, deps.clock, deps.timeoutOf(tool.descriptor), (inner) => {
    const work = tool.call(structuredClone(input), {
      ...nested,
      ...(approved === undefined ? {} : { approved }),
      op: inner,
      ...(recorder === undefined ? {} : { recorder }),
      invoke: nestedCalls(runToEnd, nested, inSession(deps.events, caller.session)),
    });
    return abortable(work, inner.signal, () => abortError(inner.signal, tool.descriptor, running?.signal));
  });
}

function abortError(signal: AbortSignal, { name }: ToolDescriptor, running: AbortSignal | undefined): TemperError {
  if (isTemperError(running?.reason)) return running.reason;
  return abortedByTimeout(signal)
    ? new TemperError('TEMPER_TOOL_TIMEOUT', `"${name}" did not answer in time and was stopped`)
    : new TemperError('TEMPER_CANCELLED', `the call of "${name}" was cancelled`);
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
    // A model may write arguments that canonical JSON refuses; the call is recorded anyway.
    inputDigest: tryDigestOf(input) ?? 'none',
    milliseconds: Math.round(result.milliseconds),
    depth: caller.stack.length,
    origin: caller.origin,
    ...(result.approval === undefined ? {} : { request: result.approval }),
    ...(result.ok
      ? {}
      : { code: result.error.code, ...(result.error.rule === undefined ? {} : { rule: result.error.rule }) }),
  };
}
