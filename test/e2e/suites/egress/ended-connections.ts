import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pollValue } from '../../../support/poll.ts';
import { type EgressSetup, INTRUDERS } from './egress-setup.ts';

const pathOf = (name: string): string => `/drip?${name}`;

/** Open connections of agents that may not have them any more. */
export function endedConnections(current: () => EgressSetup): void {
  /** Waits until each of the paths of the host that sends without end has such a line. */
  const waitFor = (event: 'request' | 'closed') =>
    pollValue(
      `${event} of each path`,
      async () => (await current().internet.lines()).flatMap((line) => (line.event === event ? [line.path] : [])),
      (paths) => INTRUDERS.every((name) => paths.includes(pathOf(name))),
    );

  describe('open connections', () => {
    it('the proxy ends them when the agent is suspended, its policy is, or the agent is deleted', async (context) => {
      const { agents, cluster } = current();
      // The pods end later than the connections, perhaps in the middle of the program.
      const held = INTRUDERS.map((name) =>
        current()
          .hold(name, pathOf(name))
          .catch(() => undefined),
      );
      await waitFor('request');
      const start = performance.now();
      const suspended = JSON.stringify({ spec: { suspend: true } });
      await Promise.all([
        agents.patchSpec('suspended', { suspend: true }),
        cluster.kubectl('patch', 'trustpolicy', 'switched', '-n', agents.namespace, '--type=merge', '-p', suspended),
        cluster.kubectl('delete', 'agent', 'deleted', '-n', agents.namespace, '--wait=false'),
      ]);
      await waitFor('closed');
      context.diagnostic(`ended after ${((performance.now() - start) / 1_000).toFixed(1)} s`);
      const outcomes = await pollValue(
        'the log lines of the ended connections',
        async () => {
          const ended = (await current().proxyLines()).filter(({ agent, outcome, address }) => {
            return INTRUDERS.some((name) => name === agent) && outcome !== 'ok' && address !== undefined;
          });
          return Object.fromEntries(ended.map(({ agent, outcome }) => [agent, outcome]));
        },
        (found) => Object.keys(found).length === INTRUDERS.length,
      );
      assert.deepEqual(outcomes, {
        suspended: 'TEMPER_AGENT_SUSPENDED',
        switched: 'TEMPER_AGENT_SUSPENDED',
        deleted: 'TEMPER_POD_NOT_BOUND',
      });
      await Promise.all(held);
    });
  });
}
