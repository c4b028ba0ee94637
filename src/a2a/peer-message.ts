import type { Message } from '@a2a-js/sdk';
import { UnsupportedOperationError } from '@a2a-js/sdk/errors';
import type { PeerTask } from '../bus/peer-task.ts';
import { sha256 } from '../lib/canonical.ts';
import { TemperError } from '../lib/errors.ts';
import { invalidParameters } from './errors.ts';
import { messageText } from './message-text.ts';
import { historyText } from './task.ts';

/** How long the chain of a message of a peer may take. */
export const PEER_CHAIN_MS = 3_600_000;
/** Tasks of one caller at one agent that have not ended: one caller cannot fill the inbox of an agent. */
const MAX_OPEN_TASKS = 32;
/** A task whose end was not recorded counts no longer than this. */
const COUNTED_MS = 2 * PEER_CHAIN_MS;

/** A message of a caller before it is stored. */
export interface PeerDraft extends Pick<PeerTask, 'message' | 'context' | 'digest'> {
  /** The whole text. */
  readonly whole: string;
  /** The part that its task keeps. */
  readonly text: string;
}

/** `id`: of the message, and so of its task. Throws the errors of the protocol. */
export function peerDraft(message: Message, id: string): PeerDraft {
  const whole = messageText(message);
  assertNewTask(message, id);
  const { contextId } = message;
  // Derived from the message, so that a repeated message has the context that its first attempt opened.
  const context = contextId === '' ? `c-${id.slice('msg-'.length)}` : contextId;
  return { message: id, context, digest: sha256(JSON.stringify([contextId, whole])), whole, text: historyText(whole) };
}

/** A task is one message with its answer: a conversation goes on with further messages of its context. */
function assertNewTask({ taskId }: Message, id: string): void {
  if (taskId === '' || taskId === id) return;
  throw new UnsupportedOperationError(
    'a task takes no further message: send it without message.taskId, in the same message.contextId',
  );
}

/** A repeated message, by its id, is the same task; another message with the id is refused. */
export function assertSameMessage({ digest }: PeerTask, draft: PeerDraft): void {
  if (digest === draft.digest) return;
  throw invalidParameters('message.messageId was used for another message; give each message an id of its own');
}

/** `tasks`: those of the caller at the agent. Throws TEMPER_RATE_LIMITED. */
export function assertFewOpen(tasks: readonly PeerTask[], now: number): void {
  const open = tasks.filter(({ ended, time }) => ended === undefined && Date.parse(time) > now - COUNTED_MS);
  if (open.length < MAX_OPEN_TASKS) return;
  throw new TemperError(
    'TEMPER_RATE_LIMITED',
    `this caller has ${open.length} tasks of the agent that have not ended; wait for one, or cancel one`,
    { retry: 5_000 },
  );
}
