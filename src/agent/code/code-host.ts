import { AsyncResource } from 'node:async_hooks';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { type Json, member } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { type SessionAnswer, type SessionCall, type SessionRequest, TIMER_CALL } from '../../sandbox/session-port.ts';
import type { CallerContext, Invoker, ToolDescriptor, ToolResult } from '../../tools/contract.ts';
import type { EventSink } from '../../tools/events.ts';
import type { ItemOrigin } from '../../models/item-origin.ts';
import { originOfTool } from '../history/origins.ts';
import { resultSummary } from '../../tools/nested/result-summary.ts';
import { CallsWithEffects } from './calls-with-effects.ts';
import { type RunJournalEntry, type Replay, requestDigest } from './journal.ts';

/** How an entry of the journal is stored. `origin`: where the answer in it comes from. */
export interface EntryStorage {
  isDeferrable: boolean;
  origin: ItemOrigin;
}

/** What a call gave the code. */
interface CallAnswer extends EntryStorage {
  result: SessionAnswer;
}

export interface CodeHostDeps {
  invoker: Invoker;
  /** The caller of the tools, with the origin `Code`. */
  caller: CallerContext;
  clock: Clock;
  events: EventSink;
  /** The id of the call of `invoke`. */
  callId: string;
  replay: Replay;
  /** Stores an entry of the journal. */
  store: (entry: RunJournalEntry, how: EntryStorage) => Promise<void>;
  /** Counts a tool call; false when none is left. */
  takeStep: () => boolean;
  /** Whether a repeated call of this tool has no further effect. */
  isRepeatable: (tool: ToolDescriptor | undefined) => boolean;
  /** Ends the run of the code. */
  stop: () => void;
}

/** What code names a tool by: no version, path or address. */
const BARE_NAME = /^[a-z][a-z0-9_-]{0,62}$/;
const MAX_TIMER_MS = 600_000;
const LOOP_BREAK_RULE = 'loop-guard.break';
/** Characters of JSON of the answers that the journal of one run stores; of one answer at most a part of it. */
const MAX_STORED_ANSWERS = 1_048_576;
const MAX_STORED_ANSWER = 65_536;
const OF_ENGINE: EntryStorage = { isDeferrable: true, origin: 'Engine' };

/** Answers the calls of one run of code: each through the invoker, and each answer in the journal before the code gets it. */
export class CodeHost {
  readonly #deps: CodeHostDeps;
  readonly #parked: string[] = [];
  readonly #notices = new Set<string>();
  readonly #effects = new CallsWithEffects();
  #open = 0;
  #stored = 0;
  #calls = 0;
  #hasDiverged = false;
  #isExhausted = false;
  #loopBreak: string | undefined;
  #failure: { error: unknown } | undefined;

  constructor(deps: CodeHostDeps) {
    this.#deps = deps;
  }

  /** The requests that the run waits for. */
  get parked(): readonly string[] {
    return this.#parked;
  }

  /** Hints for the model beside the results. */
  get notices(): readonly string[] {
    return [...this.#notices];
  }

  /** The calls with effects that the code made, for a run whose result does not tell. */
  get effects(): string | undefined {
    return this.#effects.describe();
  }

  /** The tool calls that the code made. */
  get calls(): number {
    return this.#calls;
  }

  /** The code makes other calls than before its interruption. */
  get hasDiverged(): boolean {
    return this.#hasDiverged;
  }

  /** A call was refused because all tool calls of the message are used. */
  get isExhausted(): boolean {
    return this.#isExhausted;
  }

  /** Why the loop guard ends the message. */
  get loopBreak(): string | undefined {
    return this.#loopBreak;
  }

  /** Throws the failure of the engine that ended the run, if any. */
  assertNoFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** The callback of the run, in the asynchronous context of its caller: spans and the current message are those of the run. */
  call(): SessionCall {
    return AsyncResource.bind((request: SessionRequest, op: CallOptions) => this.#call(request, op));
  }

  async #call(request: SessionRequest, op: CallOptions): Promise<SessionAnswer> {
    // A parked run is repeated later, and makes the call then.
    if (this.#parked.length > 0 || this.#hasDiverged) return pending();
    this.#open += 1;
    const answer = await this.#settled(request, op);
    this.#open -= 1;
    if (this.#parked.length > 0 && this.#open === 0) this.#deps.stop();
    return answer ?? pending();
  }

  /** A failure of the engine ends the run, and is thrown after it. */
  async #settled(request: SessionRequest, op: CallOptions): Promise<SessionAnswer | undefined> {
    try {
      return await this.#answer(request, op);
    } catch (error) {
      this.#failure ??= { error };
      this.#deps.stop();
      return undefined;
    }
  }

  /** Undefined for a call without an answer. */
  async #answer(request: SessionRequest, op: CallOptions): Promise<SessionAnswer | undefined> {
    const { replay, stop } = this.#deps;
    const digest = requestDigest(request);
    const known = replay.find(request.call, digest, () => this.#repeat(request, digest, op));
    const isTimer = request.name === TIMER_CALL;
    if (known.state === 'diverged') {
      this.#hasDiverged = true;
      stop();
      return undefined;
    }
    if (known.state === 'answered') {
      if (!isTimer && known.isStored && BARE_NAME.test(request.name)) this.#isExhausted = !this.#count();
      return isTimer ? known.answer : this.#answeredBefore(request, await known.answer);
    }
    const answer = isTimer ? await this.#wait(request.input, op) : await this.#invoke(request, digest, known.state, op);
    if (answer === undefined) return undefined;
    const { result, ...how } = answer;
    const stored = this.#isStorable(result) ? { answer: result } : {};
    const entry = { kind: 'answered' as const, call: request.call, digest, ...stored };
    await this.#deps.store(isTimer ? { ...entry, isTimer } : entry, how);
    await replay.isComplete;
    return result;
  }

  #answeredBefore({ call, name }: SessionRequest, answer: SessionAnswer): SessionAnswer {
    if (!this.#deps.isRepeatable(this.#toolOf(name))) this.#effects.ended(call, name, answer);
    return answer;
  }

  #toolOf(name: string): ToolDescriptor | undefined {
    return this.#deps.invoker.visible(this.#deps.caller).find((one) => one.name === name);
  }

  /** The answer of a call whose first one was not stored. */
  async #repeat(request: SessionRequest, digest: string, op: CallOptions): Promise<SessionAnswer> {
    const answer = await this.#invoke(request, digest, 'unknown', op);
    return answer?.result ?? pending();
  }

