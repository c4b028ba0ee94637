import { type Message, Role, type SendMessageRequest } from '@a2a-js/sdk';
import { sha256 } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json, JsonObject } from '../../lib/json.ts';

/** The arguments of a tool whose calls an agent elsewhere answers, by their meaning. */
export interface PeerArguments {
  /** Absent: the task is read again. */
  readonly message: string | undefined;
  readonly context: string;
  readonly task: string;
  /** All other arguments, which go along as data. */
  readonly data: JsonObject;
}

/** `message` is the text, `context` goes on with a conversation, `task` with a task. Throws TEMPER_TOOL_INPUT_INVALID. */
export function peerArguments({ message, context, task, ...data }: JsonObject): PeerArguments {
  const found = {
    message: textOf(message, 'message'),
    context: textOf(context, 'context') ?? '',
    task: textOf(task, 'task') ?? '',
    data,
  };
  if (found.message === undefined && found.task === '' && Object.keys(data).length === 0)
    throw invalid('message is missing; write what the agent is to do, or name a task to read it');
  return found;
}

/** `key`: of the call; a repeated call sends the same message. */
export function sendRequest({ message = '', context, task, data }: PeerArguments, key: string): SendMessageRequest {
  const hasData = Object.keys(data).length > 0;
  const parts: Message['parts'] = [
    ...(message === '' ? [] : [partOf({ $case: 'text', value: message }, 'text/plain')]),
    ...(hasData ? [partOf({ $case: 'data', value: data }, 'application/json')] : []),
  ];
  const id = sha256(`a2a ${key}`).slice('sha256:'.length, 'sha256:'.length + 32);
  return {
    tenant: '',
    metadata: undefined,
    // Temper asks for the task, so that it can cancel one that no call waits for any more.
    configuration: {
      acceptedOutputModes: ['text/plain', 'application/json'],
      taskPushNotificationConfig: undefined,
      historyLength: 0,
      returnImmediately: true,
    },
    message: {
      messageId: id,
      contextId: context,
      taskId: task,
      role: Role.ROLE_USER,
      parts,
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    },
  };
}

function partOf(content: Message['parts'][number]['content'], mediaType: string): Message['parts'][number] {
  return { content, metadata: undefined, filename: '', mediaType };
}

function textOf(value: Json | undefined, name: string): string | undefined {
  if (value === undefined || typeof value === 'string') return value;
  throw invalid(`${name} must be a text`);
}

function invalid(message: string): TemperError {
  return new TemperError('TEMPER_TOOL_INPUT_INVALID', message);
}
