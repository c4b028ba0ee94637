/** Clients and messages of the Agent2Agent protocol, with the SDK. */
import assert from 'node:assert/strict';
import { type Message, Role, type SendMessageRequest, type Task } from '@a2a-js/sdk';
import {
  type Client,
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from '@a2a-js/sdk/client';

/** The client of the SDK for the agent at this URL. It reads the card first, as every client does. */
export function a2aClientAt(url: string, fetchImpl: typeof fetch): Promise<Client> {
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [new JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  });
  return new ClientFactory(options).createFromUrl(`${url}/`, '.well-known/agent-card.json');
}

/** A message with one text. */
export function messageRequest(text: string, change: Partial<Message> & { messageId: string }): SendMessageRequest {
  return {
    tenant: '',
    metadata: undefined,
    configuration: undefined,
    message: {
      contextId: '',
      taskId: '',
      role: Role.ROLE_USER,
      parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
      ...change,
    },
  };
}

/** The answer, which is a task and no message. */
export function asTask(value: object): Task {
  assert.ok('artifacts' in value, JSON.stringify(value));
  return value as Task;
}
