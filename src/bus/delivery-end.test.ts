import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../lib/errors.ts';
import { DeliveryEnd } from './delivery-end.ts';

const isLost = (error: unknown): boolean => isTemperError(error, 'TEMPER_DELIVERY_LOST');

describe('the end of a delivery', () => {
  it('a delivery ends once', async () => {
    const delivery = new DeliveryEnd();
    let calls = 0;
    const work = async (): Promise<void> => void (calls += 1);
    await delivery.end(work);
    await assert.rejects(delivery.end(work), isLost);
    assert.throws(() => delivery.assertOpen(), isLost);
    assert.equal(calls, 1);
  });

  it('a failed call does not end a delivery', async () => {
    const delivery = new DeliveryEnd();
    await assert.rejects(
      delivery.end(() => Promise.reject(new Error('no connection'))),
      /no connection/,
    );
    delivery.assertOpen();
    await delivery.end(async () => undefined);
  });

  it('the first of concurrent calls that succeeds ends the delivery, and the others are refused', async () => {
    const delivery = new DeliveryEnd();
    const first = Promise.withResolvers<void>();
    const calls: string[] = [];
    const failing = delivery.end(() => first.promise);
    const second = delivery.end(async () => void calls.push('second'));
    const third = delivery.end(async () => void calls.push('third'));
    first.reject(new Error('no connection'));
    await assert.rejects(failing, /no connection/);
    await second;
    await assert.rejects(third, isLost);
    assert.deepEqual(calls, ['second']);
  });
});
