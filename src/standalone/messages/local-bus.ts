import { assertNoCycle, nextDepth, receiverSession } from '../../agent/messages/chain.ts';
import type { Ask } from '../../agent/messages/ask.ts';
import type { Envelope, MessageDraft, MessageSender, Receipt, Task, TaskSender } from '../../bus/port.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { DeliveredMessage, LocalAsks } from './local-asks.ts';
import { LocalInboxes } from './local-inbox.ts';
import { inboxOf } from './message-entries.ts';

/** The same text as the limit of a message on a cluster. */
const MAX_MESSAGE_BYTES = 200 * 1_024;

export interface LocalSender {
  /** The key of the sending agent, and its name. */
  readonly key: string;
  readonly name: string;
  /** The message in work in the session of the call. Throws TEMPER_NOT_FOUND without one. */
  current(session: string): DeliveredMessage;
  /** The key of the agent with this name. Throws TEMPER_NOT_FOUND, and TEMPER_POLICY_DENIED when the sender may not send to it. */
  receiver(name: string): string;
  /** Removes what must not be stored from a text. */
  clean(text: string): string;
}

export interface LocalBusDeps {
  readonly inboxes: LocalInboxes;
  readonly asks: LocalAsks;
  readonly clock: Clock;
}

/** Messages of one session of an agent: root, depth and deadline are those of the message that it works on. */
export function localBus(deps: LocalBusDeps, sender: LocalSender, session: string): MessageSender & TaskSender {
  const { inboxes, asks } = deps;
  return {
    async send(draft, op): Promise<Receipt> {
      const { receiver, id, stored } = preparedMessage(deps, sender, session, { draft, key: op.key, isAsked: false });
      return inboxes.publish(receiver, id, stored);
    },
    async ask(draft, wait, op): Promise<Task> {
      const current = sender.current(session);
      const {
        receiver,
        id: ticket,
        stored,
      } = preparedMessage(deps, sender, session, { draft, key: op.key, isAsked: true });
      await inboxes.change((all) => {
        const known = inboxOf(all, sender.key).asks.get(ticket);
        // The answer to a question that was asked before a crash is there, or comes.
        if (known !== undefined && known.state !== 'Pending') return { entries: [], result: undefined };
        const message = inboxes.storing(all, receiver, ticket, stored);
        const ask = known ?? askOf(current.message, draft.to);
        const opened = known === undefined ? [{ op: 'asked' as const, agent: sender.key, ticket, ask }] : [];
        return { entries: [...opened, ...message], result: undefined };
      });
      return asks.task(
        sender.key,
        { ...current, signal: AbortSignal.any([current.signal, op.signal]) },
        ticket,
        wait.milliseconds,
      );
    },
    async task(ticket, waitMs, op): Promise<Task> {
      const current = sender.current(session);
      const signal = AbortSignal.any([current.signal, op.signal]);
      return asks.task(sender.key, { ...current, signal }, ticket, waitMs);
    },
  };
}

/** A message of the session to another agent, before it is stored. */
function preparedMessage(
  { clock }: Pick<LocalBusDeps, 'clock'>,
  sender: LocalSender,
  session: string,
  { draft, key, isAsked }: { draft: MessageDraft; key: string; isAsked: boolean },
) {
  const { message, signal } = sender.current(session);
  if (signal.aborted) throw new TemperError('TEMPER_CANCELLED', 'the message that the agent works on was cancelled');
  const depth = nextDepth(sender.name, draft.to, message.depth);
  const receiver = sender.receiver(draft.to);
  const ancestors = [...(message.ancestors ?? []), sender.key];
  if (isAsked) assertNoCycle(ancestors, receiver, draft.to);
  const text = sender.clean(draft.text);
  if (Buffer.byteLength(text) > MAX_MESSAGE_BYTES)
    throw new TemperError(
      'TEMPER_BUS_TOO_LARGE',
      `the text exceeds ${MAX_MESSAGE_BYTES / 1_024} KiB; send less at once`,
    );
  const { root, deadline } = message;
  const stored = {
    to: draft.to,
    from: sender.name,
    session: receiverSession(sender.name, draft.session),
    text,
    root,
    depth,
    deadline,
    time: clock.now().toISOString(),
    source: 'Agent' as const,
    ...(draft.tainted === true ? { tainted: true } : {}),
    ancestors,
    ...(isAsked ? { asker: sender.key } : {}),
  };
  return { receiver, id: LocalInboxes.idOf(sender.key, receiver, key), stored };
}

function askOf({ id, session, root, depth, deadline, ancestors = [] }: Envelope, agent: string): Ask {
  return { agent, session, message: id, root, depth, deadline, ancestors, state: 'Pending' };
}

export function unknownAgent(name: string): TemperError {
  return new TemperError('TEMPER_NOT_FOUND', `there is no agent "${printable(name, 253)}"`);
}
