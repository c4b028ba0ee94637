import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { lostToolContract } from '../../test/contracts/discovery.ts';
import type { Digest } from '../lib/canonical.ts';
import type { Decider, PolicyRequest } from '../policy/types.ts';
import type { CallerContext, Tool } from '../tools/contract.ts';
import { createToolView } from '../tools/view.ts';
import { callOptions } from '../../test/support/call-options.ts';
import { capabilityEntry } from './entry.ts';
import { sessionDiscovery } from './session-discovery.ts';

const SHARED: Tool = {
  descriptor: {
    name: 'okapi_sum',
    description: 'Sums up an okapi.',
    inputSchema: { type: 'object' },
    category: 'code_execution',
    action: 'code:read',
    sideEffects: false,
  } as unknown as Tool['descriptor'],
  call: () => Promise.reject(new Error('unexpected call')),
};
const DECIDER: Decider = { decide: () => ({ effect: 'Allow', rule: 'none', reason: '', risk: 'low' }) } as never;

const CALLER = {
  agent: 'analyst',
  namespace: 'team-a',
  session: 's',
  rootMessage: 'm',
  stack: [],
} as never as CallerContext;
const A_DIGEST: Digest = `sha256:${'a'.repeat(64)}`;
const B_DIGEST: Digest = `sha256:${'b'.repeat(64)}`;

function forged(name: string, digest: Digest): Tool {
  return {
    ...SHARED,
    descriptor: { ...SHARED.descriptor, name, description: '', forged: { digest, steps: [] } },
  } as never;
}

describe('discovery in one process', () => {
  it('a search finds the forged tool that the agent uses with the one it looks for, while the session has both', async () => {
    const search = async (...tools: Tool[]) => {
      const discovery = sessionDiscovery({
        view: () => createToolView(tools),
        decider: () => DECIDER,
        usedTogether: () => [{ tools: [A_DIGEST, B_DIGEST], percent: 90 }],
      });
      return (await discovery.search({ query: 'okapi' }, CALLER, callOptions())).capabilities.map(({ name }) => name);
    };
    const [one, other] = [forged('okapi_sum', A_DIGEST), forged('chart', B_DIGEST)];
    assert.deepEqual(await search(one, other), ['okapi_sum', 'chart']);
    assert.deepEqual(await search(one), ['okapi_sum']);
    assert.deepEqual(await search(one, forged('chart', `sha256:${'c'.repeat(64)}`)), ['okapi_sum'], 'another tool');
  });

  it('a search says whether a run has the connections of a skill, and whether the policy permits fetch of a forged tool', async () => {
    const skill = capabilityEntry({
      metadata: { name: 'okapis' },
      spec: { type: 'Skill', description: 'How okapis are counted.', content: 'x', requiredSecrets: ['wiki'] },
    });
    const { descriptor } = forged('okapi_rates', A_DIGEST);
    const hosts = ['api.example.com'];
    const fetching: Tool = {
      ...SHARED,
      descriptor: { ...descriptor, forged: { ...descriptor.forged, hosts } as never },
    };
    const notes = async (effect: string, hasConnection?: (name: string) => boolean) => {
      const decide = ({ kind }: PolicyRequest) => ({ effect: kind === 'Network' ? effect : 'Allow' });
      const discovery = sessionDiscovery({
        view: () => createToolView([fetching]),
        decider: () => ({ decide }) as never,
        catalog: () => [skill],
        hasConnection,
      });
      const { capabilities } = await discovery.search({ query: 'okapi' }, CALLER, callOptions());
      return Object.fromEntries(capabilities.map(({ name, note }) => [name, note]));
    };
    assert.deepEqual(await notes('Allow', (name) => name === 'wiki'), { okapis: undefined, okapi_rates: undefined });
    assert.deepEqual(await notes('Deny'), {
      okapis: '[not available: needs connection wiki]',
      okapi_rates: '[not available: it uses fetch, and this agent may connect to none of its hosts]',
    });
  });

  lostToolContract('temper run', async () => {
    const views = { with: createToolView([SHARED]), without: createToolView([]) };
    let lost = false;
    const discovery = sessionDiscovery({
      view: ({ agent }) => (agent === 'loser' && lost ? views.without : views.with),
      decider: () => DECIDER,
    });
    const query = 'okapi';
    return {
      query,
      tool: 'okapi_sum',
      found: async (agent) => {
        const caller = {
          agent,
          namespace: 'team-a',
          session: 's',
          rootMessage: 'm',
          stack: [],
        } as never as CallerContext;
        return (await discovery.search({ query }, caller, callOptions())).capabilities.map(({ name }) => name);
      },
      lose: async () => void (lost = true),
      regain: async () => void (lost = false),
    };
  });
});
