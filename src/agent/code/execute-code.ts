import { randomBytes } from 'node:crypto';
import type { CallOptions } from '../../lib/call-options.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { type Json, member, parseUntrustedJson } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { ModelMessage, ToolCall } from '../../models/port.ts';
import type { RunOutcome } from '../../sandbox/session-port.ts';
import { ATTRIBUTES, inSpan, SPANS } from '../../telemetry/spans.ts';
import { untilAborted } from '../abort.ts';
import { isRepeatable } from '../history/repeatable.ts';
import { type CallsResult, type Limit, stepLimit, stepsLeft } from '../host/call-tools.ts';
import type { MessageHostDeps, MessageState } from '../host/message-state.ts';
import { callKey } from '../session/resume.ts';
import type { FinishVerdict } from '../returns/finish.ts';
import { CodeHost, type EntryStorage } from './code-host.ts';
import { INVOKE_NAME } from './code-prompt.ts';
import { type CodeResult, codeResultText, notesOn } from './code-result.ts';
import type { AcquiredRunner } from './code-sessions.ts';
import type { CodeModeDeps, CodeState } from './code-state.ts';
import { type RunJournalEntry, journalItem, journalOf, Replay } from './journal.ts';
import { memoryText, type StoredMemory, toStored } from './stored-memory.ts';

/** How a call ends the turn or the message; undefined when the conversation continues. */
type CodeOutcome = { parked: readonly string[] } | { reply: string } | { limit: Limit } | undefined;

type ToolItem = Extract<ModelMessage, { role: 'tool' }>;

const DIVERGED =
  'the code was interrupted and repeated, and then made other calls than before; the calls before the interruption had their effects';

/** One run that is over. */
interface EndedRun {
  host: CodeHost;
  outcome: RunOutcome;
  isNew: boolean;
  /** The code made other calls than before its interruption, or did not make all of them. */
  hasDiverged: boolean;
}

/** Runs the calls of one answer one after another: they share one runner, and each may use what the one before left in `memory`. */
export async function executeCode(
  deps: MessageHostDeps,
  state: MessageState,
  calls: readonly ToolCall[],
  op: CallOptions,
): Promise<CallsResult> {
  const items: ModelMessage[] = [];
  for (const call of calls) {
    const program = new CodeCall(deps, state, call, { ...op, key: callKey(op.key, call.id) });
    const ended = await program.execute();
    items.push(...program.items);
    if (ended !== undefined) return { items, ...ended };
  }
  return { items };
}

class CodeCall {
  readonly #deps: MessageHostDeps;
  readonly #message: MessageState;
  readonly #mode: CodeModeDeps;
  readonly #state: CodeState;
  readonly #call: ToolCall;
  readonly #op: CallOptions;
  readonly #started: number;
  /** What the model gets for the call. */
  readonly items: ModelMessage[] = [];

  constructor(deps: MessageHostDeps, message: MessageState, call: ToolCall, op: CallOptions) {
    if (deps.code === undefined || message.code === undefined) {
      throw new TemperError('TEMPER_INTERNAL', 'the agent is not in code mode');
    }
    this.#deps = deps;
    this.#message = message;
    this.#mode = deps.code;
    this.#state = message.code;
    this.#call = call;
    this.#op = op;
    this.#started = deps.clock.monotonic();
  }

