import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { POLL_SECONDS } from '../../gateway-client/assignment.ts';
import { ASSIGNMENT_VERSION_HEADER, type NoMessage } from '../../gateway-api/pod-api.ts';
import type { GatewayDeps } from '../deps.ts';
import { POD } from '../http/pod.testing.ts';
import type { GatewayServer } from '../http/routes.ts';
import { nextMessageRoutes } from './next.ts';

type Handler = (request: object, reply: object) => Promise<unknown>;

const STATE = {
  agent: { metadata: { name: POD.agent, namespace: POD.namespace }, spec: { model: { primary: 'default/default' } } },
  policy: { metadata: { name: 'standard' }, spec: {} },
  level: 'restricted',
  categoryLevels: {},
  uid: POD.agentUid,
  ancestors: [],
  suspended: false,
};

/** The route over an inbox without messages. `tools` lists the tools of the namespace; `change` notifies the waits for its agent. */
function openRoute(tools: () => []) {
  let change = (): void => undefined;
  let handler: Handler = () => Promise.reject(new Error('no route was added'));
  const server = { post: (_path: string, _options: object, added: Handler) => (handler = added) };
  const aborted = (signal: AbortSignal) =>
    new Promise<undefined>((done) => signal.addEventListener('abort', () => done(undefined), { once: true }));
  const deps = {
    clock: systemClock,
    draining: new AbortController().signal,
    identity: { isStillBound: () => true },
    directory: {
      byUid: () => STATE,
      changed: (_of: object, signal: AbortSignal) =>
        Promise.race([new Promise<void>((done) => (change = done)), aborted(signal)]),
    },
    inbox: { fetchNext: (_uid: string, _wait: number, signal: AbortSignal) => aborted(signal) },
    models: { resolve: () => undefined },
    brokered: { list: tools },
    repositories: { list: () => [] },
    skills: { any: () => false },
    toolsVersion: () => '1',
  };
  nextMessageRoutes(server as unknown as GatewayServer, deps as unknown as GatewayDeps);
  const poll = (version: string) => {
    const disconnected = new AbortController().signal;
    const headers = { [ASSIGNMENT_VERSION_HEADER]: version };
    return handler({ pod: POD, headers, body: { waitSeconds: POLL_SECONDS }, disconnected }, {});
  };
  return { poll, change: () => change() };
}

describe('the next message of a pod', () => {
  it('an assignment that cannot be computed after a change fails the request of its pod, and not the process', async () => {
    let failure: Error | undefined;
    const route = openRoute(() => {
      if (failure !== undefined) throw failure;
      return [];
    });
    const { assignment } = (await route.poll('an older one')) as NoMessage;
    const waiting = assert.rejects(route.poll(assignment?.version ?? ''), /no tools/);
    failure = new Error('no tools');
    route.change();
    await waiting;
  });
});
