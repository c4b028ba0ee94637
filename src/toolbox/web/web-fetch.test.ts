import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aCallContext } from '../../../test/support/call-context.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { BytesRequest } from '../../net/fetch.ts';
import { validateTarget } from '../../net/targets.ts';
import type { PolicyRequest } from '../../policy/types.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { Web } from './deps.ts';
import { extractPage } from './page/extract-page.ts';
import { webFetchTool } from './web-fetch.ts';

const context = aCallContext({ agent: 'reader' });

/** A page at every address; the rules of the call decide about each one in `hops`. */
function aTool(body: string, { type = 'text/html', hops = [] as string[] } = {}) {
  const requests: BytesRequest[] = [];
  const asked: PolicyRequest[] = [];
  const web: Web = {
    async fetch(request, rules) {
      requests.push(request);
      const url = [request.url, ...hops].map((hop) => validateTarget(hop, rules).url.href).at(-1) ?? '';
      return { status: 200, headers: { 'content-type': type }, bytes: Buffer.from(body), url, redirected: false };
    },
    readPage: async (response) => extractPage(response),
  };
  const tool = webFetchTool({
    web,
    decide: (_caller, request) => {
      asked.push(request);
      const isAllowed = request.kind === 'Network' && request.host === 'example.com';
      return { effect: isAllowed ? 'Allow' : 'Deny', rule: 'grant.network', reason: 'it is not granted', risk: 'low' };
    },
  });
  return {
    requests,
    asked,
    call: async (input: Json) => {
      const schemas = createSchemaCompiler();
      assert.deepEqual(schemas.check(tool.descriptor.inputSchema)(input), []);
      const output = await tool.call(input, context);
      assert.deepEqual(schemas.check(tool.descriptor.outputSchema ?? {})(output), []);
      return output as Record<string, Json>;
    },
  };
}

describe('web_fetch', () => {
  it('web_fetch returns the title, the text and, when asked, the links of a page', async () => {
    const { call, requests } = aTool('<title>T</title><p>See <a href="/b">b</a></p>', {
      hops: ['https://example.com/c'],
    });
    assert.deepEqual(await call({ url: 'https://example.com/a' }), {
      url: 'https://example.com/a',
      finalUrl: 'https://example.com/c',
      status: 200,
      contentType: 'text/html',
      title: 'T',
      text: 'See [b](https://example.com/b)',
      truncated: false,
    });
    const plain = await call({ url: 'https://example.com/a', format: 'text', links: true });
    assert.deepEqual([plain['text'], plain['links']], ['See b', [{ text: 'b', url: 'https://example.com/b' }]]);
    assert.match(requests[0]?.headers?.['accept'] ?? '', /text\/html/);
  });

  it('web_fetch returns a long text in parts that join to the whole, and cuts no character', async () => {
    const whole = '😀'.repeat(500);
    const { call } = aTool(whole, { type: 'text/plain; charset=utf-8' });
    let text = '';
    let offset: Json | undefined = 0;
    for (let part = 0; part < 20 && offset !== undefined; part += 1) {
      const result: Record<string, Json> = await call({ url: 'https://example.com/', maxCharacters: 101, offset });
      assert.equal(result['truncated'], result['nextOffset'] !== undefined);
      assert.equal(typeof result['text'], 'string');
      text += result['text'] as string;
      offset = result['nextOffset'];
    }
    assert.equal(text, whole);
    assert.equal((await call({ url: 'https://example.com/', offset: 999_999 }))['text'], '');
  });

  it('web_fetch asks the policy about the host and the port of each request and redirect', async () => {
    const { call, asked } = aTool('', { hops: ['https://example.com:8443/b', 'https://evil.test/c'] });
    await assert.rejects(call({ url: 'https://example.com:8443/a' }), (error) => {
      assert.ok(isTemperError(error, 'TEMPER_FETCH_DENIED'));
      assert.match(error.message, /evil\.test\/c" is refused: it is not granted \(grant\.network\)/);
      return true;
    });
    assert.deepEqual(asked, [
      // The check of the call, the request, and the redirect.
      { kind: 'Network', host: 'example.com', port: 8443 },
      { kind: 'Network', host: 'example.com', port: 8443 },
      { kind: 'Network', host: 'example.com', port: 8443 },
      { kind: 'Network', host: 'evil.test', port: 443 },
    ]);
    for (const url of ['http://example.com/', 'file:///etc/passwd', 'https://10.0.0.1/', 'https://localhost/']) {
      await assert.rejects(call({ url }), (error) => isTemperError(error, 'TEMPER_FETCH_DENIED'), url);
    }
  });

  it('web_fetch refuses content that is not text, and fails without a way to the internet', async () => {
    const { call } = aTool('%PDF', { type: 'application/pdf' });
    await assert.rejects(call({ url: 'https://example.com/' }), (error) =>
      isTemperError(error, 'TEMPER_WEB_CONTENT_UNSUPPORTED'),
    );
    const tool = webFetchTool({ decide: () => ({ effect: 'Allow', rule: 'grant.network', reason: '', risk: 'high' }) });
    await assert.rejects(tool.call({ url: 'https://example.com/' }, context), (error) =>
      isTemperError(error, 'TEMPER_EGRESS_UNAVAILABLE'),
    );
  });
});
