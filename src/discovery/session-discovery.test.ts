import { describe } from 'node:test';
import { lostToolContract } from '../../test/contracts/discovery.ts';
import type { Decider } from '../policy/types.ts';
import type { CallerContext, Tool } from '../tools/contract.ts';
import { createToolView } from '../tools/view.ts';
import { callOptions } from '../../test/support/call-options.ts';
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

describe('discovery in one process', () => {
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
