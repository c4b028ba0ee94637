import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PORTS, RELEASE_OBJECTS } from '../../../../src/api/cluster.ts';
import { NO_PLAIN_REQUEST, NO_TUNNEL } from '../../../../src/egress/request/target.testing.ts';
import { INSIDE_ADDRESSES } from '../../../support/egress/inside-addresses.ts';
import { pollAssertion } from '../../../support/poll.ts';
import { reachabilityScript, runInPod } from '../../support/in-pod.ts';
import { RELEASE_NAMESPACE } from '../../support/installed-cluster.ts';
import { METADATA_ADDRESS, OTHER_PORTS, PUBLIC_ADDRESS } from '../../support/internet/addresses.ts';
import {
  FETCH_ALL,
  outcomesIn,
  PERMITTED_URLS,
  REBINDING_URLS,
  REFUSED_URLS,
} from '../../support/internet/fetching-script.ts';
import type { EgressSetup } from './egress-setup.ts';

/** The hosts of the permitted URLs, and that of the worked forge that fetches. */
const HOSTS = /^(?:api|moved|xn--bcher-kva|rebinding|status)\.example\.com$/;
/** A name that the policy allows. */
const ALLOWED_NAME = /^[a-z0-9-]+\.example\.com$/;

/** A tool that an agent forged, an attacker in the place of the agent, and connections past the proxy. */
export function reachedHosts(current: () => EgressSetup): void {
  /** Fails when anything but the permitted hosts was reached, or a name was resolved that the policy does not allow. */
  const assertOnlyPermitted = async (): Promise<void> => {
    const lines = await current().internet.lines();
    for (const line of lines) {
      if (line.event === 'query') assert.match(line.name, ALLOWED_NAME);
      else if (line.event === 'request') assert.match(line.host, HOSTS);
      else assert.notEqual(line.event, 'connection', JSON.stringify(line));
    }
    const addresses = new Set((await current().proxyLines()).flatMap(({ address }) => address ?? []));
    assert.deepEqual([...addresses], [PUBLIC_ADDRESS]);
  };

  describe('what agents reach', () => {
    it('a forged tool fetches what the policy of its agent allows, and no other form of a URL', async (context) => {
      const outcomes = outcomesIn(await current().agents.sendAndWait('fetcher', FETCH_ALL));
      context.diagnostic(`${REFUSED_URLS.length} URLs are refused`);
      assert.ok(REFUSED_URLS.length >= 60);
      for (const url of PERMITTED_URLS) assert.equal(outcomes[url], '200', url);
      for (const url of REFUSED_URLS) assert.equal(outcomes[url], 'TEMPER_FETCH_DENIED', url);
      // The proxy resolves once: it connects to the public address that it read, or refuses the one inside.
      assert.deepEqual(new Set(REBINDING_URLS.map((url) => outcomes[url])), new Set(['200', 'TEMPER_FETCH_DENIED']));
      await assertOnlyPermitted();
    });

    it('an attacker in the place of the agent gets no more from the proxy', async () => {
      const plain = NO_TUNNEL.filter((authority) => !/[\r\n]/.test(authority) && authority.trim() === authority);
      const forms = [
        ...plain.map((authority) => `CONNECT ${authority}`),
        ...NO_PLAIN_REQUEST.map((url) => `GET ${url}`),
        ...INSIDE_ADDRESSES.map((_, index) => `CONNECT inside-${index}.example.com:443`),
      ];
      const denied = ['CONNECT example.com:443', 'CONNECT api.example.com:8443', `CONNECT ${PUBLIC_ADDRESS}:443`];
      const answers = (await current().send('suspended', [...forms, ...denied])) as string[];
      // A line that is not HTTP ends in the parser.
      for (const [index, line] of forms.entries())
        assert.match(answers[index] ?? '', /^(?:403 TEMPER_FETCH_DENIED|400)/, line);
      for (const [index, line] of denied.entries()) {
        assert.equal(answers[forms.length + index], '403 TEMPER_POLICY_DENIED', line);
      }
      await assertOnlyPermitted();
    });

    const proxyAddress = async (): Promise<string> => {
      const service = ['get', 'service', RELEASE_OBJECTS.egress, '-n', RELEASE_NAMESPACE];
      return `${await current().cluster.kubectl(...service, '-o', 'jsonpath={.spec.clusterIP}')}:${PORTS.egress}`;
    };

    it('no container of the pod reaches the internet past the proxy', async () => {
      const { cluster, pod } = current();
      const proxy = await proxyAddress();
      const outside = [[PUBLIC_ADDRESS, 443] as const, ...OTHER_PORTS].map(([address, port]) => `${address}:${port}`);
      assert.ok(outside.includes(`${METADATA_ADDRESS}:80`));
      const script = reachabilityScript([proxy, ...outside]);
      const all = (isReached: boolean) => Object.fromEntries(outside.map((target) => [target, isReached]));
      const fromNode = await cluster.node.onNode(process.execPath, '--input-type=module', '-e', script);
      assert.deepEqual(JSON.parse(fromNode), { [proxy]: true, ...all(true) });
      for (const container of ['agent', 'sandbox'] as const) {
        assert.deepEqual(
          await runInPod(cluster.node, pod, container, script),
          { [proxy]: true, ...all(false) },
          container,
        );
      }
    });

    it('the pod of an agent reaches the proxy while the agent has grants for hosts', async () => {
      const { cluster, agents, offline } = current();
      const proxy = await proxyAddress();
      const reached = async () => runInPod(cluster.node, offline, 'agent', reachabilityScript([proxy]));
      assert.deepEqual(await reached(), { [proxy]: false });
      for (const network of [['*.example.com'], []]) {
        await agents.patchSpec('offline', { grants: { network } });
        await pollAssertion('the pod with its new grants', async () =>
          assert.deepEqual(await reached(), { [proxy]: network.length > 0 }),
        );
      }
      assert.equal((await agents.boundPod('offline')).metadata.uid, offline.metadata.uid, 'no new pod');
    });
  });
}
