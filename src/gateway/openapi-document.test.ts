import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { POD_API_PATHS } from '../gateway-api/pod-api.ts';

const DOCUMENT = new URL('../../docs/reference/gateway-openapi.json', import.meta.url);

describe('the OpenAPI document of the gateway', () => {
  it('the document has every route that a pod calls', async () => {
    const { paths } = JSON.parse(await readFile(DOCUMENT, 'utf8')) as { paths: Record<string, object> };
    const documented = Object.keys(paths);
    // Some routes continue with the id of a session or the key of a value.
    const missing = Object.values(POD_API_PATHS).filter(
      (route) => !documented.some((path) => path === route || path.startsWith(`${route}/{`)),
    );
    assert.deepEqual(missing, []);
  });
});
