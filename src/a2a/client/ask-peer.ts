import type { CallOptions } from '../../lib/call-options.ts';
import { remainingMs } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import { PeerClient, type PeerRequests, type PeerTool } from './peer-client.ts';
import { isWorking, outputOfMessage, outputOfTask } from './peer-output.ts';
import { type PeerArguments, peerArguments, sendRequest } from './peer-request.ts';

interface AskDeps {
  readonly clock: Clock;
  readonly requests: PeerRequests;
}

/** Before the time of the call is over, the model gets the task as it is, and can read it again. */
const LEFT_FOR_ANSWER_MS = 2_000;
const FIRST_WAIT_MS = 250;
const MAX_WAIT_MS = 5_000;

/**
 * Sends a message to the agent and waits for the end of its task; a call without `message` reads a task again. A task that no call waits for
 * any more, because the call was cancelled, is cancelled. Throws TEMPER_TOOL_INPUT_INVALID, TEMPER_TOOL_FAILED for an error of the agent,
 * TEMPER_TOOL_OUTPUT_INVALID for an answer beyond the limits or with the credential, and what `requests` throw.
 */
export async function askPeer(
  tool: PeerTool,
  input: JsonObject,
  { clock, requests }: AskDeps,
  op: CallOptions,
): Promise<Json> {
  const given = peerArguments(input);
  const client = new PeerClient(tool, requests);
  const first = await firstAnswer(client, given, op);
  if ('parts' in first) return outputOfMessage(first);
  let task = first;
  try {
    for (let wait = FIRST_WAIT_MS; isWorking(task); wait = Math.min(2 * wait, MAX_WAIT_MS)) {
      if (remainingMs(op, clock) < wait + LEFT_FOR_ANSWER_MS) break;
      await clock.sleep(wait, op.signal);
      task = await client.task(task.id, op.signal);
    }
  } catch (error) {
    if (op.signal.aborted) await client.cancel(task.id);
    throw error;
  }
  return outputOfTask(tool.name, task);
}

function firstAnswer(client: PeerClient, given: PeerArguments, { key, signal }: CallOptions) {
  const isRead = given.message === undefined && Object.keys(given.data).length === 0;
  return isRead ? client.task(given.task, signal) : client.send(sendRequest(given, key), signal);
}
