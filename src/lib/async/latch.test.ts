import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Latch } from './latch.ts';

describe('a latch', () => {
  it('opening it resolves all waits, and later waits resolve at once', async () => {
    const latch = new Latch();
    const { signal } = new AbortController();
    const waits = [latch.opened(signal), latch.opened(signal)];
    assert.equal(latch.isOpen, false);
    latch.open();
    await Promise.all([...waits, latch.opened(signal), latch.opened(AbortSignal.abort())]);
    assert.equal(latch.isOpen, true);
  });

  it('an aborted signal rejects only its own wait', async () => {
    const latch = new Latch();
    const aborting = new AbortController();
    const aborted = latch.opened(aborting.signal);
    const other = latch.opened(new AbortController().signal);
    aborting.abort(new Error('enough'));
    await assert.rejects(aborted, /enough/);
    await assert.rejects(latch.opened(AbortSignal.abort(new Error('too late'))), /too late/);
    latch.open();
    await other;
  });
});
