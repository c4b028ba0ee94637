import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import { resolveModel } from '../../models/named-models.ts';
import { judgeNote } from './judge-note.ts';

const ALIASES = { 'default/default': 'local/x', 'default/judge': 'local/X', 'default/other': 'local/other' };
const resolve = (name: string): string =>
  resolveModel({ providers: [{ name: 'local', type: 'openai' }], aliases: ALIASES }, name).id;

function aDefinition(judge: string, { judgeMayBeAuthor = false, enabled = true } = {}) {
  const agent = {
    metadata: { name: 'a' },
    spec: { model: { primary: 'default/default' }, forge: { enabled } },
  } as unknown as Agent;
  const policy = { metadata: { name: 'p' }, spec: { models: { judge, judgeMayBeAuthor } } } as unknown as TrustPolicy;
  return { agent, policy };
}

describe('the note about a judge that is the author', () => {
  it('the note names an agent whose judge is an alias of its own model', () => {
    assert.match(
      judgeNote([aDefinition('default/judge')], resolve) ?? '',
      /^every tool that agent "a" forges is refused: the judge default\/judge \(local\/X\) of TrustPolicy "p" is a model of the agent; configure another model for the judge, or set spec\.models\.judgeMayBeAuthor/,
    );
  });

  it('there is no note for another judge, a policy that permits it, or an agent that may not forge', () => {
    const others = [
      aDefinition('default/other'),
      aDefinition('default/judge', { judgeMayBeAuthor: true }),
      aDefinition('default/judge', { enabled: false }),
    ];
    assert.equal(judgeNote(others, resolve), undefined);
  });
});
