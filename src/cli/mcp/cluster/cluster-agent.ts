import type { CallOptions } from '../../../lib/call-options.ts';
import { messageFailure } from '../../../gateway-api/events/message-failure.ts';
import { isTemperError, TemperError } from '../../../lib/errors.ts';
import type { SessionStreamLine, UserMessageReceipt } from '../../../gateway-api/user-api.ts';
import type { UserMessage } from '../../../standalone/team/post.ts';
import type { AgentEvent } from '../../../tools/events.ts';
import type { GatewayUserClient } from '../../cluster/gateway-user-client.ts';
import { behind, messageLines } from '../../cluster/messages/message-lines.ts';
import { sendMessage } from '../../cluster/messages/sent-message.ts';
import type { CliIo } from '../../io.ts';
import type { Answered } from '../ask-agent.ts';

export interface ClusterAgentDeps {
  agent: string;
  /** A client of the gateway whose requests end with the signal. */
  gateway: (signal: AbortSignal) => Pick<GatewayUserClient, 'call' | 'lines'>;
  io: Pick<CliIo, 'error'>;
  /** Gets the events of the message in work. */
  observe: (event: AgentEvent) => void;
}

interface OpenMessage {
  readonly message: UserMessage;
  /** Undefined while it is not known whether the gateway has the message. */
  receipt?: UserMessageReceipt;
  /** Behind the last line that was read. */
  position?: { after: number; skip: number };
}

/** An agent of a cluster, which answers one message at a time. */
export class ClusterAgent {
  readonly #deps: ClusterAgentDeps;
  #open: OpenMessage | undefined;

  constructor(deps: ClusterAgentDeps) {
    this.#deps = deps;
  }

  /** The message that has no answer yet: it waits for a decision, or its caller did not wait for the answer. */
  async unended(): Promise<UserMessage | undefined> {
    return this.#open?.message;
  }

  /** Sends the message, unless it is the one that has no answer yet, and waits for the answer. Throws the error of a message that failed. */
  async handle(message: UserMessage, { signal }: Pick<CallOptions, 'signal'>): Promise<Answered> {
    const open: OpenMessage = this.#open?.message.id === message.id ? this.#open : { message };
    this.#open = open;
    try {
      const answered = await this.#answer(open, signal);
      if (answered.parked === undefined) this.#open = undefined;
      return answered;
    } catch (error) {
      // The message goes on without a caller that leaves, and behind a gateway that is unavailable.
      const goesOn = signal.aborted || (open.receipt !== undefined && isTemperError(error) && error.retry !== 'never');
      if (!goesOn) this.#open = undefined;
      throw error;
    }
  }

  async #answer(open: OpenMessage, signal: AbortSignal): Promise<Answered> {
    const { agent, io: terminal } = this.#deps;
    const gateway = this.#deps.gateway(signal);
    const io = { error: (text: string) => terminal.error(text), signal };
    if (open.receipt === undefined) {
      const { id: key, session, text } = open.message;
      open.receipt = await sendMessage(gateway, { agent, text, session, key }, io);
      const { waitsFor = [] } = open.receipt;
      // An earlier message of the session is not decided about.
      if (waitsFor.length > 0) return waiting(waitsFor);
    }
    const { receipt } = open;
    open.position ??= { after: receipt.after, skip: 0 };
    for await (const line of messageLines({ gateway, agent, receipt }, io, open.position)) {
      open.position = behind(line, open.position);
      const parked = this.#observed(line, receipt.id);
      if (parked !== undefined) return waiting(parked);
      if (line.kind !== 'event' && line.message === receipt.id) return answerIn(line);
    }
    throw new TypeError('the lines of a message end with its answer');
  }

  /** The requests that the message waits for from this line on. */
  #observed(line: SessionStreamLine, message: string): readonly string[] | undefined {
    if (line.kind !== 'event' || line.event.rootMessage !== message) return undefined;
    this.#deps.observe(line.event);
    return line.event.type === 'turn-parked' ? line.event.requests : undefined;
  }
}

function waiting(parked: readonly string[]): Answered {
  return { reply: '', finishReason: 'complete', parked };
}

function answerIn(line: Exclude<SessionStreamLine, { kind: 'event' }>): Answered {
  if (line.kind === 'reply') return { reply: line.text, finishReason: line.finishReason };
  const { code, message } = messageFailure(line);
  throw new TemperError(code, message);
}
