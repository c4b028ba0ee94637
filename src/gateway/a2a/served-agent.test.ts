import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import { buildAgent } from '../../../test/support/builders.ts';
import type { AgentState } from '../agent-state.ts';
import { agentCard } from '../../a2a/card.ts';
import { requireServed } from './served-agent.ts';

const A2A = { enabled: true, callers: [{ serviceAccount: 'planner' }, { serviceAccount: 'web', namespace: 'team-b' }] };
const PATH = { namespace: 'team-a', agent: 'anna' };
const peer = (namespace: string, account: string) => ({ kind: 'peer', namespace, account }) as const;

function directoryOf(spec: object, ancestors: AgentState[] = []) {
  const agent = buildAgent('team-a', 'anna', spec);
  const state = { uid: 'uid-anna', agent, ancestors } as unknown as AgentState;
  return {
    agent: (namespace: string, name: string) => (namespace === 'team-a' && name === 'anna' ? state : undefined),
  };
}

const isRefused = (error: unknown): boolean => isTemperError(error, 'TEMPER_NOT_FOUND');

describe('agents that are available over A2A', () => {
  it('an agent serves the ServiceAccounts that it lists, in its own namespace or in the one that it names', () => {
    const directory = directoryOf({ a2a: A2A });
    const one = requireServed(PATH, peer('team-a', 'planner'), directory);
    const two = requireServed(PATH, peer('team-b', 'web'), directory);
    assert.match(one.caller, /^[0-9a-f]{32}$/);
    assert.notEqual(one.caller, two.caller);
    for (const other of [peer('team-b', 'planner'), peer('team-a', 'web'), peer('team-a', 'planne')])
      assert.throws(() => requireServed(PATH, other, directory), isRefused);
  });

  it('an agent that does not opt in, a child agent and an unknown agent are refused alike', () => {
    const caller = peer('team-a', 'planner');
    const parent = { uid: 'uid-parent' } as AgentState;
    const texts = [
      directoryOf({}),
      directoryOf({ a2a: { ...A2A, enabled: false } }),
      directoryOf({ a2a: { enabled: true } }),
      directoryOf({ a2a: A2A }, [parent]),
      { agent: () => undefined },
    ].map((directory) => {
      let text = '';
      assert.throws(
        () => requireServed(PATH, caller, directory),
        (error) => {
          text = String(error);
          return isRefused(error);
        },
      );
      return text;
    });
    assert.equal(new Set(texts).size, 1);
  });

  it('a card has the skills of the manifest, and without them one with the name of the agent', () => {
    const skills = [{ id: 'sum', name: 'Sums', description: 'Adds.', tags: ['math'], examples: ['1 + 1'] }];
    const caller = peer('team-a', 'planner');
    const cardOf = (spec: object) =>
      agentCard(requireServed(PATH, caller, directoryOf(spec)).state.agent, {
        url: 'https://gateway:8443',
        tokens: 'x',
      });
    const card = cardOf({ description: 'Own.', a2a: { ...A2A, description: 'For callers.', skills } });
    assert.equal(card.description, 'For callers.');
    assert.deepEqual(
      card.skills.map(({ id, tags, examples }) => [id, tags, examples]),
      [['sum', ['math'], ['1 + 1']]],
    );
    const plain = cardOf({ description: 'Own.', a2a: A2A });
    assert.deepEqual([plain.description, plain.skills[0]?.id, plain.skills.length], ['Own.', 'anna', 1]);
    assert.deepEqual(
      plain.supportedInterfaces.map(({ url, protocolVersion }) => [url, protocolVersion]),
      ['1.0', '0.3'].map((version) => ['https://gateway:8443/v1/a2a/namespaces/team-a/agents/anna', version]),
    );
  });
});
