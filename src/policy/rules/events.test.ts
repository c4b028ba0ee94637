import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { createDecider } from '../decider.ts';
import { aSnapshot, aTool } from '../policy.testing.ts';
import type { PolicyRequest } from '../types.ts';

type EventGrants = NonNullable<AgentSpec['grants']>['events'];

function outcome(request: PolicyRequest, events: EventGrants, tainted = false): string {
  const grants = { tools: ['*'], ...(events === undefined ? {} : { events }) };
  const snapshot = aSnapshot({ agent: { grants }, policy: { tainted: { deny: ['message'] } } });
  const { effect, rule } = createDecider({ ...snapshot, tainted }).decide(request);
  return `${effect} ${rule}`;
}

const publish = (subject: string): PolicyRequest => ({ kind: 'Publish', subject });
const subscribe = (pattern: string): PolicyRequest => ({ kind: 'Subscribe', pattern });

describe('publishing events and subscribing to them', () => {
  it('an agent publishes only what its grant names, and nothing without one', () => {
    assert.equal(outcome(publish('orders.paid'), undefined), 'Deny grant.events.publish');
    assert.equal(outcome(publish('orders.paid'), { subscribe: ['>'] }), 'Deny grant.events.publish');
    assert.equal(outcome(publish('orders.paid'), { publish: ['orders.*'] }), 'Allow grant.events.publish');
    assert.equal(outcome(publish('orders.paid.late'), { publish: ['orders.*'] }), 'Deny grant.events.publish');
    assert.equal(outcome(publish('orders.paid.late'), { publish: ['orders.>'] }), 'Allow grant.events.publish');
    assert.equal(outcome(publish('orders'), { publish: ['orders.>'] }), 'Deny grant.events.publish');
  });

  it('no agent publishes events of the platform, or under a text that is no subject', () => {
    for (const subject of ['temper.agent.ready', 'temper', 'orders.*', '>', '', 'a..b', '$SYS.x'])
      assert.equal(outcome(publish(subject), { publish: ['>', '*', 'temper.>'] }), 'Deny event.subject', subject);
  });

  it('a tainted session publishes no event where the policy denies messages to it', () => {
    assert.equal(outcome(publish('orders.paid'), { publish: ['>'] }, true), 'Deny tainted.message');
  });

  it('a subscription lies within the grant as a language', () => {
    const events = { subscribe: ['orders.*', 'temper.agent.>'] };
    for (const pattern of ['orders.paid', 'orders.*', 'temper.agent.*.ready', 'temper.agent.>'])
      assert.equal(outcome(subscribe(pattern), events), 'Allow grant.events.subscribe', pattern);
    for (const pattern of ['orders.>', '*.paid', '>', 'temper.>', 'orders'])
      assert.equal(outcome(subscribe(pattern), events), 'Deny grant.events.subscribe', pattern);
    assert.equal(outcome(subscribe('a.>.b'), { subscribe: ['>'] }), 'Deny event.subject');
  });

  it('a grant of events opens the tools for them at every level', () => {
    const tool = aTool({ name: 'event_publish', category: 'communication', action: 'comms:internal' });
    assert.equal(outcome(tool, undefined), 'Deny level.category');
    assert.equal(outcome(tool, { publish: ['a'] }), 'Allow grant.tools');
  });
});
