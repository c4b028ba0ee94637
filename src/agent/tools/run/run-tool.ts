import { printable } from '../../../lib/printable.ts';
import type { Clock } from '../../../lib/clock.ts';
import { isTemperError, messageOf, TemperError } from '../../../lib/errors.ts';
import { type Json, type JsonObject, parseUntrustedJson } from '../../../lib/json.ts';
import type { ItemOrigin } from '../../../models/item-origin.ts';
import type { CallContext, Invoker, RunContext, Tool } from '../../../tools/contract.ts';
import type { EventSink } from '../../../tools/events.ts';
import { isForgeTestCall } from '../../../tools/forge-test-call.ts';
import { isHookCall } from '../../../tools/hooks/call-hooks.ts';
import type { SchemaCompiler } from '../../../tools/json-schema/compiler.ts';
import type { CodeModeDeps } from '../../code/code-state.ts';
import type { DisclosureDeps } from '../../disclosure/disclosure.ts';
import { MessageHost } from '../../host/message-host.ts';
import { type MessageHostDeps, type MessageState, openMessage } from '../../host/message-state.ts';
import type { MessageInWork, MessagesInWork } from '../../host/messages-in-work.ts';
import { addUsage } from '../../loop/message-usage.ts';
import type { TaintTracker } from '../../loop/taint-tracker.ts';
import { createTrace } from '../../loop/trace.ts';
import type { RunningAgent, TurnOutcome } from '../../message.ts';
import type { AgentProvider } from '../../provider/port.ts';
import { requiredValue } from '../../returns/finish.ts';
import { withMessageResult } from '../../returns/message-result.ts';
import { createSessionLocks, type SessionLocks } from '../../session/session-locks.ts';
import { nestedAgent, type RunRequest, runRequest } from './nested-agent.ts';
import { PublishedEvents } from './published-events.ts';
import { runContext } from './run-context.ts';
import { RUN_TOOL, RUN_TOOL_NAME } from './run-descriptor.ts';
import { runEvents } from './run-events.ts';
import { runHistory } from './run-history.ts';

/** What the runs of one agent need; the same as its messages. */
export interface RunRuntime {
  agent: RunningAgent;
  clock: Clock;
  invoker: Invoker;
  taint: TaintTracker;
  isUntrusted: (origin: ItemOrigin) => boolean;
  provider: AgentProvider;
  code: CodeModeDeps | undefined;
  disclosure: DisclosureDeps | undefined;
}

export interface RunToolDeps {
  messages: MessagesInWork;
  schemas: SchemaCompiler;
  /** The real name of a model. */
  resolve: (name: string) => string;
  /** Available when the first call is made: the invoker has this tool itself. */
  runtime: () => RunRuntime;
}

/** Runs of one message, those below runs included. */
const MAX_RUNS = 30;
const MAX_PARTIAL_REPLY = 2_000;

/** `agent_run`: an agent as a tool. It works in the session of its caller, with the policy, the quotas and the deadline of the caller. */
export function runTool(deps: RunToolDeps): Tool {
  const locks = createSessionLocks();
  return {
    descriptor: RUN_TOOL,
    nestedOrigin: 'Agent',
    mayCallItself: true,
    call: (input, context) => new AgentRun(deps, locks, context).execute(runRequest(input)),
  };
}

class AgentRun {
  readonly #deps: RunToolDeps;
  readonly #locks: SessionLocks;
  readonly #context: CallContext;

  constructor(deps: RunToolDeps, locks: SessionLocks, context: CallContext) {
    this.#deps = deps;
    this.#locks = locks;
    this.#context = context;
  }