  #isStorable(result: SessionAnswer): boolean {
    const size = JSON.stringify(result).length;
    if (size > MAX_STORED_ANSWER || this.#stored + size > MAX_STORED_ANSWERS) return false;
    this.#stored += size;
    return true;
  }

  async #wait(input: Json, op: CallOptions): Promise<CallAnswer> {
    const milliseconds = member(input, 'milliseconds');
    const bounded = typeof milliseconds === 'number' ? Math.min(Math.max(0, milliseconds), MAX_TIMER_MS) : 0;
    await this.#deps.clock.sleep(bounded, op.signal).catch(() => undefined);
    return { result: { time: this.#now(), ok: true, value: null }, ...OF_ENGINE };
  }

  async #invoke(
    request: SessionRequest,
    digest: string,
    state: 'new' | 'unknown',
    op: CallOptions,
  ): Promise<CallAnswer | undefined> {
    const refusal = this.#refusalOf(request);
    if (refusal !== undefined) return { result: refusal, ...OF_ENGINE };
    const { name, input, call } = request;
    const { invoker, caller, callId, events, store } = this.#deps;
    const tool = this.#toolOf(name);
    const isRepeatable = this.#deps.isRepeatable(tool);
    if (state === 'unknown' && !isRepeatable) {
      const message = `the result of this call of "${name}" is not known after an interruption; it may have had its effect. Check before you call it again`;
      this.#effects.started(call, name);
      return { result: this.#failed('TEMPER_TOOL_OUTCOME_UNKNOWN', message), isDeferrable: false, origin: 'Engine' };
    }
    if (!isRepeatable) {
      this.#effects.started(call, name);
      await store({ kind: 'started', call, digest }, { isDeferrable: false, origin: 'Engine' });
    }
    const { origin, stack } = caller;
    const shown = { id: `${callId}/${call}`, origin, depth: stack.length + 1, tool: name };
    events({ type: 'tool-call', ...shown, input });
    const result = await invoker.invokeOrPark(name, input, caller, op);
    if ('parked' in result) {
      await store({ kind: 'parked', call, digest, request: result.parked }, { isDeferrable: false, origin: 'Engine' });
      this.#parked.push(result.parked);
      return undefined;
    }
    this.#observe(result);
    const { ok, milliseconds } = result;
    const code = result.ok ? {} : { code: result.error.code };
    events({ type: 'tool-result', ...shown, ok, ...code, summary: resultSummary(result), milliseconds });
    const isDeferrable = isRepeatable && result.approval === undefined;
    const answer = this.#answerOf(result);
    if (!isRepeatable) this.#effects.ended(call, name, answer);
    return { result: answer, isDeferrable, origin: originOfTool(tool) };
  }

  /** Refuses a name that is not bare, and a call beyond the limit of the message. */
  #refusalOf({ name }: SessionRequest): SessionAnswer | undefined {
    if (!BARE_NAME.test(name)) {
      const message = `"${printable(name, 80)}" is not the name of a tool; code calls tools by their bare names`;
      return this.#failed('TEMPER_TOOL_NOT_FOUND', message);
    }
    if (this.#count()) return undefined;
    this.#isExhausted = true;
    return this.#failed('TEMPER_STEP_LIMIT', 'all tool calls for this message are used up; end the code');
  }

  #count(): boolean {
    const isLeft = this.#deps.takeStep();
    if (isLeft) this.#calls += 1;
    return isLeft;
  }

  #observe(result: ToolResult): void {
    if (result.ok) {
      if (result.notice !== undefined) this.#notices.add(result.notice);
    } else if (result.error.rule === LOOP_BREAK_RULE) this.#loopBreak = result.error.message;
  }

  #answerOf(result: ToolResult): SessionAnswer {
    if (result.ok) return { time: this.#now(), ok: true, value: result.output };
    return this.#failed(result.error.code, result.error.message);
  }

  #failed(code: ErrorCode, message: string): SessionAnswer {
    return { time: this.#now(), ok: false, code, message };
  }

  #now(): number {
    return this.#deps.clock.now().getTime();
  }
}

/** The run ends while its code waits for this answer. */
function pending(): Promise<never> {
  return new Promise(() => undefined);
}