  async execute(): Promise<CodeOutcome> {
    const { id, name } = this.#call;
    const parsed = codeIn(this.#call);
    const { events } = this.#message;
    events({ type: 'tool-call', id, tool: name, input: 'code' in parsed ? { code: parsed.code } : null });
    if ('message' in parsed) return this.#fail(parsed.code_, parsed.message);
    if (stepsLeft(this.#message) === 0) {
      await this.#fail('TEMPER_STEP_LIMIT', 'all tool calls for this message are used up; answer with what you have');
      return this.#stepLimit();
    }
    const ended = await this.#run(parsed.code);
    return 'failed' in ended ? this.#fail(ended.failed.code, ended.failed.message) : this.#end(ended);
  }

  async #run(code: string): Promise<EndedRun | { failed: { code: ErrorCode; message: string } }> {
    const journal = journalOf(this.#state.resumed, this.#call.id);
    const start = journal.find((entry) => entry.kind === 'start');
    let acquired: AcquiredRunner;
    try {
      const { sessions } = this.#mode;
      acquired = await sessions.acquire(
        this.#message.runner,
        this.#state.memory,
        { reuse: start === undefined },
        this.#op,
      );
    } catch (error) {
      if (!isTemperError(error) || this.#op.signal.aborted) throw error;
      return { failed: { code: error.code, message: error.message } };
    }
    let next: StoredMemory | undefined;
    try {
      const ended = await this.#runOn(acquired, code, journal, start ?? (await this.#storeStart()));
      next = ended.outcome.memory === undefined ? undefined : toStored(ended.outcome.memory);
      return ended;
    } finally {
      acquired.release(next);
    }
  }

  async #storeStart(): Promise<RunJournalEntry & { kind: 'start' }> {
    const startTime = this.#deps.clock.now().getTime();
    const start = { kind: 'start' as const, startTime, seed: randomBytes(16).toString('hex') };
    await this.#store(start, { isDeferrable: true, origin: 'Engine' });
    return start;
  }

  async #runOn(
    { runner, isNew }: AcquiredRunner,
    code: string,
    journal: readonly RunJournalEntry[],
    { startTime, seed }: RunJournalEntry & { kind: 'start' },
  ): Promise<EndedRun> {
    const stopped = new AbortController();
    const replay = new Replay(journal);
    const host = this.#hostOf(replay, () => stopped.abort());
    const op = { ...this.#op, signal: AbortSignal.any([this.#op.signal, stopped.signal]) };
    const attributes = { [ATTRIBUTES.operation]: 'execute_tool', [ATTRIBUTES.tool]: INVOKE_NAME };
    const outcome = await inSpan(SPANS.executeTool(INVOKE_NAME), { attributes }, async (span) => {
      const running = runner.run({ code, timeAndRandomness: { startTime, seed } }, host.call(), op);
      const ended = await untilAborted(running, this.#op.signal, 'the code');
      if (!ended.ok) span.setAttribute(ATTRIBUTES.errorType, ended.code);
      return ended;
    });
    host.assertNoFailure();
    return { host, outcome, isNew, hasDiverged: host.hasDiverged || replay.remaining > 0 };
  }

  #hostOf(replay: Replay, stop: () => void): CodeHost {
    const { invoker, clock } = this.#deps;
    const { caller, events } = this.#message;
    return new CodeHost({
      invoker,
      clock,
      events,
      caller: { ...caller, origin: 'Code' },
      callId: this.#call.id,
      replay,
      stop,
      store: (entry, how) => this.#store(entry, how),
      isRepeatable,
      takeStep: () => {
        if (stepsLeft(this.#message) === 0) return false;
        this.#message.toolCalls += 1;
        return true;
      },
    });
  }

  async #end(run: EndedRun): Promise<CodeOutcome> {
    const { host, outcome, hasDiverged } = run;
    if (hasDiverged) return this.#fail('TEMPER_CODE_DIVERGED', DIVERGED);
    const isStopped = !outcome.ok && outcome.code === 'TEMPER_CANCELLED';
    if (isStopped && host.parked.length > 0) return { parked: [...new Set(host.parked)] };
    if (host.calls === 0) this.#message.toolCalls += 1;
    const verdict = this.#verdictOn(outcome);
    const reply = verdict?.accepted === true ? verdict.reply : undefined;
    await this.#write(this.#resultOf(run, verdict), outcome, reply);
    if (reply !== undefined) return { reply };
    if (host.loopBreak !== undefined) return { limit: { code: 'TEMPER_LOOP_DETECTED', reason: host.loopBreak } };
    return host.isExhausted ? this.#stepLimit() : undefined;
  }

  /** Undefined when the code did not finish the message. With `spec.returns` the value must match it, otherwise any value is the reply. */
  #verdictOn(outcome: RunOutcome): FinishVerdict | undefined {
    if (!outcome.ok || outcome.finished === undefined) return undefined;
    const { value } = outcome.finished;
    const reply = typeof value === 'string' ? value : JSON.stringify(value);
    return this.#deps.result?.finish(value) ?? { accepted: true, reply };
  }

  #resultOf({ host, outcome, isNew }: EndedRun, verdict: FinishVerdict | undefined): CodeResult {
    const { notices, effects } = host;
    const notes = notesOn({ outcome, before: this.#state.memory, isNew, notices, effects });
    const { log } = outcome;
    if (!outcome.ok) return { value: undefined, error: { code: outcome.code, message: outcome.message }, log, notes };
    if (verdict?.accepted !== false) return { value: outcome.value, error: undefined, log, notes };
    const error = { code: 'TEMPER_TOOL_OUTPUT_INVALID' as const, message: verdict.problem };
    return { value: undefined, error, log, notes };
  }

  /** Stores the result, with the reply that the code finished with. */
  async #write(result: CodeResult, outcome: RunOutcome | undefined, reply: string | undefined): Promise<void> {
    const { historyWriter, events, limits, caller } = this.#message;
    const { id, name } = this.#call;
    const isError = result.error !== undefined;
    const text = codeResultText(result, limits.outputCharacters);
    const sent: ToolItem = { role: 'tool', toolCallId: id, name, text, isError };
    const items: ModelMessage[] = [this.#withMemory({ ...sent, origin: 'Tool' }, outcome)];
    if (reply !== undefined) {
      items.push({ role: 'assistant', text: reply, toolCalls: [] });
      this.#message.answers += 1;
    }
    await historyWriter.write(items, { ...this.#deps.taint.marks(caller.session), deferrable: false });
    this.items.push(sent, ...items.slice(1));
    const milliseconds = this.#deps.clock.monotonic() - this.#started;
    const code = result.error === undefined ? {} : { code: result.error.code };
    events({ type: 'tool-result', id, tool: name, ok: !isError, ...code, summary: printable(text, 160), milliseconds });
    if (reply !== undefined) events({ type: 'message', text: reply, delta: false });
  }

  /** The item that is stored: with the memory after the run, when the run changed it. */
  #withMemory(item: ToolItem, outcome: RunOutcome | undefined): ToolItem {
    if (outcome?.memory === undefined) return item;
    const next = toStored(outcome.memory);
    if (memoryText(next) === memoryText(this.#state.memory)) return item;
    this.#state.memory = next;
    return { ...item, memory: memoryText(next) };
  }

  async #fail(code: ErrorCode, message: string): Promise<undefined> {
    await this.#write({ value: undefined, error: { code, message }, log: '', notes: [] }, undefined, undefined);
    return undefined;
  }

  async #store(entry: RunJournalEntry, { isDeferrable: deferrable, origin }: EntryStorage): Promise<void> {
    const { historyWriter, caller } = this.#message;
    const marks = this.#deps.taint.marks(caller.session);
    await historyWriter.write([journalItem(this.#call.id, entry, origin)], { ...marks, deferrable });
  }

  #stepLimit(): CodeOutcome {
    return { limit: stepLimit(this.#message.limits.steps) };
  }
}

function codeIn(call: ToolCall): { code: string } | { code_: ErrorCode; message: string } {
  if (call.name !== INVOKE_NAME) {
    const name = printable(call.name, 80);
    const message = `"${name}" is not a tool that you can call directly; call it in code: invoke({code: "return await ctx.manager.invoke('${name}', {…})"})`;
    return { code_: 'TEMPER_TOOL_NOT_FOUND', message };
  }
  let input: Json | undefined;
  try {
    input = parseUntrustedJson(call.arguments);
  } catch {
    // The arguments are cut or are not JSON.
  }
  const code = member(input, 'code');
  if (typeof code === 'string' && code.trim() !== '') return { code };
  const message = 'the arguments of invoke are one JSON object with the member "code", a text that is not empty';
  return { code_: 'TEMPER_TOOL_INPUT_INVALID', message };
}
