import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { ApiError, type ResourceType } from './kube-client.ts';
import { listAll, PageSize } from './list.ts';
import type { KubeRequest } from './transport.ts';

const PODS: ResourceType = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true };

/** A transport to a collection of objects with these sizes in bytes. A limited response fails when it is larger than the request permits. */
function aCollection(sizes: readonly number[], options: { expireOnce?: boolean } = {}) {
  const limits: (number | undefined)[] = [];
  let expires = options.expireOnce === true;
  const send = async ({ path, maxResponseBytes = Number.POSITIVE_INFINITY }: KubeRequest) => {
    const query = new URL(path, 'https://api').searchParams;
    const from = Number(query.get('continue') ?? 0);
    const limit = query.has('limit') ? Number(query.get('limit')) : undefined;
    limits.push(limit);
    if (from > 0 && expires) {
      expires = false;
      throw new ApiError(410, 'Expired', 'the continue token is too old');
    }
    const end = limit === undefined ? sizes.length : Math.min(sizes.length, from + limit);
    const page = sizes.slice(from, end);
    if (page.reduce((sum, size) => sum + size, 0) > maxResponseBytes) {
      throw new TemperError('TEMPER_KUBE_RESPONSE_TOO_LARGE', 'too large');
    }
    const items = page.map((_, index) => ({ metadata: { name: `pod-${from + index}` } }));
    return { metadata: { resourceVersion: '7', ...(end < sizes.length ? { continue: String(end) } : {}) }, items };
  };
  return { transport: { send }, limits };
}

const MIB = 1024 * 1024;

describe('a list of all objects', () => {
  it('a list halves its pages until each fits, returns every object, and starts its next list with the smaller pages', async () => {
    const { transport, limits } = aCollection(Array.from({ length: 345 }, () => 200_000));
    const pageSize = new PageSize();
    const { items } = await listAll(transport, PODS, {}, NEVER_ABORTED, { pageSize });
    assert.equal(new Set(items.map(({ metadata }) => metadata.name)).size, 345);
    assert.deepEqual(limits, [500, 250, 125, 62, 62, 62, 62, 62, 62]);
    limits.length = 0;
    await listAll(transport, PODS, {}, NEVER_ABORTED, { pageSize });
    assert.deepEqual(new Set(limits), new Set([62]));
  });

  it('large objects in the middle of a list shrink only the later pages', async () => {
    const sizes = Array.from({ length: 1_500 }, (_, index) => (index < 1_000 ? 1_000 : 1.4 * MIB));
    const { transport, limits } = aCollection(sizes);
    const { items } = await listAll(transport, PODS, {}, NEVER_ABORTED);
    assert.equal(items.length, 1_500);
    assert.deepEqual(limits.slice(0, 9), [500, 500, 500, 250, 125, 62, 31, 15, 7]);
    assert.ok(limits.slice(9).every((limit) => limit === 7));
  });

  it('a single object that is too large fails the list', async () => {
    const { transport, limits } = aCollection([17 * MIB]);
    const tooLarge = (error: unknown): boolean => isTemperError(error, 'TEMPER_KUBE_RESPONSE_TOO_LARGE');
    await assert.rejects(listAll(transport, PODS, {}, NEVER_ABORTED), tooLarge);
    assert.equal(limits.at(-1), 1);
  });

  it('a list whose continue token expired starts again in a single response', async () => {
    const { transport, limits } = aCollection(
      Array.from({ length: 700 }, () => 1),
      { expireOnce: true },
    );
    const { items } = await listAll(transport, PODS, {}, NEVER_ABORTED);
    assert.equal(items.length, 700);
    assert.deepEqual(limits, [500, 500, undefined]);
  });
});