  async execute(request: RunRequest): Promise<Json> {
    const message = this.#messageInWork();
    const { op, run: around } = this.#context;
    const { agent: own } = this.#deps.runtime();
    const parent = around === undefined ? own : { ...own, spec: around.spec };
    const agent = nestedAgent(request, parent, this.#deps.resolve);
    const run = runContext(this.#context, request, { spec: agent.spec, key: op.key });
    message.runs += 1;
    if (message.runs > MAX_RUNS) {
      const text = `a message runs at most ${MAX_RUNS} agents; do the rest without ${RUN_TOOL_NAME}`;
      throw new TemperError('TEMPER_STEP_LIMIT', text);
    }
    return this.#locks.run(run.id, op.signal, () => this.#run(request, agent, run, message));
  }

  /** A run belongs to a message in work, and to the model or a program of its agent. */
  #messageInWork(): MessageInWork {
    const { stack, session } = this.#context;
    if (isHookCall(this.#context)) throw refused('a hook');
    if (isForgeTestCall(this.#context)) throw refused('the test of a tool');
    if (stack.some((caller) => caller !== RUN_TOOL_NAME)) throw refused('another tool');
    const message = this.#deps.messages.find(session);
    if (message === undefined) throw refused('a call outside of a message');
    return message;
  }

  async #run(request: RunRequest, agent: RunningAgent, run: RunContext, message: MessageInWork): Promise<Json> {
    const published = this.#publishedEvents(request, message);
    const events = runEvents(published === undefined ? message.events : both(message.events, published.sink), run);
    events({ type: 'agent-start', name: request.name ?? '', model: agent.spec.model.primary });
    const hostDeps = this.#hostDeps(request, run, message);
    let state: MessageState | undefined;
    try {
      await published?.started();
      state = await this.#open(hostDeps, request, agent, run, events);
      const { op } = this.#context;
      const host = new MessageHost(hostDeps, state, op);
      const outcome = host.outcomeOf(await this.#deps.runtime().provider.run(state.task, host, op));
      reportEnd(events, state, { reply: outcome.reply });
      return answerOf(outcome);
    } catch (error) {
      reportEnd(events, state, { error });
      throw withPartialReply(error);
    } finally {
      if (state !== undefined) addUsage(message.usage, state.usage);
      await published?.end();
      await hostDeps.code?.sessions.close(run.id);
    }
  }

  /** Calls by the caller of the run, whose rights it needs. */
  #publishedEvents({ events: subject }: RunRequest, { events }: MessageInWork): PublishedEvents | undefined {
    if (subject === undefined) return undefined;
    const { op, agent, namespace, session, rootMessage, stack, origin, run } = this.#context;
    const caller = { agent, namespace, session, rootMessage, stack, origin, ...(run === undefined ? {} : { run }) };
    return new PublishedEvents({ subject, invoker: this.#deps.runtime().invoker, caller, op, events });
  }

  #hostDeps({ returns }: RunRequest, { id }: RunContext, { historyWriter }: MessageInWork): MessageHostDeps {
    const { clock, invoker, taint, isUntrusted, code, disclosure } = this.#deps.runtime();
    const sessions = runHistory(historyWriter, id);
    const own = { clock, invoker, taint, isUntrusted, code, disclosure, sessions };
    return withMessageResult(own, this.#requiredValue(returns));
  }

  #requiredValue(returns: JsonObject | undefined): ReturnType<typeof requiredValue> | undefined {
    if (returns === undefined) return undefined;
    try {
      return requiredValue(JSON.stringify(returns), this.#deps.schemas);
    } catch (error) {
      if (!isTemperError(error, 'TEMPER_MANIFEST_INVALID')) throw error;
      const problem = error.message.replaceAll('spec.returns', 'returns');
      throw new TemperError('TEMPER_TOOL_INPUT_INVALID', `${RUN_TOOL_NAME}: ${problem}`, { cause: error });
    }
  }

  async #open(
    hostDeps: MessageHostDeps,
    { message: text, memory }: RunRequest,
    agent: RunningAgent,
    run: RunContext,
    events: EventSink,
  ): Promise<MessageState> {
    const { namespace, session, rootMessage, stack, op } = this.#context;
    const caller = { agent: agent.name, namespace, session, rootMessage, stack, origin: 'Agent' as const, run };
    const trace = createTrace(hostDeps.clock, events, 1);
    // The key of the call is equal in each attempt at it, so an interrupted run resumes where it stopped.
    const incoming = { session, rootMessage, text, message: op.key };
    const state = await openMessage(hostDeps, incoming, agent, trace, {
      op,
      nested: { caller, key: op.key, runner: run.id },
    });
    const { code, task } = state;
    if (code !== undefined && memory !== undefined && task.resume === undefined) {
      code.memory = { ...code.memory, values: { ...code.memory.values, ...memory } };
    }
    return state;
  }
}

function both(one: EventSink, other: EventSink): EventSink {
  return (event) => {
    one(event);
    other(event);
  };
}

function refused(caller: string): TemperError {
  const message = `${RUN_TOOL_NAME} cannot be called by ${caller}; only the model of an agent and its programs start runs`;
  return new TemperError('TEMPER_POLICY_DENIED', message, { details: { rule: RUN_TOOL_NAME } });
}

/** The value with `returns`, otherwise the text. */
function answerOf({ reply, finishReason, format }: TurnOutcome): Json {
  if (finishReason === 'refusal')
    throw new TemperError('TEMPER_TOOL_FAILED', 'the model of the run declined to answer');
  return format === 'json' ? parseUntrustedJson(reply) : reply;
}

function reportEnd(
  events: EventSink,
  state: MessageState | undefined,
  end: { reply: string } | { error: unknown },
): void {
  const { turns = 0, toolCalls = 0, usage } = state ?? {};
  const { inputTokens = 0, outputTokens = 0 } = usage ?? {};
  const figures = { turns, toolCalls, inputTokens, outputTokens };
  if ('reply' in end) {
    events({ type: 'agent-complete', ok: true, ...figures, summary: printable(end.reply, 160) });
    return;
  }
  const code = isTemperError(end.error) ? end.error.code : 'TEMPER_INTERNAL';
  events({ type: 'agent-complete', ok: false, code, ...figures, summary: messageOf(end.error, 160) });
}

/** A limit says what the run found so far. */
function withPartialReply(error: unknown): unknown {
  if (!(error instanceof TemperError)) return error;
  const { reply } = error.details;
  if (typeof reply !== 'string' || reply === '') return error;
  const message = `${error.message}. It said: ${printable(reply, MAX_PARTIAL_REPLY)}`;
  return new TemperError(error.code, message, { cause: error, retry: error.retry, details: error.details });
}
