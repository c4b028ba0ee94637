import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import type { Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { NO_BROKERED_TOOLS } from '../../../../src/gateway/brokered/port.ts';
import type { CapabilityTools } from '../../../../src/gateway/capabilities/capability-tools.ts';
import { type CatalogObject, pruneCapability } from '../../../../src/gateway/discovery/catalog-entries.ts';
import { isTemperError } from '../../../../src/lib/errors.ts';
import type { Json, JsonObject } from '../../../../src/lib/json.ts';
import { INJECTED, startPeer } from '../../../support/a2a-peer.ts';
import { callBrokered } from '../../../support/gateway/brokered-caller.ts';
import { brokeredCapabilities, type EgressSetup, startEgressProxy } from '../../../support/gateway/egress-proxy.ts';

const TLS = new URL('../../../fixtures/tls/', import.meta.url);

const CAPABILITY = {
  metadata: { name: 'archive', namespace: 'team-a', uid: 'uid-archive', generation: 1 },
  spec: {
    type: 'Tool',
    description: 'Asks the archive.',
    tool: { name: 'ask_archive', category: 'web', action: 'comms:external', inputSchema: { type: 'object' } },
    backend: { a2a: { url: 'https://api.example.com:8443/a2a' } },
  },
} as CatalogObject;

/** An agent elsewhere, with the server of the SDK, called by a real gateway through a real egress proxy. */
export function a2aPeersSuite(open: () => EgressSetup): void {
  describe('an agent elsewhere that a gateway asks over A2A through the egress proxy', () => {
    const stop = new AbortController();
    let peer: Server;
    let proxy: Awaited<ReturnType<typeof startEgressProxy>>;
    let tools: CapabilityTools;
    let messages = 0;

    before(async () => {
      const [cert = '', key = ''] = await Promise.all(
        ['certificate.pem', 'key.pem'].map((name) => readFile(new URL(name, TLS), 'utf8')),
      );
      peer = await startPeer({ cert, key });
      proxy = await startEgressProxy(open(), () => (peer.address() as AddressInfo).port, stop.signal);
      tools = brokeredCapabilities(open(), proxy, { connections: [], signal: stop.signal });
      tools.capabilityChanged({ type: 'added', key: 'team-a/archive', object: pruneCapability(CAPABILITY) });
      open().fixture.brokered = tools;
      const egress = { allow: ['**.example.com:8443'] };
      for (const [name, allowed] of [
        ['asking', ['ask_archive']],
        ['careful', []],
      ] as const)
        open().fixture.setPolicy(name, {
          level: { initial: 'standard' },
          autonomy: 'Full',
          egress,
          tainted: { tools: [...allowed] },
        });
    });
    after(async () => {
      open().fixture.brokered = NO_BROKERED_TOOLS;
      stop.abort(new Error('the tests are over'));
      await proxy?.running;
      peer?.closeAllConnections();
      await new Promise((closed) => peer?.close(closed));
    });

    const setAgent = (name: string, policy: string, host = 'api'): void => {
      const network = [`${host}.example.com:8443`];
      open().fixture.setAgent(name, { grants: { tools: ['*'], network } }, policy);
    };
    const ask = async (agent: string, input: Json, session = 's1'): Promise<JsonObject> => {
      const message = `ask-${(messages += 1)}`;
      const { output } = await callBrokered(
        { ...open(), tools },
        { agent, name: 'ask_archive', session, message, input },
      );
      return output as JsonObject;
    };

    it('a question of the peer is answered in its task', async () => {
      setAgent('asker', 'asking');
      const asked = await ask('asker', { message: 'How many books?' });
      assert.deepEqual([asked['state'], asked['text']], ['input-required', 'Which year?']);
      const goesOn = { message: '2025', context: asked['context'] ?? '', task: asked['task'] ?? '' };
      const { state, text, task } = await ask('asker', goesOn);
      assert.deepEqual([state, text, task], ['completed', INJECTED, asked['task']]);
      assert.ok(proxy.lines.every(({ agent, host }) => agent === 'asker' && host === 'api.example.com'));
    });

    it('what a peer says taints the session, whose next call is refused by its policy', async () => {
      setAgent('wary', 'careful');
      assert.equal((await ask('wary', { message: '2025' }))['text'], INJECTED);
      await assert.rejects(ask('wary', { message: '2026' }), /untrusted/);
      assert.equal((await ask('wary', { message: '2026' }, 's2'))['text'], INJECTED);
    });

    it('an agent without a grant for the host of the peer is refused, and nothing is asked', async () => {
      setAgent('other', 'asking', 'elsewhere');
      const before = proxy.lines.length;
      await assert.rejects(ask('other', { message: 'Hi.' }), (error) => {
        assert.ok(isTemperError(error, 'TEMPER_POLICY_DENIED'), String(error));
        assert.match(error.message, /api\.example\.com/);
        return true;
      });
      assert.equal(proxy.lines.length, before);
    });
  });
}
