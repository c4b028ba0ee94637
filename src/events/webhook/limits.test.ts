import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WebhookLimits } from './limits.ts';

describe('the limits of webhooks', () => {
  const path = (trigger: string) => ({ namespace: 'team-a', agent: 'hooked', trigger });
  let now = 0;

  function accepted(limits: WebhookLimits, address: string, trigger: string, times: number): number {
    let count = 0;
    for (let index = 0; index < times; index += 1) {
      try {
        limits.take(address, path(trigger));
        count += 1;
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'TEMPER_RATE_LIMITED');
      }
    }
    return count;
  }

  it('an address sends a burst to one webhook, then a few per second, and other webhooks and addresses go on', () => {
    const limits = new WebhookLimits({ monotonic: () => now });
    assert.equal(accepted(limits, '10.0.0.1', 'order', 100), 60);
    assert.equal(accepted(limits, '10.0.0.1', 'other', 10), 10);
    assert.equal(accepted(limits, '10.0.0.2', 'order', 10), 10);
    now += 5_000;
    assert.equal(accepted(limits, '10.0.0.1', 'order', 100), 10);
  });

  it('an address that tries many paths has a limit for all of them', () => {
    const limits = new WebhookLimits({ monotonic: () => now });
    const sent = Array.from({ length: 300 }, (_, index) => accepted(limits, '10.0.0.1', `path-${index}`, 1));
    assert.equal(sent.filter((count) => count === 1).length, 200);
  });
});
