import { type Message, type AgentCard, TaskState } from '@a2a-js/sdk';
import { TaskNotCancelableError } from '@a2a-js/sdk/errors';
import type { ListedCaller } from '../../a2a/callers.ts';
import { agentCard } from '../../a2a/card.ts';
import type { PeerCalls, TaskChangesOptions } from '../../a2a/peer-calls.ts';
import { assertFewOpen, assertSameMessage, PEER_CHAIN_MS, type PeerDraft, peerDraft } from '../../a2a/peer-message.ts';
import { isFinal, type TaskView, viewOfEnd, viewOfRecord, WAITS_FOR_APPROVAL } from '../../a2a/task.ts';
import { type PeerTask, peerSession } from '../../bus/peer-task.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { LocalInboxes } from '../messages/local-inbox.ts';
import { type Inbox, type Inboxes, inboxOf } from '../messages/message-entries.ts';
import { type Member, memberKey } from '../team/member.ts';
import type { PeerRecord } from './peer-entries.ts';

/** The server that callers use. */
export interface PeerServer {
  /** Its address, without a path. */
  readonly url: string;
  /** Reports an error that a caller gets no details of. */
  unexpected(error: unknown): void;
}

interface LocalPeerDeps extends PeerServer {
  readonly inboxes: LocalInboxes;
  readonly clock: Clock;
  /** Ends the work on all messages of a chain. */
  cancel(root: string): Promise<void>;
  /** Whether the message is in work. */
  isInWork(agent: string, session: string, message: string): boolean;
}

const TOKENS = 'The token of the caller in the file a2a-callers.yaml of the user who runs the agent.';
const CANCELED = { kind: 'failed', code: 'TEMPER_CANCELLED', text: 'the caller canceled the task' } as const;
const LOST = {
  kind: 'failed',
  code: 'TEMPER_MESSAGE_UNDELIVERED',
  text: 'the message ended without an answer',
} as const;

/** The calls of one caller. A task and its message are one change of the state folder, and so are the end of both. */
export class LocalPeerCalls implements PeerCalls<PeerTask> {
  readonly #member: Member;
  readonly #key: string;
  readonly #caller: ListedCaller;
  readonly #deps: LocalPeerDeps;

  constructor(member: Member, caller: ListedCaller, deps: LocalPeerDeps) {
    this.#member = member;
    this.#key = memberKey(member);
    this.#caller = caller;
    this.#deps = deps;
  }

  card(): AgentCard {
    return agentCard(this.#member.agent, { url: this.#deps.url, tokens: TOKENS });
  }

  async send(message: Message): Promise<PeerTask> {
    const { caller } = this.#caller;
    const draft = peerDraft(message, LocalInboxes.idOf(`a2a ${caller}`, this.#key, message.messageId));
    const task = await this.#deps.inboxes.change((inboxes) => this.#storing(inboxes, draft));
    assertSameMessage(task, draft);
    return task;
  }

  async find(id: string): Promise<PeerTask> {
    const found = this.#inbox.peers.get(id)?.task;
    if (found !== undefined && found.caller === this.#caller.caller) return found;
    throw new TemperError('TEMPER_NOT_FOUND', `this caller has no task "${printable(id, 80)}" of the agent`);
  }

  async view({ message }: PeerTask): Promise<TaskView> {
    return this.#viewOf(await this.find(message));
  }

  start(): number {
    return -1;
  }

  async position(): Promise<number> {
    return this.#deps.inboxes.version;
  }

  /** Changes are seen as they are now: a state that lasts shorter than the reader needs is left out, and an end never. */
  async *changes({ message }: PeerTask, { signal, untilInterrupted }: TaskChangesOptions): AsyncGenerator<TaskView> {
    const { inboxes } = this.#deps;
    let state: TaskState = TaskState.TASK_STATE_SUBMITTED;
    while (!signal.aborted) {
      const { version } = inboxes;
      const view = this.#viewOf(await this.find(message));
      if (view.state !== state) yield view;
      state = view.state;
      const isInterrupted = untilInterrupted && state === TaskState.TASK_STATE_INPUT_REQUIRED;
      if (isFinal(state) || isInterrupted) return;
      if (inboxes.version === version) await inboxes.changes.wait(signal);
    }
  }

  async cancel(task: PeerTask): Promise<TaskView> {
    const at = this.#deps.clock.now().toISOString();
    const isCanceled = await this.#deps.inboxes.change((inboxes) => {
      const isOpen = inboxOf(inboxes, this.#key).peers.get(task.message)?.task.ended === undefined;
      const ended = { op: 'peer-ended' as const, agent: this.#key, id: task.message, end: CANCELED, at };
      return { entries: isOpen ? [ended] : [], result: isOpen };
    });
    if (!isCanceled) throw new TaskNotCancelableError('the task has ended, so it cannot be canceled');
    await this.#deps.cancel(task.message);
    return this.view(task);
  }

  unexpected(error: unknown): void {
    this.#deps.unexpected(error);
  }

  get #inbox(): Inbox {
    return inboxOf(this.#deps.inboxes.inboxes, this.#key);
  }

  #storing(inboxes: Inboxes, draft: PeerDraft) {
    const { peers } = inboxOf(inboxes, this.#key);
    const known = peers.get(draft.message)?.task;
    if (known !== undefined) return { entries: [], result: known };
    const now = this.#deps.clock.now();
    const { caller } = this.#caller;
    assertFewOpen(
      [...peers.values()].map(({ task }) => task).filter((task) => task.caller === caller),
      now.getTime(),
    );
    const { message, context, digest, text } = draft;
    const task: PeerTask = { message, caller, context, time: now.toISOString(), text, digest };
    const stored = this.#deps.inboxes.storing(inboxes, this.#key, message, {
      to: this.#member.name,
      from: this.#caller.callerName,
      source: 'Peer',
      session: peerSession(task),
      text: draft.whole,
      depth: 0,
      deadline: new Date(now.getTime() + PEER_CHAIN_MS).toISOString(),
      time: task.time,
    });
    const opened = { op: 'peer-opened' as const, agent: this.#key, task };
    if (stored.length > 0) return { entries: [opened, ...stored], result: task };
    // The message has ended, and its task is not kept any more. Without an end the new record would never be removed.
    const ended = { op: 'peer-ended' as const, agent: this.#key, id: message, end: LOST, at: task.time };
    return { entries: [opened, ended], result: task };
  }

  #viewOf(task: PeerTask): TaskView {
    const { end }: Partial<PeerRecord> = this.#inbox.peers.get(task.message) ?? {};
    if (task.ended !== undefined)
      return end === undefined ? viewOfRecord(task, task.ended) : viewOfEnd(task, end, task.ended.at);
    const since = task.time;
    const queued = this.#inbox.messages.get(task.message);
    if (queued === undefined) return viewOfEnd(task, LOST, this.#deps.clock.now().toISOString());
    if (queued.parked !== undefined)
      return { task, state: TaskState.TASK_STATE_INPUT_REQUIRED, since, note: WAITS_FOR_APPROVAL };
    const isInWork = this.#deps.isInWork(this.#key, peerSession(task), task.message);
    return { task, state: isInWork ? TaskState.TASK_STATE_WORKING : TaskState.TASK_STATE_SUBMITTED, since };
  }
}
