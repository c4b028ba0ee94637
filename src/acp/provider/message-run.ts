import { setImmediate } from 'node:timers/promises';
import { isRepeatable } from '../../agent/history/repeatable.ts';
import type { TaskAnswer, ProviderHost, ProviderTask } from '../../agent/provider/port.ts';
import { FINISH_TOOL_NAME } from '../../agent/returns/finish.ts';
import { SerialQueue } from '../../lib/async/serial-queue.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { TemperError } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { Model, ModelEvent } from '../../models/port.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import type { PromptHost } from '../client/agent-session.ts';
import type { ServedRequest } from '../endpoint/served-format.ts';

/** Why the message ends before the agent has ended its prompt. */
type Ending = { answer: TaskAnswer } | { conclude: string } | { finished: true };

interface CallAnswer {
  text: string;
  isError: boolean;
}

const NO_USAGE = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0 };

/** One message in work at an agent: its model calls, its tool calls and what it says. */
export class MessageRun implements PromptHost {
  readonly #model: Model;
  readonly #task: ProviderTask;
  readonly #host: ProviderHost;
  readonly #op: CallOptions;
  readonly #calls = new SerialQueue();
  #ended = new AbortController();
  #ending: Ending | undefined;
  #turns = 0;
  #modelError: unknown;
  #callCount: number;
  /** What the agent said and thought since its last tool call. */
  #said = '';
  #thought = '';

  constructor(model: Model, task: ProviderTask, host: ProviderHost, op: CallOptions) {
    this.#model = model;
    this.#task = task;
    this.#host = host;
    this.#op = op;
    this.#turns = task.resume?.turns ?? 0;
    // Ids of earlier attempts stay unique.
    this.#callCount = task.resume?.toolCalls ?? 0;
  }

  /** Aborts when the message has ended, or must end before the agent has ended its prompt. */
  get signal(): AbortSignal {
    return AbortSignal.any([this.#op.signal, this.#ended.signal]);
  }

  get ending(): Ending | undefined {
    return this.#ending;
  }

  /** The failure of the last model call; undefined when it did not fail. */
  get modelError(): unknown {
    return this.#modelError;
  }

  get turns(): number {
    return this.#turns;
  }

  /** The host wants another prompt after all. */
  reopen(): void {
    this.#ending = undefined;
    this.#ended = new AbortController();
  }

  /** No further call is made. */
  close(): void {
    this.#ended.abort(new Error('the message has ended'));
  }

  say(text: string): void {
    this.#said += text;
    this.#host.report({ type: 'message', text, delta: true });
  }

  think(text: string): void {
    this.#thought += text;
  }

  async offered(): Promise<readonly string[]> {
    return (await this.tools()).map(({ name }) => name);
  }

  async tools(): Promise<readonly ToolDescriptor[]> {
    return (await this.#host.offer()).tools;
  }

  /** Makes the calls one after another, so that the session has each call before its result. */
  call(name: string, input: JsonObject): Promise<CallAnswer> {
    return this.#calls.run(() => this.#callOne(name, input));
  }

  async #callOne(name: string, input: JsonObject): Promise<CallAnswer> {
    await wordsBefore();
    if (this.signal.aborted) return ENDED;
    const tool = (await this.tools()).find((offered) => offered.name === name);
    this.#callCount += 1;
    const call = { id: `call-${this.#callCount}`, name, arguments: JSON.stringify(input) };
    const text = await this.takeSaid();
    await this.#host.append([{ role: 'assistant', text, toolCalls: [call] }], isRepeatable(tool));
    const { items, parked, reply, conclude } = await this.#host.invoke([call]);
    if (parked !== undefined) this.#end({ answer: { reply: '', finishReason: 'complete', parked } });
    else if (reply !== undefined) this.#end({ answer: { reply, finishReason: 'complete' } });
    else if (conclude !== undefined) this.#end({ conclude });
    const result = items.find((item) => item.role === 'tool');
    if (name === FINISH_TOOL_NAME && result?.role === 'tool' && !result.isError) this.#end({ finished: true });
    return result?.role === 'tool' ? { text: result.text, isError: result.isError } : ENDED;
  }

  /** What the agent said since its last call. Hooks see it as one message. */
  async takeSaid(): Promise<string> {
    const [text, thought] = [this.#said, this.#thought];
    this.#said = '';
    this.#thought = '';
    if (thought !== '') await this.#host.hook({ type: 'reasoning', text: thought });
    if (text !== '') await this.#host.hook({ type: 'message', text });
    return text;
  }

  /** A model call of the agent: a turn of the message. */
  async *stream(request: ServedRequest, left: AbortSignal): AsyncGenerator<ModelEvent> {
    if (this.signal.aborted) throw new TemperError('TEMPER_CANCELLED', 'no message is in work');
    this.#turns += 1;
    const turn = this.#turns;
    const directive = await this.#host.hook({ type: 'turn-start', turnNumber: turn });
    if (directive !== undefined && 'conclude' in directive) {
      this.#end(directive);
      throw new TemperError('TEMPER_TURN_LIMIT', 'all turns for this message are used');
    }
    const { model, modelTimeoutMs, ...config } = this.#task.config;
    const { isStream: _stream, hasUsage: _usage, maxOutputTokens = config.maxOutputTokens, ...input } = request;
    const timeout = AbortSignal.timeout(modelTimeoutMs);
    const signal = AbortSignal.any([this.signal, left, timeout]);
    const op = { signal, deadline: this.#op.deadline, key: `${this.#op.key}/turn-${turn}` };
    let used = NO_USAGE;
    try {
      for await (const event of this.#model.stream(
        {
          ...input,
          model,
          ...(config.temperature === undefined ? {} : { temperature: config.temperature }),
          maxOutputTokens: Math.min(maxOutputTokens, config.maxOutputTokens),
        },
        { ...op, onRepeat: (repeated) => this.#host.report({ type: 'retry', ...repeated }) },
      )) {
        if (event.type === 'end') used = event.usage;
        yield event;
      }
      this.#modelError = undefined;
    } catch (error) {
      const isLate = timeout.aborted && !this.signal.aborted;
      this.#modelError = isLate ? timedOut(model, modelTimeoutMs, error) : error;
      throw this.#modelError;
    } finally {
      this.#host.report({ type: 'usage', turns: 1, ...used });
      const { inputTokens, outputTokens } = used;
      this.#host.report({ type: 'turn-end', turn, inputTokens, outputTokens });
    }
  }

  #end(ending: Ending): void {
    this.#ending ??= ending;
    this.#ended.abort(new Error('the message ends'));
  }
}

/** Words and calls arrive through two pipes. What the program wrote before its call is read within two rounds of the event loop. */
async function wordsBefore(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

function timedOut(model: string, milliseconds: number, cause: unknown): TemperError {
  const message = `${model} did not finish within ${milliseconds} ms`;
  return new TemperError('TEMPER_MODEL_TIMEOUT', message, { cause, retry: 'backoff' });
}

const ENDED: CallAnswer = { text: 'TEMPER_CANCELLED: the work on this message has ended; stop here', isError: true };
