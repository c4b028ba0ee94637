import { itemsForModel } from '../../agent/compaction/summary-item.ts';
import { repairHistory } from '../../agent/history/repair-history.ts';
import type {
  AgentProvider,
  ProviderDirective,
  ProviderHost,
  ProviderTask,
  TaskAnswer,
} from '../../agent/provider/port.ts';
import type { StopReason } from '@agentclientprotocol/sdk';
import type { FinishReason } from '../../bus/port.ts';
import { untilAborted } from '../../agent/abort.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { Model } from '../../models/port.ts';
import type { AgentSessions, OpenAgent } from './agent-sessions.ts';
import { MessageRun } from './message-run.ts';
import { promptText } from './prompt-text.ts';

export interface AcpProviderDeps {
  /** Those of all providers of the agent. */
  sessions: AgentSessions;
  /** Charges each call to the agent. */
  model: Model;
}

const CONTINUE = 'Continue.';

/** A provider that is another program: it speaks the Agent Client Protocol and works on its own way, with the model and the tools of Temper. */
export class AcpProvider implements AgentProvider {
  readonly #deps: AcpProviderDeps;
  readonly #agents: AgentSessions;

  constructor(deps: AcpProviderDeps) {
    this.#deps = deps;
    this.#agents = deps.sessions;
  }

  async run(task: ProviderTask, host: ProviderHost, op: CallOptions): Promise<TaskAnswer> {
    const resumed = await resume(task, host);
    if (resumed !== undefined) return resumed;
    for (let attempt = 1; ; attempt += 1) {
      try {
        const answer = await this.#work(task, host, op, attempt);
        this.#agents.succeeded(task.session);
        return answer;
      } catch (error) {
        await this.#agents.end(task.session);
        await throwIfAborted(op);
        if (!isTemperError(error, 'TEMPER_ACP_AGENT_FAILED')) throw error;
        this.#agents.failed(task.session);
        const { code, message } = error;
        const directive = await host.hook({ type: 'error', error: { code, message }, attempt });
        if (directive === undefined || 'conclude' in directive) throw error;
        if ('stop' in directive) return stopWith(host, directive.result);
      }
    }
  }

  async #work(task: ProviderTask, host: ProviderHost, op: CallOptions, attempt: number): Promise<TaskAnswer> {
    const isNew = task.resume === undefined && attempt === 1;
    const open = isNew ? await this.#agents.find(task.session, task.base, task.context) : undefined;
    const run = new MessageRun(this.#deps.model, task, host, op);
    const state = isNew ? { known: task.base, context: task.context } : undefined;
    const agent = open ?? (await this.#agents.start(task.session, state, run, op.signal));
    agent.work.run = run;
    try {
      const first = open === undefined && !agent.isLoaded ? await firstPrompt(task, host) : task.message;
      const answer = await converse(agent, run, host, first, op);
      agent.known = (await host.history()).length;
      agent.context = task.context;
      return answer;
    } finally {
      run.close();
      agent.work.run = undefined;
    }
  }
}

/** Prompts the agent until the host accepts an answer. */
async function converse(
  { session }: OpenAgent,
  run: MessageRun,
  host: ProviderHost,
  first: string,
  op: CallOptions,
): Promise<TaskAnswer> {
  for (let text = first; ; ) {
    const stopReason = await session.prompt(text, run, run.signal).catch((error: unknown) => {
      if (run.ending !== undefined) return 'end_turn' as const;
      // The program failed because its model did: the message fails as it would without the program.
      throw isTemperError(run.modelError) ? run.modelError : error;
    });
    await throwIfAborted(op);
    const { ending } = run;
    if (ending !== undefined && 'answer' in ending) return ending.answer;
    const reply = await run.takeSaid();
    if (reply !== '') await host.append([{ role: 'assistant', text: reply, toolCalls: [] }], true);
    const finishReason = ending === undefined ? finishReasonOf(stopReason) : 'complete';
    const answer: TaskAnswer = { reply, finishReason };
    if (ending !== undefined && 'conclude' in ending) return answer;
    const directive = await host.hook({ type: 'turn-end', turnNumber: run.turns, result: reply, answer });
    const next = await nextPrompt(host, directive, answer);
    if (typeof next !== 'string') return next;
    run.reopen();
    text = next;
  }
}

/** Throws TEMPER_TIMEOUT or TEMPER_CANCELLED. */
async function throwIfAborted({ signal }: CallOptions): Promise<void> {
  if (signal.aborted) await untilAborted(new Promise<never>(() => undefined), signal, 'the message');
}

/** The answer, or the text of the next prompt. */
async function nextPrompt(
  host: ProviderHost,
  directive: ProviderDirective | undefined,
  answer: TaskAnswer,
): Promise<TaskAnswer | string> {
  if (directive === undefined || 'conclude' in directive) return answer;
  if ('stop' in directive) return stopWith(host, directive.result, answer.reply);
  const { message = CONTINUE } = directive;
  await host.append([{ role: 'user', text: message }], true);
  return message;
}

/** Ends with this reply, which the session gets as the last answer. */
async function stopWith(host: ProviderHost, reply: string, last = ''): Promise<TaskAnswer> {
  if (reply !== '' && reply !== last) await host.append([{ role: 'assistant', text: reply, toolCalls: [] }], true);
  return { reply, finishReason: 'complete' };
}

/** Completes what an earlier attempt left: a reply, or calls without a result. Undefined when the agent must work on the message. */
async function resume({ resume: point }: ProviderTask, host: ProviderHost): Promise<TaskAnswer | undefined> {
  if (point === undefined) return undefined;
  if (point.reply !== undefined) {
    const answer: TaskAnswer = { reply: point.reply, finishReason: 'complete' };
    const directive = await host.hook({ type: 'turn-end', turnNumber: point.turns, result: point.reply, answer });
    const next = await nextPrompt(host, directive, answer);
    return typeof next === 'string' ? undefined : next;
  }
  if (point.pending.length === 0) return undefined;
  const { parked, reply, conclude } = await host.invoke(point.pending);
  if (parked !== undefined) return { reply: '', finishReason: 'complete', parked };
  if (reply !== undefined) return { reply, finishReason: 'complete' };
  return conclude === undefined ? undefined : { reply: '', finishReason: 'complete' };
}

/** A process that starts knows nothing of the session. */
async function firstPrompt(task: ProviderTask, host: ProviderHost): Promise<string> {
  const items = await host.history();
  const [before, during] = [items.slice(0, task.base), items.slice(task.base)];
  return promptText({
    instructions: (await host.offer()).prompt,
    ...(task.context === undefined ? {} : { context: task.context }),
    history: repairHistory(itemsForModel(before)),
    // Without the message itself.
    earlier: repairHistory(itemsForModel(during)).slice(1),
    message: task.message,
  });
}

function finishReasonOf(reason: StopReason): FinishReason {
  switch (reason) {
    case 'end_turn':
      return 'complete';
    case 'refusal':
      return 'refusal';
    case 'max_tokens':
    case 'max_turn_requests':
      return 'truncated';
    case 'cancelled':
      throw new TemperError('TEMPER_ACP_AGENT_FAILED', 'the agent program cancelled a prompt by itself', {
        retry: 'backoff',
      });
  }
}
