/** Fixtures for the tests of verbs that act on a cluster. */
import assert from 'node:assert/strict';
import { isTemperError } from '../../lib/errors.ts';
import { type FakeCluster, fakeCluster, type FakeResponse, type RecordedRequest } from './api-server.testing.ts';

/** Where a token of `temper-users` is requested. */
export const TOKEN = '/api/v1/namespaces/team-a/serviceaccounts/temper-users/token';

/** A cluster with Temper in temper-system; `more` is asked first. */
export function installed(more: (request: RecordedRequest) => FakeResponse): Promise<FakeCluster> {
  return fakeCluster((request) => {
    const found = more(request);
    if (found !== undefined) return found;
    if (request.path === TOKEN) {
      const expirationTimestamp = new Date(Date.now() + 600_000).toISOString();
      return { status: 201, body: { status: { token: 'the-token', expirationTimestamp } } };
    }
    if (request.path.startsWith('/api/v1/services?')) {
      return servicesIn('temper-system');
    }
    return undefined;
  });
}

/** The Service of the gateway of a release. */
export function servicesIn(...namespaces: string[]): FakeResponse {
  const items = namespaces.flatMap((namespace) =>
    ['temper-gateway', 'temper-gateway-metrics'].map((name) => ({ metadata: { name, namespace } })),
  );
  return { status: 200, body: { kind: 'ServiceList', metadata: { resourceVersion: '1' }, items } };
}

export const lines = (...values: object[]): string => values.map((value) => `${JSON.stringify(value)}\n`).join('');

export const event = (seq: number, rest: object) => ({
  seq,
  kind: 'event',
  event: { time: '2026-01-01T00:00:00Z', agent: 'analyst', session: 's-1', rootMessage: 'm-1', ...rest },
});

export async function refusal(work: Promise<unknown>): Promise<{ code: string; message: string }> {
  const error: unknown = await work.then(
    () => assert.fail('nothing was refused'),
    (thrown: unknown) => thrown,
  );
  assert.ok(isTemperError(error), String(error));
  return error;
}
